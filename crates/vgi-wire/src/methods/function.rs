//! What a server says of a function.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;

use super::bind::read_schema_path;
use super::secret::{self, SecretLookup};
use crate::WireError;
use crate::arguments::{self, Argument};
use crate::filter;
use crate::ipc::{self, Segments};
use crate::record::{Record, RecordBuilder};

/// Kind of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the protocol's")]
pub enum FunctionType {
    Scalar,
    Table,
    TableBuffering,
    Aggregate,
    /// A kind that this library does not know.
    Other,
}

impl FunctionType {
    fn parse(name: &str) -> Self {
        match name.to_uppercase().as_str() {
            "SCALAR" => Self::Scalar,
            "TABLE" => Self::Table,
            "TABLE_BUFFERING" => Self::TableBuffering,
            "AGGREGATE" => Self::Aggregate,
            _ => Self::Other,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Scalar => "SCALAR",
            Self::Aggregate => "AGGREGATE",
            Self::Table | Self::Other => "TABLE",
            Self::TableBuffering => "TABLE_BUFFERING",
        }
    }
}

/// An example of a function's use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The statement.
    pub sql: String,
    /// What it shows.
    pub description: String,
}

/// Whether a function gives the same rows for the same input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stability {
    /// Always.
    Consistent,
    /// Not even twice in a query.
    Volatile,
    /// Within one query.
    ConsistentWithinQuery,
}

impl Stability {
    fn parse(name: &str) -> Option<Self> {
        [Self::Consistent, Self::Volatile, Self::ConsistentWithinQuery]
            .into_iter()
            .find(|stability| stability.name().eq_ignore_ascii_case(name))
    }

    /// The protocol's name of it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Consistent => "CONSISTENT",
            Self::Volatile => "VOLATILE",
            Self::ConsistentWithinQuery => "CONSISTENT_WITHIN_QUERY",
        }
    }
}

/// A function of a catalog.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "the record on the wire has these flags")]
pub struct FunctionInfo {
    /// Name without schema.
    pub name: String,
    /// Path of the owning schema.
    pub schema_path: Vec<String>,
    /// Kind.
    pub function_type: FunctionType,
    /// The declaration of arguments, the table parameter included.
    pub arguments: SchemaRef,
    /// The defaults of the arguments that have one, a row with a column each.
    pub parameter_defaults: Option<RecordBatch>,
    /// Schema of the result where it does not depend on the call.
    pub output_schema: Option<SchemaRef>,
    /// Description.
    pub description: String,
    /// Comment of the owner.
    pub comment: Option<String>,
    /// Tags by key.
    pub tags: Vec<(String, String)>,
    /// Whether it gives the same rows for the same input, where that is declared.
    pub stability: Option<Stability>,
    /// Examples.
    pub examples: Vec<Example>,
    /// Categories.
    pub categories: Vec<String>,
    /// Whether it honours a projection.
    pub projection_pushdown: bool,
    /// Whether it accepts filters.
    pub filter_pushdown: bool,
    /// Meanings of filters that it knows, such as [`filter::SEMANTICS`](crate::filter::SEMANTICS).
    pub filter_semantic_profiles: Vec<String>,
    /// Whether no row that a filter excludes comes back.
    pub filters_exactly_applied: bool,
    /// Bound of parallel requests; `None` when none is stated.
    pub max_workers: Option<i64>,
    /// Streams must be read in order.
    pub source_order_dependent: bool,
    /// Input must come in order.
    pub sink_order_dependent: bool,
    /// Requests must carry a batch index.
    pub requires_input_batch_index: bool,
    /// Settings that its bind needs.
    pub required_settings: Vec<String>,
    /// Secrets that its bind needs.
    pub required_secrets: Vec<SecretLookup>,
}

