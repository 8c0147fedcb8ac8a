//! `serve --workers`: several processes on one port.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::cast_precision_loss, reason = "the numbers are small")]

#[path = "support/deployment.rs"]
mod deployment;
#[path = "support/proxy.rs"]
mod proxy;
mod support;
#[path = "support/worker.rs"]
mod worker;

use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::Float64Array;
use deployment::{client, rows};
use support::{Call, http, int, run, text};
use vgi_wire::reply::Tokens;
use worker::{Worker, signal};

const LIMIT: Duration = Duration::from_secs(30);

fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < LIMIT, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The state of a process that there is.
fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

fn is_there(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z')
}

/// Says which of the processes answers, by stopping the others.
struct Turns(Vec<u32>);

impl Turns {
    fn of(worker: &Worker) -> Self {
        Self(worker.children())
    }

    fn only(&self, turn: usize) {
        signal(self.0[turn], "CONT");
        for pid in self.0.iter().filter(|pid| **pid != self.0[turn]) {
            signal(*pid, "STOP");
            eventually("it is stopped", || state(*pid) == Some('T'));
        }
    }
}

impl Drop for Turns {
    fn drop(&mut self) {
        for pid in self.0.iter().filter(|pid| is_there(**pid)) {
            signal(*pid, "CONT");
        }
    }
}

/// Workers on a database of SQLite, which lives as long as the folder.
fn workers(count: &str, arguments: &[&str]) -> (tempfile::TempDir, Worker) {
    let folder = tempfile::tempdir().unwrap();
    let storage = format!("sqlite:{}", folder.path().join("state.db").display());
    let worker = Worker::start_with(&storage, &[&["--workers", count], arguments].concat());
    (folder, worker)
}

#[test]
fn they_need_a_storage_that_they_can_share() {
    let refused = Command::new(env!("CARGO_BIN_EXE_vgi-worker"))
        .args(["serve", "--port", "0", "--workers", "2", "--storage", "memory"])
        .output()
        .unwrap();
    assert!(!refused.status.success());
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("--workers 2 needs a storage that the processes share"), "{said}");
}

#[test]
fn without_a_storage_they_share_one_that_goes_with_them() {
    let temporary = tempfile::tempdir().unwrap();
    let entries = || std::fs::read_dir(temporary.path()).unwrap().count();
    let mut worker = Worker::start_without_storage(temporary.path(), &["--workers", "2"]);
    assert_eq!((worker.children().len(), entries()), (2, 1));
    let turns = Turns::of(&worker);
    // the second piece is large enough for a file
    let input = [rows(0, 10), rows(10, 5000)];
    turns.only(0);
    let execution = client(worker.address).begin(&Call::new("buffer_input"), &input[0].schema()).unwrap();
    let process = |turn, batch| {
        turns.only(turn);
        execution.process(batch, None).unwrap().0
    };
    let ids = vec![process(1, &input[0]), process(0, &input[1])];
    turns.only(1);
    let streams = execution.combine(ids).unwrap().0;
    let mut output = Vec::new();
    for id in &streams {
        turns.only(0);
        let mut turn = execution.open_stream(id).unwrap();
        let call = turn.call.clone();
        for next in [1, 0].into_iter().cycle() {
            output.extend(turn.batches);
            let Some(cursor) = turn.cursor else { break };
            turns.only(next);
            turn = execution.client.turn(&Tokens { cursor, call: call.clone() }).unwrap();
        }
    }
    assert_eq!(output, input);
    turns.only(0);
    execution.destroy();
    assert_eq!(worker.stat("live_executions"), 0);
    drop(turns);
    signal(worker.child.id(), "TERM");
    assert!(worker.ends_within(LIMIT).unwrap().success());
    assert_eq!(entries(), 0);
}

#[test]
fn workers_that_cannot_start_are_an_error() {
    let refused = Command::new(env!("CARGO_BIN_EXE_vgi-worker"))
        .args(["serve", "--port", "0", "--workers", "2", "--storage", "sqlite:/nowhere/state.db"])
        .output()
        .unwrap();
    assert!(!refused.status.success());
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(said.contains("/nowhere/state.db") && said.contains("a worker process could not start"), "{said}");
}

#[test]
fn they_share_executions_and_a_port() {
    let (_folder, mut worker) = workers("3", &[]);
    let children = worker.children();
    assert_eq!(children.len(), 3);
    deployment::every_function_is_right(worker.address);
    assert_eq!(worker.stat("live_executions"), 0);
    signal(worker.child.id(), "TERM");
    assert!(worker.ends_within(LIMIT).unwrap().success());
    assert!(!children.into_iter().any(is_there));
}

/// What `/metrics` tells of a counter.
fn metric(worker: &Worker, name: &str) -> u64 {
    let text = http(worker.address, "GET", "/metrics", &[], b"").body;
    let text = String::from_utf8(text.to_vec()).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(&format!("vgi_worker_{name}_total ")));
    value.unwrap_or_else(|| panic!("{name} is not in {text}")).parse().unwrap()
}

