//! Large values in the memory of the only process that reads them.
//!
//! A file that the same process reads again a moment later costs as much as all the rest of a call that echoes its input.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

/// Smaller values are cheap where they are otherwise.
const SMALLEST: usize = 4 * 1024;
/// A value is copied up to this size: it may be a part of a request, which would be kept whole for it.
const COPIED: usize = 64 * 1024;

/// Values by execution and name, up to a number of bytes.
pub(super) struct Held {
    limit: usize,
    values: Mutex<Values>,
}

#[derive(Default)]
struct Values {
    bytes: usize,
    executions: HashMap<String, HashMap<String, Bytes>>,
}

impl Held {
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, values: Mutex::default() }
    }

    /// Whether a value is worth it.
    pub(super) fn takes(value: &Bytes) -> bool {
        value.len() >= SMALLEST
    }

    /// Keeps a value, if it is worth it and there is room.
    pub(super) fn keep(&self, execution: &str, name: &str, value: &Bytes) -> bool {
        if !Self::takes(value) {
            return false;
        }
        let mut values = self.lock();
        let bytes = values.bytes.saturating_add(value.len());
        if bytes > self.limit {
            return false;
        }
        values.bytes = bytes;
        let copied = if value.len() < COPIED { Bytes::copy_from_slice(value) } else { value.clone() };
        values.executions.entry(execution.to_owned()).or_default().insert(name.to_owned(), copied);
        true
    }

    pub(super) fn get(&self, execution: &str, name: &str) -> Option<Bytes> {
        self.lock().executions.get(execution)?.get(name).cloned()
    }

    /// Removes a value; whether it was here.
    pub(super) fn remove(&self, execution: &str, name: &str) -> bool {
        let mut values = self.lock();
        let removed = values.executions.get_mut(execution).and_then(|of| of.remove(name));
        values.bytes -= removed.as_ref().map_or(0, Bytes::len);
        removed.is_some()
    }

    /// Removes all values of an execution.
    pub(super) fn end(&self, execution: &str) {
        let mut values = self.lock();
        let removed = values.executions.remove(execution).unwrap_or_default();
        values.bytes -= removed.values().map(Bytes::len).sum::<usize>();
        // it may be gigabytes that are freed now
        drop(values);
    }

    /// A thread that panicked while it held the lock cannot have been between two changes that belong together.
    fn lock(&self) -> MutexGuard<'_, Values> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_bounded() {
        let held = Held::new(3 * COPIED);
        let value = Bytes::from(vec![1; COPIED]);
        assert!(!held.keep("a", "small", &value.slice(1..SMALLEST)));
        assert!(held.keep("a", "1", &value) && held.keep("a", "2", &value) && held.keep("b", "1", &value));
        assert!(!held.keep("b", "2", &value));
        assert!(held.remove("a", "1") && !held.remove("a", "1"));
        assert!(held.keep("b", "2", &value));
        held.end("b");
        assert_eq!((held.get("b", "1"), held.get("a", "2")), (None, Some(value)));
        assert_eq!(held.lock().bytes, COPIED);
        held.end("a");
        held.end("a");
        assert_eq!(held.lock().bytes, 0);
    }

    #[test]
    fn a_part_of_a_request_does_not_keep_the_request() {
        let held = Held::new(1 << 20);
        let request = Bytes::from(vec![1; 10 * COPIED]);
        let (part, most) = (request.slice(..SMALLEST), request.slice(..COPIED));
        assert!(held.keep("a", "part", &part) && held.keep("a", "most", &most));
        assert_ne!(held.get("a", "part").unwrap().as_ptr(), request.as_ptr());
        assert_eq!(held.get("a", "most").unwrap().as_ptr(), request.as_ptr());
    }
}
