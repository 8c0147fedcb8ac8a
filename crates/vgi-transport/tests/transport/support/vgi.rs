//! A VGI server with one function, `echo`: every chunk comes back as one turn.

use std::collections::HashMap;
use std::sync::Mutex;

use bytes::Bytes;
use vgi_wire::RemoteError;
use vgi_wire::generation::Dialect;
use vgi_wire::ipc::{self, Segments};
use vgi_wire::methods::{
    AttachReply, AttachRequest, BindReply, BindRequest, CatalogContents, CatalogInfo, CombineReply, CombineRequest,
    FunctionInfo, FunctionType, InitHeader, InitRequest, Phase, ProcessReply, ProcessRequest, ProtocolEntry,
    SchemaInfo, items_blob, list_protocols_blob,
};
use vgi_wire::record::RecordBuilder;
use vgi_wire::reply::{LogLevel, LogRecord, Tokens};
use vgi_wire::server::{self, Call, ReplyWriter};

use super::schema;
use super::server::{Answer, Request, Server};

const ID: &str = "test-server";

pub struct Vgi {
    dialect: Dialect,
    /// Becomes part of the attach data; a server that restarted has another one.
    pub epoch: Mutex<u32>,
    /// What attach answers besides its data.
    pub attached: AttachReply,
    /// Counter of metadata changes, and what they change: whether functions depend on order.
    pub version: Mutex<i64>,
    pub ordered: Mutex<bool>,
    /// What is said about the functions to people.
    pub remark: Mutex<String>,
    executions: Mutex<HashMap<Bytes, Vec<(Bytes, Bytes)>>>,
    next_id: Mutex<u64>,
}

type Served = Result<Segments, Box<RemoteError>>;

pub fn error(kind: &str, message: &str) -> RemoteError {
    RemoteError { exception_type: Some(kind.to_owned()), message: message.to_owned(), ..RemoteError::default() }
}

pub fn error_body(error: &RemoteError) -> Vec<u8> {
    server::error_body(&[], ID, Some("r1"), error).unwrap().to_bytes().to_vec()
}

pub fn log_line(message: &str) -> LogRecord {
    LogRecord { level: LogLevel::Info, message: message.to_owned(), extra: None }
}

impl Vgi {
    pub fn new(protocol: Option<&str>, version: Option<&str>) -> Self {
        Self {
            dialect: Dialect::select(protocol, version).unwrap(),
            epoch: Mutex::new(1),
            attached: AttachReply {
                default_schema: "main".to_owned(),
                catalog_version_frozen: true,
                ..AttachReply::default()
            },
            version: Mutex::new(0),
            ordered: Mutex::new(false),
            remark: Mutex::default(),
            executions: Mutex::default(),
            next_id: Mutex::new(0),
        }
    }

    pub fn current() -> Self {
        Self::new(Some("vgi.v2"), Some("2.2.0"))
    }

    /// Serves it.
    pub fn start(self) -> Server {
        Server::start(move |request| self.answer(request))
    }

    /// Serves it, except where the test answers itself.
    pub fn start_with(self, special: impl Fn(&str, &Request) -> Option<Answer> + Send + Sync + 'static) -> Server {
        Server::start(move |request| {
            let name = request.path.rsplit('/').next().unwrap();
            special(name, request).unwrap_or_else(|| self.answer(request))
        })
    }

