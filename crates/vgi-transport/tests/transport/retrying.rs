//! What is sent again, and what never is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use vgi_transport::{Error, ErrorKind, Execution, InitOptions, NeverInterrupted, Options, drain_background};

use crate::support::server::{Answer, Server};
use crate::support::vgi::Vgi;
use crate::support::{BACKGROUND, attached, bind, chunk, eventually, started};

/// Answers the first requests of that name with something else.
fn first(call: &'static str, times: usize, answer: impl Fn() -> Answer + Send + Sync + 'static) -> Server {
    let seen = AtomicUsize::new(0);
    Vgi::current()
        .start_with(move |name, _| (name == call && seen.fetch_add(1, Ordering::Relaxed) < times).then(&answer))
}

fn not_now(status: u16) -> Answer {
    Answer::text(status, "text/plain", "not now").with("Retry-After", "0")
}

fn whole_call(server: &Server, options: &Options) -> Result<Vec<i64>, Error> {
    let attachment = attached(server, options)?;
    attachment.functions(None, "echo", &NeverInterrupted)?;
    let execution = Execution::start(Arc::new(bind(&attachment)?), InitOptions::default(), &NeverInterrupted)?;
    let mut states = Vec::new();
    for value in 1..=3 {
        states.push(execution.process(chunk(&[value]), None)?.wait(&NeverInterrupted)?.state_id);
    }
    let mut rows = Vec::new();
    for id in execution.combine(states, &NeverInterrupted)? {
        let mut stream = execution.open_stream(id)?;
        while let Some(batch) = stream.next(&NeverInterrupted)? {
            rows.extend(batch.column(0).as_primitive::<Int64Type>().values());
        }
    }
    Ok(rows)
}

#[test]
fn calls_that_change_nothing_are_repeated_after_a_passing_refusal() {
    for call in ["health", "list_protocols", "catalog_attach", "catalog_schema_contents_functions", "bind", "exchange"]
    {
        for status in [429, 502, 503, 504] {
            let server = first(call, 2, move || not_now(status));
            assert_eq!(whole_call(&server, &Options::default()).unwrap(), [1, 2, 3], "{call} {status}");
            assert!(server.count(call) >= 3, "{call} {status}");
        }
    }
}

#[test]
fn calls_that_change_something_are_not() {
    for call in ["init", "table_buffering_process", "table_buffering_combine"] {
        let server = first(call, 1, || not_now(503));
        let error = whole_call(&server, &Options::default()).unwrap_err();
        assert_eq!((error.kind(), error.status()), (ErrorKind::Http, Some(503)), "{error}");
        assert_eq!(server.count(call), 1, "{call}");
    }
}

#[test]
fn what_was_never_sent_is_repeated_whatever_it_is() {
    // health, introspection, attach, functions, bind, init, three chunks, combine, opening, turns
    for requests in 0..=12 {
        let vgi = Vgi::current();
        let server = Arc::new(Server::start_mortal(requests, move |request| vgi.answer(request)));
        let stop = Arc::new(AtomicBool::new(false));
        let (watched, ended) = (Arc::clone(&server), Arc::clone(&stop));
        let keeper = std::thread::spawn(move || {
            while !watched.is_gone() && !ended.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(5));
            }
            std::thread::sleep(Duration::from_millis(60));
            watched.resume();
        });
        let rows = whole_call(&server, &Options { retries: 6, ..Options::default() });
        stop.store(true, Ordering::Relaxed);
        keeper.join().unwrap();
        assert_eq!(rows.unwrap(), [1, 2, 3], "after {requests} requests");
        for (call, times) in [("table_buffering_process", 3), ("table_buffering_combine", 1), ("init", 2), ("bind", 1)]
        {
            assert_eq!(server.count(call), times, "{call} after {requests} requests");
        }
        eventually("the destructor", || server.count("table_buffering_destructor") == 1);
    }
}

#[test]
fn a_turn_whose_reply_is_lost_is_asked_for_again_and_its_rows_come_once() {
    for lost in [
        || Answer::Reset(Vec::new()),
        || {
            Answer::Raw(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.apache.arrow.stream\r\nContent-Length: 99\r\n\r\n12"
                    .to_vec(),
            )
        },
    ] {
        let server = first("exchange", 2, lost);
        assert_eq!(whole_call(&server, &Options::default()).unwrap(), [1, 2, 3]);
        assert_eq!(server.count("exchange"), 5);
    }
}

#[test]
fn a_destructor_that_is_refused_for_the_moment_is_repeated() {
    let server = first("table_buffering_destructor", 1, || not_now(503));
    drop(started(&server, &Options::default()));
    eventually("the second destructor", || server.count("table_buffering_destructor") == 2);
    assert!(drain_background(BACKGROUND));
    assert_eq!(server.count("table_buffering_destructor"), 2);
}

#[test]
fn the_attempts_end_and_are_counted_in_the_error() {
    let server = first("bind", usize::MAX, || not_now(503));
    let attachment = attached(&server, &Options { retries: 2, ..Options::default() }).unwrap();
    let error = bind(&attachment).unwrap_err();
    assert_eq!((error.kind(), error.status()), (ErrorKind::Http, Some(503)));
    let said = "HTTP 503 Service Unavailable for /vgi.v2/bind after 3 attempts: not now";
    assert!(error.to_string().ends_with(said), "{error}");
    assert_eq!(server.count("bind"), 3);
}

#[test]
fn more_patience_than_the_budget_has_is_not_shown() {
    let server = first("bind", usize::MAX, || Answer::text(429, "text/plain", "later").with("Retry-After", "31"));
    let attachment = attached(&server, &Options::default()).unwrap();
    let start = Instant::now();
    assert_eq!(bind(&attachment).unwrap_err().status(), Some(429));
    assert!(start.elapsed() < Duration::from_secs(5));
    assert_eq!(server.count("bind"), 1);
}

#[test]
fn an_interrupt_ends_the_pause_between_attempts() {
    let server = first("health", usize::MAX, || Answer::text(503, "text/plain", "later").with("Retry-After", "20"));
    let raised = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&raised);
    let user = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        flag.store(true, Ordering::Relaxed);
        Instant::now()
    });
    let location = vgi_transport::Location::parse(&server.url()).unwrap();
    let error = vgi_transport::attach(&location, "cat", &Options::default(), &*raised).unwrap_err();
    assert!(user.join().unwrap().elapsed() < Duration::from_millis(200));
    assert_eq!(error.kind(), ErrorKind::Interrupted);
}

#[test]
fn all_chunks_in_flight_survive_a_server_that_comes_late() {
    let vgi = Vgi::current();
    let server = Arc::new(Server::start_mortal(5, move |request| vgi.answer(request)));
    let late = Arc::clone(&server);
    let options = Options { retries: 6, ..Options::default() };
    let execution = started(&server, &options);
    // a chunk on a connection that is being closed may have arrived: that one must fail
    eventually("the end of the server", || server.is_gone());
    std::thread::sleep(Duration::from_millis(50));
    let keeper = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        late.resume();
    });
    let pending: Vec<_> = (1..=4).map(|value| execution.process(chunk(&[value]), None).unwrap()).collect();
    for chunk in pending {
        chunk.wait(&NeverInterrupted).unwrap();
    }
    keeper.join().unwrap();
    assert_eq!(server.count("table_buffering_process"), 4);
}
