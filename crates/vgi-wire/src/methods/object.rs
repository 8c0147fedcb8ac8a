//! Tables and indexes in a listing.

use arrow_schema::{DataType, Schema};
use bytes::Bytes;

use super::bind::read_schema_path;
use super::catalog::named_record;
use crate::WireError;
use crate::ipc::{self, Segments};
use crate::record::{Record, RecordBuilder, list_of};

/// An object of which only the name is told. The rest of what is written of it is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Name without schema.
    pub name: String,
    /// Path of the owning schema.
    pub schema_path: Vec<String>,
    /// Description.
    pub comment: Option<String>,
}

impl ObjectInfo {
    /// Reads one item of any listing.
    ///
    /// # Errors
    /// When it has no name.
    pub fn from_blob(blob: Bytes) -> Result<Self, WireError> {
        let batch = ipc::decode_batch(blob)?;
        Self::from_record(&Record::first(&batch)?)
    }

    /// Reads one row.
    ///
    /// # Errors
    /// When it has no name.
    pub fn from_record(record: &Record<'_>) -> Result<Self, WireError> {
        Ok(Self {
            name: record.text("name")?,
            schema_path: read_schema_path(record),
            comment: record.optional_text("comment"),
        })
    }

    /// The record of a table.
    ///
    /// # Errors
    /// Never in practice.
    pub fn to_table_blob(&self) -> Result<Segments, WireError> {
        self.table_record()?.finish(&[])
    }

    /// The record of an index.
    ///
    /// # Errors
    /// Never in practice.
    pub fn to_index_blob(&self) -> Result<Segments, WireError> {
        self.index_record().finish(&[])
    }

    /// Clients may want every column of the record, in this order.
    pub(super) fn table_record(&self) -> Result<RecordBuilder, WireError> {
        let (places, texts) = (list_of(DataType::Int32), list_of(DataType::Utf8));
        Ok(named_record(&self.name, &self.schema_path, self.comment.as_deref())
            .short_bytes("columns", &ipc::encode_schema(&Schema::empty())?)
            .empty_list("not_null_constraints", DataType::Int32)
            .empty_list("unique_constraints", places.clone())
            .empty_list("check_constraints", DataType::Utf8)
            .empty_list("primary_key_constraints", places)
            .empty_list("foreign_key_constraints", DataType::Binary)
            .empty_map("write_result_modes")
            .flag("supports_column_statistics", false)
            .optional_bytes("scan_function", None)
            .optional_bytes("insert_function", None)
            .optional_bytes("update_function", None)
            .optional_bytes("delete_function", None)
            .optional_integer("cardinality_estimate", None)
            .optional_integer("cardinality_max", None)
            .optional_bytes("column_statistics", None)
            .optional_bytes("bind_result", None)
            .empty_list("required_filters", texts))
    }

    pub(super) fn index_record(&self) -> RecordBuilder {
        named_record(&self.name, &self.schema_path, self.comment.as_deref())
            .text("table_name", "")
            .text("index_type", "")
            .choice("constraint_type", "NONE")
            .texts::<&str>("expressions", &[])
            .empty_map("options")
    }
}
