//! `bind`.

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, SchemaRef};
use bytes::Bytes;

use super::secret::SecretLookup;
use crate::generation::{Dialect, SchemaField};
use crate::ipc::{self, Segments};
use crate::record::{Record, RecordBuilder};
use crate::{WireError, reply::UnaryReply};

/// Asks what a function gives for an input and arguments.
#[derive(Clone, Debug)]
pub struct BindRequest {
    /// Name without schema.
    pub function_name: String,
    /// Path of the owning schema.
    pub schema_path: Vec<String>,
    /// Argument values, as [`crate::arguments::encode_values`] makes them.
    pub arguments: RecordBatch,
    /// Schema of the input table.
    pub input_schema: SchemaRef,
    /// Required settings; one row.
    pub settings: Option<RecordBatch>,
    /// Resolved secrets; one row.
    pub secrets: Option<RecordBatch>,
    /// From the attach reply.
    pub attach_opaque_data: Option<Bytes>,
    /// Handle of the transaction.
    pub transaction_opaque_data: Option<Bytes>,
    /// Whether this is the second pass, after a lookup of secrets.
    pub resolved_secrets_provided: bool,
}

fn optional_blob(batch: Option<&RecordBatch>) -> Result<Option<Bytes>, WireError> {
    Ok(batch.map(|batch| ipc::encode_stream(batch, &[])).transpose()?.map(|blob| blob.to_bytes()))
}

impl BindRequest {
    /// The request as a record; later requests repeat these very bytes as `bind_call`.
    ///
    /// # Errors
    /// When a batch in it cannot be encoded.
    pub fn to_blob(&self, dialect: &Dialect) -> Result<Segments, WireError> {
        let generation = dialect.generation;
        let record = RecordBuilder::new()
            .text("function_name", &self.function_name)
            .bytes("arguments", ipc::encode_stream(&self.arguments, &[])?)
            .choice("function_type", generation.buffering_type)
            .optional_bytes("input_schema", Some(&ipc::encode_schema(&self.input_schema)?))
            .optional_bytes("settings", optional_blob(self.settings.as_ref())?.as_deref())
            .optional_bytes("secrets", optional_blob(self.secrets.as_ref())?.as_deref())
            .optional_bytes("attach_opaque_data", self.attach_opaque_data.as_deref())
            .optional_bytes("transaction_opaque_data", self.transaction_opaque_data.as_deref())
            .flag("resolved_secrets_provided", self.resolved_secrets_provided)
            .optional_text("at_unit", None)
            .optional_text("at_value", None);
        let record = if generation.routed_records {
            record.null("copy_from", &copy_type(true)).null("copy_to", &copy_type(false))
        } else {
            record
        };
        let record = schema_field(record, generation.bind_schema, &self.schema_path);
        let record =
            if generation.routed_records { record.optional_texts::<&str>("argument_names", None) } else { record };
        record.finish(&[])
    }

    /// Reads the record.
    ///
    /// # Errors
    /// When required fields are missing or not what they should be.
    pub fn from_blob(blob: Bytes) -> Result<Self, WireError> {
        let batch = ipc::decode_batch(blob)?;
        let record = Record::first(&batch)?;
        let blob = |name: &str| {
            record.optional_bytes(name).filter(|bytes| !bytes.is_empty()).map(ipc::decode_batch).transpose()
        };
        Ok(Self {
            function_name: record.text("function_name")?,
            schema_path: read_schema_path(&record),
            arguments: ipc::decode_batch(record.bytes("arguments")?)?,
            input_schema: ipc::decode_schema(&record.bytes("input_schema")?)?,
            settings: blob("settings")?,
            secrets: blob("secrets")?,
            attach_opaque_data: record.optional_bytes("attach_opaque_data"),
            transaction_opaque_data: record.optional_bytes("transaction_opaque_data"),
            resolved_secrets_provided: record.flag("resolved_secrets_provided"),
        })
    }
}

fn copy_type(from: bool) -> DataType {
    let mut fields = vec![Field::new("format", DataType::Utf8, false), Field::new("file_path", DataType::Utf8, false)];
    if from {
        fields.push(Field::new("expected_schema", DataType::Binary, false));
    }
    DataType::Struct(fields.into())
}

/// Adds the owning schema in the form of the generation.
pub(super) fn schema_field(record: RecordBuilder, form: SchemaField, path: &[String]) -> RecordBuilder {
    let known = !path.is_empty();
    match form {
        SchemaField::None => record,
        SchemaField::Name => record.optional_text("schema_name", known.then(|| path.join(".")).as_deref()),
        SchemaField::Path => record.optional_texts("schema_path", known.then_some(path)),
    }
}

/// Reads the owning schema in either form.
pub(super) fn read_schema_path(record: &Record<'_>) -> Vec<String> {
    let path = record.texts("schema_path");
    if path.is_empty() { record.optional_text("schema_name").into_iter().collect() } else { path }
}

/// What a bound function gives.
#[derive(Clone, Debug)]
pub struct BindReply {
    /// Schema of the result, before projection.
    pub output_schema: SchemaRef,
    /// The same as it came; later requests repeat these bytes.
    pub output_schema_bytes: Bytes,
    /// Echoed in later requests.
    pub opaque_data: Option<Bytes>,
    /// Not empty: bind again with these secrets.
    pub secret_lookups: Vec<SecretLookup>,
}

impl BindReply {
    /// A reply with this schema.
    ///
    /// # Errors
    /// When the schema cannot be encoded.
    pub fn new(output_schema: SchemaRef) -> Result<Self, WireError> {
        let output_schema_bytes = ipc::encode_schema(&output_schema)?;
        Ok(Self { output_schema, output_schema_bytes, opaque_data: None, secret_lookups: Vec::new() })
    }

    /// Reads the reply.
    ///
    /// # Errors
    /// When required fields are missing.
    pub fn from_reply(reply: &UnaryReply) -> Result<Self, WireError> {
        let batch = reply.result()?;
        let record = Record::first(&batch)?;
        let output_schema_bytes = record.bytes("output_schema")?;
        let (scopes, names) = (record.texts("lookup_scopes"), record.texts("lookup_names"));
        let at = |list: &[String], index: usize| list.get(index).cloned().unwrap_or_default();
        let lookups = record.texts("lookup_secret_types").into_iter().enumerate();
        Ok(Self {
            output_schema: ipc::decode_schema(&output_schema_bytes)?,
            output_schema_bytes,
            opaque_data: record.optional_bytes("opaque_data"),
            secret_lookups: lookups
                .map(|(index, secret_type)| SecretLookup {
                    secret_type,
                    scope: at(&scopes, index),
                    name: at(&names, index),
                })
                .collect(),
        })
    }

    /// The reply as a record.
    ///
    /// # Errors
    /// Never in practice.
    pub fn to_blob(&self) -> Result<Segments, WireError> {
        let list = |get: fn(&SecretLookup) -> &String| self.secret_lookups.iter().map(get).cloned().collect::<Vec<_>>();
        RecordBuilder::new()
            .bytes("output_schema", self.output_schema_bytes.clone())
            .optional_bytes("opaque_data", self.opaque_data.as_deref())
            .texts("lookup_secret_types", &list(|lookup| &lookup.secret_type))
            .texts("lookup_scopes", &list(|lookup| &lookup.scope))
            .texts("lookup_names", &list(|lookup| &lookup.name))
            .finish(&[])
    }
}
