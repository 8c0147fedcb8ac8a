//! One execution of a call, shared by its sink and source threads.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use vgi_transport::{FinalizeStream, InitOptions, Interrupt};

use super::memory::Memory;
use super::observer::{Observer, Outcome, hex};
use super::plan::{CallPlan, Plan};
use super::sink::SinkThread;
use super::source::SourceThread;
use super::streams::Streams;
use crate::bridge::ffi;
use crate::convert::Exporter;
use crate::error::{Error, ExceptionClass};
use crate::logging::CallLog;

/// An execution: from the first chunk to the last row.
pub struct Execution {
    shared: Arc<Shared>,
}

/// How often a thread that waits for another one looks at the query's interrupt flag.
const INTERRUPT_POLL: Duration = Duration::from_millis(20);

pub(super) struct Shared {
    pub(super) plan: Arc<Plan>,
    pub(super) observer: Arc<Observer>,
    /// Requests numbered so far, where the sink counts.
    pub(super) counted: AtomicU64,
    stream_count: AtomicUsize,
    finished_streams: AtomicUsize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    remote: Remote,
    /// Ids that process calls returned, with the place of each in source order where there is one.
    ids: Vec<StateId>,
    /// The output.
    streams: Streams<FinalizeStream>,
    /// The first error of any thread; all others stop with it, so that the user sees the cause and not its echo.
    failure: Option<Error>,
}

#[derive(Default)]
enum Remote {
    /// No chunk has come yet.
    #[default]
    NotStarted,
    /// One thread is in the primary init; the others wait.
    Starting,
    Running(Arc<vgi_transport::Execution>),
    /// All output was read, or the call failed: nothing holds the execution any more.
    Finished,
}

pub(super) struct StateId {
    pub(super) batch_index: Option<i64>,
    pub(super) id: Bytes,
}

