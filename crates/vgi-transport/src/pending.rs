//! A reply that is waited for later.

use std::fmt;
use std::sync::Arc;

use vgi_wire::WireError;
use vgi_wire::reply::UnaryReply;

use crate::error::{Error, Scope};
use crate::execution::Execution;
use crate::flight::Flight;
use crate::interrupt::Interrupt;

/// A request that was sent and not yet waited for. Dropping it aborts the request and closes its socket.
pub struct Pending<T> {
    pub(crate) flight: Flight,
    pub(crate) scope: Scope,
    pub(crate) read: fn(&UnaryReply) -> Result<T, WireError>,
    /// Keeps the destructor from overtaking the request.
    pub(crate) execution: Arc<Execution>,
}

impl<T> Pending<T> {
    /// Waits for the reply and decodes it on the calling thread.
    ///
    /// # Errors
    /// The server's, or why there is no reply.
    pub fn wait(self, interrupt: &dyn Interrupt) -> Result<T, Error> {
        let Self { flight, scope, read, execution } = self;
        let reply = execution.peer().reply(&scope, flight, interrupt)?;
        read(&reply).map_err(|error| scope.error(error))
    }

    /// Whether [`wait`](Self::wait) would return without blocking.
    pub fn is_finished(&self) -> bool {
        self.flight.is_finished()
    }

    /// Whether [`wait`](Self::wait) would return without blocking. If not, a network thread calls back when it would.
    ///
    /// # Errors
    /// When there are no network threads.
    pub fn finished_or_wake(&self, wake: impl FnOnce() + Send + 'static) -> Result<bool, Error> {
        self.flight.finished_or_wake(wake).map_err(|fault| self.scope.error(fault))
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending")
            .field("scope", &self.scope)
            .field("finished", &self.is_finished())
            .finish_non_exhaustive()
    }
}
