//! What is seen of one execution from outside: its counters, its events in the log, how it ended.

use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use vgi_transport::{EventSink, Exchange, Phase};
use vgi_wire::reply::LogRecord;

use super::counters::Counters;
use crate::call::BoundCall;
use crate::logging::CallLog;

/// An execution, as `vgi_calls()` lists it.
pub struct Observer {
    call: BoundCall,
    /// All counts.
    pub counters: Counters,
    /// When it began.
    pub started: SystemTime,
    clock: Instant,
    /// The server's id, once it is known.
    id: Mutex<Option<Bytes>>,
    outcome: Mutex<(Outcome, Option<Duration>)>,
}

/// Where an execution stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It goes on.
    Running,
    /// Every row was read.
    Finished,
    /// The query needed no more rows, or was given up.
    Stopped,
    /// With the error.
    Failed(String),
}

impl Outcome {
    /// One word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Stopped => "stopped",
            Self::Failed(_) => "failed",
        }
    }
}

impl Observer {
    pub(super) fn new(call: BoundCall) -> Self {
        Self {
            call,
            counters: Counters::default(),
            started: SystemTime::now(),
            clock: Instant::now(),
            id: Mutex::default(),
            outcome: Mutex::new((Outcome::Running, None)),
        }
    }

    /// What is executed.
    pub fn call(&self) -> &BoundCall {
        &self.call
    }

    pub(super) fn log(&self) -> &CallLog {
        self.call.log()
    }

    pub(super) fn identified(&self, id: Bytes) {
        *lock(&self.id) = Some(id);
    }

    /// The server's id of the execution in hexadecimal; empty before there is one.
    pub fn id(&self) -> String {
        lock(&self.id).as_deref().map(hex).unwrap_or_default()
    }

    /// Notes the end; the first one counts.
    pub(super) fn ended(&self, outcome: Outcome) {
        let mut state = lock(&self.outcome);
        if state.0 == Outcome::Running {
            *state = (outcome, Some(self.clock.elapsed()));
        }
    }

    /// How it stands, and how long it took so far.
    pub fn outcome(&self) -> (Outcome, Duration) {
        let (outcome, duration) = lock(&self.outcome).clone();
        (outcome, duration.unwrap_or_else(|| self.clock.elapsed()))
    }
}

impl EventSink for Observer {
    fn log(&self, phase: Phase, function: &str, record: &LogRecord) {
        EventSink::log(self.call.log(), phase, function, record);
    }

    fn exchanged(&self, exchange: &Exchange<'_>) {
        self.counters.exchanged(exchange);
        self.call.log().exchanged(exchange);
    }

    fn wants_bodies(&self) -> bool {
        self.call.log().wants_bodies()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // every update under these locks is a single assignment
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lower-case hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // writing to a String cannot fail
        write!(text, "{byte:02x}").ok();
        text
    })
}
