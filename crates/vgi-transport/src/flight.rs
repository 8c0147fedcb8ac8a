//! A request on its way, and the waiting for it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};

use tokio::sync::watch;
use tokio::task::AbortHandle;
use vgi_wire::ipc::Segments;

use crate::error::{ErrorKind, Fault};
use crate::exchange::{Reply, Request, exchange};
use crate::interrupt::{Interrupt, SLICE};
use crate::runtime;

/// A request that the network threads work on. Dropping it aborts it, which closes its socket.
pub(crate) struct Flight {
    /// Bytes of the request's body, as made and as sent.
    pub(crate) sent_bytes: usize,
    pub(crate) wire_bytes: usize,
    /// To be sent when the server does not read the coding of this one.
    pub(crate) plain: Option<Box<Request>>,
    /// The request's body, where somebody will ask for it.
    pub(crate) request: Option<Segments>,
    receiver: Receiver<Result<Reply, Fault>>,
    /// Closed when the reply is there, or cannot come any more.
    over: watch::Receiver<()>,
    task: AbortHandle,
}

impl Flight {
    pub(crate) fn start(mut request: Request) -> Result<Self, Fault> {
        let wire_bytes = request.body.as_ref().map_or(0, Segments::len);
        let plain = request.plain.take();
        let uploaded = request.upload.as_ref().map(|upload| &upload.object);
        let made = plain.as_ref().map_or(&request, |plain| plain).body.as_ref().or(uploaded);
        let sent_bytes = made.map_or(0, Segments::len);
        let kept = made.filter(|_| request.keep_body).cloned();
        let io = runtime::io()?;
        let client = io.client(&request.client)?;
        let (sender, receiver) = sync_channel(1);
        let (running, over) = watch::channel(());
        let task = io.spawn(async move {
            let reply = exchange(client, request).await;
            if sender.send(reply).is_err() {
                tracing::trace!("a reply came for nobody");
            }
            drop(running);
        });
        Ok(Self { sent_bytes, wire_bytes, plain, request: kept, receiver, over, task: task.abort_handle() })
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
        self.over.has_changed().is_err()
    }

    /// Whether [`wait`](Self::wait) would return at once. If not, a network thread calls back when it would.
    pub(crate) fn finished_or_wake(&self, wake: impl FnOnce() + Send + 'static) -> Result<bool, Fault> {
        if self.is_finished() {
            return Ok(true);
        }
        let mut over = self.over.clone();
        let watching = runtime::io()?.spawn(async move {
            // only ever closed
            over.changed().await.ok();
            wake();
        });
        drop(watching);
        Ok(false)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.task.abort();
    }
}
