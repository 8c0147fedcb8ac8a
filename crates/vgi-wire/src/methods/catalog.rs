//! Listings of a catalog.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use bytes::Bytes;

use super::Method;
use super::bind::read_schema_path;
use super::outer::routing;
use super::setting::{self, SettingSpec};
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
#[derive(Clone, Debug)]
pub struct CatalogInfo {
    /// Name; may be empty for a server's only catalog.
    pub name: String,
    /// Version of the implementation.
    pub implementation_version: Option<String>,
    /// Version of the data.
    pub data_version_spec: Option<String>,
    /// Options that it takes when it is attached.
    pub attach_options: Vec<SettingSpec>,
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
            attach_options: setting::specs(&record, "attach_option_specs"),
        })
    }

    /// The record.
    ///
    /// # Errors
    /// Never in practice.
    pub fn to_blob(&self) -> Result<Segments, WireError> {
        let options = self.attach_options.iter().map(|option| Ok(option.to_blob()?.to_bytes()));
        let options = options.collect::<Result<Vec<_>, WireError>>()?;
        RecordBuilder::new()
            .text("name", &self.name)
            .optional_text("implementation_version", self.implementation_version.as_deref())
            .optional_text("data_version_spec", self.data_version_spec.as_deref())
            .blobs("attach_option_specs", &options)
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
        Self::from_record(&Record::first(&batch)?)
    }

    /// Reads one row.
    ///
    /// # Errors
    /// When it has neither path nor name.
    pub fn from_record(record: &Record<'_>) -> Result<Self, WireError> {
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
        self.record().finish(&[])
    }

    /// The record as clients of `vgi.v2` before 2.2 want it: with the attachment that it belongs to.
    ///
    /// # Errors
    /// Never in practice.
    pub fn to_attached_blob(&self, attachment: &Bytes) -> Result<Segments, WireError> {
        self.record().bytes("attach_opaque_data", attachment.clone()).finish(&[])
    }

    pub(super) fn record(&self) -> RecordBuilder {
        RecordBuilder::new()
            .optional_text("comment", self.comment.as_deref())
            .empty_map("tags")
            .texts("path", &self.path)
            .null_counts("estimated_object_count")
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

/// A view or macro of a catalog: SQL text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SqlInfo {
    /// Name without schema.
    pub name: String,
    /// Path of the owning schema.
    pub schema_path: Vec<String>,
    /// Description.
    pub comment: Option<String>,
    /// The query of a view or table macro, the expression of a scalar one.
    pub definition: String,
    /// Whether a macro gives a table.
    pub table: bool,
    /// Parameters of a macro.
    pub parameters: Vec<String>,
    /// Values of parameters that may be left out; one row each.
    pub defaults: Vec<(String, ArrayRef)>,
}

impl SqlInfo {
    /// Reads one item of a listing of views or macros.
    ///
    /// # Errors
    /// When it is neither.
    pub fn from_blob(blob: Bytes) -> Result<Self, WireError> {
        let batch = ipc::decode_batch(blob)?;
        Self::from_record(&Record::first(&batch)?)
    }

    /// Reads one row.
    ///
    /// # Errors
    /// When it is neither.
    pub fn from_record(record: &Record<'_>) -> Result<Self, WireError> {
        let kind = record.optional_text("macro_type").unwrap_or_default();
        Ok(Self {
            name: record.text("name")?,
            schema_path: read_schema_path(record),
            comment: record.optional_text("comment"),
            definition: record.text("definition")?,
            table: kind.to_ascii_uppercase().starts_with("TABLE"),
            parameters: record.texts("parameters"),
            defaults: defaults(record)?,
        })
    }

    /// The record of a view.
    ///
    /// # Errors
    /// Never in practice.
    pub fn to_view_blob(&self) -> Result<Segments, WireError> {
        self.view_record().finish(&[])
    }

    pub(super) fn view_record(&self) -> RecordBuilder {
        named_record(&self.name, &self.schema_path, self.comment.as_deref())
            .text("definition", &self.definition)
            .empty_map("column_comments")
    }

