//! Record batches to chunks.

use std::pin::Pin;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use arrow_array::{Array, ArrayRef, FixedSizeListArray, ListArray, MapArray, RecordBatch, StructArray};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema, SchemaRef};
use arrow_select::take::take;
use cxx::UniquePtr;

use super::export::{conversion, defect};
use crate::bridge::{SharedType, ffi};
use crate::error::Error;

/// Reads batches of one schema. One per source thread.
pub struct Importer {
    reader: UniquePtr<ffi::ArrowReader>,
    /// The schema that DuckDB is given.
    schema: SchemaRef,
}

impl Importer {
    /// An importer of batches of this schema.
    pub fn new(context: Pin<&mut ffi::ClientContext>, schema: &Schema) -> Result<Self, Error> {
        let fields: Vec<_> = schema.fields().iter().map(readable).collect();
        let schema = Arc::new(Schema::new(fields));
        let mut exported = FFI_ArrowSchema::try_from(schema.as_ref()).map_err(defect)?;
        let pointer: *mut FFI_ArrowSchema = &raw mut exported;
        // SAFETY: the pointer is to a live schema of the C data interface; DuckDB takes its contents over.
        let reader = unsafe { ffi::new_arrow_reader(context, pointer.cast()) }.map_err(conversion)?;
        Ok(Self { reader, schema })
    }

    /// Makes a batch the one that [`read`](Self::read) reads from.
    pub fn set_batch(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        let columns = batch.columns().iter().zip(self.schema.fields());
        let columns = columns.map(|(column, field)| {
            if column.data_type() == field.data_type() {
                Ok(Arc::clone(column))
            } else {
                decoded(column, field.data_type())
            }
        });
        let columns = columns.collect::<Result<_, _>>().map_err(defect)?;
        let rows = StructArray::try_new_with_length(self.schema.fields().clone(), columns, None, batch.num_rows())
            .map_err(defect)?;
        let mut exported = FFI_ArrowArray::new(&rows.to_data());
        let pointer: *mut FFI_ArrowArray = &raw mut exported;
        // SAFETY: the pointer is to a live array of the C data interface and of the reader's schema; DuckDB takes its contents over.
        unsafe { self.reader.pin_mut().set_batch(pointer.cast()) };
        Ok(())
    }

    /// Fills the chunk with rows `[offset, offset + rows)` of these columns of the batch, cast to the types of the chunk. The rows
    /// must be in the batch, and at most as many as a vector holds.
    // bench/counts.py knows it by its name
    #[inline(never)]
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

/// The field in a form that DuckDB's converter reads: it takes the indexes of a dictionary below a fixed-size list for its values.
fn readable(field: &FieldRef) -> FieldRef {
    let data_type = readable_type(field.data_type(), false);
    if data_type == *field.data_type() {
        Arc::clone(field)
    } else {
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    }
}

fn readable_type(data_type: &DataType, in_array: bool) -> DataType {
    let child = |field: &FieldRef, in_array: bool| {
        let data_type = readable_type(field.data_type(), in_array);
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    };
    match data_type {
        DataType::Dictionary(_, values) if in_array => readable_type(values, in_array),
        DataType::FixedSizeList(field, size) => DataType::FixedSizeList(child(field, true), *size),
        DataType::List(field) => DataType::List(child(field, in_array)),
        DataType::Map(field, sorted) => DataType::Map(child(field, in_array), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|field| child(field, in_array)).collect()),
        other => other.clone(),
    }
}

/// The array in the form that [`readable_type`] chose for it.
fn decoded(array: &ArrayRef, target: &DataType) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == target {
        return Ok(Arc::clone(array));
    }
    Ok(match target {
        DataType::FixedSizeList(field, size) => {
            let list = array.as_fixed_size_list();
            let values = decoded(list.values(), field.data_type())?;
            Arc::new(FixedSizeListArray::try_new(Arc::clone(field), *size, values, list.nulls().cloned())?)
        }
        DataType::List(field) => {
            let list = array.as_list::<i32>();
            let values = decoded(list.values(), field.data_type())?;
            Arc::new(ListArray::try_new(Arc::clone(field), list.offsets().clone(), values, list.nulls().cloned())?)
        }
        DataType::Map(field, sorted) => {
            let map = array.as_map();
            let entries: ArrayRef = Arc::new(map.entries().clone());
            let entries = decoded(&entries, field.data_type())?.as_struct().clone();
            Arc::new(MapArray::try_new(
                Arc::clone(field),
                map.offsets().clone(),
                entries,
                map.nulls().cloned(),
                *sorted,
            )?)
        }
        DataType::Struct(fields) => {
            let parts = array.as_struct();
            let columns = parts.columns().iter().zip(fields).map(|(column, field)| decoded(column, field.data_type()));
            let columns = columns.collect::<Result<_, _>>()?;
            Arc::new(StructArray::try_new_with_length(fields.clone(), columns, parts.nulls().cloned(), parts.len())?)
        }
        _ => {
            let dictionary = array.as_any_dictionary();
            decoded(&take(dictionary.values(), dictionary.keys(), None)?, target)?
        }
    })
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
        // its own place first: two columns may have one name
        let column_type = match input.get(index).filter(same).or_else(|| input.iter().find(same)) {
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
