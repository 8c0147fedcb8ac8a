//! Discovery: what the worker offers.

use arrow_array::RecordBatch;
use bytes::Bytes;
use vgi_wire::WireError;
use vgi_wire::arguments::decode_values;
use vgi_wire::filter;
use vgi_wire::ipc::{self, Segments};
use vgi_wire::methods::{
    AttachReply, AttachRequest, BindRequest, CardinalityRequest, CatalogInfo, Example, FunctionInfo, FunctionType,
    SchemaInfo, begun_blob, cardinality_blob, items_blob,
};
use vgi_wire::record::RecordBuilder;
use vgi_wire::server::{Call, acknowledgement};

use crate::args;
use crate::catalog::Registered;
use crate::declared::{self, Declared};
use crate::error::{Error, Result};
use crate::function::Filters;
use crate::given::Given;
use crate::server::Exchange;
use crate::server::execution::guarded;
use crate::server::fault::Fault;
use crate::server::protocol;
use crate::tokens::random_id;
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
        let reply = AttachReply {
            attach_opaque_data: self.attachment(options.as_ref())?,
            default_schema: catalog.default_schema().to_owned(),
            catalog_version: CATALOG_VERSION,
            catalog_version_frozen: true,
            settings: catalog.settings.iter().map(Declared::spec).collect(),
            secret_types: catalog.secret_types.clone(),
            supports_transactions: catalog.transactions.is_some(),
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
            let schema = SchemaInfo { path: vec![name.to_owned()], comment: None };
            if attached { schema.to_attached_blob(&attachment) } else { schema.to_blob() }
        };
        self.list(self.server.catalog.schemas().map(info).collect())
    }

    pub(super) fn functions(&self, call: &Call) -> Result<Segments, Fault> {
        self.check_attachment_of(call)?;
        let record = call.record()?;
        let path = record.texts("path");
        let functions = self.server.catalog.functions(&path)?;
        // there are no scalar or aggregate functions here
        let listed = record.text("type")?.eq_ignore_ascii_case("TABLE_FUNCTION");
        self.list(functions.filter(|_| listed).map(|function| info(function.as_ref(), &path).to_blob()).collect())
    }

    /// A listing of what this worker has none of.
    pub(super) fn nothing(&self, call: &Call) -> Result<Segments, Fault> {
        self.check_attachment_of(call)?;
        self.server.catalog.check_schema(&call.record()?.texts("path"))?;
        self.list(Vec::new())
    }

    /// What the function knows of the size of its result before it is there.
    pub(super) fn cardinality(&self, call: &Call) -> Result<Segments, Fault> {
        let request = CardinalityRequest::from_blob(call.request_blob()?)?;
        let bind = BindRequest::from_blob(request.bind_call)?;
        let given = self.given(&bind)?;
        let function = self.server.catalog.function(&bind.schema_path, &bind.function_name)?;
        let values = decode_values(&bind.arguments)?;
        let rows = guarded(|| function.cardinality(values, &bind.input_schema, &given, self.logger))?;
        // more than the protocol can say is not known
        let said = |rows: Option<u64>| rows.and_then(|rows| i64::try_from(rows).ok());
        self.result(cardinality_blob(said(rows.estimate), said(rows.max)))
    }

    pub(super) fn begin_transaction(&self, call: &Call) -> Result<Segments, Fault> {
        let id = Bytes::copy_from_slice(&random_id());
        self.with_transaction(call, &id, Transactions::begin)?;
        self.result(begun_blob(&id))
    }

    pub(super) fn commit_transaction(&self, call: &Call) -> Result<Segments, Fault> {
        let id = call.record()?.bytes("transaction_opaque_data")?;
        self.with_transaction(call, &id, Transactions::commit)?;
        self.result(acknowledgement())
    }

    pub(super) fn roll_back_transaction(&self, call: &Call) -> Result<Segments, Fault> {
        let id = call.record()?.bytes("transaction_opaque_data")?;
        self.with_transaction(call, &id, Transactions::rollback)?;
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
        Bytes::from(format!("vgi-worker catalog {}\0", self.server.catalog.name()))
    }

    /// An attachment has no state here: its data names the catalog, has an id, holds the options, and outlives the process. The options
    /// are those of the client itself, so there is nothing in them to hide from it.
    fn attachment(&self, options: Option<&RecordBatch>) -> Result<Bytes, Fault> {
        let options = options.map(|options| ipc::encode_stream(options, &[])).transpose()?;
        let options = options.map(|blob| blob.to_bytes()).unwrap_or_default();
        Ok([self.attachment_prefix(), Bytes::copy_from_slice(&random_id()), options].concat().into())
    }

    /// The id and the options of an attachment. A call without one has the defaults, if that is enough.
    pub(super) fn attachment_of(
        &self,
        attachment: Option<&Bytes>,
    ) -> Result<(Option<Bytes>, Option<RecordBatch>), Fault> {
        self.check_attachment(attachment)?;
        let declared = &self.server.catalog.attach_options;
        let Some(attachment) = attachment else { return Ok((None, declared::options(declared, None)?)) };
        let mut id = attachment.slice(self.attachment_prefix().len()..);
        let options = id.split_off(ATTACHMENT_ID);
        let options = if options.is_empty() { None } else { Some(ipc::decode_batch(options)?) };
        Ok((Some(id), declared::options(declared, options.as_ref())?))
    }

    /// Refuses the attachment of another server; none at all is fine, since there is only one catalog.
    pub(super) fn check_attachment(&self, given: Option<&Bytes>) -> Result<(), Fault> {
        let prefix = self.attachment_prefix();
        if given.is_none_or(|given| given.starts_with(&prefix) && given.len() >= prefix.len() + ATTACHMENT_ID) {
            return Ok(());
        }
        let message = "attach_opaque_data was not made by this worker; attach again";
        Err(Fault::new(http::StatusCode::OK, "OpaqueDataNotRecognizedError", message).code("FAILED_PRECONDITION"))
    }

    fn check_attachment_of(&self, call: &Call) -> Result<(), Fault> {
        self.check_attachment(Some(&call.record()?.bytes("attach_opaque_data")?))
    }
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
