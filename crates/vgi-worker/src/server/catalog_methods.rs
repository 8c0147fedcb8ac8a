//! Discovery: what the worker offers.

use arrow_array::RecordBatch;
use bytes::Bytes;
use vgi_wire::WireError;
use vgi_wire::filter;
use vgi_wire::ipc::{self, Segments};
use vgi_wire::methods::{
    AttachReply, AttachRequest, CatalogInfo, Example, FunctionInfo, FunctionType, SchemaInfo, items_blob,
};
use vgi_wire::record::RecordBuilder;
use vgi_wire::server::{Call, acknowledgement};

use crate::args;
use crate::catalog::Registered;
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
        let reply = AttachReply {
            attach_opaque_data: self.attachment(options.as_ref())?,
            default_schema: catalog.default_schema().to_owned(),
            catalog_version: CATALOG_VERSION,
            catalog_version_frozen: true,
            settings: catalog.settings.iter().map(Declared::spec).collect(),
            secret_types: catalog.secret_types.clone(),
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
        let info = |name: &str| SchemaInfo { path: vec![name.to_owned()], comment: None }.to_blob();
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

    /// An attachment has no state here: its data names the catalog, holds the options, and outlives the process. The options are those
    /// of the client itself, so there is nothing in them to hide from it.
    fn attachment(&self, options: Option<&RecordBatch>) -> Result<Bytes, Fault> {
        let options = options.map(|options| ipc::encode_stream(options, &[])).transpose()?;
        let options = options.map(|blob| blob.to_bytes()).unwrap_or_default();
        Ok([self.attachment_prefix(), options].concat().into())
    }

    /// The options of an attachment. A call without one has the defaults, if that is enough.
    pub(super) fn attach_options(&self, attachment: Option<&Bytes>) -> Result<Option<RecordBatch>, Fault> {
        self.check_attachment(attachment)?;
        let declared = &self.server.catalog.attach_options;
        let Some(attachment) = attachment else { return Ok(declared::options(declared, None)?) };
        let options = attachment.slice(self.attachment_prefix().len()..);
        let options = if options.is_empty() { None } else { Some(ipc::decode_batch(options)?) };
        Ok(declared::options(declared, options.as_ref())?)
    }

    /// Refuses the attachment of another server; none at all is fine, since there is only one catalog.
    pub(super) fn check_attachment(&self, given: Option<&Bytes>) -> Result<(), Fault> {
        if given.is_none_or(|given| given.starts_with(&self.attachment_prefix())) {
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
