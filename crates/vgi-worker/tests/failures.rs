//! What goes wrong, and how it is told.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, BooleanArray, RecordBatch};
use bytes::Bytes;
use support::{ARROW, Call, Client, Execution, batch_of, http, int, remote, run, start, text};
use vgi_wire::methods::{Method, no_parameters_body, turn_body};
use vgi_wire::reply::{Failure, LogLevel, Tokens};
use vgi_worker::Options;

fn input() -> RecordBatch {
    batch_of(vec![("n", int(1))])
}

/// Runs the function that fails in a phase; the phase that failed, the error, and the rows before it.
fn fail_in(client: &Client, phase: &str, panic: bool) -> (&'static str, vgi_wire::RemoteError, usize) {
    let flag = Arc::new(BooleanArray::from(vec![panic])) as ArrayRef;
    let call = Call::new("fail_in").positional(text(phase)).named("panic", flag);
    let schema = input().schema();
    if let Err(failure) = client.bind(&call, &schema) {
        return ("bind", remote::<()>(Err(failure)), 0);
    }
    let execution = match client.begin(&call, &schema) {
        Ok(execution) => execution,
        Err(failure) => return ("init", remote::<()>(Err(failure)), 0),
    };
    let id = match execution.process(&input(), None) {
        Ok((id, _)) => id,
        Err(failure) => return ("process", remote::<()>(Err(failure)), 0),
    };
    let streams = match execution.combine(vec![id]) {
        Ok((streams, _)) => streams,
        Err(failure) => return ("combine", remote::<()>(Err(failure)), 0),
    };
    let turns = execution.drain(&streams[0]).unwrap();
    let rows = turns.iter().flat_map(|turn| &turn.batches).map(RecordBatch::num_rows).sum();
    ("finalize", *turns.into_iter().find_map(|turn| turn.error).unwrap(), rows)
}

#[test]
fn an_error_of_a_function_is_told_in_its_own_words() {
    let server = start(Options::default());
    let client = Client::new(&server);
    for phase in ["bind", "init", "process", "combine", "finalize"] {
        let (failed, error, rows) = fail_in(&client, phase, false);
        assert_eq!(failed, phase);
        assert_eq!(error.message, format!("boom in {phase} — café 'quoted' \"text\""));
        assert_eq!(error.exception_type.as_deref(), Some("FunctionError"));
        assert!(error.server_id.is_some() && error.request_id.is_some());
        assert_eq!(rows, if phase == "finalize" { 3 } else { 0 });
    }
    assert_eq!(server.stats().errors, 5);
    // an execution whose init failed never lived
    assert_eq!(server.stats().executions, 3);
    assert_eq!(server.stats().live_executions, 3);
}

#[test]
fn a_panic_is_an_error_and_the_worker_goes_on() {
    let server = start(Options::default());
    let client = Client::new(&server);
    for phase in ["bind", "init", "process", "combine", "finalize"] {
        let (failed, error, _) = fail_in(&client, phase, true);
        assert_eq!(failed, phase);
        assert_eq!(error.exception_type.as_deref(), Some("PanicError"));
        assert!(error.message.contains(&format!("boom in {phase}")), "{}", error.message);
    }
    assert_eq!(run(&client, &Call::new("buffer_input"), &[input()]).unwrap(), [input()]);
}

#[test]
fn log_lines_come_with_the_reply_of_the_step_that_wrote_them() {
    let server = start(Options::default());
    let client = Client::new(&server);
    let execution = client.begin(&Call::new("log_in_phases"), &input().schema()).unwrap();
    let (id, process) = execution.process(&input(), None).unwrap();
    let (streams, combine) = execution.combine(vec![id]).unwrap();
    let turns = execution.drain(&streams[0]).unwrap();
    let (bind, init) = execution.logs.split_at(5);
    assert!(turns[0].logs.is_empty());
    for (phase, logs) in
        [("bind", bind), ("init", init), ("process", &process), ("combine", &combine), ("finalize", &turns[1].logs)]
    {
        let expected = [LogLevel::Trace, LogLevel::Debug, LogLevel::Info, LogLevel::Warn, LogLevel::Error];
        let expected = expected.map(|level| (level, format!("{} from {phase}", level.as_str())));
        assert_eq!(
            logs.iter().map(|record| (record.level, record.message.clone())).collect::<Vec<_>>(),
            expected,
            "{phase}"
        );
    }
}

