//! Log lines that reach the client in the reply of the request that wrote them.

use std::sync::{Arc, Mutex, PoisonError};

pub use vgi_wire::reply::{LogLevel, LogRecord};

/// Collects the lines of one request. What was written before an error or a panic is sent with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Logger(Arc<Mutex<Vec<LogRecord>>>);

impl Logger {
    pub(crate) fn write(&self, level: LogLevel, message: impl Into<String>) {
        let record = LogRecord { level, message: message.into(), extra: None };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(record);
    }

    pub(crate) fn take(&self) -> Vec<LogRecord> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
