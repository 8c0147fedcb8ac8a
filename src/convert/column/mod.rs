//! Columns of chunks, collected as Arrow buffers: the one copy on the way out, which is also what merges chunks.
//!
//! Types whose values stand in a DuckDB vector as they stand in an Arrow buffer are collected here, and what nests them. All others are
//! left to DuckDB's own converter ([`Collector::of`] gives nothing).

mod nested;
mod plain;
mod text;

use arrow_array::ArrayRef;
use arrow_buffer::{NullBuffer, NullBufferBuilder};
use arrow_schema::{ArrowError, DataType, Field};

use super::logical::Logical;
use super::vector::{Picks, Rows};
use crate::bridge::ffi;
use crate::error::Error;

/// Collects the values of one column.
pub(super) trait Collector {
    /// Adds the rows of a vector that are picked.
    fn append(&mut self, vector: &ffi::Vector, picks: Picks<'_>) -> Result<(), Error>;

    /// Bytes that a vector of so many rows would add, as far as that is known without much work: not of what is nested.
    fn weigh(&mut self, _: &ffi::Vector, _: usize) -> Result<usize, Error> {
        Ok(0)
    }

    /// Bytes that are collected.
    fn bytes(&self) -> usize;

    /// The array of all that was added; the collector is empty afterwards. The type is the one that it was made for.
    fn take(&mut self, data_type: &DataType) -> Result<ArrayRef, ArrowError>;
}

impl dyn Collector {
    /// A collector for a column of this type that is sent as this field, unless DuckDB's converter has to do it.
    pub(super) fn of(logical: &Logical, field: &Field) -> Option<Box<Self>> {
        // an extension type may have another form than the type's own
        if field.metadata().contains_key("ARROW:extension:name") {
            return None;
        }
        plain::collector(logical, field.data_type())
            .or_else(|| text::collector(logical, field.data_type()))
            .or_else(|| nested::collector(logical, field.data_type()))
    }
}

/// Which of the collected rows are NULL.
struct Nulls(NullBufferBuilder);

impl Nulls {
    fn new() -> Self {
        Self(NullBufferBuilder::new(0))
    }

    fn append(&mut self, rows: &Rows<'_>) {
        if rows.all_valid() {
            self.0.append_n_non_nulls(rows.len());
        } else if let Some(validity) = rows.validity() {
            self.0.append_buffer(&validity);
        } else {
            rows.places().for_each(|(_, valid)| self.0.append(valid));
        }
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn take(&mut self) -> Option<NullBuffer> {
        self.0.finish()
    }
}
