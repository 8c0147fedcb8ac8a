//! The end of a server: executions that it serves go on until they are done, and no new ones begin.
//!
//! A stream is many requests, and a client that is between two of them is not heard of. So the server remembers the executions that it
//! served; when it is told to stop, it asks the storage which of them still live, since another process may have ended them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::StatusCode;

use crate::ids::ExecutionId;
use crate::server::fault::Fault;
use crate::storage::Storage;

/// Executions that are looked for in the storage at once: enough to end soon, and few enough not to delay the requests.
const LOOKED_FOR: usize = 64;

/// The executions that a server has served lately, and whether it is about to stop.
#[derive(Default)]
pub(super) struct Drain {
    stopping: AtomicBool,
    served: Mutex<HashMap<ExecutionId, Instant>>,
}

impl Drain {
    /// Each change is a single call, so the map is whole even after a panic.
    fn lock(&self) -> MutexGuard<'_, HashMap<ExecutionId, Instant>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A request of this execution is being answered.
    pub(super) fn serves(&self, execution: &ExecutionId) {
        self.lock().insert(execution.clone(), Instant::now());
    }

    pub(super) fn ended(&self, execution: &ExecutionId) {
        self.lock().remove(execution);
    }

    /// Forgets executions that were not heard of for so long that they have expired.
    pub(super) fn forget(&self, idle: Duration) {
        self.lock().retain(|_, served| served.elapsed() < idle);
    }

    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Refuses what would begin an execution when the server is about to stop. Clients may send it again, to another server.
    pub(super) fn admit(&self) -> Result<(), Fault> {
        if !self.is_stopping() {
            return Ok(());
        }
        let message = "this worker is about to stop and begins no more executions; try again";
        Err(Fault::new(StatusCode::SERVICE_UNAVAILABLE, "StoppingError", message).code("UNAVAILABLE"))
    }

    /// Whether all executions that were served have ended. A part of them is looked for in the storage.
    pub(super) fn is_empty(&self, storage: &dyn Storage) -> bool {
        let some: Vec<_> = self.lock().keys().take(LOOKED_FOR).cloned().collect();
        for execution in &some {
            // where the storage fails there is nothing that could go on
            if storage.get(execution, "").is_err() {
                self.ended(execution);
            }
        }
        self.lock().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::MemoryStorage;

    #[test]
    fn it_is_empty_when_all_have_ended_here_or_elsewhere() {
        let (drain, storage) = (Drain::default(), MemoryStorage::new());
        assert!(drain.is_empty(&storage));
        let (here, elsewhere) = (ExecutionId::new("here"), ExecutionId::new("elsewhere"));
        for execution in [&here, &elsewhere] {
            storage.begin(execution).unwrap();
            drain.serves(execution);
        }
        assert!(!drain.is_empty(&storage));
        drain.ended(&here);
        assert!(!drain.is_empty(&storage));
        storage.end(&elsewhere).unwrap();
        assert!(drain.is_empty(&storage));
    }

    #[test]
    fn nothing_new_begins_at_the_end() {
        let drain = Drain::default();
        assert!(drain.admit().is_ok());
        drain.stop();
        assert_eq!(drain.admit().unwrap_err().status, 503);
    }

    #[test]
    fn what_expired_is_forgotten() {
        let drain = Drain::default();
        drain.serves(&ExecutionId::new("old"));
        drain.forget(Duration::from_secs(60));
        assert_eq!(drain.lock().len(), 1);
        drain.forget(Duration::ZERO);
        assert_eq!(drain.lock().len(), 0);
    }
}
