//! Several processes that share a storage: any request of an execution may reach any of them.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::cast_precision_loss, reason = "the numbers are small")]

#[path = "support/proxy.rs"]
mod proxy;
mod support;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use proxy::Proxy;
use support::{Call, Client, batch_of, http, int, remote, run, start, text};
use vgi_worker::storage::{SqliteStorage, Storage};
use vgi_worker::{Credential, Options};

struct Worker {
    child: Child,
    address: SocketAddr,
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Worker {
    fn start(storage: &str) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_vgi-worker"))
            .args(["serve", "--listen", "127.0.0.1:0", "--test-functions", "--storage", storage])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim_end().strip_prefix("listening on http://").unwrap().parse().unwrap();
        Self { child, address }
    }

    fn stat(&self, name: &str) -> u64 {
        let stats = http(self.address, "GET", "/stats", &[], b"").body;
        let stats: serde_json::Value = serde_json::from_slice(&stats).unwrap();
        stats[name].as_u64().unwrap()
    }

    /// Resident kilobytes.
    fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

fn client(address: SocketAddr) -> Client {
    Client { address, ..Client::new(&start(Options::default())) }
}

/// What is left of executions.
fn left(folder: &Path) -> (usize, usize) {
    let storage = SqliteStorage::open(folder.join("state.db")).unwrap();
    (storage.live().unwrap(), std::fs::read_dir(folder.join("state.db-files")).unwrap().count())
}

fn rows(start: i64, count: i64) -> RecordBatch {
    let numbers = start..start + count;
    batch_of(vec![
        ("n", Arc::new(Int64Array::from_iter_values(numbers.clone().map(|n| n * 7919 % 1009))) as ArrayRef),
        ("x", Arc::new(numbers.clone().map(|n| Some(n as f64 / 8.0)).collect::<Float64Array>())),
        ("s", Arc::new(numbers.map(|n| Some(format!("row {n}"))).collect::<StringArray>())),
    ])
}

fn calls() -> Vec<Call> {
    let one = |name: &str| Call::new(name);
    vec![
        one("buffer_input"),
        one("ordered_buffer_input"),
        one("batch_index_buffer_input"),
        one("sum_all_columns"),
        one("kmeans").positional(int(2)),
        one("sort_rows").positional(text("n")),
        one("emit_parts").positional(int(3)).positional(int(4)).named("ticks", int(4)),
    ]
}

#[test]
fn consecutive_requests_may_reach_different_processes() {
    let folder = tempfile::tempdir().unwrap();
    let storage = format!("sqlite:{}", folder.path().join("state.db").display());
    let workers = [Worker::start(&storage), Worker::start(&storage)];
    let proxy = Proxy::start(workers.iter().map(|worker| worker.address).collect());
    let alone = start(Options::default());
    // the last piece is large enough for a file
    let input = [rows(0, 10), rows(10, 1), rows(11, 5000)];
    for call in calls() {
        let expected = run(&Client::new(&alone), &call, &input).unwrap();
        assert!(expected.iter().any(|batch| batch.num_rows() > 0), "{}", call.function);
        // twice, so that every request of the call has been at both
        for _ in 0..2 {
            assert_eq!(run(&client(proxy.address()), &call, &input).unwrap(), expected, "{}", call.function);
        }
    }
    for worker in &workers {
        assert!(worker.stat("process_calls") >= 10);
    }
    assert_eq!(left(folder.path()), (0, 0));
}

#[test]
fn a_process_that_dies_fails_its_call_alone() {
    let folder = tempfile::tempdir().unwrap();
    let storage = format!("sqlite:{}", folder.path().join("state.db").display());
    let mut workers = vec![Worker::start(&storage), Worker::start(&storage)];
    let input = [rows(0, 10)];
    let doomed = workers.pop().unwrap();
    let address = doomed.address;
    let call = Call::new("hang_in").positional(text("process")).positional(Arc::new(Float64Array::from(vec![60.0])));
    let execution = client(address).begin(&call, &input[0].schema()).unwrap();
    let begun = Instant::now();
    let hanging = std::thread::spawn(move || execution.process(&rows(0, 10), None).map(|_| ()));
    std::thread::sleep(Duration::from_millis(300));
    drop(doomed);
    // the test's client panics on a connection that ends without a reply
    assert!(hanging.join().is_err());
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());

