//! Which columns are numbers, and reading them as such.

use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, Float64Array, RecordBatch};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Schema};

use crate::error::{Error, Result};

/// Places of the columns that are integers, floating point numbers or decimals.
pub(crate) fn numeric_columns(schema: &Schema) -> Vec<usize> {
    let numeric =
        |(index, field): (usize, &std::sync::Arc<arrow_schema::Field>)| field.data_type().is_numeric().then_some(index);
    schema.fields().iter().enumerate().filter_map(numeric).collect()
}

/// The places of the numeric columns, of which there must be one.
pub(crate) fn require_numeric(function: &str, schema: &Schema) -> Result<Vec<usize>> {
    let columns = numeric_columns(schema);
    if columns.is_empty() {
        let names: Vec<_> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        return Err(Error::Input(format!(
            "{function}: the input has no numeric column (its columns: {})",
            names.join(", ")
        )));
    }
    Ok(columns)
}

/// A numeric column as doubles.
pub(crate) fn doubles(column: &ArrayRef) -> Result<Float64Array> {
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let doubles = cast_with_options(column, &DataType::Float64, &strict)?;
    let typed = doubles.as_primitive_opt::<Float64Type>().cloned();
    typed.ok_or_else(|| Error::Failed(format!("{} does not become DOUBLE", column.data_type())))
}

/// One column of a batch.
pub(crate) fn column(batch: &RecordBatch, index: usize) -> Result<&ArrayRef> {
    let found = batch.columns().get(index);
    found.ok_or_else(|| Error::Protocol(format!("the batch has {} columns and no column {index}", batch.num_columns())))
}
