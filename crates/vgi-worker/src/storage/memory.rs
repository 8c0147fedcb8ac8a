//! The back end in this process's memory: for one process, and for tests.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::ids::ExecutionId;
use crate::storage::{Storage, StorageError};

/// Keeps everything in memory. Executions do not wait for each other, except while one begins or ends.
#[derive(Default)]
pub struct MemoryStorage {
    executions: RwLock<HashMap<ExecutionId, Arc<Mutex<State>>>>,
    secret: OnceLock<[u8; 32]>,
}

struct State {
    touched: Instant,
    values: HashMap<String, Bytes>,
    logs: HashMap<String, Vec<Bytes>>,
    counters: HashMap<String, i64>,
    queues: HashMap<String, VecDeque<Bytes>>,
}

impl State {
    fn new() -> Self {
        Self {
            touched: Instant::now(),
            values: HashMap::new(),
            logs: HashMap::new(),
            counters: HashMap::new(),
            queues: HashMap::new(),
        }
    }
}

impl MemoryStorage {
    /// An empty storage.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A poisoned lock only says that a thread panicked while it held it; every change below is a single call, so the data is whole.
    fn with<T>(&self, execution: &ExecutionId, access: impl FnOnce(&mut State) -> T) -> Result<T, StorageError> {
        let found = self.executions.read().unwrap_or_else(PoisonError::into_inner).get(execution).cloned();
        let state = found.ok_or_else(|| StorageError::UnknownExecution(execution.clone()))?;
        let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
        state.touched = Instant::now();
        Ok(access(&mut state))
    }
}

impl Storage for MemoryStorage {
    fn begin(&self, execution: &ExecutionId) -> Result<(), StorageError> {
        let mut executions = self.executions.write().unwrap_or_else(PoisonError::into_inner);
        executions.entry(execution.clone()).or_insert_with(|| Arc::new(Mutex::new(State::new())));
        Ok(())
    }

    fn put(&self, execution: &ExecutionId, key: &str, value: Bytes) -> Result<(), StorageError> {
        self.with(execution, |state| {
            state.values.insert(key.to_owned(), value);
        })
    }

    fn get(&self, execution: &ExecutionId, key: &str) -> Result<Option<Bytes>, StorageError> {
        self.with(execution, |state| state.values.get(key).cloned())
    }

    fn delete(&self, execution: &ExecutionId, key: &str) -> Result<bool, StorageError> {
        self.with(execution, |state| state.values.remove(key).is_some())
    }

    fn append(&self, execution: &ExecutionId, log: &str, entry: Bytes) -> Result<u64, StorageError> {
        let length = self.with(execution, |state| {
            let entries = state.logs.entry(log.to_owned()).or_default();
            entries.push(entry);
            entries.len() - 1
        })?;
        u64::try_from(length).map_err(|error| StorageError::Backend(error.to_string()))
    }

    fn scan(&self, execution: &ExecutionId, log: &str, from: u64, limit: usize) -> Result<Vec<Bytes>, StorageError> {
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        self.with(execution, |state| {
            let entries = state.logs.get(log).map_or(&[][..], Vec::as_slice);
            entries.iter().skip(from).take(limit).cloned().collect()
        })
    }

    fn count(&self, execution: &ExecutionId, counter: &str, by: i64) -> Result<i64, StorageError> {
        self.with(execution, |state| {
            let value = state.counters.entry(counter.to_owned()).or_default();
            *value = value.checked_add(by).ok_or_else(|| StorageError::Overflow(counter.to_owned()))?;
            Ok(*value)
        })?
    }

    fn push(&self, execution: &ExecutionId, queue: &str, item: Bytes) -> Result<(), StorageError> {
        self.with(execution, |state| state.queues.entry(queue.to_owned()).or_default().push_back(item))
    }

    fn pop(&self, execution: &ExecutionId, queue: &str) -> Result<Option<Bytes>, StorageError> {
        self.with(execution, |state| state.queues.get_mut(queue).and_then(VecDeque::pop_front))
    }

    fn end(&self, execution: &ExecutionId) -> Result<bool, StorageError> {
        // what is freed is freed after the lock: it may be gigabytes
        let ended = self.executions.write().unwrap_or_else(PoisonError::into_inner).remove(execution);
        Ok(ended.is_some())
    }

    fn expire(&self, idle: Duration) -> Result<usize, StorageError> {
        let mut expired = Vec::new();
        let mut executions = self.executions.write().unwrap_or_else(PoisonError::into_inner);
        executions.retain(|_, state| {
            // a state that is locked is in use
            let keep = state.try_lock().map_or(true, |locked| locked.touched.elapsed() < idle);
            if !keep {
                expired.push(Arc::clone(state));
            }
            keep
        });
        drop(executions);
        Ok(expired.len())
    }

    fn live(&self) -> Result<usize, StorageError> {
        Ok(self.executions.read().unwrap_or_else(PoisonError::into_inner).len())
    }

    fn shared_secret(&self, fresh: [u8; 32]) -> Result<[u8; 32], StorageError> {
        Ok(*self.secret.get_or_init(|| fresh))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::conformance;

    #[test]
    fn it_conforms() {
        conformance::check(&MemoryStorage::new());
    }
}
