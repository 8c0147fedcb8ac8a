//! Typed, named values that a catalog declares: its attach options and its settings (protocol file 02 §3, §4.1).

use arrow_array::ArrayRef;
use arrow_schema::Field;
use bytes::Bytes;

use crate::WireError;
use crate::ipc::{self, Segments};
use crate::record::{Record, RecordBuilder};

/// A declared attach option or setting.
#[derive(Clone, Debug)]
pub struct SettingSpec {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Its type, as a field.
    pub field: Field,
    /// Its value when none is given: one row.
    pub default: Option<ArrayRef>,
    /// Whether an attach option must be given.
    pub required: bool,
    /// Whether its value must not be shown.
    pub secret: bool,
}

impl SettingSpec {
    /// Reads one declaration.
    ///
    /// # Errors
    /// When it is none.
    pub fn from_blob(blob: Bytes) -> Result<Self, WireError> {
        let batch = ipc::decode_batch(blob)?;
        let record = Record::first(&batch)?;
        let schema = ipc::decode_schema(&record.bytes("type")?)?;
        let field = schema.fields().first().ok_or_else(|| WireError::protocol("a declared setting has no type"))?;
        let default = record.optional_bytes("default_value").filter(|bytes| !bytes.is_empty());
        let default = default.map(ipc::decode_batch).transpose()?;
        Ok(Self {
            name: record.text("name")?,
            description: record.optional_text("description").unwrap_or_default(),
            field: field.as_ref().clone(),
            default: default.and_then(|batch| batch.columns().first().filter(|column| column.len() == 1).cloned()),
            required: record.optional_flag("required").unwrap_or(false),
            secret: record.optional_flag("secret").unwrap_or(false),
        })
    }

    /// The declaration of an attach option, which a setting's begins with.
    ///
    /// # Errors
    /// When the type or the default cannot be encoded.
    pub fn to_blob(&self) -> Result<Segments, WireError> {
        let field = self.field.clone().with_name("value");
        let schema = std::sync::Arc::new(arrow_schema::Schema::new(vec![field]));
        let default = self.default.clone().map(|value| {
            let batch = arrow_array::RecordBatch::try_new(std::sync::Arc::clone(&schema), vec![value]);
            ipc::encode_stream(&batch.map_err(WireError::Encode)?, &[])
        });
        let default = default.transpose()?.map(|blob| blob.to_bytes());
        RecordBuilder::new()
            .text("name", &self.name)
            .text("description", &self.description)
            .bytes("type", ipc::encode_schema(&schema)?)
            .optional_bytes("default_value", default.as_deref())
            .optional_flag("required", Some(self.required))
            .optional_flag("secret", Some(self.secret))
            .finish(&[])
    }
}

pub(super) fn specs(record: &Record<'_>, column: &str) -> Vec<SettingSpec> {
    let blobs = record.blobs(column).unwrap_or_default();
    // one that cannot be read must not cost the others
    blobs.into_iter().filter_map(|blob| SettingSpec::from_blob(blob).ok()).collect()
}
