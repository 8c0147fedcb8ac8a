//! Chunks to record batches.

use std::pin::Pin;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::{Field, SchemaRef};
use cxx::UniquePtr;

use crate::bridge::{SharedType, ffi};
use crate::error::{Error, ExceptionClass};

/// Collects chunks and gives them as one batch. One per sink thread.
pub struct Exporter {
    writer: UniquePtr<ffi::ArrowWriter>,
    schema: SchemaRef,
}

impl Exporter {
    /// An exporter of chunks whose columns have these types, into batches of this schema.
    pub fn new(
        context: Pin<&mut ffi::ClientContext>,
        inputs: &[(String, SharedType)],
        schema: SchemaRef,
    ) -> Result<Self, Error> {
        Ok(Self { writer: writer(context, inputs)?, schema })
    }

    /// Appends all rows of a chunk.
    pub fn append(&mut self, chunk: Pin<&mut ffi::DataChunk>) -> Result<(), Error> {
        self.writer.pin_mut().append(chunk).map_err(conversion)
    }

    /// Rows appended since the last batch.
    pub fn rows(&self) -> usize {
        self.writer.rows()
    }

    /// Bytes that they occupy.
    pub fn bytes(&self) -> usize {
        self.writer.bytes()
    }

    /// All rows as a batch.
    pub fn take(&mut self) -> Result<RecordBatch, Error> {
        let rows = self.writer.rows();
        let columns: Result<Vec<_>, Error> =
            (0..self.schema.fields().len()).map(|column| Ok(take_column(&mut self.writer, column)?.1)).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns?, &options).map_err(defect)
    }
}

fn writer(
    context: Pin<&mut ffi::ClientContext>,
    inputs: &[(String, SharedType)],
) -> Result<UniquePtr<ffi::ArrowWriter>, Error> {
    let mut types = ffi::new_type_list();
    for (_, column_type) in inputs {
        types.pin_mut().push(column_type.get()?);
    }
    ffi::new_arrow_writer(context, &types).map_err(conversion)
}

/// Takes one column out of the writer: its field (without name) and its rows.
fn take_column(writer: &mut UniquePtr<ffi::ArrowWriter>, column: usize) -> Result<(Field, ArrayRef), Error> {
    let mut array = FFI_ArrowArray::empty();
    let mut schema = FFI_ArrowSchema::empty();
    let array_pointer: *mut FFI_ArrowArray = &raw mut array;
    let schema_pointer: *mut FFI_ArrowSchema = &raw mut schema;
    // SAFETY: both pointers are to live structures of the layout that the C data interface prescribes; DuckDB fills them in.
    unsafe { writer.pin_mut().take(column, array_pointer.cast(), schema_pointer.cast()) }.map_err(conversion)?;
    // SAFETY: the structures were filled in by DuckDB's converter, which exports valid arrays and gives up their ownership.
    let data = unsafe { from_ffi(array, &schema) }.map_err(defect)?;
    let rows = StructArray::from(data);
    match (rows.fields().first(), rows.columns().first()) {
        (Some(field), Some(array)) => Ok((field.as_ref().clone(), Arc::clone(array))),
        _ => Err(Error::new(ExceptionClass::Io, "DuckDB exported no column")),
    }
}

/// The Arrow fields that these columns are sent as. A type that cannot be sent is refused by the column's name.
pub fn exported_fields(
    mut context: Pin<&mut ffi::ClientContext>,
    inputs: &[(String, SharedType)],
) -> Result<Vec<Field>, Error> {
    let mut fields = Vec::with_capacity(inputs.len());
    for input in inputs {
        let refuse = |error: Error| {
            let type_name =
                input.1.get().ok().and_then(|column_type| ffi::type_name(column_type).ok()).unwrap_or_default();
            Error::new(
                ExceptionClass::Binder,
                format!("column '{}' of type {type_name} cannot be sent to a VGI server: {error}", input.0),
            )
        };
        let mut writer = writer(context.as_mut(), std::slice::from_ref(input)).map_err(refuse)?;
        let (field, _) = take_column(&mut writer, 0).map_err(refuse)?;
        fields.push(field.with_name(&input.0).with_nullable(true));
    }
    Ok(fields)
}

/// One value as an array of one row, in the type's natural Arrow form.
pub fn value_array(
    context: Pin<&mut ffi::ClientContext>,
    name: &str,
    value: &ffi::Value,
) -> Result<(Field, ArrayRef), Error> {
    let column = (name.to_owned(), SharedType::copy(ffi::value_type(value)));
    let mut writer = writer(context, std::slice::from_ref(&column))?;
    writer.pin_mut().append_value(value).map_err(conversion)?;
    let (field, array) = take_column(&mut writer, 0)?;
    Ok((field.with_name(name).with_nullable(true), array))
}

/// An error that DuckDB's converter threw.
pub(super) fn conversion(error: cxx::Exception) -> Error {
    Error::new(ExceptionClass::Conversion, exception_text(&error))
}

/// The message of a DuckDB exception; caught as a plain C++ exception its text is a JSON object.
pub fn exception_text(error: &cxx::Exception) -> String {
    let text = error.what();
    let parsed = serde_json::from_str::<serde_json::Value>(text).ok();
    parsed
        .and_then(|json| json.get("exception_message")?.as_str().map(str::to_owned))
        .unwrap_or_else(|| text.to_owned())
}

pub(super) fn defect(error: arrow_schema::ArrowError) -> Error {
    Error::new(ExceptionClass::Conversion, format!("DuckDB and Arrow disagree about a batch: {error}"))
}
