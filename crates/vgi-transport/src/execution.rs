//! One execution of a bound function on the server.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock};

use bytes::Bytes;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use vgi_wire::WireError;
use vgi_wire::generation::Dialect;
use vgi_wire::ipc::Segments;
use vgi_wire::methods::{
    self, CombineReply, CombineRequest, ExecutionRef, InitHeader, InitRequest, Method, ProcessReply, ProcessTemplate,
    request_body,
};
use vgi_wire::reply::{self, InitReply};

use crate::attachment::Bound;
use crate::background::{self, DETACHED_TIMEOUT};
use crate::error::{Error, Fault, Phase, Scope};
use crate::exchange::{Request, exchange};
use crate::flight::Flight;
use crate::interrupt::Interrupt;
use crate::options::EventSink;
use crate::peer::Peer;
use crate::pending::Pending;
use crate::retry::Repeat;
use crate::runtime::{self, lock};
use crate::session::InUse;
use crate::stream::FinalizeStream;

/// What is wanted of the output; the same for every stream of an execution.
#[derive(Clone, Default)]
pub struct InitOptions {
    /// Positions of the wanted columns; `None` for all.
    pub projection_ids: Option<Vec<i64>>,
    /// Filters in the protocol's encoding.
    pub pushdown_filters: Option<Bytes>,
    /// Hears of this execution, in the place of the attachment's listener.
    pub events: Option<Arc<dyn EventSink>>,
}

impl fmt::Debug for InitOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InitOptions")
            .field("projection_ids", &self.projection_ids)
            .field("pushdown_filters", &self.pushdown_filters)
            .finish_non_exhaustive()
    }
}

/// An execution that the server keeps state for. Dropping it frees that state: the destructor is sent exactly once, in the background,
/// after the cancels of its streams, and its outcome is ignored.
pub struct Execution {
    bound: Arc<Bound>,
    peer: Peer,
    options: InitOptions,
    header: InitHeader,
    /// Cancels under way; the destructor must not overtake them.
    cancels: Mutex<Vec<JoinHandle<()>>>,
    /// What the requests of all chunks have in common.
    process_template: OnceLock<ProcessTemplate>,
    in_use: Option<InUse>,
}

impl Execution {
    /// Starts an execution: the primary init. When the server has lost the attachment since the bind, it is attached anew and the function
    /// bound again, once; it must be the same as before.
    ///
    /// # Errors
    /// The server's refusal, or why it cannot be asked; [`ErrorKind::Changed`](crate::ErrorKind::Changed) when the function is not the one
    /// that was bound.
    pub fn start(bound: Arc<Bound>, options: InitOptions, interrupt: &dyn Interrupt) -> Result<Arc<Self>, Error> {
        let bound = bound.latest();
        match Self::start_once(Arc::clone(&bound), options.clone(), interrupt) {
            Err(error) if error.is_outdated() => Self::start_once(bound.again(&error, interrupt)?, options, interrupt),
            other => other,
        }
    }

    fn start_once(bound: Arc<Bound>, options: InitOptions, interrupt: &dyn Interrupt) -> Result<Arc<Self>, Error> {
        let peer = &bound.attachment.peer;
        let peer = options.events.as_ref().map_or_else(|| peer.clone(), |events| peer.with_events(Arc::clone(events)));
        let scope = peer.scope(Phase::Init).for_function(bound.function_name.as_str());
        let request = init_request(&bound, &options);
        let flight = start_init(&peer, bound.attachment.dialect(), &scope, &request)?;
        let body = peer.body(&scope, flight, interrupt)?;
        let in_use = Some(InUse::new(&bound.attachment.session));
        let hold = |header| Self {
            header,
            in_use,
            bound,
            peer: peer.clone(),
            options,
            cancels: Mutex::default(),
            process_template: OnceLock::new(),
        };
        let reply = match read_opening(&peer, &scope, body.clone(), interrupt) {
            Ok(reply) => reply,
            Err(error) => {
                // dropping it frees what the server may hold
                drop(reply::find_header(body).map(hold));
                return Err(error);
            }
        };
        // from here on the server holds an execution, so whatever happens next must drop one
        let execution = Arc::new(hold(reply.header));
        // some servers hand out tokens here, which continue nothing
        match reply.turn {
            Some(turn) => {
                execution.peer.log(&scope, &turn.logs);
                turn.error.map_or(Ok(execution), |error| Err(scope.error(Fault::remote(error))))
            }
            None => Ok(execution),
        }
    }

