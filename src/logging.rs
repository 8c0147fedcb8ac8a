//! What the server's code logs, on its way to DuckDB's log.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use vgi_transport::{EventSink, Phase};
use vgi_wire::reply::{LogLevel, LogRecord};

use crate::bridge::ffi;

/// Lines that wait for a thread with a `ClientContext`, which alone may write to DuckDB's log. One per bound call.
#[derive(Default)]
pub struct ServerLog {
    lines: Mutex<Vec<(LogLevel, String)>>,
    /// Spares the lock on the way of every chunk.
    any: AtomicBool,
}

impl ServerLog {
    /// Writes the waiting lines, as type `VGI`.
    pub fn flush(&self, context: &ffi::ClientContext) {
        if !self.any.swap(false, Ordering::AcqRel) {
            return;
        }
        let lines = std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner));
        for (level, text) in lines {
            ffi::write_log(context, level.as_str(), &text);
        }
    }
}

impl EventSink for ServerLog {
    fn log(&self, phase: Phase, function: &str, record: &LogRecord) {
        let text = format!(
            "'event': server.log, 'function_name': {function}, 'phase': {phase}, 'message': {}",
            record.message
        );
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push((record.level, text));
        self.any.store(true, Ordering::Release);
    }
}
