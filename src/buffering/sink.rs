//! One thread of the sink: collects chunks, sends them, and keeps a window of requests in flight.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::RecordBatch;
use bytes::Bytes;
use vgi_transport::{Interrupt, Pending};
use vgi_wire::methods::ProcessReply;

use super::execution::{Shared, StateId, next_connection};
use super::memory::Memory;
use super::merging::Merging;
use super::numbering::{Numbering, Place};
use super::observer::hex;
use super::ordering::SinkMode;
use super::splitting::{self, Piece};
use crate::bridge::{Waker, ffi};
use crate::convert::Exporter;
use crate::error::{Error, ExceptionClass};
use crate::logging::CallLog;

/// HTTP's word for a request that is larger than the server takes.
const TOO_LARGE: u16 = 413;

/// State of one sink thread. No other thread touches it, and no lock is held around a request.
pub struct SinkThread {
    shared: Arc<Shared>,
    /// What the log knows this thread by.
    connection: u64,
    exporter: Exporter,
    merging: Merging,
    memory: Memory,
    /// Chunks in the exporter.
    chunks: usize,
    numbering: Numbering,
    /// Sent, not yet answered; oldest first.
    in_flight: VecDeque<InFlight>,
    state_ids: Vec<StateId>,
    /// Bytes that the server accepts in one request, as far as it is known.
    request_limit: Option<usize>,
}

/// A request that is not answered yet.
struct InFlight {
    sent: Sent,
    pending: Pending<ProcessReply>,
}

/// What a request carries, in case that the server finds it too large.
struct Sent {
    place: Place,
    batch: RecordBatch,
    bytes: usize,
}

impl SinkThread {
    /// Lines for DuckDB's log.
    pub fn log(&self) -> &CallLog {
        self.shared.plan.call.log()
    }

    pub(super) fn new(shared: Arc<Shared>, exporter: Exporter, memory: Memory) -> Self {
        Self {
            merging: Merging::new(shared.plan.batch_bytes, shared.plan.expected_rows),
            connection: next_connection(),
            exporter,
            memory,
            chunks: 0,
            numbering: Numbering::default(),
            in_flight: VecDeque::new(),
            state_ids: Vec::new(),
            request_limit: shared.plan.request_limit,
            shared,
        }
    }

    /// Takes a chunk; sends when the request is full. Blocks while the window is.
    pub fn push(
        &mut self,
        chunk: &ffi::DataChunk,
        batch_index: Option<u64>,
        interrupt: &dyn Interrupt,
    ) -> Result<(), Error> {
        if let Some(failure) = self.shared.failure() {
            return Err(failure);
        }
        self.enter_batch(batch_index, interrupt)?;
        let rows = ffi::chunk_rows(chunk);
        let weight = self.exporter.weigh(chunk).map_err(|error| self.shared.fail(error))?;
        if self.merging.has_no_room(self.exporter.bytes(), weight) {
            self.send(interrupt)?;
        }
        let step = self.merging.rows_at_once(rows, weight);
        for first in (0..rows).step_by(step) {
            let encoding = &self.shared.observer.counters.encoding;
            let appended = encoding.time(|| self.exporter.append(chunk, first, step.min(rows - first)));
            appended.map_err(|error| self.shared.fail(error))?;
            self.chunks += 1;
            self.claim(interrupt).map_err(|error| self.shared.fail(error))?;
            let sent = self.shared.observer.counters.sent.batches();
            if self.merging.is_full(sent, self.chunks, self.exporter.bytes()) {
                self.send(interrupt)?;
            }
        }
        Ok(())
    }

    /// Whether [`push`](Self::push) would take the chunk without waiting for a window that is full. If it would not, DuckDB is woken when
    /// it may be asked again. A guess that is wrong costs a wait, as without it.
    pub fn can_push(&mut self, chunk: &ffi::DataChunk, task: &ffi::InterruptState) -> Result<bool, Error> {
        if !self.shared.plan.releases_threads || self.in_flight.len() < self.shared.plan.window {
            return Ok(true);
        }
        // what cannot be weighed is refused by push
        let Ok(weight) = self.exporter.weigh(chunk) else { return Ok(true) };
        let bytes = self.exporter.bytes().saturating_add(weight);
        let fills = self.merging.is_full(self.shared.observer.counters.sent.batches(), self.chunks + 1, bytes);
        if fills { self.oldest_is_there(task) } else { Ok(true) }
    }

    /// Whether [`end`](Self::end) would not have to wait, as in [`can_push`](Self::can_push).
    pub fn can_end(&mut self, interrupt: &dyn Interrupt, task: &ffi::InterruptState) -> Result<bool, Error> {
        if !self.shared.plan.releases_threads {
            return Ok(true);
        }
        self.send(interrupt)?;
        while self.oldest_is_there(task)? {
            if self.in_flight.is_empty() {
                return Ok(true);
            }
            self.await_oldest(interrupt).map_err(|error| self.shared.fail(error))?;
        }
        Ok(false)
    }

    /// Whether the oldest request is answered, if there is one. DuckDB is woken when it is.
    fn oldest_is_there(&self, task: &ffi::InterruptState) -> Result<bool, Error> {
        let Some(request) = self.in_flight.front().filter(|_| self.shared.failure().is_none()) else { return Ok(true) };
        let waker = Waker::new(task);
        Ok(request.pending.finished_or_wake(|| waker.wake())?)
    }