    /// The id that the server gave.
    pub fn id(&self) -> &Bytes {
        &self.header.execution_id
    }

    /// How many requests of this execution the server wants in flight at most; `None` for no bound.
    pub fn max_workers(&self) -> Option<i64> {
        self.header.max_workers
    }

    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    fn dialect(&self) -> &Dialect {
        self.bound.attachment.dialect()
    }

    fn scope(&self, phase: Phase) -> Scope {
        self.peer().scope(phase).for_function(self.bound.function_name.as_str())
    }

    fn attach_data(&self) -> Bytes {
        self.bound.attachment.opaque_data()
    }

    /// What every request after the primary init repeats.
    fn execution_ref(&self) -> ExecutionRef {
        ExecutionRef {
            function_name: self.bound.function_name.clone(),
            execution_id: self.header.execution_id.clone(),
            attach_opaque_data: Some(self.attach_data()),
            transaction_id: self.bound.transaction.clone(),
            schema_path: self.bound.schema_path.clone(),
        }
    }

    fn process_template(&self) -> Result<&ProcessTemplate, WireError> {
        if let Some(template) = self.process_template.get() {
            return Ok(template);
        }
        let template = ProcessTemplate::new(self.dialect(), &self.execution_ref())?;
        Ok(self.process_template.get_or_init(|| template))
    }

    /// Sends a chunk of the input, an IPC stream with exactly one batch, without waiting for the reply. A failed request is never repeated:
    /// the server may have seen it.
    ///
    /// # Errors
    /// When the request cannot be made or is larger than the server allows.
    pub fn process(
        self: &Arc<Self>,
        input: Segments,
        batch_index: Option<i64>,
    ) -> Result<Pending<ProcessReply>, Error> {
        let scope = self.scope(Phase::Process);
        let body = self.process_template().and_then(|template| template.body(input, batch_index));
        let body = body.map_err(|error| scope.error(error))?;
        let flight = self.peer().submit(self.dialect(), Method::Process, body, Repeat::Unsent);
        let flight = flight.map_err(|fault| scope.error(fault))?;
        Ok(Pending { flight, scope, read: ProcessReply::from_reply, execution: Arc::clone(self) })
    }

    /// Ends the input; gives the ids of the output streams, in the server's order.
    ///
    /// # Errors
    /// The server's, or why there is no reply.
    pub fn combine(&self, state_ids: Vec<Bytes>, interrupt: &dyn Interrupt) -> Result<Vec<Bytes>, Error> {
        let scope = self.scope(Phase::Combine);
        let request = CombineRequest { execution: self.execution_ref(), state_ids };
        let dialect = self.dialect();
        let body = request.to_blob(dialect).and_then(|blob| request_body(dialect, Method::Combine, blob));
        let body = body.map_err(|error| scope.error(error))?;
        let flight = self.peer().submit(dialect, Method::Combine, body, Repeat::Unsent);
        let flight = flight.map_err(|fault| scope.error(fault))?;
        let reply = self.peer().reply(&scope, flight, interrupt)?;
        CombineReply::from_reply(&reply).map(|reply| reply.finalize_state_ids).map_err(|error| scope.error(error))
    }

