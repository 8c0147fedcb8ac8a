//! Lines for DuckDB's log, as type `VGI`: what the server's code logs, and the steps of a call. The names of events and keys are those
//! that users of the protocol's other client for DuckDB query.

use std::fmt::{Display, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use vgi_transport::{EventSink, Exchange, Phase};
use vgi_wire::reply::{LogLevel, LogRecord};

use crate::bridge::ffi;
use crate::recording;
use crate::settings;

/// Lines that wait for a thread with a `ClientContext`, which alone may write to DuckDB's log. One per bound call.
#[derive(Default)]
pub struct CallLog {
    lines: Mutex<Vec<(LogLevel, String)>>,
    /// Spares the lock on the way of every chunk.
    any: AtomicBool,
    /// Whether somebody reads the steps; what nobody reads is not written.
    wanted: AtomicBool,
    /// Where exchanges are recorded.
    trace: Mutex<Option<PathBuf>>,
}

/// The keys of an event.
pub struct Details {
    text: String,
}

impl Details {
    /// Adds a key and its value.
    pub fn add(&mut self, key: &str, value: impl Display) -> &mut Self {
        let comma = if self.text.is_empty() { "" } else { ", " };
        // writing to a String cannot fail
        write!(self.text, "{comma}{key}={value}").ok();
        self
    }
}

impl CallLog {
    /// Asks DuckDB whether the steps of this query are logged, and where its exchanges are recorded.
    pub fn listen(&self, context: &ffi::ClientContext) {
        self.wanted.store(ffi::logs_steps(context), Ordering::Relaxed);
        let directory = settings::text_of(context, settings::TRACE_DIR).unwrap_or_default();
        *lock(&self.trace) = Some(directory).filter(|directory| !directory.is_empty()).map(PathBuf::from);
    }

    /// Records an exchange. A query does not fail because its record cannot be written, but the log says so.
    fn trace(&self, exchange: &Exchange<'_>) {
        let Some(directory) = lock(&self.trace).clone() else { return };
        if let Err(error) = recording::record(&directory, exchange) {
            self.push(LogLevel::Warn, "trace.failed", |details| {
                details.add("directory", directory.display()).add("message", error);
            });
        }
    }

    /// Writes the waiting lines.
    pub fn flush(&self, context: &ffi::ClientContext) {
        if !self.any.swap(false, Ordering::AcqRel) {
            return;
        }
        let lines = std::mem::take(&mut *lock(&self.lines));
        for (level, text) in lines {
            ffi::write_log(context, level.as_str(), &text);
        }
    }

    /// A step of a call.
    pub fn event(&self, name: &str, details: impl FnOnce(&mut Details)) {
        if self.wanted.load(Ordering::Relaxed) {
            self.push(LogLevel::Debug, name, details);
        }
    }

    fn push(&self, level: LogLevel, name: &str, details: impl FnOnce(&mut Details)) {
        let mut list = Details { text: String::new() };
        details(&mut list);
        let line = format!("{{'event': {name}, 'details': {{{}}}}}", list.text);
        lock(&self.lines).push((level, line));
        self.any.store(true, Ordering::Release);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // every update under these locks is a single assignment or push
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl EventSink for CallLog {
    fn wants_bodies(&self) -> bool {
        lock(&self.trace).is_some()
    }

    fn log(&self, phase: Phase, function: &str, record: &LogRecord) {
        self.push(record.level, "server.log", |details| {
            details.add("function_name", function).add("phase", phase).add("message", &record.message);
        });
    }

    fn exchanged(&self, exchange: &Exchange<'_>) {
        if matches!(exchange.phase, Phase::Attach | Phase::Discover) {
            self.event("catalog.rpc", |details| {
                details.add("method", exchange.method);
            });
        }
        self.trace(exchange);
        self.event("http.invoke_unary", |details| {
            details
                .add("method", exchange.method)
                .add("phase", exchange.phase)
                .add("request_bytes", exchange.sent_bytes);
        });
        self.event("http.response", |details| {
            details
                .add("method", exchange.method)
                .add("status", exchange.status)
                .add("response_bytes", exchange.received_bytes)
                .add("milliseconds", exchange.elapsed.as_millis());
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_written_only_for_a_reader() {
        let log = CallLog::default();
        log.event("a.b", |_| panic!("nobody reads this"));
        log.wanted.store(true, Ordering::Relaxed);
        log.event("table_buffering.process", |details| {
            details.add("conn", 3).add("state_id", "0aff");
        });
        let lines = log.lines.lock().unwrap();
        assert_eq!(lines[0].1, "{'event': table_buffering.process, 'details': {conn=3, state_id=0aff}}");
    }
}