impl FunctionInfo {
    /// A function with these arguments that declares nothing else.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        schema_path: Vec<String>,
        function_type: FunctionType,
        arguments: SchemaRef,
    ) -> Self {
        Self {
            name: name.into(),
            schema_path,
            function_type,
            arguments,
            parameter_defaults: None,
            output_schema: None,
            description: String::new(),
            comment: None,
            tags: Vec::new(),
            stability: None,
            examples: Vec::new(),
            categories: Vec::new(),
            projection_pushdown: false,
            filter_pushdown: false,
            filter_semantic_profiles: Vec::new(),
            filters_exactly_applied: false,
            max_workers: None,
            source_order_dependent: false,
            sink_order_dependent: false,
            requires_input_batch_index: false,
            required_settings: Vec::new(),
            required_secrets: Vec::new(),
        }
    }

    /// Reads one item of a listing.
    ///
    /// # Errors
    /// When it is not a function's record.
    pub fn from_blob(blob: Bytes) -> Result<Self, WireError> {
        let batch = ipc::decode_batch(blob)?;
        Self::from_record(&Record::first(&batch)?)
    }

    /// Reads one row.
    ///
    /// # Errors
    /// When required fields are missing.
    pub fn from_record(record: &Record<'_>) -> Result<Self, WireError> {
        let schema = |name: &str| {
            record.optional_bytes(name).filter(|bytes| !bytes.is_empty()).map(|bytes| ipc::decode_schema(&bytes))
        };
        Ok(Self {
            name: record.text("name")?,
            schema_path: read_schema_path(record),
            function_type: FunctionType::parse(&record.text("function_type")?),
            arguments: schema("arguments").transpose()?.unwrap_or_else(|| Arc::new(Schema::empty())),
            // only advisory, as the output schema is
            parameter_defaults: record
                .optional_bytes("parameter_default_values")
                .filter(|bytes| !bytes.is_empty())
                .and_then(|bytes| ipc::decode_batch(bytes).ok()),
            // only advisory: one that does not parse is no reason to hide the function
            output_schema: schema("output_schema").and_then(Result::ok),
            description: record.optional_text("description").unwrap_or_default(),
            comment: record.optional_text("comment"),
            tags: record.pairs("tags"),
            stability: record.optional_text("stability").and_then(|name| Stability::parse(&name)),
            examples: examples(record),
            categories: record.texts("categories"),
            projection_pushdown: record.flag("projection_pushdown"),
            filter_pushdown: record.flag("filter_pushdown"),
            filter_semantic_profiles: record.texts("filter_semantic_profiles"),
            filters_exactly_applied: record.flag("filters_exactly_applied"),
            max_workers: record.integer("max_workers").filter(|&workers| workers > 0 && workers != 99_999),
            source_order_dependent: record.flag("source_order_dependent"),
            sink_order_dependent: record.flag("sink_order_dependent"),
            requires_input_batch_index: record.flag("requires_input_batch_index"),
            required_settings: record.texts("required_settings"),
            required_secrets: secret::required(record),
        })
    }

    /// Whether it takes filters in the only encoding that this library writes.
    pub fn takes_filters(&self) -> bool {
        self.filter_pushdown && self.filter_semantic_profiles.iter().any(|profile| profile == filter::SEMANTICS)
    }

    /// The declared arguments without the table parameter.
    pub fn declared_arguments(&self) -> Vec<Argument> {
        arguments::declared(&self.arguments)
    }

    /// The record with all 42 columns of generation 2.2.
    ///
    /// # Errors
    /// When a schema cannot be encoded.
    pub fn to_blob(&self) -> Result<Segments, WireError> {
        self.record()?.finish(&[])
    }

    pub(super) fn record(&self) -> Result<RecordBuilder, WireError> {
        let output = self.output_schema.clone().unwrap_or_else(|| Arc::new(Schema::empty()));
        let defaults = self.parameter_defaults.as_ref().map(|row| ipc::encode_stream(row, &[])).transpose()?;
        let defaults = defaults.map(|blob| blob.to_bytes());
        let record = RecordBuilder::new()
            .optional_text("comment", self.comment.as_deref())
            .pairs("tags", &self.tags)
            .text("name", &self.name)
            .texts("schema_path", &self.schema_path)
            .choice("function_type", self.function_type.name())
            .coded_bytes("arguments", false, Some(&ipc::encode_schema(&self.arguments)?))
            .coded_bytes("output_schema", false, Some(&ipc::encode_schema(&output)?))
            .coded_bytes("parameter_default_values", true, defaults.as_deref())
            .optional_choice("stability", self.stability.map(Stability::name))
            .optional_choice("null_handling", None)
            .optional_texts::<&str>("argument_monotonicity", None)
            .text("description", &self.description);
        let record = example_list(record, &self.examples)?
            .texts("categories", &self.categories)
            .optional_flag("projection_pushdown", Some(self.projection_pushdown))
            .optional_flag("filter_pushdown", Some(self.filter_pushdown))
            .optional_flag("sampling_pushdown", Some(false))
            .optional_flag("late_materialization", Some(false));
        secret::add_required(self.tail(record), &self.required_secrets)
    }

    fn tail(&self, record: RecordBuilder) -> RecordBuilder {
        record
            .texts("filter_semantic_profiles", &self.filter_semantic_profiles)
            .empty_structs("additional_filter_functions", name_fields())
            .empty_structs("runtime_filter_algorithms", name_fields())
            .empty_structs(
                "filter_evaluation_contexts",
                vec![text_field("profile", false), text_field("provider_fingerprint", true)],
            )
            .optional_choice("order_preservation", None)
            .optional_small_integer("max_workers", self.max_workers.and_then(|workers| i32::try_from(workers).ok()))
            .flag("supports_batch_index", false)
            .flag("supports_splits", false)
            .flag("filters_exactly_applied", self.filters_exactly_applied)
            .flag("supports_positions", false)
            .optional_integer("split_token_ttl_seconds", None)
            .choice("partition_kind", "NOT_PARTITIONED")
            .choice("order_dependent", "NOT_ORDER_DEPENDENT")
            .choice("distinct_dependent", "NOT_DISTINCT_DEPENDENT")
            .flag("supports_window", false)
            .flag("streaming_partitioned", false)
            .flag("has_finalize", true)
            .flag("source_order_dependent", self.source_order_dependent)
            .flag("sink_order_dependent", self.sink_order_dependent)
            .flag("requires_input_batch_index", self.requires_input_batch_index)
            .flag("input_from_args", false)
            .optional_integer("input_rows_per_call", None)
            .texts("required_settings", &self.required_settings)
    }
}

