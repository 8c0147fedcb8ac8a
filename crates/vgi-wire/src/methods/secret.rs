//! Secrets: the types that a catalog declares, and those that a function wants.

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;

use crate::WireError;
use crate::ipc::{self, Segments};
use crate::record::{Record, RecordBuilder};

/// A secret that the server asks for before it can bind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretLookup {
    /// Type of the secret.
    pub secret_type: String,
    /// Scope, empty when not given.
    pub scope: String,
    /// Name, empty when not given; wins over the scope.
    pub name: String,
}

/// A type of secrets that a catalog declares.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretTypeSpec {
    /// Name in `CREATE SECRET … (TYPE name, …)`.
    pub name: String,
    /// Description.
    pub description: String,
    /// What a secret of this type holds.
    pub parameters: SchemaRef,
}

/// Metadata of a parameter whose value must not be shown.
const REDACT: &str = "redact";

impl SecretTypeSpec {
    /// Reads one declaration.
    ///
    /// # Errors
    /// When it is none.
    pub fn from_blob(blob: Bytes) -> Result<Self, WireError> {
        let batch = ipc::decode_batch(blob)?;
        let record = Record::first(&batch)?;
        Ok(Self {
            name: record.text("name")?,
            description: record.optional_text("description").unwrap_or_default(),
            parameters: ipc::decode_schema(&record.bytes("parameters_schema")?)?,
        })
    }

    /// The declaration as a record.
    ///
    /// # Errors
    /// When the schema cannot be encoded.
    pub fn to_blob(&self) -> Result<Segments, WireError> {
        RecordBuilder::new()
            .text("name", &self.name)
            .text("description", &self.description)
            .bytes("parameters_schema", ipc::encode_schema(&self.parameters)?)
            .finish(&[])
    }

    /// Whether the value of a parameter must not be shown. Text that is not declared either way is taken for sensitive.
    pub fn hides(parameter: &Field) -> bool {
        match parameter.metadata().get(REDACT).map(|flag| flag.to_ascii_lowercase()).as_deref() {
            Some("true" | "1") => true,
            Some(_) => false,
            None => matches!(
                parameter.data_type(),
                DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Binary | DataType::LargeBinary
            ),
        }
    }
}

/// The declared types of a record; one that cannot be read must not cost the others.
pub(super) fn types(record: &Record<'_>, column: &str) -> Vec<SecretTypeSpec> {
    let blobs = record.blobs(column).unwrap_or_default();
    blobs.into_iter().filter_map(|blob| SecretTypeSpec::from_blob(blob).ok()).collect()
}

/// The fields of a required secret.
pub(super) fn required_fields() -> Vec<Field> {
    let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
    vec![text("secret_type", false), text("scope", true), text("secret_name", true)]
}

/// The secrets that a function's record requires.
pub(super) fn required(record: &Record<'_>) -> Vec<SecretLookup> {
    let Some(items) = record.items("required_secrets") else { return Vec::new() };
    let Some(items) = items.as_struct_opt() else { return Vec::new() };
    let batch = RecordBatch::from(items.clone());
    let text = |row: &Record<'_>, name: &str| row.optional_text(name).unwrap_or_default();
    Record::all(&batch)
        .map(|row| SecretLookup {
            secret_type: text(&row, "secret_type"),
            scope: text(&row, "scope"),
            name: text(&row, "secret_name"),
        })
        .collect()
}

/// Adds the secrets that a function requires.
pub(super) fn add_required(record: RecordBuilder, secrets: &[SecretLookup]) -> Result<RecordBuilder, WireError> {
    if secrets.is_empty() {
        return Ok(record.empty_structs("required_secrets", required_fields()));
    }
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let rows = secrets.iter().map(|secret| {
        RecordBuilder::new()
            .text("secret_type", &secret.secret_type)
            .optional_text("scope", given(&secret.scope).as_deref())
            .optional_text("secret_name", given(&secret.name).as_deref())
    });
    record.structs("required_secrets", rows.collect())
}

/// The value of `secrets` in a bind: one struct for each secret, under its name. `None` for no secrets.
///
/// # Errors
/// When two have one name.
pub fn secrets_batch(secrets: Vec<(Field, ArrayRef)>) -> Result<Option<RecordBatch>, WireError> {
    if secrets.is_empty() {
        return Ok(None);
    }
    let (fields, columns): (Vec<Field>, Vec<ArrayRef>) = secrets.into_iter().unzip();
    RecordBatch::try_new(std::sync::Arc::new(Schema::new(fields)), columns).map(Some).map_err(WireError::Encode)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_declared_type_survives_the_wire() {
        let flagged = |flag: &str| std::collections::HashMap::from([(REDACT.to_owned(), flag.to_owned())]);
        let spec = SecretTypeSpec {
            name: "store".to_owned(),
            description: "A store's key".to_owned(),
            parameters: Arc::new(Schema::new(vec![
                Field::new("key", DataType::Utf8, true).with_metadata(flagged("true")),
                Field::new("region", DataType::Utf8, true).with_metadata(flagged("false")),
                Field::new("port", DataType::Int32, true),
                Field::new("note", DataType::Utf8, true),
            ])),
        };
        let read = SecretTypeSpec::from_blob(spec.to_blob().unwrap().to_bytes()).unwrap();
        assert_eq!(read, spec);
        let hidden: Vec<_> = read.parameters.fields().iter().map(|field| SecretTypeSpec::hides(field)).collect();
        assert_eq!(hidden, [true, false, false, true]);
    }

    #[test]
    fn required_secrets_survive_the_wire() {
        let lookup = |scope: &str, name: &str| SecretLookup {
            secret_type: "store".to_owned(),
            scope: scope.to_owned(),
            name: name.to_owned(),
        };
        for secrets in [vec![], vec![lookup("", ""), lookup("s3://a", ""), lookup("", "mine")]] {
            let blob = add_required(RecordBuilder::new(), &secrets).unwrap().finish(&[]).unwrap();
            let batch = ipc::decode_batch(blob.to_bytes()).unwrap();
            assert_eq!(required(&Record::first(&batch).unwrap()), secrets);
        }
    }
}