    /// Counts what this thread holds. A limit that is reached is first met by waiting for requests on their way.
    fn claim(&mut self, interrupt: &dyn Interrupt) -> Result<(), Error> {
        loop {
            let in_flight: usize = self.in_flight.iter().map(|request| request.sent.bytes).sum();
            match self.memory.hold(self.exporter.bytes().saturating_add(in_flight)) {
                Err(error) if self.in_flight.is_empty() => return Err(error),
                Err(_) => self.await_oldest(interrupt)?,
                Ok(()) => return Ok(()),
            }
        }
    }

    /// A request never spans two of DuckDB's batches: it has one index.
    fn enter_batch(&mut self, batch_index: Option<u64>, interrupt: &dyn Interrupt) -> Result<(), Error> {
        if self.shared.plan.mode != SinkMode::Indexed {
            return Ok(());
        }
        let missing = || Error::new(ExceptionClass::Io, "DuckDB gave no batch index although its source has them");
        let batch = batch_index.ok_or_else(|| self.shared.fail(missing()))?;
        if batch != self.numbering.batch {
            self.send(interrupt)?;
            self.numbering = Numbering::of(batch);
        }
        Ok(())
    }

    /// Sends what the exporter holds.
    fn send(&mut self, interrupt: &dyn Interrupt) -> Result<(), Error> {
        if self.exporter.rows() == 0 {
            return Ok(());
        }
        let result = self.try_send(interrupt);
        result.map_err(|error| self.shared.fail(error))
    }

    fn try_send(&mut self, interrupt: &dyn Interrupt) -> Result<(), Error> {
        let limit = self.request_limit;
        let encoding = &self.shared.observer.counters.encoding;
        let pieces = encoding.time(|| splitting::encode(&self.exporter.take()?, limit))?;
        self.chunks = 0;
        for piece in pieces {
            while self.in_flight.len() >= self.shared.plan.window {
                self.await_oldest(interrupt)?;
            }
            let place = self.numbering.next(self.shared.plan.mode, &self.shared.counted)?;
            let request = self.request(piece, place, interrupt)?;
            self.in_flight.push_back(request);
        }
        Ok(())
    }

    fn request(&self, piece: Piece, place: Place, interrupt: &dyn Interrupt) -> Result<InFlight, Error> {
        let Piece { batch, payload } = piece;
        let bytes = payload.len();
        let pending = self.shared.running(interrupt)?.process(payload, place.index)?;
        self.shared.observer.counters.sent.add(batch.num_rows());
        Ok(InFlight { sent: Sent { place, batch, bytes }, pending })
    }

    fn await_oldest(&mut self, interrupt: &dyn Interrupt) -> Result<(), Error> {
        self.in_flight.pop_front().map_or(Ok(()), |request| self.settle(request, interrupt))
    }

    /// Waits for the answer of a request.
    fn settle(&mut self, request: InFlight, interrupt: &dyn Interrupt) -> Result<(), Error> {
        let InFlight { sent, pending } = request;
        match self.shared.observer.counters.waiting.time(|| pending.wait(interrupt)) {
            Ok(reply) => {
                self.accepted(sent.place.index, sent.batch.num_rows(), reply.state_id);
                Ok(())
            }
            Err(error) if error.status() == Some(TOO_LARGE) => self.resend(&sent, interrupt),
            Err(error) => Err(error.into()),
        }
    }

    /// A server that refuses a request as too large without having announced a limit has not looked at it, so its rows go again in
    /// smaller requests, one after the other.
    fn resend(&mut self, sent: &Sent, interrupt: &dyn Interrupt) -> Result<(), Error> {
        let limit = splitting::limit_after(sent.bytes);
        self.request_limit = Some(self.request_limit.map_or(limit, |known| known.min(limit)));
        let pieces = splitting::encode(&sent.batch, self.request_limit)?;
        let places = sent.place.divide(pieces.len());
        let count = pieces.len();
        for (number, piece) in pieces.into_iter().enumerate() {
            let place = match &places {
                Some(places) => places.get(number).copied().ok_or_else(|| no_place(count))?,
                // nothing else is under way, so counting goes on; not ahead of a piece that may have to be divided itself
                None if self.shared.plan.mode == SinkMode::Counted => self.counted_on(number, sent.place)?,
                None => return Err(no_place(count)),
            };
            let request = self.request(piece, place, interrupt)?;
            self.settle(request, interrupt)?;
        }
        Ok(())
    }

    fn counted_on(&mut self, number: usize, first: Place) -> Result<Place, Error> {
        if number == 0 { Ok(first) } else { self.numbering.next(self.shared.plan.mode, &self.shared.counted) }
    }

    fn accepted(&mut self, batch_index: Option<i64>, rows: usize, id: Bytes) {
        let observer = &self.shared.observer;
        observer.counters.accepted.add(rows);
        observer.log().event("table_buffering.process", |details| {
            details
                .add("conn", self.connection)
                .add("function_name", self.shared.plan.call.function_name())
                .add("state_id", hex(&id))
                .add("input_rows", rows);
            if let Some(index) = batch_index {
                details.add("batch_index", index);
            }
        });
        self.state_ids.push(StateId { batch_index, id });
    }

    /// The end of this thread's input: sends the rest and waits for every answer.
    pub fn end(&mut self, interrupt: &dyn Interrupt) -> Result<(), Error> {
        self.send(interrupt)?;
        while !self.in_flight.is_empty() {
            self.await_oldest(interrupt).map_err(|error| self.shared.fail(error))?;
        }
        self.memory.hold(0)?;
        self.shared.add_state_ids(std::mem::take(&mut self.state_ids));
        Ok(())
    }
}

fn no_place(pieces: usize) -> Error {
    let text = format!(
        "the server takes requests so small only that one of DuckDB's batches would need {pieces} in the place of one"
    );
    Error::new(ExceptionClass::InvalidInput, text)
}
