//! A request on its way, and the waiting for it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};

use tokio::task::AbortHandle;
use vgi_wire::ipc::Segments;

use crate::error::{ErrorKind, Fault};
use crate::exchange::{Reply, Request, exchange};
use crate::interrupt::{Interrupt, SLICE};
use crate::runtime;

/// A request that the network threads work on. Dropping it aborts it, which closes its socket.
pub(crate) struct Flight {
    pub(crate) sent_bytes: usize,
    /// The request's body, where somebody will ask for it.
    pub(crate) request: Option<Segments>,
    receiver: Receiver<Result<Reply, Fault>>,
    task: AbortHandle,
}

impl Flight {
    pub(crate) fn start(request: Request) -> Result<Self, Fault> {
        let sent_bytes = request.body.as_ref().map_or(0, Segments::len);
        let kept = request.body.clone().filter(|_| request.keep_body);
        let io = runtime::io()?;
        let client = io.client(request.client)?;
        let (sender, receiver) = sync_channel(1);
        let task = io.spawn(async move {
            let reply = exchange(client, request).await;
            if sender.send(reply).is_err() {
                tracing::trace!("a reply came for nobody");
            }
        });
        Ok(Self { sent_bytes, request: kept, receiver, task: task.abort_handle() })
    }

    /// Waits for the reply; an interrupt ends the wait within [`SLICE`].
    pub(crate) fn wait(&self, interrupt: &dyn Interrupt) -> Result<Reply, Fault> {
        loop {
            if interrupt.interrupted() {
                return Err(Fault::new(ErrorKind::Interrupted, "interrupted"));
            }
            match self.receiver.recv_timeout(SLICE) {
                Ok(reply) => return reply,
                Err(RecvTimeoutError::Timeout) => runtime::check_process()?,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Fault::new(ErrorKind::Internal, "the network threads were stopped"));
                }
            }
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.task.is_finished()
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.task.abort();
    }
}