#[test]
fn wrong_requests_are_refused_before_any_function_runs() {
    let server = start(Options::default());
    let client = Client::new(&server);
    let body = no_parameters_body(&client.dialect, Method::CatalogCatalogs).unwrap();

    let unknown = client.post("vgi.v2/no_such_method", body.clone());
    assert_eq!((unknown.status, unknown.error().kind.as_deref()), (404, Some("method_not_implemented")));
    let protocol = client.post("vgi.v99/catalog_catalogs", body.clone());
    assert_eq!((protocol.status, protocol.error().kind.as_deref()), (404, Some("protocol_not_supported")));
    let flat = client.post("catalog_catalogs", body.clone());
    assert_eq!((flat.status, flat.header("content-type")), (404, Some("application/json")));
    let other_url = client.post("vgi.v2/catalog_schemas", body.clone());
    assert_eq!(other_url.status, 400);
    assert!(
        other_url.error().message.contains("names the method 'catalog_catalogs', but its URL names 'catalog_schemas'")
    );

    let typed = |content_type: &str| {
        http(server.address(), "POST", "/vgi.v2/catalog_catalogs", &[("content-type", content_type)], &body.to_bytes())
    };
    assert_eq!(typed("application/octet-stream").status, 415);
    assert_eq!(typed(ARROW).status, 200);
    for garbage in [&b"garbage that is no stream"[..], b"", &body.to_bytes()[..body.len() - 8]] {
        let reply = http(server.address(), "POST", "/vgi.v2/catalog_catalogs", &[("content-type", ARROW)], garbage);
        assert_eq!(reply.status, 400);
        assert_eq!(reply.header("x-vgi-rpc-error"), None);
        assert_eq!(reply.error().exception_type.as_deref(), Some("ProtocolError"));
    }
    assert_eq!(http(server.address(), "GET", "/vgi.v2/bind", &[], b"").status, 405);
}

#[test]
fn another_version_is_refused_with_both() {
    let server = start(Options::default());
    let mut client = Client::new(&server);
    client.dialect.version = Some("2.3.0".to_owned());
    let reply =
        client.post("vgi.v2/catalog_catalogs", no_parameters_body(&client.dialect, Method::CatalogCatalogs).unwrap());
    let error = reply.error();
    assert_eq!((reply.status, error.kind.as_deref()), (400, Some("protocol_version_mismatch")));
    assert_eq!(
        error.message,
        "VGI client/worker protocol_version mismatch for protocol 'vgi.v2'.\n  Client: 2.3.0\n  Server: 2.2.0\n  Direction: worker is too old; upgrade the worker, or use an older client."
    );
}

#[test]
fn health_tells_the_capabilities() {
    let server = start(Options { max_request_bytes: Some(100_000), ..Options::default() });
    for method in ["GET", "HEAD", "OPTIONS"] {
        let reply = http(server.address(), method, "/health", &[], b"");
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("vgi-supported-encodings"), Some("zstd, gzip"));
        assert_eq!(reply.header("vgi-externalization-enabled"), Some("false"));
        assert_eq!(reply.header("vgi-max-request-bytes"), Some("100000"));
        assert_eq!(reply.body.is_empty(), method == "HEAD");
    }
    let stats = http(server.address(), "GET", "/stats", &[], b"");
    assert!(String::from_utf8(stats.body.to_vec()).unwrap().contains("\"live_executions\":0"));
    let metrics = http(server.address(), "GET", "/metrics", &[], b"");
    assert!(metrics.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    assert!(String::from_utf8(metrics.body.to_vec()).unwrap().contains("\nvgi_worker_live_executions 0\n"));
}

