//! Executions as their init requests describe them, read once for the many requests that follow.
//!
//! Only a shortcut: what counts is the init request in the storage, and an entry serves only while it is that of the same bytes.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::ids::ExecutionId;

/// How many are kept. More executions than that at once are read again now and then.
const KEPT: usize = 64;

/// The executions that were asked for last; `T` is what was read of an init request.
#[derive(Debug)]
pub(super) struct Recent<T>(Mutex<VecDeque<Entry<T>>>);

#[derive(Debug)]
struct Entry<T> {
    execution: ExecutionId,
    init: Bytes,
    read: Arc<T>,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Recent<T> {
    /// What was read of the execution's init request, or is now. No lock is held meanwhile.
    pub(super) fn get_or_read<E>(
        &self,
        execution: &ExecutionId,
        init: &Bytes,
        read: impl FnOnce() -> Result<T, E>,
    ) -> Result<Arc<T>, E> {
        if let Some(known) = self.find(execution, init) {
            return Ok(known);
        }
        let read = Arc::new(read()?);
        let mut entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| entry.execution != *execution);
        entries.truncate(KEPT - 1);
        entries.push_front(Entry { execution: execution.clone(), init: init.clone(), read: Arc::clone(&read) });
        Ok(read)
    }

    fn find(&self, execution: &ExecutionId, init: &Bytes) -> Option<Arc<T>> {
        let entries = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.iter().find(|entry| entry.execution == *execution)?;
        (entry.init == *init).then(|| Arc::clone(&entry.read))
    }

    /// Lets go of an execution that has ended.
    pub(super) fn forget(&self, execution: &ExecutionId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).retain(|entry| entry.execution != *execution);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_serves_for_the_same_bytes_only() {
        let recent = Recent::default();
        let (a, b) = (ExecutionId::new("a"), ExecutionId::new("b"));
        let read = |execution: &ExecutionId, init: &'static [u8], value: i32| {
            *recent.get_or_read(execution, &Bytes::from_static(init), || Ok::<_, ()>(value)).unwrap()
        };
        assert_eq!((read(&a, b"1", 1), read(&a, b"1", 2), read(&b, b"1", 3)), (1, 1, 3));
        assert_eq!((read(&a, b"2", 4), read(&a, b"2", 5), read(&b, b"1", 6)), (4, 4, 3));
        recent.forget(&a);
        assert_eq!(read(&a, b"2", 7), 7);
        assert_eq!(recent.get_or_read(&ExecutionId::new("c"), &Bytes::new(), || Err("no")).unwrap_err(), "no");
    }

    #[test]
    fn the_oldest_go_first() {
        let recent = Recent::default();
        let id = |number: usize| ExecutionId::new(number.to_string());
        for number in 0..=KEPT {
            recent.get_or_read(&id(number), &Bytes::new(), || Ok::<_, ()>(())).unwrap();
        }
        assert!(recent.find(&id(0), &Bytes::new()).is_none());
        assert!((1..=KEPT).all(|number| recent.find(&id(number), &Bytes::new()).is_some()));
    }
}
