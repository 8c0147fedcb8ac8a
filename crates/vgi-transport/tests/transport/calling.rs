//! A whole call, and what is left on the server afterwards.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use vgi_transport::{ErrorKind, EventSink, Execution, InitOptions, NeverInterrupted, Options, Phase, drain_background};
use vgi_wire::reply::LogRecord;

use crate::support::server::{Answer, Server};
use crate::support::vgi::{self, Vgi};
use crate::support::{BACKGROUND, attached, bind, chunk, eventually, fed, started};

fn rows(stream: &mut vgi_transport::FinalizeStream) -> Vec<i64> {
    let mut rows = Vec::new();
    while let Some(batch) = stream.next(&NeverInterrupted).unwrap() {
        rows.extend(batch.column(0).as_primitive::<Int64Type>().values());
    }
    rows
}

fn destroyed(server: &Server, times: usize) {
    eventually("the destructor", || server.count("table_buffering_destructor") >= times);
    assert!(drain_background(BACKGROUND));
    assert_eq!(server.count("table_buffering_destructor"), times);
}

#[test]
fn every_row_comes_back_in_every_generation() {
    for (protocol, version) in
        [(Some("vgi.v2"), Some("2.2.0")), (Some("vgi.v2"), Some("2.0.3")), (Some("vgi.v3"), Some("3.0.0"))]
    {
        let server = Vgi::new(protocol, version).start();
        let (execution, streams) = fed(&server, &Options::default(), &[&[1, 2, 3], &[4], &[5, 6]]);
        assert_eq!(execution.max_workers(), None);
        let mut stream = execution.open_stream(streams[0].clone()).unwrap();
        assert_eq!(rows(&mut stream), [1, 2, 3, 4, 5, 6], "{protocol:?} {version:?}");
        assert!(stream.next(&NeverInterrupted).unwrap().is_none(), "the end stays the end");
        drop(stream);
        assert_eq!(server.count("table_buffering_destructor"), 0, "not before the execution is dropped");
        drop(execution);
        destroyed(&server, 1);
        // the stream ran to its end, so nothing was cancelled: opening, three more turns
        assert_eq!(server.count("exchange"), 3);
    }
}

#[test]
fn a_body_has_its_length_and_is_not_chunked() {
    let server = Vgi::current().start();
    let values: Vec<i64> = (0..200_000).collect();
    let (execution, _) = fed(&server, &Options::default(), &[&values]);
    let request = server.seen().into_iter().find(|request| request.path.ends_with("process")).unwrap();
    assert_eq!(request.headers["content-length"], request.body.len().to_string());
    assert!(request.body.len() > 1_600_000);
    assert!(!request.headers.contains_key("transfer-encoding"));
    assert_eq!(request.headers["content-type"], "application/vnd.apache.arrow.stream");
    assert!(!request.headers.contains_key("accept-encoding"), "nothing is compressed on this machine");
    drop(execution);
}

#[test]
fn a_stream_that_is_left_early_is_cancelled_before_the_destructor() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&events);
    let server = Vgi::current().start_with(move |name, request| {
        if name == "exchange" && request.body.windows(14).any(|window| window == b"vgi_rpc.cancel") {
            // the answer, not the request, is what the destructor has to wait for
            std::thread::sleep(Duration::from_millis(200));
            record.lock().unwrap().push("cancelled");
        } else if name == "table_buffering_destructor" {
            record.lock().unwrap().push("destroyed");
        }
        None
    });
    let (execution, streams) = fed(&server, &Options::default(), &[&[1], &[2], &[3], &[4], &[5]]);
    let mut stream = execution.open_stream(streams[0].clone()).unwrap();
    stream.next(&NeverInterrupted).unwrap().unwrap();
    eventually("the read-ahead", || server.count("exchange") == 1);
    drop(stream);
    drop(execution);
    destroyed(&server, 1);
    assert_eq!(*events.lock().unwrap(), ["cancelled", "destroyed"]);
}

