//! The back end in this process's memory: for one process, and for tests.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::ids::ExecutionId;
use crate::storage::{Storage, StorageError};

/// Keeps everything in memory. Executions do not wait for each other, except while one begins or ends.
#[derive(Default)]
pub struct MemoryStorage {
    executions: RwLock<HashMap<ExecutionId, Arc<Mutex<State>>>>,
}

struct State {
    touched: Instant,
    values: HashMap<String, Bytes>,
    logs: HashMap<String, Vec<Bytes>>,
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
        let state = State { touched: Instant::now(), values: HashMap::new(), logs: HashMap::new() };
        let mut executions = self.executions.write().unwrap_or_else(PoisonError::into_inner);
        executions.entry(execution.clone()).or_insert_with(|| Arc::new(Mutex::new(state)));
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
}

#[cfg(test)]
mod tests {
    use super::*;

    fn execution(name: &'static str) -> ExecutionId {
        ExecutionId::new(name)
    }

    #[test]
    fn values_and_logs_are_scoped_by_execution() {
        let storage = MemoryStorage::new();
        let (one, two) = (execution("one"), execution("two"));
        storage.begin(&one).unwrap();
        storage.begin(&two).unwrap();
        storage.put(&one, "k", Bytes::from_static(b"1")).unwrap();
        assert_eq!(storage.get(&one, "k").unwrap().unwrap(), "1");
        assert_eq!(storage.get(&two, "k").unwrap(), None);
        assert!(storage.delete(&one, "k").unwrap());
        assert!(!storage.delete(&one, "k").unwrap());

        for (position, entry) in ["a", "b", "c"].into_iter().enumerate() {
            assert_eq!(storage.append(&one, "log", Bytes::from(entry)).unwrap(), position as u64);
        }
        assert_eq!(storage.scan(&one, "log", 1, 10).unwrap(), ["b", "c"]);
        assert_eq!(storage.scan(&one, "log", 0, 2).unwrap(), ["a", "b"]);
        assert!(storage.scan(&one, "log", u64::MAX, 1).unwrap().is_empty());
        assert!(storage.scan(&two, "log", 0, 10).unwrap().is_empty());
    }

    #[test]
    fn an_ended_or_unknown_execution_is_refused_by_name() {
        let storage = MemoryStorage::new();
        let id = ExecutionId::from(vec![0xab, 0x01]);
        let message = "unknown execution_id ab01 (init never ran or destructor already fired)";
        assert_eq!(storage.get(&id, "k").unwrap_err().to_string(), message);
        storage.begin(&id).unwrap();
        assert!(storage.end(&id).unwrap());
        assert!(!storage.end(&id).unwrap());
        assert_eq!(storage.append(&id, "log", Bytes::new()).unwrap_err().to_string(), message);
        assert_eq!(storage.live().unwrap(), 0);
    }

    #[test]
    fn only_idle_executions_expire() {
        let storage = MemoryStorage::new();
        storage.begin(&execution("idle")).unwrap();
        storage.begin(&execution("busy")).unwrap();
        std::thread::sleep(Duration::from_millis(60));
        storage.get(&execution("busy"), "k").unwrap();
        assert_eq!(storage.expire(Duration::from_millis(50)).unwrap(), 1);
        assert!(storage.get(&execution("idle"), "k").is_err());
        assert!(storage.get(&execution("busy"), "k").is_ok());
    }

    #[test]
    fn concurrent_appends_all_get_a_position_of_their_own() {
        let storage = MemoryStorage::new();
        let id = execution("many");
        storage.begin(&id).unwrap();
        let mut positions: Vec<u64> = std::thread::scope(|scope| {
            let append =
                || (0..500).map(|_| storage.append(&id, "log", Bytes::from_static(b"x")).unwrap()).collect::<Vec<_>>();
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(append)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        positions.sort_unstable();
        assert_eq!(positions, (0..4000).collect::<Vec<u64>>());
    }
}