#[test]
fn bodies_are_compressed_and_limited() {
    let server = start(Options { max_request_bytes: Some(100_000), ..Options::default() });
    let client = Client::new(&server);
    let plain = no_parameters_body(&client.dialect, Method::CatalogCatalogs).unwrap().to_bytes();
    let send = |body: &[u8], headers: &[(&str, &str)]| {
        let headers = [&[("content-type", ARROW)], headers].concat();
        http(server.address(), "POST", "/vgi.v2/catalog_catalogs", &headers, body)
    };
    let packed = zstd::encode_all(&plain[..], 3).unwrap();
    let small = send(&packed, &[("content-encoding", "zstd")]);
    assert_eq!((small.status, small.header("content-encoding")), (200, None));
    let asked = send(&packed, &[("content-encoding", "zstd"), ("x-vgi-accept-encoding", "zstd, gzip")]);
    assert_eq!(asked.header("x-vgi-content-encoding"), Some("zstd"));
    assert_eq!(zstd::decode_all(&asked.body[..]).unwrap(), small.body);
    assert_eq!(send(&plain, &[("accept-encoding", "zstd")]).header("content-encoding"), Some("zstd"));
    assert_eq!(send(&plain, &[("content-encoding", "br")]).status, 415);
    assert_eq!(send(&plain, &[("content-encoding", "zstd")]).status, 400);

    let bomb = zstd::encode_all(&vec![0_u8; 10_000_000][..], 3).unwrap();
    for too_large in [send(&vec![0; 100_001], &[]), send(&bomb, &[("content-encoding", "zstd")])] {
        assert_eq!(too_large.status, 413);
        assert_eq!(too_large.error().code.as_deref(), Some("RESOURCE_EXHAUSTED"));
    }
}

#[test]
fn a_reply_above_the_clients_limit_is_an_error() {
    let server = start(Options::default());
    let client = Client::new(&server);
    let call = Call::new("emit_wide").positional(int(10_000));
    let execution = client.begin(&call, &input().schema()).unwrap();
    let (streams, _) = execution.combine(Vec::new()).unwrap();
    let request = execution.stream_request(&streams[0]);
    let body = client.body(Method::Init, request.to_blob(&client.dialect).unwrap()).to_bytes();
    let limited = |limit: &str| {
        let headers = [("content-type", ARROW), ("vgi-accept-max-response-bytes", limit)];
        http(server.address(), "POST", "/vgi.v2/init/init", &headers, &body)
    };
    assert_eq!(limited("65536").error().exception_type.as_deref(), Some("ResponseTooLargeError"));
    assert!(vgi_wire::reply::read_init(limited("1000000").body).is_ok());
    assert_eq!(limited("1").status, 400);
}

fn unknown(id: &Bytes) -> String {
    let id = vgi_worker::ExecutionId::new(id.clone());
    format!("unknown execution_id {id} (init never ran or destructor already fired)")
}

fn check_gone(execution: &Execution) {
    let expected = unknown(&execution.id);
    assert_eq!(remote(execution.process(&input(), None)).message, expected);
    assert_eq!(remote(execution.combine(Vec::new())).message, expected);
    assert_eq!(remote(execution.open_stream(&Bytes::from_static(b"x"))).message, expected);
    // destroying again is no error
    execution.destroy();
}

#[test]
fn a_destroyed_execution_is_unknown() {
    let server = start(Options::default());
    let execution = Client::new(&server).begin(&Call::new("buffer_input"), &input().schema()).unwrap();
    execution.process(&input(), None).unwrap();
    execution.destroy();
    check_gone(&execution);
    assert_eq!(server.stats().live_executions, 0);
}