#[test]
fn one_turn_is_read_ahead_and_no_more() {
    let server = Vgi::current().start();
    let (execution, streams) = fed(&server, &Options::default(), &[&[1], &[2], &[3], &[4], &[5]]);
    let mut stream = execution.open_stream(streams[0].clone()).unwrap();
    eventually("the opening", || stream.is_ready());
    assert_eq!(server.count("exchange"), 0);
    stream.next(&NeverInterrupted).unwrap().unwrap();
    eventually("the read-ahead", || server.count("exchange") == 1);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(server.count("exchange"), 1);
    stream.next(&NeverInterrupted).unwrap().unwrap();
    eventually("the next read-ahead", || server.count("exchange") == 2);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(server.count("exchange"), 2);
}

#[test]
fn an_error_after_good_batches_comes_after_them_and_stays() {
    let server = Vgi::current().start_with(|name, _| {
        (name == "exchange").then(|| {
            let mut writer = vgi_wire::server::ReplyWriter::new(crate::support::schema(), "s", None).unwrap();
            writer.data(&crate::support::batch(&[8, 9])).unwrap();
            writer.error(&vgi::error("ValueError", "half way")).unwrap();
            Answer::arrow(200, writer.finish().unwrap().to_bytes().to_vec())
        })
    });
    let (execution, streams) = fed(&server, &Options::default(), &[&[1], &[2]]);
    let mut stream = execution.open_stream(streams[0].clone()).unwrap();
    assert_eq!(stream.next(&NeverInterrupted).unwrap().unwrap().num_rows(), 1);
    assert_eq!(stream.next(&NeverInterrupted).unwrap().unwrap().num_rows(), 2);
    for _ in 0..2 {
        let error = stream.next(&NeverInterrupted).unwrap_err();
        assert_eq!((error.kind(), error.phase()), (ErrorKind::Remote, Phase::Finalize));
        assert!(error.to_string().ends_with("ValueError: half way (server s)"), "{error}");
    }
    drop((stream, execution));
    destroyed(&server, 1);
    assert_eq!(server.count("exchange"), 1, "a stream that the server ended is not cancelled");
}

#[test]
fn a_failed_step_still_frees_the_execution() {
    for call in ["table_buffering_process", "table_buffering_combine"] {
        let server = Vgi::current().start_with(move |name, _| {
            (name == call).then(|| Answer::arrow(200, vgi::error_body(&vgi::error("ValueError", "no"))))
        });
        let execution = started(&server, &Options::default());
        let outcome = match call {
            "table_buffering_process" => {
                execution.process(chunk(&[1]), None).unwrap().wait(&NeverInterrupted).map(|_| ())
            }
            _ => execution.combine(Vec::new(), &NeverInterrupted).map(|_| ()),
        };
        let error = outcome.unwrap_err();
        assert_eq!(error.function(), Some("echo"));
        assert_eq!(error.url(), Some(server.url().as_str()));
        assert!(error.to_string().contains("ValueError: no (server test-server, request r1)"), "{error}");
        drop(execution);
        destroyed(&server, 1);
        assert_eq!(server.count(call), 1, "never repeated");
    }
}

#[test]
fn an_init_whose_first_turn_fails_frees_its_execution() {
    let server = Vgi::current().start_with(|name, _| {
        (name == "init").then(|| {
            let id = bytes::Bytes::from_static(b"E");
            let header = vgi_wire::methods::InitHeader { execution_id: id, opaque_data: None, max_workers: Some(2) };
            let mut body = header.to_stream().unwrap();
            let mut writer = vgi_wire::server::ReplyWriter::new(crate::support::schema(), "s", None).unwrap();
            writer.error(&vgi::error("ValueError", "late")).unwrap();
            body.extend(writer.finish().unwrap());
            Answer::arrow(200, body.to_bytes().to_vec())
        })
    });
    let bound = bind(&attached(&server, &Options::default()).unwrap()).unwrap();
    let error = Execution::start(Arc::new(bound), InitOptions::default(), &NeverInterrupted).unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::Remote, Phase::Init));
    destroyed(&server, 1);
}

