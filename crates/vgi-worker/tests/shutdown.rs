//! How a server stops: what it has begun is finished, and nothing new begins.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use support::{Call, Client, Execution, batch_of, http, int, remote, start};
use vgi_wire::methods::Method;
use vgi_wire::reply::{Tokens, Turn};
use vgi_worker::Options;

const GRACE: Duration = Duration::from_secs(30);

fn input() -> RecordBatch {
    batch_of(vec![("n", int(1))])
}

/// An execution whose one stream is open, with its first turn.
fn streaming(client: &Client) -> (Execution, Turn) {
    let call = Call::new("emit_parts").positional(int(1)).positional(int(3)).named("ticks", int(5));
    let execution = client.begin(&call, &input().schema()).unwrap();
    let id = execution.process(&input(), None).unwrap().0;
    let streams = execution.combine(vec![id]).unwrap().0;
    let turn = execution.open_stream(&streams[0]).unwrap();
    (execution, turn)
}

/// Reads the rest of a stream; how many rows it has in all.
fn rest(execution: &Execution, first: Turn) -> usize {
    let rows = |turn: &Turn| turn.batches.iter().map(RecordBatch::num_rows).sum::<usize>();
    let (call, mut cursor, mut count) = (first.call.clone(), first.cursor.clone(), rows(&first));
    while let Some(next) = cursor {
        let turn = execution.client.turn(&Tokens { cursor: next, call: call.clone() }).unwrap();
        assert!(turn.error.is_none());
        count += rows(&turn);
        cursor = turn.cursor;
    }
    count
}

#[test]
fn open_streams_are_finished_and_nothing_new_begins() {
    let server = start(Options { grace: GRACE, ..Options::default() });
    let client = Client::new(&server);
    let (whole, first) = streaming(&client);
    let expected = rest(&whole, first);
    whole.destroy();
    assert!(expected > 0);

    let (execution, first) = streaming(&client);
    let (late, late_first) = streaming(&client);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let stopping = scope.spawn(|| server.shutdown());
        let status = || http(client.address, "GET", "/health", &[], b"").status;
        while status() == 200 {
            assert!(begun.elapsed() < GRACE);
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(status(), 503);
        let refused = remote(client.bind(&Call::new("buffer_input"), &input().schema()));
        assert_eq!(refused.exception_type.as_deref(), Some("StoppingError"));
        let refused = client.post(&client.dialect.path(Method::Bind), client.body(Method::Bind, bind_blob(&client)));
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
        assert_eq!(rest(&execution, first), expected);
        execution.destroy();
        std::thread::sleep(Duration::from_millis(200));
        assert!(!stopping.is_finished());
        assert_eq!(rest(&late, late_first), expected);
        late.destroy();
        stopping.join().unwrap();
    });
    assert!(begun.elapsed() < GRACE / 2, "{:?}", begun.elapsed());
    assert!(std::net::TcpStream::connect(client.address).is_err());
}

fn bind_blob(client: &Client) -> vgi_wire::ipc::Segments {
    let request = vgi_wire::methods::BindRequest {
        function_name: "buffer_input".to_owned(),
        schema_path: vec!["main".to_owned()],
        arguments: vgi_wire::arguments::encode_values(Vec::new(), Vec::new()).unwrap(),
        input_schema: input().schema(),
        settings: None,
        secrets: None,
        attach_opaque_data: None,
        transaction_opaque_data: None,
        resolved_secrets_provided: false,
    };
    request.to_blob(&client.dialect).unwrap()
}

#[test]
fn an_execution_that_was_abandoned_delays_the_end_no_longer_than_the_grace() {
    let server = start(Options { grace: Duration::from_millis(700), ..Options::default() });
    let (_execution, _turn) = streaming(&Client::new(&server));
    let begun = Instant::now();
    server.shutdown();
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(650) && took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn a_server_without_executions_stops_at_once() {
    let server = start(Options { grace: GRACE, ..Options::default() });
    let client = Client::new(&server);
    let (execution, first) = streaming(&client);
    rest(&execution, first);
    execution.destroy();
    let begun = Instant::now();
    server.shutdown();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}
