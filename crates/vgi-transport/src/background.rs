//! Requests that nobody waits for: cancels and destructors.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;

use crate::runtime::{self, lock};

/// How long a detached request may take.
pub(crate) const DETACHED_TIMEOUT: Duration = Duration::from_secs(5);

static RUNNING: Mutex<usize> = Mutex::new(0);
static IDLE: Condvar = Condvar::new();

/// Counts one detached task, however it ends.
struct Running;

impl Running {
    fn new() -> Self {
        *lock(&RUNNING) += 1;
        Self
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut running = lock(&RUNNING);
        *running = running.saturating_sub(1);
        if *running == 0 {
            IDLE.notify_all();
        }
    }
}

/// Runs a task that ends by itself soon; `None` when there is no runtime to run it on.
pub(crate) fn detach<F: Future<Output = ()> + Send + 'static>(future: F) -> Option<JoinHandle<()>> {
    let io = runtime::io().ok()?;
    let running = Running::new();
    Some(io.spawn(async move {
        future.await;
        drop(running);
    }))
}

/// Waits until every detached request (cancels, destructors) is done, at most `timeout`; false when some still run then.
pub fn drain_background(timeout: Duration) -> bool {
    if runtime::check_process().is_err() {
        return true;
    }
    let end = Instant::now().checked_add(timeout);
    let mut running = lock(&RUNNING);
    while *running > 0 {
        let left = end.map_or(Duration::from_secs(1), |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return false;
        }
        running = IDLE.wait_timeout(running, left).unwrap_or_else(PoisonError::into_inner).0;
    }
    true
}
