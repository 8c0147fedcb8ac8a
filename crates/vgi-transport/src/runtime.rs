//! The threads that move bytes: one small runtime per process, made on first use.
//!
//! Nothing but I/O runs on them; encoding, decoding and decompression stay on the threads that wait. Requests are spawned and waited for
//! over channels, never with `block_on`, so a caller can be interrupted whatever the network does.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::Client;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::JoinHandle;

use crate::client::{self, ClientKey};
use crate::error::{ErrorKind, Fault};

const WORKERS: usize = 2;

/// The process that built the runtime; 0 before. Asked before any lock is taken: after a fork a lock may be held by a thread that does
/// not exist in the child.
static OWNER: AtomicU32 = AtomicU32::new(0);
static IO: Mutex<Option<Arc<Io>>> = Mutex::new(None);

/// The runtime and the clients whose connections live on it.
pub(crate) struct Io {
    handle: Handle,
    /// Taken by [`shutdown`]; callers hold only the handle, so a runtime is never dropped on its own threads.
    runtime: Mutex<Option<Runtime>>,
    clients: Mutex<Vec<(ClientKey, Client)>>,
}

impl Io {
    fn build() -> Result<Self, Fault> {
        let started = AtomicUsize::new(0);
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .max_blocking_threads(WORKERS)
            .thread_name_fn(move || format!("vgi-io-{}", started.fetch_add(1, Ordering::Relaxed)))
            .enable_io()
            .enable_time()
            .build()
            .map_err(|error| {
                Fault::new(ErrorKind::Internal, format!("the network threads cannot be started: {error}"))
            })?;
        Ok(Self { handle: runtime.handle().clone(), runtime: Mutex::new(Some(runtime)), clients: Mutex::default() })
    }

    pub(crate) fn spawn<F: Future<Output = ()> + Send + 'static>(&self, future: F) -> JoinHandle<()> {
        self.handle.spawn(future)
    }

    /// The client for such connections; they are few, and each keeps its own pool.
    pub(crate) fn client(&self, key: &ClientKey) -> Result<Client, Fault> {
        let mut clients = lock(&self.clients);
        if let Some((_, client)) = clients.iter().find(|(known, _)| known == key) {
            return Ok(client.clone());
        }
        let client = client::build(key)?;
        clients.push((key.clone(), client.clone()));
        Ok(client)
    }
}

/// A lock whose holder panicked guards plain values that are whole at any time.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Refuses to go on in a forked child, where the threads of the runtime do not exist.
pub(crate) fn check_process() -> Result<(), Fault> {
    let owner = OWNER.load(Ordering::Acquire);
    if owner == 0 || owner == std::process::id() {
        return Ok(());
    }
    let message = "this process was forked from one that had used VGI already, and network threads do not survive a fork; \
                   fork before the first VGI call, or start a new process";
    Err(Fault::new(ErrorKind::Internal, message))
}

/// The runtime, built when there is none.
pub(crate) fn io() -> Result<Arc<Io>, Fault> {
    check_process()?;
    let mut io = lock(&IO);
    if let Some(io) = &*io {
        return Ok(Arc::clone(io));
    }
    let built = Arc::new(Io::build()?);
    OWNER.store(std::process::id(), Ordering::Release);
    *io = Some(Arc::clone(&built));
    Ok(built)
}

/// Leaves all catalogs and ends the network threads, after [`drain_background`](crate::drain_background) with the same timeout. Requests that still run fail; a
/// later call starts new threads.
pub fn shutdown(timeout: Duration) {
    if check_process().is_err() {
        return;
    }
    crate::session::leave_all();
    crate::background::drain_background(timeout);
    let Some(io) = lock(&IO).take() else { return };
    lock(&io.clients).clear();
    let runtime = lock(&io.runtime).take();
    if let Some(runtime) = runtime {
        runtime.shutdown_timeout(timeout);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_child_gets_a_sentence() {
        io().unwrap();
        let here = OWNER.swap(1, Ordering::AcqRel);
        let refused = io().err();
        OWNER.store(here, Ordering::Release);
        assert!(refused.unwrap().message.contains("fork"));
        io().unwrap();
    }
}
