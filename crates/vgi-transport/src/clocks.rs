//! Deadlines of one request. Each has its own sentence, so a user knows which setting to change.

use std::time::Duration;

use tokio::time::{sleep_until, timeout};

use crate::body::{Progress, Stage};
use crate::error::{ErrorKind, Fault};
use crate::options::Options;

/// The clocks that a request runs under.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    pub(crate) connect: Duration,
    pub(crate) first_byte: Duration,
    pub(crate) no_progress: Duration,
    pub(crate) total: Option<Duration>,
}

impl From<&Options> for Clocks {
    fn from(options: &Options) -> Self {
        Self {
            connect: options.connect_timeout,
            first_byte: options.first_byte_timeout,
            no_progress: options.no_progress_timeout,
            total: options.total_timeout,
        }
    }
}

fn ran_out(message: String) -> Fault {
    Fault::new(ErrorKind::Timeout, message)
}

impl Clocks {
    pub(crate) fn no_connection(&self) -> Fault {
        ran_out(format!("no connection within {:?} (connect timeout)", self.connect))
    }

    fn no_reply(&self) -> Fault {
        ran_out(format!("no reply within {:?} (first-byte timeout)", self.first_byte))
    }

    fn no_progress(&self, what: &str) -> Fault {
        ran_out(format!("the {what} stood still for {:?} (no-progress timeout)", self.no_progress))
    }

    /// Runs a whole exchange under the total clock.
    pub(crate) async fn whole<T>(&self, exchange: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let Some(total) = self.total else { return exchange.await };
        timeout(total, exchange)
            .await
            .unwrap_or_else(|_| Err(ran_out(format!("not finished within {total:?} (total timeout)"))))
    }

    /// Waits for the head of the reply while the request is on its way.
    pub(crate) async fn head<T>(&self, progress: &Progress, send: impl Future<Output = T>) -> Result<T, Fault> {
        tokio::pin!(send);
        // what has no body to watch may still be connecting; the client has a clock of its own for that, which must be the one to ring
        let unwatched = progress.get().0 == Stage::Sent;
        loop {
            let (stage, since) = progress.get();
            let patience = if stage == Stage::Sent { self.first_byte } else { self.no_progress };
            let connecting = if stage == Stage::Waiting || unwatched { self.connect } else { Duration::ZERO };
            let Some(deadline) = patience.checked_add(connecting).and_then(|wait| since.checked_add(wait)) else {
                return Ok(send.await);
            };
            tokio::select! {
                biased;
                head = &mut send => return Ok(head),
                () = progress.staged() => {}
                () = sleep_until(deadline) => {
                    if progress.get() == (stage, since) {
                        return Err(if stage == Stage::Sent { self.no_reply() } else { self.no_progress("upload") });
                    }
                }
            }
        }
    }

    /// Waits for the next piece of the reply.
    pub(crate) async fn piece<T>(&self, next: impl Future<Output = T>) -> Result<T, Fault> {
        timeout(self.no_progress, next).await.map_err(|_| self.no_progress("reply"))
    }
}
