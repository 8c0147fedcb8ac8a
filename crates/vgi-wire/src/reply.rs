//! Reading of replies: which batch is a result, a log line, an error, a token (protocol file 01 §6–9).

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use serde_json::Value;

use crate::ipc::{self, Batch};
use crate::methods::InitHeader;
use crate::record::Record;
use crate::{RemoteError, WireError, meta};

/// A log line that a server's code wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRecord {
    /// `ERROR`, `WARN`, `INFO`, `DEBUG` or `TRACE`; unknown levels read as `INFO`.
    pub level: LogLevel,
    /// The text.
    pub message: String,
    /// A JSON object with more, as text.
    pub extra: Option<String>,
}

/// Level of a log line. An `Error` does not fail the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum LogLevel {
    Trace,
    Debug,
    Info,
    Warn,
    Error,
}

impl LogLevel {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "TRACE",
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
        }
    }

    fn parse(word: &str) -> Self {
        [Self::Trace, Self::Debug, Self::Warn, Self::Error]
            .into_iter()
            .find(|level| level.as_str() == word)
            .unwrap_or(Self::Info)
    }
}

/// Why a reply gives no result.
#[derive(Debug)]
pub enum Failure {
    /// The bytes are not a reply.
    Wire(WireError),
    /// The server reports an error.
    Remote {
        /// What it says.
        error: Box<RemoteError>,
        /// Log lines that came before it.
        logs: Vec<LogRecord>,
    },
}

impl From<WireError> for Failure {
    fn from(error: WireError) -> Self {
        Self::Wire(error)
    }
}

/// The tokens that continue a stream. Opaque text, echoed as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens {
    /// Position in the stream; replaced by every turn.
    pub cursor: String,
    /// The call itself; only the opening reply has it, and only of newer servers.
    pub call: Option<String>,
}

enum Role {
    Data,
    Log(LogRecord),
    Error(Box<RemoteError>),
    Token { cursor: String, call: Option<String> },
}

/// The order of these tests is the protocol's.
fn classify(batch: &Batch) -> Result<Role, WireError> {
    if batch.metadata.is_empty() || batch.batch.num_rows() > 0 {
        return Ok(Role::Data);
    }
    if let (Some(level), Some(message)) = (batch.get(meta::LOG_LEVEL), batch.get(meta::LOG_MESSAGE)) {
        return Ok(if level == meta::EXCEPTION {
            Role::Error(Box::new(remote_error(batch, message)))
        } else {
            let extra = batch.get(meta::LOG_EXTRA).map(str::to_owned);
            Role::Log(LogRecord { level: LogLevel::parse(level), message: message.to_owned(), extra })
        });
    }
    if batch.get(meta::LOCATION).is_some() {
        return Err(WireError::protocol("a stored batch was not fetched"));
    }
    if batch.get(meta::SHM_OFFSET).is_some() {
        // read as an empty batch it would lose rows
        return Err(WireError::protocol("a pointer into shared memory came over HTTP"));
    }
    Ok(match batch.get(meta::STREAM_STATE) {
        Some(cursor) => Role::Token { cursor: cursor.to_owned(), call: batch.get(meta::CALL_STATE).map(str::to_owned) },
        None => Role::Data,
    })
}

fn remote_error(batch: &Batch, log_message: &str) -> RemoteError {
    let extra =
        batch.get(meta::LOG_EXTRA).and_then(|extra| serde_json::from_str::<Value>(extra).ok()).unwrap_or_default();
    let member =
        |name: &str| extra.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    let exception_type = member("exception_type");
    let message = member("exception_message").unwrap_or_else(|| {
        let prefix = exception_type.as_ref().map(|name| format!("{name}: "));
        prefix.and_then(|prefix| log_message.strip_prefix(&prefix)).unwrap_or(log_message).to_owned()
    });
    let key = |key: &str, name: &str| batch.get(key).map(str::to_owned).or_else(|| member(name));
    RemoteError {
        message,
        kind: key(meta::ERROR_KIND, "error_kind"),
        code: key(meta::ERROR_CODE, "error_code"),
        traceback: member("traceback"),
        server_id: batch.get(meta::SERVER_ID).map(str::to_owned),
        request_id: batch.get(meta::REQUEST_ID).map(str::to_owned),
        exception_type,
    }
}

/// A unary reply.
#[derive(Clone, Debug)]
pub struct UnaryReply {
    /// Log lines.
    pub logs: Vec<LogRecord>,
    /// The result batch. Servers that answer an acknowledgement as void send no `result` column, or no row.
    pub batch: Option<RecordBatch>,
    /// Metadata of the result batch.
    pub metadata: ipc::Metadata,
}

impl UnaryReply {
    /// The record in the `result` column.
    ///
    /// # Errors
    /// When there is none, or it is not a record.
    pub fn result(&self) -> Result<RecordBatch, WireError> {
        let batch = self.batch.as_ref().ok_or_else(|| WireError::protocol("a reply without result"))?;
        ipc::decode_batch(Record::first(batch)?.bytes("result")?)
    }
}

/// Reads the reply of a unary call. An error batch is found wherever it stands.
///
/// # Errors
/// [`Failure::Remote`] for an error batch, [`Failure::Wire`] for anything that is not a reply.
pub fn read_unary(body: Bytes) -> Result<UnaryReply, Failure> {
    unary(ipc::decode_streams(body)?)
}