    let proxy = Proxy::start(vec![workers[0].address, address]);
    for _ in 0..2 {
        assert_eq!(run(&client(proxy.address()), &Call::new("buffer_input"), &input).unwrap(), input);
    }
    // what the dead process began is left until it expires
    assert_eq!(left(folder.path()), (1, 1));
    let storage = SqliteStorage::open(folder.path().join("state.db")).unwrap();
    assert_eq!(storage.expire(Duration::ZERO).unwrap(), 1);
    assert_eq!(left(folder.path()), (0, 0));
}

/// Begins a thousand executions, then goes on with all of them, but aborts every tenth in the middle.
fn thousand(worker: &Worker) {
    const THREADS: i64 = 20;
    const EACH: i64 = 50;
    let client = client(worker.address);
    let call = Call::new("sum_all_columns");
    let piece =
        |start: i64| batch_of(vec![("n", Arc::new(Int64Array::from_iter_values(start..start + 10)) as ArrayRef)]);
    let barrier = std::sync::Barrier::new(usize::try_from(THREADS).unwrap());
    let work = |thread: i64| {
        let numbers = thread * EACH..(thread + 1) * EACH;
        let begun: Vec<_> = numbers.clone().map(|_| client.begin(&call, &piece(0).schema()).unwrap()).collect();
        barrier.wait();
        if thread == 0 {
            assert_eq!(worker.stat("live_executions"), u64::try_from(THREADS * EACH).unwrap());
        }
        barrier.wait();
        for (number, execution) in numbers.zip(begun) {
            let mut ids = vec![execution.process(&piece(number), None).unwrap().0];
            if number % 10 == 0 {
                execution.destroy();
                remote(execution.process(&piece(number), None));
                continue;
            }
            ids.push(execution.process(&piece(-number), None).unwrap().0);
            let (streams, _) = execution.combine(ids).unwrap();
            let turns = execution.drain(&streams[0]).unwrap();
            assert_eq!(turns[0].batches[0].column(0).as_primitive::<Int64Type>().value(0), 90, "{number}");
            execution.destroy();
        }
    };
    std::thread::scope(|scope| {
        let work = &work;
        for thread in 0..THREADS {
            scope.spawn(move || work(thread));
        }
    });
}

#[test]
fn a_thousand_executions_at_once_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let worker = Worker::start(&format!("sqlite:{}", folder.path().join("state.db").display()));
    // the first thousand make the threads and the caches that stay
    thousand(&worker);
    let before = worker.resident();
    thousand(&worker);
    let after = worker.resident();
    assert_eq!(worker.stat("live_executions"), 0);
    assert_eq!(left(folder.path()), (0, 0));
    println!("{before} kB resident before, {after} kB after");
    assert!(after < before + 16 * 1024, "{before} kB resident before, {after} kB after");
}

#[test]
fn an_execution_is_its_principals_own() {
    let credential = |name: &str| Credential { principal: name.to_owned(), token: format!("{name}'s token") };
    let server = start(Options { credentials: vec![credential("ann"), credential("bob")], ..Options::default() });
    let without = http(server.address(), "GET", "/stats", &[], b"");
    assert_eq!((without.status, without.header("vgi-auth-reason")), (401, Some("missing_token")));
    let wrong = http(server.address(), "POST", "/vgi.v2/bind", &[("authorization", "Bearer no")], b"");
    assert_eq!((wrong.status, wrong.header("vgi-auth-reason")), (401, Some("invalid_token")));
    assert_eq!(http(server.address(), "GET", "/health", &[], b"").status, 200);

    let client = |name: &str| Client { token: Some(format!("{name}'s token")), ..Client::new(&server) };
    let input = rows(0, 10);
    let mut execution = client("ann").begin(&Call::new("buffer_input"), &input.schema()).unwrap();
    let id = execution.process(&input, None).unwrap().0;
    let streams = execution.combine(vec![id]).unwrap().0;
    let turn = execution.open_stream(&streams[0]).unwrap();
    execution.client = client("bob");
    for error in [
        remote(execution.process(&input, None)),
        remote(execution.combine(Vec::new())),
        remote(execution.open_stream(&streams[0])),
    ] {
        assert_eq!(error.exception_type.as_deref(), Some("UnknownExecutionError"));
    }
    if let Some(cursor) = turn.cursor {
        let tokens = vgi_wire::reply::Tokens { cursor, call: turn.call };
        let error = remote(execution.client.turn(&tokens));
        assert_eq!(error.exception_type.as_deref(), Some("InvalidStateTokenError"));
    }
    // nor can another end it
    execution.destroy();
    assert_eq!(server.stats().live_executions, 1);
    execution.client = client("ann");
    assert_eq!(execution.drain(&streams[0]).unwrap()[0].batches, [input]);
    execution.destroy();
    assert_eq!(server.stats().live_executions, 0);
}
