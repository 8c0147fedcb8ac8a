//! Chunks to record batches.

use std::pin::Pin;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions, StructArray};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use cxx::UniquePtr;

use super::column::Collector;
use super::vector::Picks;
use crate::bridge::{SharedType, ffi};
use crate::error::{Error, ExceptionClass};

/// Collects chunks and gives them as one batch. One per sink thread.
pub struct Exporter {
    columns: Vec<Box<dyn Collector>>,
    schema: SchemaRef,
    rows: usize,
}

impl Exporter {
    /// An exporter of chunks whose columns have these types, into batches of this schema.
    pub fn new(
        mut context: Pin<&mut ffi::ClientContext>,
        inputs: &[(String, SharedType)],
        schema: SchemaRef,
    ) -> Result<Self, Error> {
        let mut columns = Vec::with_capacity(inputs.len());
        for ((_, column_type), field) in inputs.iter().zip(schema.fields()) {
            let column_type = column_type.get()?;
            columns.push(match <dyn Collector>::of(&column_type.into(), field) {
                Some(collector) => collector,
                None => Box::new(Converted(ffi::new_arrow_writer(context.as_mut(), column_type).map_err(conversion)?)),
            });
        }
        Ok(Self { columns, schema, rows: 0 })
    }

    /// Appends rows `[first, first + count)` of a chunk.
    pub fn append(&mut self, chunk: &ffi::DataChunk, first: usize, count: usize) -> Result<(), Error> {
        for (index, column) in self.columns.iter_mut().enumerate() {
            let vector = ffi::chunk_column(chunk, index).map_err(conversion)?;
            column.append(vector, Picks::Range(first, count))?;
        }
        self.rows += count;
        Ok(())
    }

    /// Bytes that a chunk would add, as far as its columns know.
    pub fn weigh(&mut self, chunk: &ffi::DataChunk) -> Result<usize, Error> {
        let count = ffi::chunk_rows(chunk);
        let columns = self.columns.iter_mut().enumerate();
        columns.map(|(index, column)| column.weigh(ffi::chunk_column(chunk, index).map_err(conversion)?, count)).sum()
    }

    /// Rows appended since the last batch.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes that they occupy.
    pub fn bytes(&self) -> usize {
        self.columns.iter().map(|column| column.bytes()).sum()
    }

    /// All rows as a batch.
    pub fn take(&mut self) -> Result<RecordBatch, Error> {
        let rows = std::mem::take(&mut self.rows);
        let columns = self.columns.iter_mut().zip(self.schema.fields());
        let columns = columns.map(|(column, field)| column.take(field.data_type())).collect::<Result<_, _>>();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns.map_err(defect)?, &options);
        batch.map_err(defect)
    }
}

/// A column that DuckDB's converter collects.
struct Converted(UniquePtr<ffi::ArrowWriter>);

impl Collector for Converted {
    fn append(&mut self, vector: &ffi::Vector, picks: Picks<'_>) -> Result<(), Error> {
        let Picks::Range(first, count) = picks else {
            return Err(Error::new(ExceptionClass::Io, "a column of DuckDB's converter takes ranges of rows only"));
        };
        self.0.pin_mut().append(vector, first, count).map_err(conversion)
    }

    fn bytes(&self) -> usize {
        self.0.bytes()
    }

    fn take(&mut self, _: &DataType) -> Result<ArrayRef, ArrowError> {
        take(&mut self.0).map(|(_, array)| array).map_err(|error| ArrowError::ExternalError(Box::new(error)))
    }
}

/// Takes the rows of a writer: its field (without name) and the array.
fn take(writer: &mut UniquePtr<ffi::ArrowWriter>) -> Result<(Field, ArrayRef), Error> {
    let mut array = FFI_ArrowArray::empty();
    let mut schema = FFI_ArrowSchema::empty();
    let array_pointer: *mut FFI_ArrowArray = &raw mut array;
    let schema_pointer: *mut FFI_ArrowSchema = &raw mut schema;
    // SAFETY: both pointers are to live structures of the layout that the C data interface prescribes; DuckDB fills them in.
    unsafe { writer.pin_mut().take(array_pointer.cast(), schema_pointer.cast()) }.map_err(conversion)?;
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
        let writer = ffi::new_arrow_writer(context.as_mut(), input.1.get()?).map_err(conversion);
        let (field, _) = writer.and_then(|mut writer| take(&mut writer)).map_err(refuse)?;
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
    let mut writer = ffi::new_arrow_writer(context, ffi::value_type(value)).map_err(conversion)?;
    writer.pin_mut().append_value(value).map_err(conversion)?;
    let (field, array) = take(&mut writer)?;
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

pub(super) fn defect(error: ArrowError) -> Error {
    Error::new(ExceptionClass::Conversion, format!("DuckDB and Arrow disagree about a batch: {error}"))
}
