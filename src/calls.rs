//! The last calls of each database, for `vgi_calls()`.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use crate::buffering::{Clock, Observer, Outcome};

/// Calls that are remembered per database.
const REMEMBERED: usize = 100;

type CallLists = BTreeMap<usize, VecDeque<(u64, Arc<Observer>)>>;

/// Keyed by the database instance's address, which is unique as long as the database lives.
static CALLS: Mutex<CallLists> = Mutex::new(BTreeMap::new());
static NEXT: AtomicU64 = AtomicU64::new(1);

fn calls() -> MutexGuard<'static, CallLists> {
    CALLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Remembers an execution that begins.
pub fn note(database: usize, observer: &Arc<Observer>) {
    let mut calls = calls();
    let list = calls.entry(database).or_default();
    if list.len() >= REMEMBERED {
        list.pop_front();
    }
    list.push_back((NEXT.fetch_add(1, Ordering::Relaxed), Arc::clone(observer)));
}

/// Forgets the calls of a database that is closed.
pub fn forget(database: usize) {
    calls().remove(&database);
}

/// Columns of `vgi_calls()` that count.
pub const COUNTS: [&str; 14] = [
    "sent_batches",
    "sent_rows",
    "accepted_batches",
    "accepted_rows",
    "received_batches",
    "received_rows",
    "delivered_rows",
    "init_requests",
    "process_requests",
    "combine_requests",
    "finalize_requests",
    "request_bytes",
    "response_bytes",
    "requests",
];

/// Columns of `vgi_calls()` that are milliseconds: of threads, then of requests per phase.
pub const TIMES: [&str; 7] =
    ["encode_ms", "wait_ms", "decode_ms", "init_ms", "process_ms", "combine_ms", "finalize_ms"];

/// One remembered call.
pub struct Call {
    /// Unique in the process.
    pub id: u64,
    /// Microseconds since 1970.
    pub started_micros: i64,
    /// The function.
    pub function_name: String,
    /// The server's base URL.
    pub server: String,
    /// The server's id of the execution, in hexadecimal.
    pub execution_id: String,
    /// `running`, `finished`, `stopped` or `failed`.
    pub state: &'static str,
    /// Why it failed.
    pub error: String,
    /// From the first chunk to the end, or to now.
    pub milliseconds: f64,
    /// By the names of [`COUNTS`].
    pub counts: Vec<u64>,
    /// By the names of [`TIMES`].
    pub times: Vec<f64>,
}

/// The remembered calls of a database, oldest first.
pub fn last(database: usize) -> Vec<Call> {
    let list: Vec<_> = calls().get(&database).map(|list| list.iter().cloned().collect()).unwrap_or_default();
    list.iter().map(|(id, observer)| describe(*id, observer)).collect()
}

fn describe(id: u64, observer: &Observer) -> Call {
    let (outcome, duration) = observer.outcome();
    let since = observer.started.duration_since(UNIX_EPOCH).unwrap_or_default();
    let counters = &observer.counters;
    let phases = [&counters.init, &counters.process, &counters.combine, &counters.finalize];
    let counts: [u64; COUNTS.len()] = [
        counters.sent.batches(),
        counters.sent.rows(),
        counters.accepted.batches(),
        counters.accepted.rows(),
        counters.received.batches(),
        counters.received.rows(),
        counters.delivered.rows(),
        counters.init.count(),
        counters.process.count(),
        counters.combine.count(),
        counters.finalize.count(),
        counters.bytes_out.load(Ordering::Relaxed),
        counters.bytes_in.load(Ordering::Relaxed),
        phases.iter().map(|requests| requests.count()).sum(),
    ];
    let threads = [&counters.encoding, &counters.waiting, &counters.decoding];
    let times = threads.into_iter().chain(phases.iter().map(|requests| &requests.answered_in));
    Call {
        id,
        started_micros: i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        function_name: observer.call().function_name().to_owned(),
        server: observer.call().bound().attachment.location().as_str().to_owned(),
        execution_id: observer.id(),
        state: outcome.as_str(),
        error: if let Outcome::Failed(error) = outcome { error } else { String::new() },
        milliseconds: duration.as_secs_f64() * 1000.0,
        counts: counts.to_vec(),
        times: times.map(Clock::milliseconds).collect(),
    }
}
