//! Discovery: what the worker offers.

use arrow_array::RecordBatch;
use bytes::Bytes;
use vgi_wire::WireError;
use vgi_wire::arguments::decode_values;
use vgi_wire::filter;
use vgi_wire::ipc::{self, Segments};
use vgi_wire::methods::{
    AttachReply, AttachRequest, BindRequest, CardinalityRequest, CatalogContents, CatalogInfo, Example, FunctionInfo,
    FunctionType, Method, ObjectInfo, SchemaInfo, SqlInfo, begun_blob, cardinality_blob, items_blob,
};
use vgi_wire::record::RecordBuilder;
use vgi_wire::server::{Call, acknowledgement};

use crate::args;
use crate::catalog::{Registered, path};
use crate::declared::{self, Declared};
use crate::error::{Error, Result};
use crate::function::Filters;
use crate::given::Given;
use crate::server::Exchange;
use crate::server::execution::guarded;
use crate::server::fault::Fault;
use crate::server::protocol;
use crate::tokens::{Kind, random_id};
use crate::transactions::{TransactionContext, Transactions};

/// The catalog of a running worker never changes.
const CATALOG_VERSION: i64 = 1;

/// Bytes of the id in an attachment.
const ATTACHMENT_ID: usize = 16;

impl Exchange<'_> {
    pub(super) fn catalogs(&self) -> Result<Segments, Fault> {
        let name = self.server.catalog.name().to_owned();
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let info = CatalogInfo {
            name,
            implementation_version: Some(version),
            data_version_spec: None,
            attach_options: self.server.catalog.attach_options.iter().map(Declared::spec).collect(),
        };
        self.list(vec![info.to_blob()])
    }

    pub(super) fn attach(&self, call: &Call) -> Result<Segments, Fault> {
        let request = AttachRequest::from_blob(call.request_blob()?)?;
        let catalog = &self.server.catalog;
        if request.name != catalog.name() {
            let message = format!("this worker has no catalog '{}' (it has: {})", request.name, catalog.name());
            return Err(Error::NotFound(message).into());
        }
        let options = declared::options(&catalog.attach_options, request.options.as_ref())?;
        let mut published = Vec::with_capacity(catalog.published.len());
        for (schema, name) in &catalog.published {
            let path = path(schema);
            let function = catalog.functions(&path)?.find(|function| function.spec().name == *name);
            if let Some(function) = function {
                published.push(info(function.as_ref(), &path).to_blob()?.to_bytes());
            }
        }
        let reply = AttachReply {
            global_functions: published,
            global_function_prefix: catalog.prefix.clone(),
            attach_opaque_data: self.attachment(options.as_ref())?,
            default_schema: catalog.default_schema().to_owned(),
            catalog_version: CATALOG_VERSION,
            catalog_version_frozen: true,
            settings: catalog.settings.iter().map(Declared::spec).collect(),
            secret_types: catalog.secret_types.clone(),
            supports_transactions: catalog.transactions.is_some(),
            supports_catalog_contents: true,
            ..AttachReply::default()
        };
        self.result(reply.to_blob())
    }

    pub(super) fn detach(&self, call: &Call) -> Result<Segments, Fault> {
        self.check_attachment_of(call)?;
        Ok(acknowledgement()?)
    }

    pub(super) fn version(&self, call: &Call) -> Result<Segments, Fault> {
        self.check_attachment_of(call)?;
        self.result(RecordBuilder::new().integer("version", CATALOG_VERSION).finish(&[]))
    }

    pub(super) fn schemas(&self, call: &Call) -> Result<Segments, Fault> {
        self.check_attachment_of(call)?;
        let attachment = call.record()?.bytes("attach_opaque_data")?;
        let attached = protocol::wants_attachments(call.protocol_version.as_deref());
        let info = |name: &str| {
            let schema = schema_info(name);
            if attached { schema.to_attached_blob(&attachment) } else { schema.to_blob() }
        };
        self.list(self.server.catalog.schemas().map(info).collect())
    }

    /// Everything at once.
    pub(super) fn contents(&self, call: &Call) -> Result<Segments, Fault> {
        self.check_attachment_of(call)?;
        let etag = format!("{:016x}", self.server.fingerprint);
        if call.record()?.optional_text("if_none_match").as_ref() == Some(&etag) {
            let contents = CatalogContents {
                catalog_version: CATALOG_VERSION,
                etag: Some(etag),
                not_modified: true,
                ..CatalogContents::default()
            };
            return self.result(contents.to_blob());
        }
        // the catalog does not change while the server runs
        let known = self.server.contents.get();
        let blob = known.map_or_else(|| self.all_contents(etag), |known| Ok(known.clone()))?;
        self.result(Ok(self.server.contents.get_or_init(|| blob).clone().into()))
    }

    fn all_contents(&self, etag: String) -> Result<Bytes, Fault> {
        let catalog = &self.server.catalog;
        let schemas: Vec<_> = catalog.schemas().map(schema_info).collect();
        let mut functions = Vec::new();
        for schema in &schemas {
            functions.extend(catalog.functions(&schema.path)?.map(|function| info(function.as_ref(), &schema.path)));
        }
        functions.extend(catalog.listed.functions.iter().cloned());
        let contents = CatalogContents {
            catalog_version: CATALOG_VERSION,
            etag: Some(etag),
            schemas,
            functions,
            tables: catalog.listed.tables.clone(),
            indexes: catalog.listed.indexes.clone(),
            views: catalog.views.clone(),
            macros: catalog.macros.clone(),
            ..CatalogContents::default()
        };
        Ok(contents.to_blob()?.to_bytes())
    }

    pub(super) fn functions(&self, call: &Call) -> Result<Segments, Fault> {
        self.check_attachment_of(call)?;
        let record = call.record()?;
        let path = record.texts("path");
        let functions = self.server.catalog.functions(&path)?.map(|function| info(function.as_ref(), &path));
        let listed = self.server.catalog.listed.functions.iter().filter(|function| function.schema_path == path);
        let kind = record.text("type")?.to_ascii_uppercase();
        let wanted = |function: &FunctionInfo| kind_of(function.function_type) == kind;
        self.list(functions.chain(listed.cloned()).filter(wanted).map(|function| function.to_blob()).collect())
    }

    /// The tables, views, macros or indexes of a schema.
    pub(super) fn objects(&self, method: Method, call: &Call) -> Result<Segments, Fault> {
        self.check_attachment_of(call)?;
        let record = call.record()?;
        let path = record.texts("path");
        let catalog = &self.server.catalog;
        catalog.check_schema(&path)?;
        let named = |object: &&ObjectInfo| object.schema_path == path;
        let table = record.optional_text("type").is_some_and(|kind| kind.eq_ignore_ascii_case("TABLE_MACRO"));
        let here = |item: &&SqlInfo| item.schema_path == path;
        self.list(match method {
            Method::SchemaTables => catalog.listed.tables.iter().filter(named).map(ObjectInfo::to_table_blob).collect(),
            Method::SchemaIndexes => {
                catalog.listed.indexes.iter().filter(named).map(ObjectInfo::to_index_blob).collect()
            }
            Method::SchemaViews => catalog.views.iter().filter(here).map(SqlInfo::to_view_blob).collect(),
            _ => {
                let macros = catalog.macros.iter().filter(here).filter(|item| item.table == table);
                macros.map(SqlInfo::to_macro_blob).collect()
            }
        })
    }

    /// What the function knows of the size of its result before it is there.
    pub(super) fn cardinality(&self, call: &Call) -> Result<Segments, Fault> {
        let request = CardinalityRequest::from_blob(call.request_blob()?)?;
        let bind = BindRequest::from_blob(request.bind_call)?;
        let given = self.given(&bind)?;
        let values = decode_values(&bind.arguments)?;
        let function = self.server.catalog.function_for(&bind.schema_path, &bind.function_name, &values)?;
        let rows = guarded(|| function.cardinality(values, &bind.input_schema, &given, self.logger))?;
        // more than the protocol can say is not known
        let said = |rows: Option<u64>| rows.and_then(|rows| i64::try_from(rows).ok());
        self.result(cardinality_blob(said(rows.estimate), said(rows.max)))
    }

    pub(super) fn begin_transaction(&self, call: &Call) -> Result<Segments, Fault> {
        let id = random_id();
        self.with_transaction(call, &Bytes::copy_from_slice(&id), Transactions::begin)?;
        let handle = self.server.sealer.seal(Kind::Transaction, self.principal, &id)?;
        self.result(begun_blob(&handle.into()))
    }

    /// The id in a transaction's handle, of one that this principal began.
    pub(super) fn transaction_of(&self, handle: &Bytes) -> Result<Bytes, Fault> {
        let text = str::from_utf8(handle).unwrap_or_default();
        let id = self.server.sealer.open::<[u8; 16]>(Kind::Transaction, self.principal, text);
        id.map(|id| Bytes::copy_from_slice(&id)).map_err(|_| {
            let message =
                "transaction_opaque_data was not made by this worker for this client; begin another transaction";
            Fault::new(http::StatusCode::OK, "TransactionNotRecognizedError", message).code("FAILED_PRECONDITION")
        })
    }

    /// Commits a transaction or rolls it back.
    pub(super) fn end_transaction(
        &self,
        call: &Call,
        act: impl FnOnce(&dyn Transactions, &TransactionContext<'_>) -> Result<(), Error>,
    ) -> Result<Segments, Fault> {
        let id = self.transaction_of(&call.record()?.bytes("transaction_opaque_data")?)?;
        self.with_transaction(call, &id, act)?;
        self.result(acknowledgement())
    }

    fn with_transaction(
        &self,
        call: &Call,
        id: &Bytes,
        act: impl FnOnce(&dyn Transactions, &TransactionContext<'_>) -> Result<(), Error>,
    ) -> Result<(), Fault> {
        let transactions = self.server.catalog.transactions.as_deref();
        let transactions =
            transactions.ok_or_else(|| Fault::bad_request("ValueError", "the catalog has no transactions"))?;
        let attachment = call.record()?.bytes("attach_opaque_data")?;
        let (attachment, options) = self.attachment_of(Some(&attachment))?;
        let given = Given { options, attachment, transaction: Some(id.clone()), ..Given::default() };
        let context = TransactionContext { id, principal: self.principal, given: &given, logger: self.logger };
        Ok(guarded(|| act(transactions, &context))?)
    }

    fn list(&self, items: Vec<Result<Segments, WireError>>) -> Result<Segments, Fault> {
        let blobs = items.into_iter().map(|item| item.map(|blob| blob.to_bytes())).collect::<Result<Vec<Bytes>, _>>();
        self.result(blobs.and_then(|blobs| items_blob(&blobs)))
    }

    fn attachment_prefix(&self) -> Bytes {
        Bytes::from(format!("vgi-worker catalog {}\0{}\0", self.server.catalog.name(), self.principal))
    }

    /// An attachment has no state here: its data names the catalog, whose it is and what is in it, has an id, holds the options, and
    /// outlives the process. The options are those of the client itself, so there is nothing in them to hide from it. It is not sealed:
    /// one who writes another's id under their own name has another attachment ([`attachment_of`](Self::attachment_of)).
    fn attachment(&self, options: Option<&RecordBatch>) -> Result<Bytes, Fault> {
        let options = options.map(|options| ipc::encode_stream(options, &[])).transpose()?;
        let options = options.map(|blob| blob.to_bytes()).unwrap_or_default();
        let fingerprint = Bytes::copy_from_slice(&self.server.fingerprint.to_le_bytes());
        Ok([self.attachment_prefix(), fingerprint, Bytes::copy_from_slice(&random_id()), options].concat().into())
    }

    /// What tells an attachment from all others, those of other principals included, and its options. A call without one has the defaults, if that is enough. An execution goes on although the
    /// functions of the worker have changed meanwhile.
    pub(super) fn attachment_of(
        &self,
        attachment: Option<&Bytes>,
    ) -> Result<(Option<Bytes>, Option<RecordBatch>), Fault> {
        let declared = &self.server.catalog.attach_options;
        let Some(attachment) = attachment else { return Ok((None, declared::options(declared, None)?)) };
        let (_, mut id) = self.parts(attachment)?;
        let options = id.split_off(ATTACHMENT_ID);
        let options = if options.is_empty() { None } else { Some(ipc::decode_batch(options)?) };
        let id = [id.as_ref(), self.principal.as_bytes()].concat().into();
        Ok((Some(id), declared::options(declared, options.as_ref())?))
    }

    /// Refuses the attachment of another server, or of one with other functions: its client knows others than there are. None at all is
    /// fine, since there is only one catalog.
    pub(super) fn check_attachment(&self, given: Option<&Bytes>) -> Result<(), Fault> {
        let Some(given) = given else { return Ok(()) };
        let (fingerprint, _) = self.parts(given)?;
        if fingerprint == self.server.fingerprint {
            Ok(())
        } else {
            Err(not_recognized("is older than this worker's functions"))
        }
    }

    /// Fingerprint of an attachment, and its id with the options.
    fn parts(&self, attachment: &Bytes) -> Result<(u64, Bytes), Fault> {
        let prefix = self.attachment_prefix();
        let rest = attachment.strip_prefix(prefix.as_ref()).and_then(|rest| rest.split_first_chunk::<8>());
        let rest = rest.filter(|(_, rest)| rest.len() >= ATTACHMENT_ID);
        let (fingerprint, rest) = rest.ok_or_else(|| not_recognized("was not made by this worker for this client"))?;
        Ok((u64::from_le_bytes(*fingerprint), attachment.slice_ref(rest)))
    }

    fn check_attachment_of(&self, call: &Call) -> Result<(), Fault> {
        self.check_attachment(Some(&call.record()?.bytes("attach_opaque_data")?))
    }
}

fn not_recognized(why: &str) -> Fault {
    let message = format!("attach_opaque_data {why}; attach again");
    Fault::new(http::StatusCode::OK, "OpaqueDataNotRecognizedError", message).code("FAILED_PRECONDITION")
}

/// The kind under which the protocol lists a function.
fn kind_of(function: FunctionType) -> &'static str {
    match function {
        FunctionType::Scalar => "SCALAR_FUNCTION",
        FunctionType::Aggregate => "AGGREGATE_FUNCTION",
        FunctionType::Table | FunctionType::TableBuffering | FunctionType::Other => "TABLE_FUNCTION",
    }
}