/// [`read_unary`] of a body that is decoded already.
///
/// # Errors
/// As [`read_unary`].
pub fn unary(streams: Vec<ipc::Stream>) -> Result<UnaryReply, Failure> {
    let mut logs = Vec::new();
    let mut result = None;
    for stream in streams {
        for batch in stream.batches {
            match classify(&batch)? {
                Role::Log(record) => logs.push(record),
                Role::Error(error) => return Err(Failure::Remote { error, logs }),
                Role::Data if result.is_some() => {
                    return Err(WireError::protocol("several results where one is expected").into());
                }
                Role::Data => result = Some(batch),
                Role::Token { .. } => {}
            }
        }
    }
    let (batch, metadata) = result.map(|batch| (batch.batch, batch.metadata)).unzip();
    Ok(UnaryReply { logs, batch, metadata: metadata.unwrap_or_default() })
}

/// What one turn of a stream brought.
#[derive(Clone, Debug)]
pub struct Turn {
    /// Schema of the data stream.
    pub schema: SchemaRef,
    /// Batches with rows, in order. Older servers send many in one turn.
    pub batches: Vec<RecordBatch>,
    /// Log lines.
    pub logs: Vec<LogRecord>,
    /// Cursor for the next turn; `None` ends the stream.
    pub cursor: Option<String>,
    /// Call token, when the reply opened the stream.
    pub call: Option<String>,
    /// An error after the batches above, which are good.
    pub error: Option<Box<RemoteError>>,
}

impl Turn {
    fn read(stream: ipc::Stream) -> Result<Self, WireError> {
        let mut turn = Self {
            schema: stream.schema,
            batches: Vec::new(),
            logs: Vec::new(),
            cursor: None,
            call: None,
            error: None,
        };
        for batch in stream.batches {
            if batch.batch.num_rows() > 0 {
                // exchange-shaped streams put the token on the data itself
                if let Some(cursor) = batch.get(meta::STREAM_STATE) {
                    turn.cursor = Some(cursor.to_owned());
                }
                turn.batches.push(batch.batch);
                continue;
            }
            match classify(&batch)? {
                Role::Log(record) => turn.logs.push(record),
                Role::Token { cursor, call } => {
                    turn.cursor = Some(cursor);
                    turn.call = call.or(turn.call);
                }
                Role::Error(error) => {
                    turn.error = Some(error);
                    turn.cursor = None;
                    break;
                }
                Role::Data => {}
            }
        }
        Ok(turn)
    }
}

/// The reply that opens a stream.
#[derive(Clone, Debug)]
pub struct InitReply {
    /// The header record.
    pub header: InitHeader,
    /// Log lines before the header.
    pub logs: Vec<LogRecord>,
    /// The first turn, which may carry an error of its own.
    pub turn: Option<Turn>,
}

/// Reads the reply to `init`: the header's stream, then the data's.
///
/// # Errors
/// As [`read_unary`]; an error in the data stream is not one here, since the execution exists: it stands in the turn.
pub fn read_init(body: Bytes) -> Result<InitReply, Failure> {
    opening(ipc::decode_streams(body)?)
}

/// [`read_init`] of a body that is decoded already.
///
/// # Errors
/// As [`read_init`].
pub fn opening(streams: Vec<ipc::Stream>) -> Result<InitReply, Failure> {
    let mut streams = streams.into_iter();
    let mut logs = Vec::new();
    let mut header = None;
    for batch in streams.next().into_iter().flat_map(|stream| stream.batches) {
        match classify(&batch)? {
            Role::Log(record) => logs.push(record),
            Role::Error(error) => return Err(Failure::Remote { error, logs }),
            Role::Data if batch.batch.num_rows() == 1 && header.is_none() => {
                header = Some(InitHeader::from_batch(&batch.batch)?);
            }
            Role::Data | Role::Token { .. } => {
                return Err(WireError::protocol("the reply to init has no single header row").into());
            }
        }
    }
    let header = header.ok_or_else(|| WireError::protocol("the reply to init has no header row"))?;
    let turn = streams.next().map(Turn::read).transpose()?;
    if streams.next().is_some() {
        return Err(WireError::protocol("the reply to init has more than two streams").into());
    }
    Ok(InitReply { header, logs, turn })
}

/// Looks for the header in a reply to `init` that cannot be read as a whole: the server may hold an execution all the same.
pub fn find_header(body: Bytes) -> Option<InitHeader> {
    let stream = ipc::decode_first_stream(body).ok()?;
    let row = stream.batches.iter().find(|batch| batch.batch.num_rows() == 1)?;
    InitHeader::from_batch(&row.batch).ok()
}

/// Reads the reply to a turn.
///
/// # Errors
/// [`Failure::Wire`] when the body is not one stream; an error batch stands in the turn.
pub fn read_turn(body: Bytes) -> Result<Turn, Failure> {
    turn(ipc::decode_streams(body)?)
}

/// [`read_turn`] of a body that is decoded already.
///
/// # Errors
/// As [`read_turn`].
pub fn turn(streams: Vec<ipc::Stream>) -> Result<Turn, Failure> {
    let mut streams = streams.into_iter();
    match (streams.next(), streams.next()) {
        (Some(stream), None) => Ok(Turn::read(stream)?),
        _ => Err(WireError::protocol("the reply to a turn is not one stream").into()),
    }
}

/// Looks for an error batch in a body of any status and shape; `None` when there is none or the body is not Arrow.
pub fn find_error(body: Bytes) -> Option<RemoteError> {
    let streams = ipc::decode_streams(body).ok()?;
    streams.iter().flat_map(|stream| &stream.batches).find_map(|batch| match classify(batch) {
        Ok(Role::Error(error)) => Some(*error),
        _ => None,
    })
}
