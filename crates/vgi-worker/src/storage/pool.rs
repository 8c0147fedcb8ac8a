//! A few connections to a server, each used by one operation at a time.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections that a process holds at most: more do not make a server faster, and every process of a deployment has its own.
const CONNECTIONS: usize = 8;

/// Connections that rest, and how many there are in all.
pub(super) struct Pool<C> {
    state: Mutex<State<C>>,
    freed: Condvar,
}

struct State<C> {
    resting: Vec<(C, Instant)>,
    lent: usize,
}

/// The right to use one connection. It goes back to the pool with whatever connection is in it.
pub(super) struct Lease<'a, C> {
    pool: &'a Pool<C>,
    connection: Option<(C, Instant)>,
}

impl<C> Pool<C> {
    pub(super) fn new() -> Self {
        Self { state: Mutex::new(State { resting: Vec::new(), lent: 0 }), freed: Condvar::new() }
    }

    /// Every change below is a single one, so a panic elsewhere leaves nothing half done.
    fn lock(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A lease, with the connection that rested for the shortest time if there is one; `None` when all were in use all this time.
    pub(super) fn lend(&self, patience: Duration) -> Option<Lease<'_, C>> {
        let waited = self.freed.wait_timeout_while(self.lock(), patience, |state| state.lent >= CONNECTIONS);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.lent >= CONNECTIONS {
            return None;
        }
        state.lent += 1;
        let connection = state.resting.pop();
        drop(state);
        Some(Lease { pool: self, connection })
    }
}

impl<C> Lease<'_, C> {
    /// Takes the connection out, and how long it rested.
    pub(super) fn take(&mut self) -> Option<(C, Duration)> {
        self.connection.take().map(|(connection, since)| (connection, since.elapsed()))
    }

    /// Puts a connection in that others may use.
    pub(super) fn keep(&mut self, connection: C) {
        self.connection = Some((connection, Instant::now()));
    }
}

impl<C> Drop for Lease<'_, C> {
    fn drop(&mut self) {
        let mut state = self.pool.lock();
        state.lent -= 1;
        state.resting.extend(self.connection.take());
        drop(state);
        self.pool.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_come_back_and_are_never_too_many() {
        let pool = Pool::new();
        let mut leases: Vec<_> = (0..CONNECTIONS).map(|_| pool.lend(Duration::ZERO).unwrap()).collect();
        assert!(leases[0].take().is_none());
        assert!(pool.lend(Duration::from_millis(10)).is_none());
        leases[3].keep(7);
        drop(leases.remove(3));
        assert_eq!(pool.lend(Duration::ZERO).unwrap().take().unwrap().0, 7);
        // taken and not kept: it is gone, but its place is free
        assert!(pool.lend(Duration::ZERO).unwrap().take().is_none());
    }

    #[test]
    fn who_waits_is_woken() {
        let pool = Pool::new();
        let mut leases: Vec<_> = (0..CONNECTIONS).map(|_| pool.lend(Duration::ZERO).unwrap()).collect();
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| pool.lend(Duration::from_secs(30)).map(|mut lease| lease.take().unwrap().0));
            std::thread::sleep(Duration::from_millis(50));
            leases[0].keep(1);
            drop(leases.remove(0));
            assert_eq!(waiting.join().unwrap(), Some(1));
        });
    }
}