#[test]
fn a_pending_process_keeps_the_destructor_back() {
    let server = Vgi::current().start_with(|name, _| {
        if name == "table_buffering_process" {
            std::thread::sleep(Duration::from_millis(200));
        }
        None
    });
    let execution = started(&server, &Options::default());
    let pending = execution.process(chunk(&[1]), None).unwrap();
    drop(execution);
    pending.wait(&NeverInterrupted).unwrap();
    destroyed(&server, 1);
    assert_eq!(server.calls().last().unwrap(), "table_buffering_destructor");
}

#[derive(Default)]
struct Recorded(Mutex<Vec<String>>);

impl EventSink for Recorded {
    fn log(&self, phase: Phase, function: &str, record: &LogRecord) {
        self.0.lock().unwrap().push(format!("{phase} {function} {} {}", record.level.as_str(), record.message));
    }
}

#[test]
fn log_lines_reach_the_sink() {
    let server = Vgi::current().start();
    let sink = Arc::new(Recorded::default());
    let options = Options { events: Some(Arc::clone(&sink) as Arc<dyn EventSink>), ..Options::default() };
    drop(fed(&server, &options, &[&[1], &[2]]));
    assert_eq!(*sink.0.lock().unwrap(), ["process echo INFO processing", "process echo INFO processing"]);
}

#[test]
#[ignore = "needs 6 GB of memory; run with --release"]
fn a_turn_above_two_gibibytes_is_read() {
    const ROWS: usize = 300_000_000;
    let column = Arc::new(arrow_array::Int64Array::from_iter_values(0..i64::try_from(ROWS).unwrap()));
    let batch = arrow_array::RecordBatch::try_new(crate::support::schema(), vec![column]).unwrap();
    let mut writer = vgi_wire::server::ReplyWriter::new(crate::support::schema(), "s", None).unwrap();
    writer.data(&batch).unwrap();
    let body = writer.finish().unwrap();
    drop(batch);
    assert!(body.len() > 2 << 30);
    let server = Vgi::current().start_with(move |name, _| {
        let kind = "Content-Type: application/vnd.apache.arrow.stream";
        let head = format!("HTTP/1.1 200 OK\r\n{kind}\r\nContent-Length: {}\r\n\r\n", body.len());
        (name == "exchange").then(|| Answer::Pieces(head.into_bytes(), body.clone()))
    });
    let options = Options { max_response_bytes: 3 << 30, ..Options::default() };
    let (execution, streams) = fed(&server, &options, &[&[1], &[2]]);
    let mut stream = execution.open_stream(streams[0].clone()).unwrap();
    assert_eq!(stream.next(&NeverInterrupted).unwrap().unwrap().num_rows(), 1);
    let batch = stream.next(&NeverInterrupted).unwrap().unwrap();
    assert_eq!(batch.num_rows(), ROWS);
    assert_eq!(batch.column(0).as_primitive::<Int64Type>().value(ROWS - 1), i64::try_from(ROWS).unwrap() - 1);
    assert!(stream.next(&NeverInterrupted).unwrap().is_none());
    // under the usual bound it is refused by its announcement
    let (execution, streams) = fed(&server, &Options::default(), &[&[1], &[2]]);
    let mut stream = execution.open_stream(streams[0].clone()).unwrap();
    assert!(stream.next(&NeverInterrupted).unwrap().is_some());
    assert_eq!(stream.next(&NeverInterrupted).unwrap_err().kind(), ErrorKind::Limit);
}

#[test]
fn a_chunk_above_two_gibibytes_is_refused_with_a_sentence() {
    let server = Vgi::current().start();
    let execution = started(&server, &Options::default());
    // the pieces share one allocation, which is never read
    let piece = bytes::Bytes::from(vec![0; 64 << 20]);
    let mut chunk = vgi_wire::ipc::Segments::new();
    (0..33).for_each(|_| chunk.push(piece.clone()));
    let error = execution.process(chunk, None).unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::Limit, Phase::Process), "{error}");
    assert_eq!(server.count("table_buffering_process"), 0);
}
