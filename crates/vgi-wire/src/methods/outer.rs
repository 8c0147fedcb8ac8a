//! The outer row of a request: its columns are a method's parameters, its metadata says which method.

use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema};

use super::Method;
use crate::generation::Dialect;
use crate::ipc::{self, RowTemplate, Segments};
use crate::record::RecordBuilder;
use crate::{WireError, meta};

/// The metadata that routes a request.
pub(super) fn routing(dialect: &Dialect, method: Method) -> Vec<(&str, &str)> {
    let mut metadata = vec![(meta::METHOD, method.name()), (meta::REQUEST_VERSION, meta::REQUEST_VERSION_VALUE)];
    metadata.extend(dialect.protocol.as_deref().map(|protocol| (meta::PROTOCOL, protocol)));
    metadata.extend(dialect.version.as_deref().map(|version| (meta::PROTOCOL_VERSION, version)));
    metadata
}

/// The body of a call whose one parameter is a record. The record's pieces are not copied.
///
/// # Errors
/// When the record exceeds 2 GiB.
pub fn request_body(dialect: &Dialect, method: Method, record: Segments) -> Result<Segments, WireError> {
    RecordBuilder::new().bytes("request", record).finish(&routing(dialect, method))
}

/// [`request_body`] of a row that was stored elsewhere: no row, but the place where it can be fetched.
///
/// # Errors
/// Never in practice.
pub fn pointer_body(dialect: &Dialect, method: Method, location: &str) -> Result<Segments, WireError> {
    let schema = Schema::new(vec![Field::new("request", DataType::Binary, false)]);
    let mut metadata = routing(dialect, method);
    metadata.push((meta::LOCATION, location));
    ipc::encode_stream(&RecordBatch::new_empty(Arc::new(schema)), &metadata)
}

/// The path of [`upload_url_body`] below the base.
pub const UPLOAD_URL_PATH: &str = "__upload_url__/init";

/// Asks for one place to store a request at.
///
/// # Errors
/// Never in practice.
pub fn upload_url_body() -> Result<Segments, WireError> {
    let metadata = [(meta::METHOD, "__upload_url__"), (meta::REQUEST_VERSION, meta::REQUEST_VERSION_VALUE)];
    RecordBuilder::new().integer("count", 1).finish(&metadata)
}

/// A template of [`request_body`]; the record is column 0.
pub(super) fn request_template(dialect: &Dialect, method: Method) -> Result<RowTemplate, WireError> {
    let row = RecordBuilder::new().bytes("request", Segments::new());
    Ok(row.template(&routing(dialect, method))?.0)
}

/// The body of a call without parameters: no column, but a batch, since the metadata needs one.
///
/// # Errors
/// Never in practice.
pub fn no_parameters_body(dialect: &Dialect, method: Method) -> Result<Segments, WireError> {
    empty_batch(&routing(dialect, method))
}

/// A batch without columns and rows that carries metadata.
pub(crate) fn empty_batch(metadata: &[(&str, &str)]) -> Result<Segments, WireError> {
    let options = RecordBatchOptions::new().with_row_count(Some(0));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)
        .map_err(WireError::Encode)?;
    ipc::encode_stream(&batch, metadata)
}