fn schema_info(name: &str) -> SchemaInfo {
    SchemaInfo { path: path(name), comment: None }
}

fn info(function: &dyn Registered, path: &[String]) -> FunctionInfo {
    let spec = function.spec();
    let example = |example: &crate::function::Example| Example {
        sql: example.sql.clone(),
        description: example.description.clone(),
    };
    FunctionInfo {
        name: spec.name.clone(),
        schema_path: path.to_vec(),
        function_type: FunctionType::TableBuffering,
        arguments: args::declaration(function.arguments()),
        parameter_defaults: args::defaults(function.arguments()).ok().flatten(),
        output_schema: None,
        description: spec.description.clone(),
        comment: None,
        tags: spec.tags.clone(),
        stability: spec.stability,
        examples: spec.examples.iter().map(example).collect(),
        categories: spec.categories.clone(),
        projection_pushdown: spec.flags.projection_pushdown,
        filter_pushdown: spec.flags.filters != Filters::Unsupported,
        filter_semantic_profiles: match spec.flags.filters {
            Filters::Unsupported => Vec::new(),
            Filters::Ignored | Filters::Applied => vec![filter::SEMANTICS.to_owned()],
        },
        filters_exactly_applied: spec.flags.filters == Filters::Applied,
        max_workers: spec.max_workers,
        source_order_dependent: spec.flags.source_order_dependent,
        sink_order_dependent: spec.flags.sink_order_dependent,
        requires_input_batch_index: spec.flags.requires_input_batch_index,
        required_settings: spec.settings.clone(),
        required_secrets: spec.secrets.clone(),
    }
}
