//! Discovery: what the worker offers.

use bytes::Bytes;
use vgi_wire::WireError;
use vgi_wire::filter;
use vgi_wire::ipc::Segments;
use vgi_wire::methods::{
    AttachReply, AttachRequest, CatalogInfo, Example, FunctionInfo, FunctionType, SchemaInfo, items_blob,
};
use vgi_wire::record::RecordBuilder;
use vgi_wire::server::{Call, acknowledgement};

use crate::args;
use crate::catalog::Registered;
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
            attach_options: Vec::new(),
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
        let reply = AttachReply {
            attach_opaque_data: self.attachment(),
            default_schema: catalog.default_schema().to_owned(),
            catalog_version: CATALOG_VERSION,
            catalog_version_frozen: true,
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

    /// An attachment has no state, so its data only names the catalog and outlives the process.
    fn attachment(&self) -> Bytes {
        Bytes::from(format!("vgi-worker catalog {}", self.server.catalog.name()))
    }

    /// Refuses the attachment of another server; none at all is fine, since there is only one catalog.
    pub(super) fn check_attachment(&self, given: Option<&Bytes>) -> Result<(), Fault> {
        if given.is_none_or(|given| *given == self.attachment()) {
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
        max_workers: None,
        source_order_dependent: spec.flags.source_order_dependent,
        sink_order_dependent: spec.flags.sink_order_dependent,
        requires_input_batch_index: spec.flags.requires_input_batch_index,
        required_settings: Vec::new(),
        required_secrets: Vec::new(),
    }
}