    pub fn answer(&self, request: &Request) -> Answer {
        let protocol = self.dialect.protocol.as_deref();
        match request.path.as_str() {
            "/health" => {
                return Answer::text(
                    200,
                    "application/json",
                    &format!(r#"{{"status":"ok","protocol":"{}"}}"#, protocol.unwrap_or("vgi")),
                );
            }
            "/vgi_rpc.Reflection.v1/list_protocols" if protocol.is_some() => {
                let version = self.dialect.version.clone().unwrap();
                let entry = ProtocolEntry { protocol: protocol.unwrap().to_owned(), version };
                return Self::finish(&[], Ok(list_protocols_blob(ID, std::slice::from_ref(&entry)).unwrap()));
            }
            _ => {}
        }
        let prefix = protocol.map_or("/".to_owned(), |protocol| format!("/{protocol}/"));
        let Some(path) = request.path.strip_prefix(&prefix) else {
            return Answer::text(404, "text/plain", "Not Found");
        };
        let body = Bytes::from(request.body.clone());
        if path == "init/exchange" {
            let (tokens, cancel) = server::decode_turn(body).unwrap();
            return self.turn(&tokens, cancel);
        }
        let call = server::decode_call(body).unwrap();
        if call.protocol_version != self.dialect.version {
            let wanted = self.dialect.version.as_deref().unwrap_or_default();
            let message = format!(
                "protocol_version mismatch.\n  Client: {:?}\n  Server: {wanted}\n  Direction: any",
                call.protocol_version
            );
            let mismatch = RemoteError {
                kind: Some("protocol_version_mismatch".to_owned()),
                ..error("ProtocolVersionError", &message)
            };
            return Answer::arrow(400, error_body(&mismatch));
        }
        match path {
            "init/init" => self.init(&call),
            "table_buffering_process" => Self::finish(&[log_line("processing")], self.process(&call)),
            _ => Self::finish(&[], self.unary(path, &call)),
        }
    }

    fn finish(logs: &[LogRecord], result: Served) -> Answer {
        match result {
            Ok(record) => Answer::arrow(200, server::result_body(logs, ID, None, record).unwrap().to_bytes().to_vec()),
            Err(error) => Answer::arrow(200, error_body(&error)).with("X-VGI-RPC-Error", "true"),
        }
    }

    fn attach_data(&self) -> Bytes {
        format!("epoch {}", self.epoch.lock().unwrap()).into()
    }

    fn check(&self, data: Option<&Bytes>) -> Result<(), Box<RemoteError>> {
        if data == Some(&self.attach_data()) {
            Ok(())
        } else {
            Err(error("OpaqueDataNotRecognizedError", "not minted here").into())
        }
    }

    fn unary(&self, path: &str, call: &Call) -> Served {
        let record = call.record().ok();
        let blob = || call.request_blob().unwrap();
        Ok(match path {
            "catalog_catalogs" => {
                let info = CatalogInfo {
                    name: "cat".to_owned(),
                    implementation_version: None,
                    data_version_spec: None,
                    attach_options: Vec::new(),
                };
                items_blob(&[info.to_blob().unwrap().to_bytes()]).unwrap()
            }
            "catalog_attach" => {
                if AttachRequest::from_blob(blob()).unwrap().name != "cat" {
                    return Err(error("NotFoundError", "no such catalog").into());
                }
                let reply = AttachReply { attach_opaque_data: self.attach_data(), ..self.attached.clone() };
                reply.to_blob().unwrap()
            }
            "catalog_schemas" => {
                self.check(record.unwrap().optional_bytes("attach_opaque_data").as_ref())?;
                let schemas = ["main", "other"].map(|name| SchemaInfo { path: vec![name.to_owned()], comment: None });
                items_blob(&schemas.map(|schema| schema.to_blob().unwrap().to_bytes())).unwrap()
            }
            "catalog_schema_contents_functions" => {
                let record = record.unwrap();
                self.check(record.optional_bytes("attach_opaque_data").as_ref())?;
                let schema = record.texts("path").pop().or_else(|| record.optional_text("name")).unwrap();
                let infos = self.functions(&schema);
                if infos.is_empty() {
                    return Err(error("ValueError", "which schema?").into());
                }
                let listed = record.text("type").unwrap() == "TABLE_FUNCTION";
                let infos = infos.iter().filter(|_| listed).map(|info| info.to_blob().unwrap().to_bytes());
                items_blob(&infos.collect::<Vec<_>>()).unwrap()
            }
            "catalog_contents" => {
                let record = record.unwrap();
                self.check(record.optional_bytes("attach_opaque_data").as_ref())?;
                let version = *self.version.lock().unwrap();
                let etag = Some(format!("version {version}"));
                let not_modified = record.optional_text("if_none_match") == etag;
                let contents =
                    CatalogContents { catalog_version: version, etag, not_modified, ..CatalogContents::default() };
                let schemas = ["main", "other"].map(|name| SchemaInfo { path: vec![name.to_owned()], comment: None });
                let functions = [self.functions("main"), self.functions("other")].concat();
                let full = CatalogContents { schemas: schemas.into(), functions, ..contents.clone() };
                if not_modified { contents } else { full }.to_blob().unwrap()
            }
            "catalog_version" => {
                self.check(record.unwrap().optional_bytes("attach_opaque_data").as_ref())?;
                RecordBuilder::new().integer("version", *self.version.lock().unwrap()).finish(&[]).unwrap()
            }
            "bind" => {
                let request = BindRequest::from_blob(blob()).unwrap();
                self.check(request.attach_opaque_data.as_ref())?;
                BindReply::new(request.input_schema).unwrap().to_blob().unwrap()
            }
            "table_buffering_combine" => self.combine(&CombineRequest::from_blob(blob()).unwrap())?,
            "catalog_detach" | "table_buffering_destructor" => server::acknowledgement().unwrap(),
            other => return Err(error("AttributeError", other).into()),
        })
    }

    fn functions(&self, schema: &str) -> Vec<FunctionInfo> {
        let names: &[&str] = match schema {
            "main" => &["echo", "sum_all"],
            "other" => &["only_here"],
            _ => &[],
        };
        let ordered = *self.ordered.lock().unwrap();
        let remark = self.remark.lock().unwrap().clone();
        let described = |name: &&str| FunctionInfo {
            sink_order_dependent: ordered,
            comment: Some(remark.clone()),
            tags: vec![("remark".to_owned(), remark.clone())],
            ..function(name, schema)
        };
        names.iter().map(described).collect()
    }

    fn mint(&self, what: &str) -> Bytes {
        let mut next = self.next_id.lock().unwrap();
        *next += 1;
        format!("{what}{next}").into()
    }

    fn process(&self, call: &Call) -> Served {
        let request = ProcessRequest::from_blob(call.request_blob().unwrap()).unwrap();
        let mut executions = self.executions.lock().unwrap();
        let chunks = executions
            .get_mut(&request.execution.execution_id)
            .ok_or_else(|| error("OSError", "unknown execution_id"))?;
        let state_id = self.mint("state ");
        chunks.push((state_id.clone(), request.input_batch.to_bytes()));
        Ok(ProcessReply { state_id }.to_blob().unwrap())
    }

    fn combine(&self, request: &CombineRequest) -> Served {
        let mut executions = self.executions.lock().unwrap();
        let chunks = executions
            .get_mut(&request.execution.execution_id)
            .ok_or_else(|| error("OSError", "unknown execution_id"))?;
        let order = |id: &Bytes| request.state_ids.iter().position(|wanted| wanted == id);
        if chunks.iter().any(|(id, _)| order(id).is_none()) || chunks.len() != request.state_ids.len() {
            return Err(error("ValueError", "a state_id is missing").into());
        }
        chunks.sort_by_key(|(id, _)| order(id));
        Ok(CombineReply { finalize_state_ids: vec![Bytes::from_static(b"all")] }.to_blob().unwrap())
    }

    fn init(&self, call: &Call) -> Answer {
        let request = InitRequest::from_blob(call.request_blob().unwrap()).unwrap();
        let header = |id: &Bytes| {
            InitHeader { execution_id: id.clone(), opaque_data: None, max_workers: None }.to_stream().unwrap()
        };
        if request.phase == Phase::TableBuffering {
            let bound = BindRequest::from_blob(request.bind_call.clone()).unwrap();
            if let Err(refusal) = self.check(bound.attach_opaque_data.as_ref()) {
                return Self::finish(&[], Err(refusal));
            }
            let id = self.mint("execution ");
            self.executions.lock().unwrap().insert(id.clone(), Vec::new());
            let mut body = header(&id);
            body.extend(ReplyWriter::new(schema(), ID, None).unwrap().finish().unwrap());
            return Answer::arrow(200, body.to_bytes().to_vec());
        }
        let id = request.execution_id.unwrap();
        let mut body = header(&id);
        body.extend(self.produce(&id, 0, Some("call")));
        Answer::arrow(200, body.to_bytes().to_vec())
    }

    fn turn(&self, tokens: &Tokens, cancel: bool) -> Answer {
        assert_eq!(tokens.call.as_deref(), Some("call"), "the call token is echoed");
        let (id, position) = tokens.cursor.split_once('#').unwrap();
        let body = if cancel {
            ReplyWriter::new(schema(), ID, None).unwrap().finish().unwrap()
        } else {
            self.produce(&Bytes::from(id.to_owned()), position.parse().unwrap(), None)
        };
        Answer::arrow(200, body.to_bytes().to_vec())
    }

    fn produce(&self, id: &Bytes, position: usize, call: Option<&str>) -> Segments {
        let mut writer = ReplyWriter::new(schema(), ID, None).unwrap();
        let executions = self.executions.lock().unwrap();
        if let Some((_, chunk)) = executions[id].get(position) {
            writer.data(&ipc::decode_batch(chunk.clone()).unwrap()).unwrap();
            let cursor = format!("{}#{}", std::str::from_utf8(id).unwrap(), position + 1);
            writer.token(&Tokens { cursor, call: call.map(str::to_owned) }).unwrap();
        }
        writer.finish().unwrap()
    }
}

fn function(name: &str, schema_name: &str) -> FunctionInfo {
    FunctionInfo::new(name, vec![schema_name.to_owned()], FunctionType::TableBuffering, schema())
}
