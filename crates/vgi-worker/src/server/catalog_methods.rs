//! Discovery: what the worker offers.

use arrow_array::RecordBatch;
use bytes::Bytes;
use vgi_wire::WireError;
use vgi_wire::filter;
use vgi_wire::ipc::{self, Segments};
use vgi_wire::methods::{
    AttachReply, AttachRequest, CatalogContents, CatalogInfo, Example, FunctionInfo, FunctionType, Method, ObjectInfo,
    SchemaInfo, SqlInfo, items_blob,
};
use vgi_wire::record::RecordBuilder;
use vgi_wire::server::{Call, acknowledgement};

use crate::args;
use crate::catalog::{Registered, path};
use crate::declared::{self, Declared};
use crate::error::{Error, Result};
use crate::function::Filters;
use crate::server::Exchange;
use crate::server::fault::Fault;

/// The catalog of a running worker never changes.
const CATALOG_VERSION: i64 = 1;

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
        self.list(self.server.catalog.schemas().map(|name| schema_info(name).to_blob()).collect())
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
        let named = |objects: &[ObjectInfo]| {
            objects.iter().filter(|item| item.schema_path == path).map(ObjectInfo::to_blob).collect()
        };
        let table = record.optional_text("type").is_some_and(|kind| kind.eq_ignore_ascii_case("TABLE_MACRO"));
        let here = |item: &&SqlInfo| item.schema_path == path;
        self.list(match method {
            Method::SchemaTables => named(&catalog.listed.tables),
            Method::SchemaIndexes => named(&catalog.listed.indexes),
            Method::SchemaViews => catalog.views.iter().filter(here).map(SqlInfo::to_view_blob).collect(),
            _ => {
                let macros = catalog.macros.iter().filter(here).filter(|item| item.table == table);
                macros.map(SqlInfo::to_macro_blob).collect()
            }
        })
    }

    /// Nothing is known about the size of a result before it is there.
    pub(super) fn cardinality(&self) -> Result<Segments, Fault> {
        self.result(RecordBuilder::new().optional_integer("estimate", None).optional_integer("max", None).finish(&[]))
    }

    fn list(&self, items: Vec<Result<Segments, WireError>>) -> Result<Segments, Fault> {
        let blobs = items.into_iter().map(|item| item.map(|blob| blob.to_bytes())).collect::<Result<Vec<Bytes>, _>>();
        self.result(blobs.and_then(|blobs| items_blob(&blobs)))
    }

    fn attachment_prefix(&self) -> Bytes {
        Bytes::from(format!("vgi-worker catalog {}\0", self.server.catalog.name()))
    }

    /// An attachment has no state here: its data names the catalog and what is in it, holds the options, and outlives the process. The
    /// options are those of the client itself, so there is nothing in them to hide from it.
    fn attachment(&self, options: Option<&RecordBatch>) -> Result<Bytes, Fault> {
        let options = options.map(|options| ipc::encode_stream(options, &[])).transpose()?;
        let options = options.map(|blob| blob.to_bytes()).unwrap_or_default();
        let fingerprint = Bytes::copy_from_slice(&self.server.fingerprint.to_le_bytes());
        Ok([self.attachment_prefix(), fingerprint, options].concat().into())
    }

    /// The options of an attachment. A call without one has the defaults, if that is enough. An execution goes on although the functions
    /// of the worker have changed meanwhile.
    pub(super) fn attach_options(&self, attachment: Option<&Bytes>) -> Result<Option<RecordBatch>, Fault> {
        let declared = &self.server.catalog.attach_options;
        let Some(attachment) = attachment else { return Ok(declared::options(declared, None)?) };
        let (_, options) = self.parts(attachment)?;
        let options = if options.is_empty() { None } else { Some(ipc::decode_batch(options)?) };
        Ok(declared::options(declared, options.as_ref())?)
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

    /// Fingerprint and options of an attachment.
    fn parts(&self, attachment: &Bytes) -> Result<(u64, Bytes), Fault> {
        let prefix = self.attachment_prefix();
        let rest = attachment.strip_prefix(prefix.as_ref()).and_then(|rest| rest.split_first_chunk::<8>());
        let (fingerprint, options) = rest.ok_or_else(|| not_recognized("was not made by this worker"))?;
        Ok((u64::from_le_bytes(*fingerprint), attachment.slice_ref(options)))
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
        output_schema: None,
        description: spec.description.clone(),
        comment: None,
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