#[test]
fn each_tells_what_all_did_also_those_that_died() {
    let (_folder, worker) = workers("2", &[]);
    let turns = Turns::of(&worker);
    let input = [rows(0, 10)];
    let call = |turn| {
        turns.only(turn);
        assert_eq!(run(&client(worker.address), &Call::new("buffer_input"), &input).unwrap(), input);
    };
    let told = || {
        let both = [0, 1].map(|turn| {
            turns.only(turn);
            assert_eq!(worker.stat("executions"), metric(&worker, "executions"));
            metric(&worker, "rows_in")
        });
        assert_eq!(both[0], both[1]);
        both[0]
    };
    call(0);
    assert_eq!(told(), 10);
    call(1);
    call(1);
    assert_eq!(told(), 30);
    // refusals count too, wherever they are told
    turns.only(0);
    let before = metric(&worker, "errors");
    assert_eq!(http(worker.address, "POST", "/vgi.v2/nothing", &[], b"").status, 404);
    turns.only(1);
    assert_eq!(metric(&worker, "errors"), before + 1);

    // the one that did most dies without a word, and another comes
    turns.only(0);
    let (living, dying) = (turns.0[0], turns.0[1]);
    signal(dying, "KILL");
    assert_eq!(metric(&worker, "rows_in"), 30);
    eventually("it is replaced", || {
        let now = worker.children();
        now.len() == 2 && !now.contains(&dying)
    });
    drop(turns);
    let turns = Turns::of(&worker);
    // the new one answers when it listens
    let anew = turns.0.iter().position(|pid| *pid != living).unwrap();
    turns.only(anew);
    assert_eq!(metric(&worker, "rows_in"), 30);
    assert_eq!(run(&client(worker.address), &Call::new("buffer_input"), &input).unwrap(), input);
    turns.only(1 - anew);
    assert_eq!((metric(&worker, "rows_in"), metric(&worker, "destructor_calls")), (40, 4));
}

#[test]
fn one_that_is_killed_fails_its_call_and_is_replaced() {
    let (_folder, mut worker) = workers("2", &[]);
    let before = worker.children();
    let address = worker.address;
    let call = Call::new("hang_in").positional(text("process")).positional(Arc::new(Float64Array::from(vec![60.0])));
    let execution = client(address).begin(&call, &rows(0, 10).schema()).unwrap();
    let hanging = std::thread::spawn(move || execution.process(&rows(0, 10), None).map(|_| ()));
    std::thread::sleep(Duration::from_millis(300));
    // one of them answers that call
    for pid in &before {
        signal(*pid, "KILL");
    }
    // the test's client panics on a connection that ends without a reply
    assert!(hanging.join().is_err());
    eventually("they are replaced", || {
        let now = worker.children();
        now.len() == 2 && now.iter().all(|pid| is_there(*pid) && !before.contains(pid))
    });
    // a connection that comes before the new ones listen waits for them
    let input = [rows(0, 10)];
    assert_eq!(run(&client(address), &Call::new("buffer_input"), &input).unwrap(), input);
    signal(worker.child.id(), "TERM");
    // the execution that was left is waited for by nobody: those who served it are gone
    assert!(worker.ends_within(LIMIT).unwrap().success());
}

#[test]
fn at_the_end_open_streams_are_finished() {
    let (_folder, mut worker) = workers("2", &["--grace", "30"]);
    let client = client(worker.address);
    let call = Call::new("emit_parts").positional(int(1)).positional(int(3)).named("ticks", int(5));
    let input = rows(0, 10);
    let execution = client.begin(&call, &input.schema()).unwrap();
    let id = execution.process(&input, None).unwrap().0;
    let streams = execution.combine(vec![id]).unwrap().0;
    let whole = execution.drain(&streams[0]).unwrap();
    let first = execution.open_stream(&streams[0]).unwrap();

    signal(worker.child.id(), "TERM");
    eventually("they stop", || http(worker.address, "GET", "/health", &[], b"").status == 503);
    assert!(worker.ends_within(Duration::from_millis(300)).is_none());
    let (mut turns, mut cursor) = (1, first.cursor.clone());
    while let Some(next) = cursor {
        // any of the processes answers
        let turn = client.turn(&Tokens { cursor: next, call: first.call.clone() }).unwrap();
        assert_eq!(turn.batches, whole[turns].batches);
        turns += 1;
        cursor = turn.cursor;
    }
    assert_eq!(turns, whole.len());
    execution.destroy();
    assert!(worker.ends_within(LIMIT).unwrap().success());
}

#[test]
fn a_second_signal_ends_them_at_once() {
    let (_folder, mut worker) = workers("2", &["--grace", "600"]);
    let children = worker.children();
    let _left = client(worker.address).begin(&Call::new("buffer_input"), &rows(0, 1).schema()).unwrap();
    signal(worker.child.id(), "TERM");
    assert!(worker.ends_within(Duration::from_millis(500)).is_none());
    signal(worker.child.id(), "TERM");
    assert!(!worker.ends_within(LIMIT).unwrap().success());
    eventually("they end", || !children.iter().any(|pid| is_there(*pid)));
}

#[test]
fn they_end_with_the_process_that_looks_after_them() {
    let (_folder, mut worker) = workers("2", &[]);
    let children = worker.children();
    worker.child.kill().unwrap();
    worker.child.wait().unwrap();
    eventually("they end", || !children.iter().any(|pid| is_there(*pid)));
}

#[test]
fn a_storage_that_the_environment_names_is_in_no_list_of_processes() {
    let (folder, worker) = workers("2", &[]);
    for pid in worker.children() {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap();
        assert!(!String::from_utf8(arguments).unwrap().contains(folder.path().to_str().unwrap()));
    }
}
