//! Record batches to chunks.

use std::pin::Pin;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::{Array, RecordBatch, StructArray};
use arrow_schema::{Field, Schema};
use cxx::UniquePtr;

use super::export::{conversion, defect};
use crate::bridge::{SharedType, ffi};
use crate::error::Error;

/// Reads batches of one schema. One per source thread.
pub struct Importer {
    reader: UniquePtr<ffi::ArrowReader>,
}

impl Importer {
    /// An importer of batches of this schema.
    pub fn new(context: Pin<&mut ffi::ClientContext>, schema: &Schema) -> Result<Self, Error> {
        let mut exported = FFI_ArrowSchema::try_from(schema).map_err(defect)?;
        let pointer: *mut FFI_ArrowSchema = &raw mut exported;
        // SAFETY: the pointer is to a live schema of the C data interface; DuckDB takes its contents over.
        let reader = unsafe { ffi::new_arrow_reader(context, pointer.cast()) }.map_err(conversion)?;
        Ok(Self { reader })
    }

    /// Makes a batch the one that [`read`](Self::read) reads from.
    pub fn set_batch(&mut self, batch: RecordBatch) {
        let rows: StructArray = batch.into();
        let mut exported = FFI_ArrowArray::new(&rows.to_data());
        let pointer: *mut FFI_ArrowArray = &raw mut exported;
        // SAFETY: the pointer is to a live array of the C data interface and of the reader's schema; DuckDB takes its contents over.
        unsafe { self.reader.pin_mut().set_batch(pointer.cast()) };
    }

    /// Fills the chunk with rows `[offset, offset + rows)` of these columns of the batch, cast to the types of the chunk. The rows
    /// must be in the batch, and at most as many as a vector holds.
    pub fn read(
        &mut self,
        context: Pin<&mut ffi::ClientContext>,
        offset: usize,
        rows: usize,
        columns: &[usize],
        chunk: Pin<&mut ffi::DataChunk>,
    ) -> Result<(), Error> {
        self.reader.pin_mut().read(context, offset, rows, columns, chunk).map_err(conversion)
    }
}

/// The DuckDB types of a server's schema. Where a field is the same as an input column (by name and Arrow form) it gets that column's
/// type: a schema does not carry an ENUM's values, so the Arrow form alone would make it a VARCHAR.
pub fn duckdb_types(
    mut context: Pin<&mut ffi::ClientContext>,
    output: &Schema,
    input: &[(Field, &SharedType)],
) -> Result<Vec<(String, SharedType)>, Error> {
    let importer = Importer::new(context.as_mut(), output)?;
    let mut types = Vec::with_capacity(output.fields().len());
    for (index, field) in output.fields().iter().enumerate() {
        let same = |candidate: &&(Field, &SharedType)| {
            candidate.0.name() == field.name()
                && candidate.0.data_type() == field.data_type()
                && extension(&candidate.0) == extension(field)
        };
        let column_type = match input.iter().find(same) {
            Some((_, column_type)) => SharedType::copy(column_type.get()?),
            None => SharedType::copy(importer.reader.column_type(index).map_err(conversion)?),
        };
        types.push((field.name().clone(), column_type));
    }
    Ok(types)
}

fn extension(field: &Field) -> (Option<&String>, Option<&String>) {
    (field.metadata().get("ARROW:extension:name"), field.metadata().get("ARROW:extension:metadata"))
}
