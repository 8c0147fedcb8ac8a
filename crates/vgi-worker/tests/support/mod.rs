//! A client made of the wire library's client half and a plain socket.
#![allow(dead_code, reason = "every test file uses its own part")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{Field, Schema, SchemaRef};
use bytes::Bytes;
use vgi_wire::RemoteError;
use vgi_wire::arguments::encode_values;
use vgi_wire::generation::Dialect;
use vgi_wire::ipc::{self, Segments};
use vgi_wire::methods::{
    AttachReply, AttachRequest, BindReply, BindRequest, CombineReply, CombineRequest, ExecutionRef, InitRequest,
    Method, Phase, ProcessReply, ProcessRequest, cancel_body, request_body, turn_body,
};
use vgi_wire::reply::{Failure, InitReply, LogRecord, Tokens, Turn, UnaryReply, read_init, read_turn, read_unary};
use vgi_worker::{Handle, Options, functions, serve};

pub const ARROW: &str = "application/vnd.apache.arrow.stream";

pub fn start(options: Options) -> Handle {
    serve(functions::example_catalog(true).unwrap(), options).unwrap()
}

pub struct HttpReply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
}

impl HttpReply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value.as_str())
    }

    /// The error in the body.
    pub fn error(&self) -> RemoteError {
        vgi_wire::reply::find_error(self.body.clone()).unwrap()
    }
}