#[test]
fn an_abandoned_execution_expires() {
    let server = start(Options { state_ttl: Duration::from_millis(200), ..Options::default() });
    let client = Client::new(&server);
    let abandoned = client.begin(&Call::new("buffer_input"), &input().schema()).unwrap();
    abandoned.process(&input(), None).unwrap();
    assert_eq!(server.stats().live_executions, 1);
    std::thread::sleep(Duration::from_millis(300));
    // the next execution sweeps it away
    let fresh = client.begin(&Call::new("buffer_input"), &input().schema()).unwrap();
    check_gone(&abandoned);
    fresh.process(&input(), None).unwrap();
}

#[test]
fn a_batch_of_another_schema_is_refused() {
    let server = start(Options::default());
    let execution = Client::new(&server).begin(&Call::new("buffer_input"), &input().schema()).unwrap();
    let other = batch_of(vec![("n", text("one"))]);
    assert_eq!(
        remote(execution.process(&other, None)).message,
        "the batch has the column 'n' VARCHAR, but bind declared 'n' BIGINT"
    );
    let wider = batch_of(vec![("n", int(1)), ("m", int(2))]);
    assert_eq!(remote(execution.process(&wider, None)).message, "the batch has 2 columns, but bind declared 1");
}

#[test]
fn tokens_can_be_replayed_but_not_mixed_or_forged() {
    let server = start(Options::default());
    let client = Client::new(&server);
    let call = Call::new("emit_parts").positional(int(2)).positional(int(4)).named("ticks", int(4));
    let execution = client.begin(&call, &input().schema()).unwrap();
    let (streams, _) = execution.combine(Vec::new()).unwrap();
    let tokens = |index: usize| {
        let turn = execution.open_stream(&streams[index]).unwrap();
        Tokens { cursor: turn.cursor.unwrap(), call: turn.call }
    };
    let (first, second) = (tokens(0), tokens(1));
    assert!(first.call.is_some());
    assert_eq!(client.turn(&first).unwrap().batches, client.turn(&first).unwrap().batches);

    let refused = |tokens: &Tokens| {
        let reply = client.post(&client.dialect.exchange_path(), turn_body(tokens).unwrap());
        assert_eq!(reply.status, 400);
        reply.error().message
    };
    let mixed = Tokens { cursor: first.cursor.clone(), call: second.call.clone() };
    assert_eq!(refused(&mixed), "the two tokens belong to different streams");
    let swapped = Tokens { cursor: first.call.clone().unwrap(), call: Some(first.cursor.clone()) };
    assert_eq!(refused(&swapped), "the stream token is not one of this worker's, or was changed");
    assert!(refused(&Tokens { call: None, ..first.clone() }).contains("call token is missing"));
    let other_worker = start(Options::default());
    let elsewhere = Client::new(&other_worker).post(&client.dialect.exchange_path(), turn_body(&first).unwrap());
    assert_eq!(elsewhere.status, 400);
}

#[test]
fn an_expired_token_is_refused() {
    let server = start(Options { token_ttl: Duration::ZERO, ..Options::default() });
    let client = Client::new(&server);
    let call = Call::new("emit_parts").positional(int(1)).positional(int(4));
    let execution = client.begin(&call, &input().schema()).unwrap();
    let (streams, _) = execution.combine(Vec::new()).unwrap();
    let turn = execution.open_stream(&streams[0]).unwrap();
    let tokens = Tokens { cursor: turn.cursor.unwrap(), call: turn.call };
    let reply = client.post(&client.dialect.exchange_path(), turn_body(&tokens).unwrap());
    assert_eq!((reply.status, reply.error().message.as_str()), (400, "the stream token has expired"));
}