impl Execution {
    /// A new execution of a plan; the server hears of it with the first chunk.
    pub fn new(plan: &CallPlan) -> Self {
        let shared = Shared {
            plan: Arc::clone(&plan.inner),
            observer: Arc::new(Observer::new(plan.inner.call.clone())),
            counted: AtomicU64::new(0),
            stream_count: AtomicUsize::new(0),
            finished_streams: AtomicUsize::new(0),
            state: Mutex::default(),
            changed: Condvar::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Lines for DuckDB's log.
    pub fn log(&self) -> &CallLog {
        self.shared.plan.call.log()
    }

    /// What is seen of it from outside.
    pub fn observer(&self) -> &Arc<Observer> {
        &self.shared.observer
    }

    /// State of one sink thread.
    pub fn sink_thread(&self, mut context: Pin<&mut ffi::ClientContext>) -> Result<SinkThread, Error> {
        let call = &self.shared.plan.call;
        let memory = Memory::new(context.as_mut())?;
        let exporter = Exporter::new(context, call.inputs(), Arc::clone(call.input_schema()))?;
        Ok(SinkThread::new(Arc::clone(&self.shared), exporter, memory))
    }

    /// After all sink threads have ended: combines. Empty input is combined too, so that a function can give its row for no rows.
    pub fn end_of_input(&self, interrupt: &dyn Interrupt) -> Result<(), Error> {
        let remote = self.shared.running(interrupt)?;
        let mut ids = std::mem::take(&mut self.shared.lock().ids);
        // stable: ids without an index keep the order of each thread
        ids.sort_by_key(|entry| entry.batch_index);
        let ids = ids.into_iter().map(|entry| entry.id).collect();
        self.shared.combine(&remote, ids, interrupt).map_err(|error| self.shared.fail(error))
    }

    /// Lines for EXPLAIN ANALYZE.
    pub fn counted(&self) -> Vec<(&'static str, String)> {
        self.shared.observer.counters.report()
    }

    /// How many threads can read at once.
    pub fn max_source_threads(&self) -> usize {
        self.shared.lock().streams.width().max(1)
    }

    /// How many finalize streams there are.
    pub fn stream_count(&self) -> usize {
        self.shared.stream_count.load(Ordering::Relaxed)
    }

    /// How many of them are read to their end.
    pub fn finished_streams(&self) -> usize {
        self.shared.finished_streams.load(Ordering::Relaxed)
    }

    /// State of one source thread.
    pub fn source_thread(&self, context: Pin<&mut ffi::ClientContext>) -> Result<SourceThread, Error> {
        Ok(SourceThread::new(Arc::clone(&self.shared), Memory::new(context)?))
    }

    /// Which part of the rows sent the server has accepted.
    pub fn accepted_share(&self) -> f64 {
        self.shared.observer.counters.accepted_share()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // every update under this lock is a single assignment, so a panic elsewhere leaves the state whole
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server's side of the execution; the first thread to ask makes it, and the others wait for that one.
    pub(super) fn running(&self, interrupt: &dyn Interrupt) -> Result<Arc<vgi_transport::Execution>, Error> {
        let mut state = self.lock();
        loop {
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            match &state.remote {
                Remote::Running(remote) => return Ok(Arc::clone(remote)),
                Remote::Finished => return Err(Error::new(ExceptionClass::Io, "the execution has ended")),
                Remote::NotStarted => break,
                Remote::Starting => {}
            }
            if interrupt.interrupted() {
                return Err(Error::new(ExceptionClass::Interrupt, "the query was interrupted"));
            }
            state = self.changed.wait_timeout(state, INTERRUPT_POLL).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.remote = Remote::Starting;
        drop(state);
        let bound = Arc::clone(self.plan.call.bound());
        let started =
            self.init_options().and_then(|options| Ok(vgi_transport::Execution::start(bound, options, interrupt)?));
        let result = match started {
            Ok(remote) => {
                self.started(&remote);
                self.lock().remote = Remote::Running(Arc::clone(&remote));
                Ok(remote)
            }
            Err(error) => Err(self.fail(error)),
        };
        self.changed.notify_all();
        result
    }

    /// Sink and source must name the same projection and filters.
    fn init_options(&self) -> Result<InitOptions, Error> {
        let ids = self.plan.columns.iter().filter_map(|&column| i64::try_from(column).ok()).collect();
        Ok(InitOptions {
            projection_ids: self.plan.projected.then_some(ids),
            pushdown_filters: self.plan.call.filters().encode()?,
            events: Some(Arc::clone(&self.observer) as _),
        })
    }

    fn started(&self, remote: &vgi_transport::Execution) {
        self.observer.identified(remote.id().clone());
        self.observer.log().event("table_buffering.init", |details| {
            details
                .add("conn", next_connection())
                .add("function_name", self.plan.call.function_name())
                .add("execution_id", hex(remote.id()))
                .add(
                    "projected_columns",
                    if self.plan.projected { self.plan.columns.len().to_string() } else { "all".to_owned() },
                );
        });
    }

    fn combine(
        &self,
        remote: &vgi_transport::Execution,
        ids: Vec<Bytes>,
        interrupt: &dyn Interrupt,
    ) -> Result<(), Error> {
        let function = self.plan.call.function_name();
        self.observer.log().event("table_buffering.combine", |details| {
            details.add("function_name", function).add("num_state_ids", ids.len());
        });
        let streams = self.observer.counters.waiting.time(|| remote.combine(ids, interrupt))?;
        self.observer.log().event("table_buffering.combine_result", |details| {
            details.add("function_name", function).add("num_finalize_state_ids", streams.len());
        });
        self.stream_count.store(streams.len(), Ordering::Relaxed);
        let workers = remote.max_workers().and_then(|workers| usize::try_from(workers).ok());
        let bound = self.plan.read_ahead.min(workers.unwrap_or(usize::MAX));
        let ordered = self.plan.call.order().source_order_dependent;
        self.lock().streams = Streams::new(streams, bound, ordered);
        self.let_go_when_done();
        Ok(())
    }

    /// Notes an error; the first one wins and is given back.
    pub(super) fn fail(&self, error: Error) -> Error {
        let counters = &self.observer.counters;
        let mut state = self.lock();
        let explain = |error: Error| if counters.any_sent() { error.and(counters) } else { error };
        let first = state.failure.get_or_insert_with(|| explain(error)).clone();
        // nothing may be sent after a failure; the last thread that holds the execution destroys it
        state.remote = Remote::Finished;
        let streams = std::mem::take(&mut state.streams);
        self.changed.notify_all();
        drop(state);
        drop(streams);
        self.observer.ended(match first.class() {
            ExceptionClass::Interrupt => Outcome::Stopped,
            _ => Outcome::Failed(first.to_string()),
        });
        first
    }

    /// The error of another thread, if there is one.
    pub(super) fn failure(&self) -> Option<Error> {
        self.lock().failure.clone()
    }

    /// Takes over the ids of a sink thread.
    pub(super) fn add_state_ids(&self, ids: Vec<StateId>) {
        self.lock().ids.extend(ids);
    }

    /// A finalize stream to read a batch from, in exchange for the one that was read before; `None` when this thread is not needed any
    /// more.
    pub(super) fn next_stream(&self, before: Option<FinalizeStream>) -> Result<Option<FinalizeStream>, Error> {
        let mut state = self.lock();
        if let Some(stream) = before {
            state.streams.put_back(stream);
        }
        let State { remote, streams, .. } = &mut *state;
        let Remote::Running(execution) = &*remote else { return Ok(None) };
        streams.take(|id| self.open_stream(execution, id), FinalizeStream::is_ready)
    }

    fn open_stream(&self, remote: &Arc<vgi_transport::Execution>, id: Bytes) -> Result<FinalizeStream, Error> {
        self.observer.log().event("table_buffering.finalize_init", |details| {
            details
                .add("conn", next_connection())
                .add("function_name", self.plan.call.function_name())
                .add("finalize_state_id", hex(&id));
        });
        Ok(remote.open_stream(id)?)
    }

    /// Notes that a stream was read to its end.
    pub(super) fn stream_ended(&self) {
        self.finished_streams.fetch_add(1, Ordering::Relaxed);
        self.lock().streams.ended();
        self.let_go_when_done();
    }

    fn let_go_when_done(&self) {
        let mut state = self.lock();
        if state.streams.is_done() {
            state.remote = Remote::Finished;
            self.observer.ended(Outcome::Finished);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.observer.ended(Outcome::Stopped);
    }
}

/// A number for what the log calls a connection: a sink thread or an output stream, not a socket.
pub(super) fn next_connection() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
