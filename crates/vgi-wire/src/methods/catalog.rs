//! Listings of a catalog.

use arrow_schema::{DataType, Field, TimeUnit};
use bytes::Bytes;

use super::Method;
use super::outer::routing;
use crate::WireError;
use crate::generation::Dialect;
use crate::ipc::{self, Segments};
use crate::record::{Record, RecordBuilder};
use crate::reply::UnaryReply;

/// The records in the `items` of a listing's reply.
///
/// # Errors
/// When the reply is not a listing.
pub fn items(reply: &UnaryReply) -> Result<Vec<Bytes>, WireError> {
    let batch = reply.result()?;
    Record::first(&batch)?.blobs("items")
}

/// A listing's reply.
///
/// # Errors
/// When the records exceed 2 GiB.
pub fn items_blob(items: &[Bytes]) -> Result<Segments, WireError> {
    RecordBuilder::new().blobs("items", items).finish(&[])
}

/// A catalog that a server offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogInfo {
    /// Name; may be empty for a server's only catalog.
    pub name: String,
    /// Version of the implementation.
    pub implementation_version: Option<String>,
    /// Version of the data.
    pub data_version_spec: Option<String>,
}

impl CatalogInfo {
    /// Reads one item.
    ///
    /// # Errors
    /// When it is not a catalog's record.
    pub fn from_blob(blob: Bytes) -> Result<Self, WireError> {
        let batch = ipc::decode_batch(blob)?;
        let record = Record::first(&batch)?;
        Ok(Self {
            name: record.text("name")?,
            implementation_version: record.optional_text("implementation_version"),
            data_version_spec: record.optional_text("data_version_spec"),
        })
    }

    /// The record.
    ///
    /// # Errors
    /// Never in practice.
    pub fn to_blob(&self) -> Result<Segments, WireError> {
        const NONE: [&[u8]; 0] = [];
        RecordBuilder::new()
            .text("name", &self.name)
            .optional_text("implementation_version", self.implementation_version.as_deref())
            .optional_text("data_version_spec", self.data_version_spec.as_deref())
            .blobs("attach_option_specs", &NONE)
            .empty_structs("releases", release_fields())
            .optional_text("source_url", None)
            .finish(&[])
    }
}

fn release_fields() -> Vec<Field> {
    vec![
        Field::new("version", DataType::Utf8, false),
        Field::new("released_at", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
        Field::new("summary", DataType::Utf8, false),
        Field::new("notes_url", DataType::Utf8, true),
    ]
}

/// A schema of a catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaInfo {
    /// Path from the root.
    pub path: Vec<String>,
    /// Description.
    pub comment: Option<String>,
}

impl SchemaInfo {
    /// Reads one item.
    ///
    /// # Errors
    /// When it is not a schema's record.
    pub fn from_blob(blob: Bytes) -> Result<Self, WireError> {
        let batch = ipc::decode_batch(blob)?;
        let record = Record::first(&batch)?;
        let path = record.texts("path");
        // flat servers give a name
        let path = if path.is_empty() { vec![record.text("name")?] } else { path };
        Ok(Self { path, comment: record.optional_text("comment") })
    }

    /// The record.
    ///
    /// # Errors
    /// Never in practice.
    pub fn to_blob(&self) -> Result<Segments, WireError> {
        RecordBuilder::new()
            .optional_text("comment", self.comment.as_deref())
            .empty_map("tags")
            .texts("path", &self.path)
            .null_counts("estimated_object_count")
            .finish(&[])
    }
}

/// The body of `catalog_schemas`.
///
/// # Errors
/// Never in practice.
pub fn schemas_body(dialect: &Dialect, attach: &Bytes, transaction: Option<&Bytes>) -> Result<Segments, WireError> {
    RecordBuilder::new()
        .bytes("attach_opaque_data", attach.clone())
        .optional_bytes("transaction_opaque_data", transaction.map(AsRef::as_ref))
        .finish(&routing(dialect, Method::CatalogSchemas))
}

/// The body of `catalog_schema_contents_functions` for one kind of functions (`TABLE_FUNCTION` lists buffering ones).
///
/// # Errors
/// Never in practice.
pub fn functions_body(
    dialect: &Dialect,
    attach: &Bytes,
    path: &[String],
    kind: &str,
    transaction: Option<&Bytes>,
) -> Result<Segments, WireError> {
    let record = RecordBuilder::new().bytes("attach_opaque_data", attach.clone());
    let record = if dialect.generation.listing_by_path {
        record.texts("path", path)
    } else {
        record.text("name", &path.join("."))
    };
    record
        .choice("type", kind)
        .optional_bytes("transaction_opaque_data", transaction.map(AsRef::as_ref))
        .finish(&routing(dialect, Method::SchemaFunctions))
}

/// The body of `catalog_detach`.
///
/// # Errors
/// Never in practice.
pub fn detach_body(dialect: &Dialect, attach: &Bytes) -> Result<Segments, WireError> {
    RecordBuilder::new().bytes("attach_opaque_data", attach.clone()).finish(&routing(dialect, Method::CatalogDetach))
}