    /// The record of a macro.
    ///
    /// # Errors
    /// When the defaults cannot be encoded.
    pub fn to_macro_blob(&self) -> Result<Segments, WireError> {
        self.macro_record()?.finish(&[])
    }

    pub(super) fn macro_record(&self) -> Result<RecordBuilder, WireError> {
        let fields: Vec<_> =
            self.defaults.iter().map(|(name, value)| Field::new(name, value.data_type().clone(), true)).collect();
        let columns = self.defaults.iter().map(|(_, value)| Arc::clone(value)).collect();
        let defaults = if self.defaults.is_empty() {
            None
        } else {
            let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).map_err(WireError::Encode)?;
            Some(ipc::encode_stream(&batch, &[])?.to_bytes())
        };
        Ok(named_record(&self.name, &self.schema_path, self.comment.as_deref())
            .choice("macro_type", if self.table { "TABLE" } else { "SCALAR" })
            .texts("parameters", &self.parameters)
            .optional_bytes("parameter_default_values", defaults.as_deref())
            .text("definition", &self.definition)
            .optional_bytes("arguments_schema", None))
    }
}

/// What the records of all objects begin with.
pub(super) fn named_record(name: &str, schema_path: &[String], comment: Option<&str>) -> RecordBuilder {
    RecordBuilder::new()
        .optional_text("comment", comment)
        .empty_map("tags")
        .text("name", name)
        .texts("schema_path", schema_path)
}

fn defaults(record: &Record<'_>) -> Result<Vec<(String, ArrayRef)>, WireError> {
    let Some(blob) = record.optional_bytes("parameter_default_values").filter(|blob| !blob.is_empty()) else {
        return Ok(Vec::new());
    };
    let batch = ipc::decode_batch(blob)?;
    let names = batch.schema();
    let values = names.fields().iter().zip(batch.columns()).filter(|_| batch.num_rows() == 1);
    Ok(values.map(|(field, value)| (field.name().clone(), Arc::clone(value))).collect())
}

/// The body of a listing of a schema: of its functions of one kind (`TABLE_FUNCTION` lists buffering ones), of its macros of one kind,
/// or of its tables or views, which have none.
///
/// # Errors
/// Never in practice.
pub fn contents_body(
    dialect: &Dialect,
    method: Method,
    attach: &Bytes,
    path: &[String],
    kind: Option<&str>,
    transaction: Option<&Bytes>,
) -> Result<Segments, WireError> {
    let record = RecordBuilder::new().bytes("attach_opaque_data", attach.clone());
    let record = if dialect.generation.listing_by_path {
        record.texts("path", path)
    } else {
        record.text("name", &path.join("."))
    };
    let record = if let Some(kind) = kind { record.choice("type", kind) } else { record };
    record.optional_bytes("transaction_opaque_data", transaction.map(AsRef::as_ref)).finish(&routing(dialect, method))
}

/// The body of `catalog_detach`.
///
/// # Errors
/// Never in practice.
pub fn detach_body(dialect: &Dialect, attach: &Bytes) -> Result<Segments, WireError> {
    RecordBuilder::new().bytes("attach_opaque_data", attach.clone()).finish(&routing(dialect, Method::CatalogDetach))
}

/// The body of `catalog_version`.
///
/// # Errors
/// Never in practice.
pub fn version_body(dialect: &Dialect, attach: &Bytes, transaction: Option<&Bytes>) -> Result<Segments, WireError> {
    RecordBuilder::new()
        .bytes("attach_opaque_data", attach.clone())
        .optional_bytes("transaction_opaque_data", transaction.map(AsRef::as_ref))
        .finish(&routing(dialect, Method::CatalogVersion))
}

/// The number in the reply of `catalog_version`.
///
/// # Errors
/// When the reply is not one.
pub fn version(reply: &UnaryReply) -> Result<i64, WireError> {
    let batch = reply.result()?;
    let record = Record::first(&batch)?;
    record.integer("version").ok_or_else(|| WireError::protocol("field 'version' is missing"))
}
