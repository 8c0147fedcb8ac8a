//! The server's half of an exchange: reading calls and turns, writing results, logs, errors and tokens.

use std::sync::Arc;

use arrow_array::{RecordBatch, new_empty_array};
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;

use crate::ipc::{self, Batch, Metadata, Segments, StreamWriter};
use crate::record::{Record, RecordBuilder};
use crate::reply::{LogRecord, Tokens};
use crate::{RemoteError, WireError, meta};

/// A unary call or the opening of a stream.
#[derive(Clone, Debug)]
pub struct Call {
    /// The method that the metadata name; must equal the URL's.
    pub method: String,
    /// Version of the framing.
    pub request_version: Option<String>,
    /// Name of the protocol.
    pub protocol: Option<String>,
    /// Version that the client declares.
    pub protocol_version: Option<String>,
    /// Correlates the call with logs.
    pub request_id: Option<String>,
    /// The outer row: the method's parameters.
    pub params: RecordBatch,
}

impl Call {
    /// The record in the `request` parameter.
    ///
    /// # Errors
    /// When there is none.
    pub fn request_blob(&self) -> Result<Bytes, WireError> {
        self.record()?.bytes("request")
    }

    /// The outer row.
    ///
    /// # Errors
    /// When there is none.
    pub fn record(&self) -> Result<Record<'_>, WireError> {
        Record::first(&self.params)
    }
}

fn only_batch(body: Bytes) -> Result<Batch, WireError> {
    let mut batches = ipc::decode_stream(body)?.batches;
    match (batches.pop(), batches.is_empty()) {
        (Some(batch), true) => Ok(batch),
        _ => Err(WireError::protocol("a request must hold exactly one batch")),
    }
}

/// Reads a call.
///
/// # Errors
/// When the body is not one stream with one batch that names a method.
pub fn decode_call(body: Bytes) -> Result<Call, WireError> {
    let batch = only_batch(body)?;
    let text = |key: &str| batch.get(key).map(str::to_owned);
    Ok(Call {
        method: text(meta::METHOD).ok_or_else(|| WireError::protocol("a request without vgi_rpc.method"))?,
        request_version: text(meta::REQUEST_VERSION),
        protocol: text(meta::PROTOCOL),
        protocol_version: text(meta::PROTOCOL_VERSION),
        request_id: text(meta::REQUEST_ID),
        params: batch.batch,
    })
}

/// Reads the next turn of a stream; true asks to end it.
///
/// # Errors
/// When the body is not one stream with one batch that carries a cursor.
pub fn decode_turn(body: Bytes) -> Result<(Tokens, bool), WireError> {
    let batch = only_batch(body)?;
    let cursor =
        batch.get(meta::STREAM_STATE).ok_or_else(|| WireError::protocol("a turn without stream token"))?.to_owned();
    let call = batch.get(meta::CALL_STATE).map(str::to_owned);
    Ok((Tokens { cursor, call }, batch.get(meta::CANCEL).is_some()))
}

/// Writes one stream of a reply.
pub struct ReplyWriter {
    schema: SchemaRef,
    writer: StreamWriter,
    /// Goes with every log and error batch.
    ids: Metadata,
}

impl ReplyWriter {
    /// A stream of this schema from the server of this id.
    ///
    /// # Errors
    /// When the schema cannot be written.
    pub fn new(schema: SchemaRef, server_id: &str, request_id: Option<&str>) -> Result<Self, WireError> {
        let mut ids = vec![(meta::SERVER_ID.to_owned(), server_id.to_owned())];
        ids.extend(request_id.map(|id| (meta::REQUEST_ID.to_owned(), id.to_owned())));
        Ok(Self { writer: StreamWriter::new(&schema)?, schema, ids })
    }

    /// The stream's schema.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Bytes of the stream so far.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a stream has a schema from the beginning")]
    pub fn len(&self) -> usize {
        self.writer.len()
    }

    /// Adds rows.
    ///
    /// # Errors
    /// When they do not have the stream's schema.
    pub fn data(&mut self, batch: &RecordBatch) -> Result<(), WireError> {
        self.writer.write(batch, &[])
    }