#[test]
fn a_cancelled_stream_ends_without_rows() {
    let server = start(Options::default());
    let client = Client::new(&server);
    let call = Call::new("emit_parts").positional(int(1)).positional(int(4));
    let execution = client.begin(&call, &input().schema()).unwrap();
    let (streams, _) = execution.combine(Vec::new()).unwrap();
    let turn = execution.open_stream(&streams[0]).unwrap();
    let tokens = Tokens { cursor: turn.cursor.unwrap(), call: turn.call };
    let reply = client.cancel(&tokens);
    let ended = vgi_wire::reply::read_turn(reply.body).unwrap();
    assert_eq!((reply.status, ended.batches.len(), ended.cursor), (200, 0, None));
    assert_eq!(ended.schema, execution.bound.output_schema);
    assert_eq!(server.stats().cancels, 1);
    execution.destroy();
    assert_eq!(client.cancel(&tokens).status, 200);
}

#[test]
fn an_unknown_catalog_or_attachment_is_refused() {
    let server = start(Options::default());
    let client = Client::new(&server);
    let error = remote(client.attach("exmple"));
    assert_eq!(
        (error.exception_type.as_deref(), error.message.as_str()),
        (Some("NotFoundError"), "this worker has no catalog 'exmple' (it has: example)")
    );
    let body = vgi_wire::methods::schemas_body(&client.dialect, &Bytes::from_static(b"from elsewhere"), None).unwrap();
    let error = remote(client.unary(Method::CatalogSchemas, body));
    assert_eq!(error.exception_type.as_deref(), Some("OpaqueDataNotRecognizedError"));
}

#[test]
fn a_missing_batch_index_is_refused() {
    let server = start(Options::default());
    let execution = Client::new(&server).begin(&Call::new("batch_index_buffer_input"), &input().schema()).unwrap();
    let error = remote(execution.process(&input(), None));
    assert_eq!(error.message, "batch_index_buffer_input requires a batch_index with every batch");
    assert!(!matches!(execution.process(&input(), Some(0)), Err(Failure::Remote { .. })));
}

#[test]
fn calls_beyond_the_limit_are_refused_until_one_is_done() {
    let server = start(Options { max_concurrent_calls: Some(1), ..Options::default() });
    let client = Client::new(&server);
    let seconds = Arc::new(arrow_array::Float64Array::from(vec![1.0])) as ArrayRef;
    let call = Call::new("hang_in").positional(text("process")).positional(seconds);
    let execution = client.begin(&call, &input().schema()).unwrap();
    std::thread::scope(|scope| {
        let hanging = scope.spawn(|| execution.process(&input(), None).map(|_| ()));
        std::thread::sleep(Duration::from_millis(300));
        let body = no_parameters_body(&client.dialect, Method::CatalogCatalogs).unwrap();
        let refused = client.post("vgi.v2/catalog_catalogs", body.clone());
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
        assert_eq!(refused.error().exception_type.as_deref(), Some("OverloadedError"));
        assert_eq!(http(server.address(), "GET", "/health", &[], b"").status, 200);
        hanging.join().unwrap().unwrap();
        assert_eq!(client.post("vgi.v2/catalog_catalogs", body).status, 200);
    });
}

#[test]
fn a_call_that_takes_too_long_is_given_up() {
    let server = start(Options { call_timeout: Some(Duration::from_millis(500)), ..Options::default() });
    let client = Client::new(&server);
    let seconds = Arc::new(arrow_array::Float64Array::from(vec![3.0])) as ArrayRef;
    let call = Call::new("hang_in").positional(text("process")).positional(seconds);
    let execution = client.begin(&call, &input().schema()).unwrap();
    let begun = std::time::Instant::now();
    let error = remote(execution.process(&input(), None));
    assert!(begun.elapsed() < Duration::from_millis(2500), "{:?}", begun.elapsed());
    assert_eq!(error.exception_type.as_deref(), Some("CallTimeoutError"));
    assert_eq!(error.message, "the call took longer than 0.5 s, the limit of this worker");
}