/// One request on a connection of its own.
pub fn http(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> HttpReply {
    let mut connection = TcpStream::connect(address).unwrap();
    let mut head =
        format!("{method} {path} HTTP/1.1\r\nhost: worker\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
    for (name, value) in headers {
        head.extend([*name, ": ", *value, "\r\n"]);
    }
    connection.write_all(head.as_bytes()).unwrap();
    connection.write_all(b"\r\n").unwrap();
    // the server may refuse before it read everything
    connection.write_all(body).ok();
    let mut reply = Vec::new();
    if let Err(error) = connection.read_to_end(&mut reply) {
        assert!(!reply.is_empty(), "no reply: {error}");
    }
    let end = reply.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(reply[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    HttpReply { status, headers: headers.collect(), body: Bytes::from(reply.split_off(end + 4)) }
}

#[derive(Clone)]
pub struct Client {
    pub address: SocketAddr,
    pub dialect: Dialect,
    /// Bearer token of every request.
    pub token: Option<String>,
    /// Whether it says that it reads several batches in a reply.
    pub reads_several: bool,
}

impl Client {
    pub fn new(server: &Handle) -> Self {
        Self {
            address: server.address(),
            dialect: Dialect::select(Some("vgi.v2"), Some("2.2.0")).unwrap(),
            token: None,
            reads_several: false,
        }
    }

    pub fn post(&self, path: &str, body: Segments) -> HttpReply {
        let authorization = self.token.as_ref().map(|token| format!("Bearer {token}"));
        let mut headers = vec![("content-type", ARROW)];
        headers.extend(authorization.as_deref().map(|value| ("authorization", value)));
        headers.extend(self.reads_several.then_some(("vgi-accept-several-batches", "true")));
        http(self.address, "POST", &format!("/{path}"), &headers, &body.to_bytes())
    }

    pub fn body(&self, method: Method, record: Segments) -> Segments {
        request_body(&self.dialect, method, record).unwrap()
    }

    pub fn unary(&self, method: Method, body: Segments) -> Result<UnaryReply, Failure> {
        read_unary(self.post(&self.dialect.path(method), body).body)
    }

    pub fn attach(&self, name: &str) -> Result<AttachReply, Failure> {
        self.attach_with(name, None)
    }

    pub fn attach_with(&self, name: &str, options: Option<RecordBatch>) -> Result<AttachReply, Failure> {
        let request = AttachRequest { name: name.to_owned(), options, ..AttachRequest::default() };
        let reply =
            self.unary(Method::CatalogAttach, self.body(Method::CatalogAttach, request.to_blob(&self.dialect)?))?;
        Ok(AttachReply::from_reply(&reply)?)
    }

    /// Binds a function and begins an execution.
    pub fn begin(&self, call: &Call, input: &SchemaRef) -> Result<Execution, Failure> {
        let (bind_call, bound, bind_logs) = self.bind(call, input)?;
        let init = InitRequest {
            bind_call,
            output_schema: bound.output_schema_bytes.clone(),
            bind_opaque_data: None,
            projection_ids: call.projection.clone(),
            pushdown_filters: None,
            phase: Phase::TableBuffering,
            execution_id: None,
            finalize_state_id: None,
            init_opaque_data: None,
        };
        let opened = self.open(&init)?;
        assert!(opened.turn.as_ref().is_none_or(|turn| turn.cursor.is_none() && turn.batches.is_empty()));
        let logs = [bind_logs, opened.logs].concat();
        Ok(Execution { client: self.clone(), call: call.clone(), bound, init, id: opened.header.execution_id, logs })
    }

    pub fn bind(&self, call: &Call, input: &SchemaRef) -> Result<(Bytes, BindReply, Vec<LogRecord>), Failure> {
        let request = BindRequest {
            function_name: call.function.clone(),
            schema_path: call.schema.clone(),
            arguments: encode_values(fields(&call.positional), fields(&call.named))?,
            input_schema: Arc::clone(input),
            settings: call.settings.clone(),
            secrets: call.secrets.clone(),
            attach_opaque_data: Some(match &call.attachment {
                Some(attachment) => attachment.clone(),
                None => self.attach("example")?.attach_opaque_data,
            }),
            transaction_opaque_data: call.transaction.clone(),
            resolved_secrets_provided: call.secrets_resolved,
        };
        let blob = request.to_blob(&self.dialect)?.to_bytes();
        let reply = self.unary(Method::Bind, self.body(Method::Bind, blob.clone().into()))?;
        Ok((blob, BindReply::from_reply(&reply)?, reply.logs))
    }

    pub fn open(&self, request: &InitRequest) -> Result<InitReply, Failure> {
        let body = self.body(Method::Init, request.to_blob(&self.dialect)?);
        read_init(self.post(&self.dialect.path(Method::Init), body).body)
    }

    pub fn turn(&self, tokens: &Tokens) -> Result<Turn, Failure> {
        read_turn(self.post(&self.dialect.exchange_path(), turn_body(tokens)?).body)
    }

    pub fn cancel(&self, tokens: &Tokens) -> HttpReply {
        self.post(&self.dialect.exchange_path(), cancel_body(tokens).unwrap())
    }
}

fn fields(values: &[(String, ArrayRef)]) -> Vec<(Field, ArrayRef)> {
    values.iter().map(|(name, value)| (Field::new(name, value.data_type().clone(), true), Arc::clone(value))).collect()
}

/// What to call.
#[derive(Clone, Default)]
pub struct Call {
    pub function: String,
    pub schema: Vec<String>,
    pub positional: Vec<(String, ArrayRef)>,
    pub named: Vec<(String, ArrayRef)>,
    pub projection: Option<Vec<i64>>,
    pub settings: Option<RecordBatch>,
    pub secrets: Option<RecordBatch>,
    pub secrets_resolved: bool,
    /// That of an attach without options when there is none.
    pub attachment: Option<Bytes>,
    pub transaction: Option<Bytes>,
}

impl Call {
    pub fn new(function: &str) -> Self {
        Self { function: function.to_owned(), schema: vec!["main".to_owned()], ..Self::default() }
    }

    pub fn positional(mut self, value: ArrayRef) -> Self {
        self.positional.push((String::new(), value));
        self
    }

    pub fn named(mut self, name: &str, value: ArrayRef) -> Self {
        self.named.push((name.to_owned(), value));
        self
    }
}

pub struct Execution {
    pub client: Client,
    pub call: Call,
    pub bound: BindReply,
    pub init: InitRequest,
    pub id: Bytes,
    pub logs: Vec<LogRecord>,
}

impl Execution {
    fn reference(&self) -> ExecutionRef {
        ExecutionRef {
            function_name: self.call.function.clone(),
            execution_id: self.id.clone(),
            attach_opaque_data: None,
            transaction_id: None,
            schema_path: self.call.schema.clone(),
        }
    }

    pub fn process(&self, batch: &RecordBatch, batch_index: Option<i64>) -> Result<(Bytes, Vec<LogRecord>), Failure> {
        let request =
            ProcessRequest { execution: self.reference(), input_batch: ipc::encode_stream(batch, &[])?, batch_index };
        let body = self.client.body(Method::Process, request.into_blob(&self.client.dialect)?);
        let reply = self.client.unary(Method::Process, body)?;
        Ok((ProcessReply::from_reply(&reply)?.state_id, reply.logs))
    }

    pub fn combine(&self, state_ids: Vec<Bytes>) -> Result<(Vec<Bytes>, Vec<LogRecord>), Failure> {
        let request = CombineRequest { execution: self.reference(), state_ids };
        let body = self.client.body(Method::Combine, request.to_blob(&self.client.dialect)?);
        let reply = self.client.unary(Method::Combine, body)?;
        Ok((CombineReply::from_reply(&reply)?.finalize_state_ids, reply.logs))
    }

    /// The request that opens a stream.
    pub fn stream_request(&self, id: &Bytes) -> InitRequest {
        InitRequest {
            phase: Phase::TableBufferingFinalize,
            execution_id: Some(self.id.clone()),
            finalize_state_id: Some(id.clone()),
            ..self.init.clone()
        }
    }

    pub fn open_stream(&self, id: &Bytes) -> Result<Turn, Failure> {
        let reply = self.client.open(&self.stream_request(id))?;
        assert_eq!(reply.header.execution_id, self.id);
        Ok(reply.turn.unwrap())
    }

    /// All turns of a stream; an error ends it.
    pub fn drain(&self, id: &Bytes) -> Result<Vec<Turn>, Failure> {
        let mut turns = vec![self.open_stream(id)?];
        let call = turns[0].call.clone();
        while let Some(cursor) = turns.last().unwrap().cursor.clone() {
            turns.push(self.client.turn(&Tokens { cursor, call: call.clone() })?);
        }
        Ok(turns)
    }

    pub fn destroy(&self) {
        let body = self.client.body(Method::Destructor, self.reference().to_blob(&self.client.dialect).unwrap());
        self.client.unary(Method::Destructor, body).unwrap();
    }
}

/// A whole call, serially.
pub fn run(client: &Client, call: &Call, input: &[RecordBatch]) -> Result<Vec<RecordBatch>, Failure> {
    let execution = client.begin(call, &input[0].schema())?;
    let mut ids = Vec::new();
    for (index, batch) in (0..).zip(input) {
        ids.push(execution.process(batch, Some(index))?.0);
    }
    let mut output = Vec::new();
    for id in execution.combine(ids)?.0 {
        for turn in execution.drain(&id)? {
            if let Some(error) = turn.error {
                return Err(Failure::Remote { error, logs: turn.logs });
            }
            output.extend(turn.batches);
        }
    }
    execution.destroy();
    Ok(output)
}

/// A batch of nullable columns.
pub fn batch_of(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let fields: Vec<_> =
        columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true)).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns.into_iter().map(|(_, column)| column).collect())
        .unwrap()
}

/// Rows without columns.
pub fn rows_only(rows: usize) -> RecordBatch {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options).unwrap()
}

pub fn int(value: i64) -> ArrayRef {
    Arc::new(arrow_array::Int64Array::from(vec![value]))
}

pub fn text(value: &str) -> ArrayRef {
    Arc::new(arrow_array::StringArray::from(vec![value]))
}

/// The error that the server reports.
pub fn remote<T>(result: Result<T, Failure>) -> RemoteError {
    match result {
        Err(Failure::Remote { error, .. }) => *error,
        Err(Failure::Wire(error)) => panic!("not an error of the server: {error}"),
        Ok(_) => panic!("no error"),
    }
}
