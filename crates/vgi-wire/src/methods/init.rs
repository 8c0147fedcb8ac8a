//! `init`, which opens an execution or one of its finalize streams, and the turns of a stream.

use arrow_array::RecordBatch;
use arrow_schema::DataType;
use bytes::Bytes;

use super::outer::empty_batch;
use crate::generation::Dialect;
use crate::ipc::{self, Segments};
use crate::record::{Record, RecordBuilder, list_of};
use crate::reply::Tokens;
use crate::{WireError, meta};

/// Which side of a buffered call an init opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The sink: mints an execution.
    TableBuffering,
    /// The source: one stream of an execution.
    TableBufferingFinalize,
}

impl Phase {
    const fn name(self) -> &'static str {
        match self {
            Self::TableBuffering => "TABLE_BUFFERING",
            Self::TableBufferingFinalize => "TABLE_BUFFERING_FINALIZE",
        }
    }
}

/// Opens an execution or a finalize stream. Between the two of one call nothing but the last four fields may differ.
#[derive(Clone, Debug)]
pub struct InitRequest {
    /// The bytes of the bind request.
    pub bind_call: Bytes,
    /// The bytes of the bind reply's schema.
    pub output_schema: Bytes,
    /// From the bind reply.
    pub bind_opaque_data: Option<Bytes>,
    /// Wanted columns of the output schema; `None` for all.
    pub projection_ids: Option<Vec<i64>>,
    /// Filters as [`crate::filter::encode`] writes them.
    pub pushdown_filters: Option<Bytes>,
    /// What is opened.
    pub phase: Phase,
    /// The execution; the server mints it when there is none.
    pub execution_id: Option<Bytes>,
    /// The stream.
    pub finalize_state_id: Option<Bytes>,
    /// From the header of the primary init.
    pub init_opaque_data: Option<Bytes>,
}

impl InitRequest {
    /// The request as a record.
    ///
    /// # Errors
    /// When a field exceeds 2 GiB.
    pub fn to_blob(&self, dialect: &Dialect) -> Result<Segments, WireError> {
        let large_list = list_of(DataType::LargeBinary);
        let record = RecordBuilder::new()
            .bytes("bind_call", self.bind_call.clone())
            .bytes("output_schema", self.output_schema.clone())
            .optional_bytes("bind_opaque_data", self.bind_opaque_data.as_deref())
            .optional_integers("projection_ids", self.projection_ids.as_deref())
            .optional_large_bytes("pushdown_filters", self.pushdown_filters.as_deref())
            .null("join_keys", &large_list);
        let record = if dialect.generation.routed_records {
            self.routed_tail(record, &large_list)
        } else {
            self.flat_tail(record)
        };
        record.finish(&[])
    }

    fn routed_tail(&self, record: RecordBuilder, large_list: &DataType) -> RecordBuilder {
        let record = record
            .null("split_tokens", large_list)
            .optional_integer("row_limit", None)
            .optional_choice("phase", Some(self.phase.name()))
            .optional_bytes("finalize_state_id", self.finalize_state_id.as_deref())
            .optional_bytes("execution_id", self.execution_id.as_deref())
            .optional_bytes("init_opaque_data", self.init_opaque_data.as_deref())
            .optional_bytes("substream_id", None);
        order_and_sample(record)
    }

    fn flat_tail(&self, record: RecordBuilder) -> RecordBuilder {
        let record = record
            .optional_choice("phase", Some(self.phase.name()))
            .optional_bytes("execution_id", self.execution_id.as_deref())
            .optional_bytes("init_opaque_data", self.init_opaque_data.as_deref());
        order_and_sample(record)
            .optional_bytes("finalize_state_id", self.finalize_state_id.as_deref())
            .optional_bytes("substream_id", None)
    }

