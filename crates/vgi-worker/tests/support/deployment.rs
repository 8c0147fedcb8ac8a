//! What must hold for several processes on one storage, whichever it is.
#![allow(dead_code, reason = "every test file uses its own part")]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use vgi_worker::Options;
use vgi_worker::storage::{Backend, Storage};

use super::proxy::Proxy;
use super::support::{Call, Client, batch_of, int, remote, run, start, text};
use super::worker::Worker;

/// A storage, and what is left in it beside the list of executions.
pub struct Deployment<'a> {
    pub storage: String,
    pub rest: &'a dyn Fn() -> usize,
}

impl Deployment<'_> {
    fn open(&self) -> Arc<dyn Storage> {
        self.storage.parse::<Backend>().unwrap().open().unwrap()
    }

    pub fn is_empty(&self) -> bool {
        self.open().live().unwrap() == 0 && (self.rest)() == 0
    }
}

pub fn client(address: SocketAddr) -> Client {
    Client { address, ..Client::new(&start(Options::default())) }
}

pub fn rows(start: i64, count: i64) -> RecordBatch {
    let numbers = start..start + count;
    batch_of(vec![
        ("n", Arc::new(Int64Array::from_iter_values(numbers.clone().map(|n| n * 7919 % 1009))) as ArrayRef),
        ("x", Arc::new(numbers.clone().map(|n| Some(n as f64 / 8.0)).collect::<Float64Array>())),
        ("s", Arc::new(numbers.map(|n| Some(format!("row {n}"))).collect::<StringArray>())),
    ])
}

fn number(value: f64) -> ArrayRef {
    Arc::new(Float64Array::from(vec![value]))
}

/// Every function that the examples show, and some that only tests have.
fn calls() -> Vec<Call> {
    let one = |name: &str| Call::new(name);
    vec![
        one("buffer_input"),
        one("ordered_buffer_input"),
        one("batch_index_buffer_input"),
        one("sum_all_columns"),
        one("kmeans").positional(int(2)),
        one("sort_rows").positional(text("n")),
        one("quantiles").positional(number(0.25)).positional(number(0.5)),
        one("top_k").positional(int(7)).positional(text("n")),
        one("distinct_rows"),
        one("rank_all").positional(text("n")),
        one("sessionize").positional(text("x")).positional(number(0.1)),
        one("train_linear").positional(text("x")),
        one("emit_parts").positional(int(3)).positional(int(4)).named("ticks", int(4)),
    ]
}

/// What this address answers is what a server alone answers.
pub fn every_function_is_right(address: SocketAddr) {
    let alone = start(Options { storage: Backend::Memory, ..Options::default() });
    // the last piece is large enough for a file
    let input = [rows(0, 10), rows(10, 1), rows(11, 5000)];
    for call in calls() {
        let expected = run(&Client::new(&alone), &call, &input).unwrap();
        assert!(expected.iter().any(|batch| batch.num_rows() > 0), "{}", call.function);
        // twice, so that every request of the call has been at both of two processes
        for _ in 0..2 {
            assert_eq!(run(&client(address), &call, &input).unwrap(), expected, "{}", call.function);
        }
    }
}

/// Consecutive requests of one execution alternate between two processes.
pub fn consecutive_requests_may_reach_different_processes(deployment: &Deployment) {
    let workers = [Worker::start(&deployment.storage), Worker::start(&deployment.storage)];
    let proxy = Proxy::start(workers.iter().map(|worker| worker.address).collect());
    every_function_is_right(proxy.address());
    for worker in &workers {
        assert!(worker.stat("process_calls") >= 10);
    }
    assert!(deployment.is_empty());
}

/// A process that is killed during a call fails this call, and no other.
pub fn a_process_that_dies_fails_its_call_alone(deployment: &Deployment) {
    let mut workers = vec![Worker::start(&deployment.storage), Worker::start(&deployment.storage)];
    let input = [rows(0, 10)];
    let doomed = workers.pop().unwrap();
    let address = doomed.address;
    let call = Call::new("hang_in").positional(text("process")).positional(number(60.0));
    let execution = client(address).begin(&call, &input[0].schema()).unwrap();
    let begun = Instant::now();
    let hanging = std::thread::spawn(move || execution.process(&rows(0, 10), None).map(|_| ()));
    std::thread::sleep(Duration::from_millis(300));
    drop(doomed);
    // the test's client panics on a connection that ends without a reply
    assert!(hanging.join().is_err());
    // long before the function would have answered
    assert!(begun.elapsed() < Duration::from_secs(45), "{:?}", begun.elapsed());

    let proxy = Proxy::start(vec![workers[0].address, address]);
    for _ in 0..2 {
        assert_eq!(run(&client(proxy.address()), &Call::new("buffer_input"), &input).unwrap(), input);
    }
    // what the dead process began is left until it expires
    let storage = deployment.open();
    assert_eq!((storage.live().unwrap(), (deployment.rest)() > 0), (1, true));
    assert_eq!(storage.expire(Duration::ZERO).unwrap(), 1);
    assert!(deployment.is_empty());
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

/// Results are right, the storage is empty afterwards, and memory is back.
pub fn a_thousand_executions_at_once_leave_nothing(deployment: &Deployment) {
    let worker = Worker::start(&deployment.storage);
    // the first thousand make the threads and the caches that stay
    thousand(&worker);
    let before = worker.resident();
    thousand(&worker);
    let after = worker.resident();
    assert_eq!(worker.stat("live_executions"), 0);
    assert!(deployment.is_empty());
    println!("{before} kB resident before, {after} kB after");
    // under a sanitizer most of it is not the worker's own
    let sanitized = std::env::var_os("VGI_TEST_SANITIZED").is_some();
    assert!(sanitized || after < before + 16 * 1024, "{before} kB resident before, {after} kB after");
}
