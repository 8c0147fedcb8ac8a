//! One execution of a call, shared by its sink and source threads.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use vgi_transport::{InitOptions, Interrupt};

use super::counters::Counters;
use super::plan::{CallPlan, Plan};
use super::sink::SinkThread;
use super::source::SourceThread;
use crate::bridge::ffi;
use crate::convert::Exporter;
use crate::error::{Error, ExceptionClass};
use crate::logging::ServerLog;

/// An execution: from the first chunk to the last row.
pub struct Execution {
    shared: Arc<Shared>,
}

/// How often a thread that waits for another one looks at the query's interrupt flag.
const INTERRUPT_POLL: Duration = Duration::from_millis(20);

pub(super) struct Shared {
    pub(super) plan: Arc<Plan>,
    pub(super) counters: Counters,
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
    /// Finalize streams that no source thread has taken yet.
    streams: VecDeque<Bytes>,
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
            counters: Counters::default(),
            stream_count: AtomicUsize::new(0),
            finished_streams: AtomicUsize::new(0),
            state: Mutex::default(),
            changed: Condvar::new(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Lines that the server's code logged.
    pub fn log(&self) -> &ServerLog {
        self.shared.plan.call.log()
    }

    /// State of one sink thread.
    pub fn sink_thread(&self, context: Pin<&mut ffi::ClientContext>) -> Result<SinkThread, Error> {
        let call = &self.shared.plan.call;
        let exporter = Exporter::new(context, call.inputs(), Arc::clone(call.input_schema()))?;
        Ok(SinkThread::new(Arc::clone(&self.shared), exporter))
    }

    /// After all sink threads have ended: combines. Empty input is combined too, so that a function can give its row for no rows.
    pub fn end_of_input(&self, interrupt: &dyn Interrupt) -> Result<(), Error> {
        let remote = self.shared.running(interrupt)?;
        let mut ids = std::mem::take(&mut self.shared.lock().ids);
        // stable: ids without an index keep the order of each thread
        ids.sort_by_key(|entry| entry.batch_index);
        let ids = ids.into_iter().map(|entry| entry.id).collect();
        let streams = remote.combine(ids, interrupt).map_err(|error| self.shared.fail(error.into()))?;
        self.shared.stream_count.store(streams.len(), Ordering::Relaxed);
        self.shared.lock().streams = streams.into();
        Ok(())
    }

    /// How many threads can read at once.
    pub fn max_source_threads(&self) -> usize {
        if self.shared.plan.call.order().source_order_dependent {
            return 1;
        }
        let bound = self.shared.max_workers().unwrap_or(usize::MAX);
        self.shared.lock().streams.len().min(bound).max(1)
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
    pub fn source_thread(&self) -> SourceThread {
        SourceThread::new(Arc::clone(&self.shared))
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
        let started =
            vgi_transport::Execution::start(Arc::clone(self.plan.call.bound()), self.init_options(), interrupt);
        let result = match started {
            Ok(remote) => {
                self.lock().remote = Remote::Running(Arc::clone(&remote));
                Ok(remote)
            }
            Err(error) => Err(self.fail(error.into())),
        };
        self.changed.notify_all();
        result
    }

    /// Sink and source must name the same projection.
    fn init_options(&self) -> InitOptions {
        let ids = self.plan.columns.iter().filter_map(|&column| i64::try_from(column).ok()).collect();
        InitOptions { projection_ids: self.plan.projected.then_some(ids), ..InitOptions::default() }
    }

    /// Notes an error; the first one wins and is given back.
    pub(super) fn fail(&self, error: Error) -> Error {
        let mut state = self.lock();
        let explain = |error: Error| if self.counters.any_sent() { error.and(&self.counters) } else { error };
        let first = state.failure.get_or_insert_with(|| explain(error)).clone();
        // nothing may be sent after a failure; the last thread that holds the execution destroys it
        state.remote = Remote::Finished;
        self.changed.notify_all();
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

    /// Notes that a stream was read to its end.
    pub(super) fn stream_finished(&self) {
        self.finished_streams.fetch_add(1, Ordering::Relaxed);
    }

    /// The next finalize stream, or `None` when all are taken. The execution is let go with the last one: its destructor runs as
    /// soon as the last reader is done with it.
    pub(super) fn next_stream(&self) -> Option<(Bytes, Arc<vgi_transport::Execution>)> {
        let mut state = self.lock();
        let Remote::Running(remote) = &state.remote else { return None };
        let remote = Arc::clone(remote);
        let stream = state.streams.pop_front();
        if state.streams.is_empty() {
            state.remote = Remote::Finished;
        }
        Some((stream?, remote))
    }

    fn max_workers(&self) -> Option<usize> {
        match &self.lock().remote {
            Remote::Running(remote) => remote.max_workers().and_then(|workers| usize::try_from(workers).ok()),
            _ => None,
        }
    }
}