    /// Adds a log line.
    ///
    /// # Errors
    /// Never in practice.
    pub fn log(&mut self, record: &LogRecord) -> Result<(), WireError> {
        let mut metadata = vec![(meta::LOG_LEVEL, record.level.as_str()), (meta::LOG_MESSAGE, record.message.as_str())];
        metadata.extend(record.extra.as_deref().map(|extra| (meta::LOG_EXTRA, extra)));
        self.marker(&metadata)
    }

    /// Adds an error, which must be the last batch.
    ///
    /// # Errors
    /// Never in practice.
    pub fn error(&mut self, error: &RemoteError) -> Result<(), WireError> {
        let message = error.to_string();
        let mut extra = serde_json::Map::new();
        extra.insert("exception_message".to_owned(), error.message.clone().into());
        extra.extend(error.exception_type.clone().map(|name| ("exception_type".to_owned(), name.into())));
        extra.extend(error.traceback.clone().map(|text| ("traceback".to_owned(), text.into())));
        let extra = serde_json::Value::Object(extra).to_string();
        let mut metadata = vec![
            (meta::LOG_LEVEL, meta::EXCEPTION),
            (meta::LOG_MESSAGE, message.as_str()),
            (meta::LOG_EXTRA, extra.as_str()),
        ];
        metadata.extend(error.kind.as_deref().map(|kind| (meta::ERROR_KIND, kind)));
        metadata.push((meta::ERROR_CODE, error.code.as_deref().unwrap_or("UNKNOWN")));
        self.marker(&metadata)
    }

    /// Adds the tokens of the next turn.
    ///
    /// # Errors
    /// Never in practice.
    pub fn token(&mut self, tokens: &Tokens) -> Result<(), WireError> {
        let mut metadata = vec![(meta::STREAM_STATE, tokens.cursor.as_str())];
        metadata.extend(tokens.call.as_deref().map(|call| (meta::CALL_STATE, call)));
        self.marker(&metadata)
    }

    /// A batch without rows that carries metadata.
    fn marker(&mut self, metadata: &[(&str, &str)]) -> Result<(), WireError> {
        let empty = empty_batch_of(&self.schema)?;
        let ids = self.ids.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let metadata: Vec<_> = metadata.iter().copied().chain(ids).collect();
        self.writer.write(&empty, &metadata)
    }

    /// The stream.
    ///
    /// # Errors
    /// Never in practice.
    pub fn finish(self) -> Result<Segments, WireError> {
        self.writer.finish()
    }
}

fn empty_batch_of(schema: &SchemaRef) -> Result<RecordBatch, WireError> {
    let columns = schema.fields().iter().map(|field| new_empty_array(field.data_type())).collect();
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(0));
    RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).map_err(WireError::Encode)
}

/// The body of a unary reply: log lines, then the record in the `result` column.
///
/// # Errors
/// When the record exceeds 2 GiB.
pub fn result_body(
    logs: &[LogRecord],
    server_id: &str,
    request_id: Option<&str>,
    record: Segments,
) -> Result<Segments, WireError> {
    let result = RecordBuilder::new().bytes("result", record).finish(&[])?;
    if logs.is_empty() {
        return Ok(result);
    }
    // the log lines share the result's stream, so the result is written by the same writer
    let batch = ipc::decode_batch(result.to_bytes())?;
    let mut writer = ReplyWriter::new(batch.schema(), server_id, request_id)?;
    logs.iter().try_for_each(|record| writer.log(record))?;
    writer.data(&batch)?;
    writer.finish()
}

/// The body of a reply that is nothing but an error (after log lines).
///
/// # Errors
/// Never in practice.
pub fn error_body(
    logs: &[LogRecord],
    server_id: &str,
    request_id: Option<&str>,
    error: &RemoteError,
) -> Result<Segments, WireError> {
    let mut writer = ReplyWriter::new(Arc::new(Schema::empty()), server_id, request_id)?;
    logs.iter().try_for_each(|record| writer.log(record))?;
    writer.error(error)?;
    writer.finish()
}

/// An acknowledgement: a record without columns and rows.
///
/// # Errors
/// Never in practice.
pub fn acknowledgement() -> Result<Segments, WireError> {
    crate::methods::empty_record()
}
