//! One stream of an execution's output.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use vgi_wire::methods::{cancel_body, turn_body};
use vgi_wire::reply::{self, Tokens, Turn};

use crate::error::{Error, ErrorKind, Fault, Scope};
use crate::execution::{Execution, opening};
use crate::flight::Flight;
use crate::interrupt::Interrupt;
use crate::retry::Repeat;

/// Batches of a stream, fetched as they are asked for: while one turn is consumed the next one is on its way, never more. Dropping it
/// before its end cancels it in the background.
pub struct FinalizeStream {
    execution: Arc<Execution>,
    scope: Scope,
    exchange_path: String,
    ready: VecDeque<RecordBatch>,
    /// Of the turn that is on its way.
    tokens: Option<Tokens>,
    flight: Option<(Stage, Flight)>,
    /// Waited for since the last rows. A server may answer any number of turns without rows, but not for ever.
    fruitless: Duration,
    /// Stays: a stream that failed never looks like one that ended.
    failure: Option<Error>,
}

/// What the reply on its way answers.
#[derive(Clone, Copy)]
enum Stage {
    /// The init, which brings the first turn.
    Opening,
    Turn,
}

impl FinalizeStream {
    pub(crate) fn new(execution: Arc<Execution>, scope: Scope, exchange_path: String, opening: Flight) -> Self {
        let flight = Some((Stage::Opening, opening));
        Self {
            execution,
            scope,
            exchange_path,
            ready: VecDeque::new(),
            tokens: None,
            flight,
            fruitless: Duration::ZERO,
            failure: None,
        }
    }

    /// Whether [`next`](Self::next) would return without waiting for the server.
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty() || self.flight.as_ref().is_none_or(|(_, flight)| flight.is_finished())
    }

    /// Whether [`next`](Self::next) would return without waiting for the reply that is on its way. If not, a network thread calls back when
    /// it would.
    ///
    /// # Errors
    /// When there are no network threads.
    pub fn ready_or_wake(&self, wake: impl FnOnce() + Send + 'static) -> Result<bool, Error> {
        match self.flight.as_ref().filter(|_| self.ready.is_empty()) {
            Some((_, flight)) => flight.finished_or_wake(wake).map_err(|fault| self.scope.error(fault)),
            None => Ok(true),
        }
    }

    /// Batches that came in the same reply as the last one and are still to be given.
    pub fn rest(&self) -> impl Iterator<Item = &RecordBatch> {
        self.ready.iter()
    }

    /// The next batch with rows; `None` at the end.
    ///
    /// # Errors
    /// The server's, after the good batches before it, or why there is no reply. It is final: asked again, the stream repeats it.
    pub fn next(&mut self, interrupt: &dyn Interrupt) -> Result<Option<RecordBatch>, Error> {
        loop {
            if let Some(batch) = self.ready.pop_front() {
                return Ok(Some(batch));
            }
            if let Some(failure) = &self.failure {
                return Err(failure.clone());
            }
            let Some((stage, flight)) = self.flight.take() else { return Ok(None) };
            let start = Instant::now();
            match self.turn(stage, flight, interrupt) {
                Ok(Some(turn)) => self.judge(turn, start.elapsed()),
                Ok(None) => {}
                Err(failure) => self.fail(failure),
            }
        }
    }

    fn turn(&self, stage: Stage, flight: Flight, interrupt: &dyn Interrupt) -> Result<Option<Turn>, Error> {
        let peer = self.execution.peer();
        if let Stage::Opening = stage {
            return opening(peer, &self.scope, flight, interrupt).map(|reply| reply.turn);
        }
        let body = peer.body(&self.scope, flight, interrupt)?;
        let streams = peer.streams(&self.scope, body, interrupt)?;
        reply::turn(streams).map(Some).map_err(|failure| peer.failed(&self.scope, failure))
    }

    /// Takes a turn, unless the stream only seems to go on.
    fn judge(&mut self, turn: Turn, waited: Duration) {
        self.fruitless = if turn.batches.is_empty() { self.fruitless.saturating_add(waited) } else { Duration::ZERO };
        let before = self.tokens.as_ref().map(|tokens| tokens.cursor.clone());
        // an equal cursor makes the server repeat the turn
        let stuck = turn.cursor.is_some() && turn.cursor == before;
        let silent = turn.batches.is_empty() && turn.logs.is_empty();
        self.accept(turn);
        if self.failure.is_none() && self.tokens.is_some() {
            let patience = self.execution.peer().options.first_byte_timeout;
            if stuck && silent {
                let message = "the server answers a turn without rows with the token of that turn";
                self.fail(self.scope.error(Fault::new(ErrorKind::Protocol, message)));
            } else if self.fruitless > patience {
                let message = format!("only turns without rows for {patience:?} (first-byte timeout)");
                self.fail(self.scope.error(Fault::new(ErrorKind::Timeout, message)));
            }
        }
    }

    /// Takes what a turn brought and asks for the next one.
    fn accept(&mut self, turn: Turn) {
        self.execution.peer().log(&self.scope, &turn.logs);
        self.ready.extend(turn.batches);
        let call = turn.call.or_else(|| self.tokens.take().and_then(|tokens| tokens.call));
        self.tokens = turn.cursor.map(|cursor| Tokens { cursor, call });
        if let Some(error) = turn.error {
            self.fail(self.scope.error(Fault::remote(error)));
        } else if let Some(tokens) = &self.tokens {
            let started = turn_body(tokens)
                .map_err(Fault::from)
                .and_then(|body| self.execution.peer().start(&self.exchange_path, body, Repeat::Lost));
            match started {
                Ok(flight) => self.flight = Some((Stage::Turn, flight)),
                Err(fault) => self.fail(self.scope.error(fault)),
            }
        }
    }

    fn fail(&mut self, failure: Error) {
        if failure.kind() == ErrorKind::Remote {
            // the server has ended it
            self.tokens = None;
        }
        self.failure = Some(failure);
    }
}

impl Drop for FinalizeStream {
    fn drop(&mut self) {
        drop(self.flight.take());
        let Some(tokens) = self.tokens.take() else { return };
        let request = cancel_body(&tokens)
            .map_err(Fault::from)
            .and_then(|body| self.execution.peer().post(&self.exchange_path, body, Repeat::Unsent));
        if let Ok(request) = request {
            self.execution.cancel(request);
        }
    }
}

impl fmt::Debug for FinalizeStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FinalizeStream")
            .field("execution", &self.execution)
            .field("ready", &self.ready.len())
            .field("failure", &self.failure)
            .finish_non_exhaustive()
    }
}