    /// Reads the record.
    ///
    /// # Errors
    /// When required fields are missing, or the phase is not one of a buffered call.
    pub fn from_blob(blob: Bytes) -> Result<Self, WireError> {
        let batch = ipc::decode_batch(blob)?;
        let record = Record::first(&batch)?;
        let phase = record.optional_text("phase").unwrap_or_default().to_uppercase();
        let phase = [Phase::TableBuffering, Phase::TableBufferingFinalize]
            .into_iter()
            .find(|known| known.name() == phase)
            .ok_or_else(|| WireError::protocol(format!("phase '{phase}' is not one of a buffered call")))?;
        Ok(Self {
            bind_call: record.bytes("bind_call")?,
            output_schema: record.bytes("output_schema")?,
            bind_opaque_data: record.optional_bytes("bind_opaque_data"),
            projection_ids: record.integers("projection_ids"),
            pushdown_filters: record.optional_bytes("pushdown_filters"),
            phase,
            execution_id: record.optional_bytes("execution_id"),
            finalize_state_id: record.optional_bytes("finalize_state_id"),
            init_opaque_data: record.optional_bytes("init_opaque_data"),
        })
    }

    /// The batches of join keys in the record, which its filters may refer to ([`crate::filter::decode_with_join_keys`]).
    ///
    /// # Errors
    /// When it is not a record, or they are not a list of byte strings.
    pub fn join_keys(blob: Bytes) -> Result<Vec<Bytes>, WireError> {
        let batch = ipc::decode_batch(blob)?;
        Record::first(&batch)?.blobs("join_keys")
    }
}

fn order_and_sample(record: RecordBuilder) -> RecordBuilder {
    record
        .optional_text("order_by_column_name", None)
        .optional_choice("order_by_direction", None)
        .optional_choice("order_by_null_order", None)
        .optional_integer("order_by_limit", None)
        .optional_double("tablesample_percentage", None)
        .optional_integer("tablesample_seed", None)
}

/// How servers say that they set no bound.
const UNBOUNDED_WORKERS: i64 = 99_999;

/// The header row of an opened stream.
#[derive(Clone, Debug)]
pub struct InitHeader {
    /// The execution.
    pub execution_id: Bytes,
    /// Echoed in the inits of finalize streams.
    pub opaque_data: Option<Bytes>,
    /// How many requests of the execution should be in flight at most; `None` when no bound is stated.
    pub max_workers: Option<i64>,
}

impl InitHeader {
    pub(crate) fn from_batch(batch: &RecordBatch) -> Result<Self, WireError> {
        let record = Record::first(batch)?;
        Ok(Self {
            execution_id: record.bytes("execution_id")?,
            opaque_data: record.optional_bytes("opaque_data"),
            max_workers: record.integer("max_workers").filter(|&workers| workers > 0 && workers != UNBOUNDED_WORKERS),
        })
    }

    /// The header's stream.
    ///
    /// # Errors
    /// Never in practice.
    pub fn to_stream(&self) -> Result<Segments, WireError> {
        RecordBuilder::new()
            .bytes("execution_id", self.execution_id.clone())
            .optional_bytes("opaque_data", self.opaque_data.as_deref())
            .integer("max_workers", self.max_workers.unwrap_or(UNBOUNDED_WORKERS))
            .finish(&[])
    }
}

/// The body of a producer stream's next turn.
///
/// # Errors
/// Never in practice.
pub fn turn_body(tokens: &Tokens) -> Result<Segments, WireError> {
    empty_batch(&token_metadata(tokens))
}

/// The body that ends a stream early.
///
/// # Errors
/// Never in practice.
pub fn cancel_body(tokens: &Tokens) -> Result<Segments, WireError> {
    let mut metadata = token_metadata(tokens);
    metadata.push((meta::CANCEL, "1"));
    empty_batch(&metadata)
}

fn token_metadata(tokens: &Tokens) -> Vec<(&str, &str)> {
    let mut metadata = vec![(meta::STREAM_STATE, tokens.cursor.as_str())];
    metadata.extend(tokens.call.as_deref().map(|call| (meta::CALL_STATE, call)));
    metadata
}