fn text_field(name: &str, nullable: bool) -> Field {
    Field::new(name, DataType::Utf8, nullable)
}

fn name_fields() -> Vec<Field> {
    vec![text_field("namespace", false), text_field("name", false), Field::new("version", DataType::UInt64, false)]
}

fn example_list(record: RecordBuilder, examples: &[Example]) -> Result<RecordBuilder, WireError> {
    if examples.is_empty() {
        return Ok(record.empty_structs(
            "examples",
            vec![text_field("sql", false), text_field("description", false), text_field("expected_output", true)],
        ));
    }
    let rows = examples.iter().map(|example| {
        RecordBuilder::new()
            .text("sql", &example.sql)
            .text("description", &example.description)
            .optional_text("expected_output", None)
    });
    record.structs("examples", rows.collect())
}

fn examples(record: &Record<'_>) -> Vec<Example> {
    let Some(items) = record.items("examples") else { return Vec::new() };
    let Some(items) = arrow_array::cast::AsArray::as_struct_opt(&items) else { return Vec::new() };
    let batch = RecordBatch::from(items.clone());
    Record::all(&batch)
        .map(|row| Example {
            sql: row.optional_text("sql").unwrap_or_default(),
            description: row.optional_text("description").unwrap_or_default(),
        })
        .collect()
}