    /// Opens one stream of the output, without waiting for it: what goes wrong is the stream's first result.
    ///
    /// # Errors
    /// When the request cannot be made.
    pub fn open_stream(self: &Arc<Self>, finalize_state_id: Bytes) -> Result<FinalizeStream, Error> {
        let scope = self.scope(Phase::Finalize);
        let request = InitRequest {
            phase: methods::Phase::TableBufferingFinalize,
            execution_id: Some(self.header.execution_id.clone()),
            finalize_state_id: Some(finalize_state_id),
            init_opaque_data: self.header.opaque_data.clone(),
            ..init_request(&self.bound, &self.options)
        };
        let flight = start_init(self.peer(), self.dialect(), &scope, &request)?;
        Ok(FinalizeStream::new(Arc::clone(self), scope, self.dialect().exchange_path(), flight))
    }

    /// Runs a cancel in the background, before the destructor.
    pub(crate) fn cancel(&self, request: Request) {
        if let Some(task) = background::detach(best_effort(request)) {
            lock(&self.cancels).push(task);
        }
    }

    fn destructor(&self) -> Result<Request, Fault> {
        let request = self.execution_ref();
        let dialect = self.dialect();
        let body = request_body(dialect, Method::Destructor, request.to_blob(dialect)?)?;
        self.peer().post(&dialect.path(Method::Destructor), body, Repeat::Refused)
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        let cancels = std::mem::take(&mut *lock(&self.cancels));
        let Ok(request) = self.destructor() else { return };
        let in_use = self.in_use.take();
        let task = background::detach(async move {
            for cancel in cancels {
                if cancel.await.is_err() {
                    tracing::debug!("a cancel did not finish");
                }
            }
            best_effort(request).await;
            // the server may hear of a detach after the destructor
            drop(in_use);
        });
        drop(task);
    }
}

impl fmt::Debug for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution")
            .field("function", &self.bound.function_name)
            .field("id", &self.header.execution_id)
            .finish_non_exhaustive()
    }
}

/// Sends a request whose outcome changes nothing.
pub(crate) async fn best_effort(request: Request) {
    let outcome = async {
        let client = runtime::io()?.client(&request.client)?;
        exchange(client, request).await
    };
    match timeout(DETACHED_TIMEOUT, outcome).await {
        Ok(Ok(reply)) => tracing::trace!(status = reply.status.as_u16(), "detached request answered"),
        Ok(Err(fault)) => tracing::debug!(fault = fault.message, "detached request failed"),
        Err(_) => tracing::debug!("detached request given up"),
    }
}

fn init_request(bound: &Bound, options: &InitOptions) -> InitRequest {
    InitRequest {
        bind_call: bound.bind_call.clone(),
        output_schema: bound.reply.output_schema_bytes.clone(),
        bind_opaque_data: bound.reply.opaque_data.clone(),
        projection_ids: options.projection_ids.clone(),
        pushdown_filters: options.pushdown_filters.clone(),
        phase: methods::Phase::TableBuffering,
        execution_id: None,
        finalize_state_id: None,
        init_opaque_data: None,
    }
}

fn start_init(peer: &Peer, dialect: &Dialect, scope: &Scope, request: &InitRequest) -> Result<Flight, Error> {
    let body = request.to_blob(dialect).and_then(|blob| request_body(dialect, Method::Init, blob));
    let body = body.map_err(|error| scope.error(error))?;
    peer.submit(dialect, Method::Init, body, Repeat::Unsent).map_err(|fault| scope.error(fault))
}

/// Waits for the reply of an init and hands its log lines on.
pub(crate) fn opening(
    peer: &Peer,
    scope: &Scope,
    flight: Flight,
    interrupt: &dyn Interrupt,
) -> Result<InitReply, Error> {
    let body = peer.body(scope, flight, interrupt)?;
    read_opening(peer, scope, body, interrupt)
}

fn read_opening(peer: &Peer, scope: &Scope, body: Bytes, interrupt: &dyn Interrupt) -> Result<InitReply, Error> {
    let streams = peer.streams(scope, body, interrupt)?;
    let reply = reply::opening(streams).map_err(|failure| peer.failed(scope, failure))?;
    peer.log(scope, &reply.logs);
    Ok(reply)
}
