//! `catalog_attach`.

use arrow_array::RecordBatch;
use bytes::Bytes;

use super::secret::{self, SecretTypeSpec};
use super::setting::{self, SettingSpec};
use crate::generation::Dialect;
use crate::ipc::{self, Segments};
use crate::record::{Record, RecordBuilder};
use crate::{WireError, reply::UnaryReply};

/// Asks for a catalog.
#[derive(Clone, Debug, Default)]
pub struct AttachRequest {
    /// Name of the catalog.
    pub name: String,
    /// Options that the catalog declares; one row.
    pub options: Option<RecordBatch>,
    /// Wanted version of the data.
    pub data_version_spec: Option<String>,
    /// Wanted version of the implementation.
    pub implementation_version: Option<String>,
}

impl AttachRequest {
    /// The request as a record.
    ///
    /// # Errors
    /// When the options cannot be encoded.
    pub fn to_blob(&self, dialect: &Dialect) -> Result<Segments, WireError> {
        let options = self
            .options
            .as_ref()
            .map(|options| ipc::encode_stream(options, &[]))
            .transpose()?
            .map(|blob| blob.to_bytes());
        let record = RecordBuilder::new().text("name", &self.name);
        let record = if dialect.generation.routed_records {
            record.optional_bytes("options", options.as_deref())
        } else {
            record.bytes("options", options.unwrap_or_default())
        };
        let record = record
            .optional_text("data_version_spec", self.data_version_spec.as_deref())
            .optional_text("implementation_version", self.implementation_version.as_deref());
        let record =
            if dialect.generation.routed_records { record.optional_bytes("client_capabilities", None) } else { record };
        record.finish(&[])
    }

    /// Reads the record.
    ///
    /// # Errors
    /// When it is not one.
    pub fn from_blob(blob: Bytes) -> Result<Self, WireError> {
        let batch = ipc::decode_batch(blob)?;
        let record = Record::first(&batch)?;
        let options =
            record.optional_bytes("options").filter(|bytes| !bytes.is_empty()).map(ipc::decode_batch).transpose()?;
        Ok(Self {
            name: record.text("name")?,
            options,
            data_version_spec: record.optional_text("data_version_spec"),
            implementation_version: record.optional_text("implementation_version"),
        })
    }
}

/// What a server says of an attached catalog.
#[derive(Clone, Debug, Default)]
pub struct AttachReply {
    /// Echoed in every later request.
    pub attach_opaque_data: Bytes,
    /// Dotted name of the schema for names without one.
    pub default_schema: String,
    /// Whether the catalog has transactions.
    pub supports_transactions: bool,
    /// Whether `catalog_contents` may be called.
    pub supports_catalog_contents: bool,
    /// Counter of metadata changes.
    pub catalog_version: i64,
    /// Whether metadata never change during the attachment.
    pub catalog_version_frozen: bool,
    /// Description.
    pub comment: Option<String>,
    /// Settings that functions of the catalog read.
    pub settings: Vec<SettingSpec>,
    /// Types of secrets that functions of the catalog ask for.
    pub secret_types: Vec<SecretTypeSpec>,
    /// Functions that the catalog offers for use without its name.
    pub global_functions: Vec<Bytes>,
    /// Put before their names.
    pub global_function_prefix: String,
    /// Aliases of other catalogs without which this one is not to be attached.
    pub required_companions: Vec<String>,
}

impl AttachReply {
    /// Reads the reply.
    ///
    /// # Errors
    /// When required fields are missing.
    pub fn from_reply(reply: &UnaryReply) -> Result<Self, WireError> {
        let batch = reply.result()?;
        let record = Record::first(&batch)?;
        Ok(Self {
            attach_opaque_data: record.bytes("attach_opaque_data")?,
            default_schema: record
                .optional_text("default_schema")
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| "main".to_owned()),
            supports_transactions: record.flag("supports_transactions"),
            supports_catalog_contents: record.flag("supports_catalog_contents"),
            catalog_version: record.integer("catalog_version").unwrap_or_default(),
            catalog_version_frozen: record.flag("catalog_version_frozen"),
            comment: record.optional_text("comment"),
            settings: setting::specs(&record, "settings"),
            secret_types: secret::types(&record, "secret_types"),
            global_functions: record.blobs("global_functions").unwrap_or_default(),
            global_function_prefix: record.optional_text("global_function_prefix").unwrap_or_default(),
            required_companions: required_companions(&record),
        })
    }

    /// The reply as a record, with all fields of generation 2.2.
    ///
    /// # Errors
    /// Never in practice.
    pub fn to_blob(&self) -> Result<Segments, WireError> {
        const NONE: [&[u8]; 0] = [];
        let settings = self.settings.iter().map(|setting| Ok(setting.to_blob()?.to_bytes()));
        let settings = settings.collect::<Result<Vec<_>, WireError>>()?;
        let secret_types = self.secret_types.iter().map(|secret_type| Ok(secret_type.to_blob()?.to_bytes()));
        let secret_types = secret_types.collect::<Result<Vec<_>, WireError>>()?;
        RecordBuilder::new()
            .bytes("attach_opaque_data", self.attach_opaque_data.clone())
            .flag("supports_transactions", self.supports_transactions)
            .flag("supports_time_travel", false)
            .flag("catalog_version_frozen", self.catalog_version_frozen)
            .integer("catalog_version", self.catalog_version)
            .flag("attach_opaque_data_required", true)
            .text("default_schema", &self.default_schema)
            .blobs("settings", &settings)
            .blobs("secret_types", &secret_types)
            .blobs("attach_catalogs", &NONE)
            .optional_text("comment", self.comment.as_deref())
            .empty_map("tags")
            .flag("supports_column_statistics", false)
            .blobs("global_functions", &self.global_functions)
            .text("global_function_prefix", &self.global_function_prefix)
            .optional_text("resolved_data_version", None)
            .optional_text("resolved_implementation_version", None)
            .flag("supports_catalog_contents", self.supports_catalog_contents)
            .finish(&[])
    }
}

fn required_companions(record: &Record<'_>) -> Vec<String> {
    let companion = |blob: Bytes| {
        let batch = ipc::decode_batch(blob).ok()?;
        let companion = Record::first(&batch).ok()?;
        companion.flag("required").then(|| companion.optional_text("alias").unwrap_or_default())
    };
    record.blobs("attach_catalogs").unwrap_or_default().into_iter().filter_map(companion).collect()
}
