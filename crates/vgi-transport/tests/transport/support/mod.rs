//! A server whose every byte a test decides, and a small VGI on top of it.

pub mod fault;
pub mod server;
pub mod tls;
pub mod vgi;

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use bytes::Bytes;
use vgi_transport::{Attachment, Bound, Error, Execution, InitOptions, Location, NeverInterrupted, Options, attach};
use vgi_wire::arguments;
use vgi_wire::ipc::{self, Segments};
use vgi_wire::methods::BindRequest;

use server::Server;

pub fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]))
}

pub fn batch(values: &[i64]) -> RecordBatch {
    RecordBatch::try_new(schema(), vec![Arc::new(Int64Array::from(values.to_vec()))]).unwrap()
}

pub fn chunk(values: &[i64]) -> Segments {
    ipc::encode_stream(&batch(values), &[]).unwrap()
}

pub fn attached(server: &Server, options: &Options) -> Result<Arc<Attachment>, Error> {
    attach(&Location::parse(&server.url()).unwrap(), "cat", options, &NeverInterrupted)
}

pub fn bind(attachment: &Arc<Attachment>) -> Result<Bound, Error> {
    let request = BindRequest {
        function_name: "echo".to_owned(),
        schema_path: vec!["main".to_owned()],
        arguments: arguments::encode_values(Vec::new(), Vec::new()).unwrap(),
        input_schema: schema(),
        settings: None,
        secrets: None,
        attach_opaque_data: None,
        transaction_opaque_data: None,
        resolved_secrets_provided: false,
    };
    attachment.bind(&request, &NeverInterrupted)
}

/// An execution that has seen the given chunks, and the ids of its output streams.
pub fn fed(server: &Server, options: &Options, chunks: &[&[i64]]) -> (Arc<Execution>, Vec<Bytes>) {
    let execution = started(server, options);
    let pending: Vec<_> = chunks.iter().map(|values| execution.process(chunk(values), None).unwrap()).collect();
    let ids = pending.into_iter().map(|pending| pending.wait(&NeverInterrupted).unwrap().state_id).collect();
    let streams = execution.combine(ids, &NeverInterrupted).unwrap();
    (execution, streams)
}

pub fn started(server: &Server, options: &Options) -> Arc<Execution> {
    let bound = bind(&attached(server, options).unwrap()).unwrap();
    Execution::start(Arc::new(bound), InitOptions::default(), &NeverInterrupted).unwrap()
}

/// How long the background may take: it is shared with tests that keep it busy on purpose.
pub const BACKGROUND: Duration = Duration::from_secs(60);

/// Waits until something holds; fails the test after five seconds.
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(5), "never happened: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
