//! A transaction of an attached catalog.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use vgi_wire::methods::{Method, begin_body, begun, end_body};

use crate::attachment::Attachment;
use crate::background;
use crate::error::{Error, Phase};
use crate::execution::best_effort;
use crate::interrupt::Interrupt;
use crate::retry::Repeat;

/// A transaction that was begun; rolled back when it is dropped without a commit.
pub struct Transaction {
    attachment: Arc<Attachment>,
    /// `None` when the catalog keeps nothing for it.
    handle: Option<Bytes>,
}

impl Attachment {
    /// Begins a transaction, where the catalog has them.
    ///
    /// # Errors
    /// The server's refusal, or why it cannot be asked.
    pub fn begin_transaction(self: &Arc<Self>, interrupt: &dyn Interrupt) -> Result<Transaction, Error> {
        let attachment = Arc::clone(self);
        if !self.reply().supports_transactions {
            return Ok(Transaction { attachment, handle: None });
        }
        let scope = self.peer.scope(Phase::Transaction);
        let dialect = self.dialect();
        let body = begin_body(dialect, &self.opaque_data()).map_err(|error| scope.error(error))?;
        let reply = self.peer.call(&scope, &dialect.path(Method::TransactionBegin), body, interrupt)?;
        let handle = begun(&reply).map_err(|error| scope.error(error))?;
        Ok(Transaction { attachment, handle })
    }
}

impl Transaction {
    /// What every request in the transaction repeats.
    pub fn handle(&self) -> Option<Bytes> {
        self.handle.clone()
    }

    /// Commits.
    ///
    /// # Errors
    /// The server's refusal, or why it cannot be asked. Whether the server has committed is then not known.
    pub fn commit(mut self, interrupt: &dyn Interrupt) -> Result<(), Error> {
        let Some(handle) = self.handle.take() else { return Ok(()) };
        let Attachment { peer, .. } = &*self.attachment;
        let scope = peer.scope(Phase::Transaction);
        let dialect = self.attachment.dialect();
        let method = Method::TransactionCommit;
        let body = end_body(dialect, method, &self.attachment.opaque_data(), &handle);
        let body = body.map_err(|error| scope.error(error))?;
        let flight = peer.start(&dialect.path(method), body, Repeat::Unsent).map_err(|fault| scope.error(fault))?;
        peer.reply(&scope, flight, interrupt).map(drop)
    }

    /// Nobody waits for the answer: there is nothing that could be done about it.
    fn roll_back(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        let dialect = self.attachment.dialect();
        let method = Method::TransactionRollback;
        let Ok(body) = end_body(dialect, method, &self.attachment.opaque_data(), &handle) else { return };
        let Ok(request) = self.attachment.peer.post(&dialect.path(method), body, Repeat::Unsent) else { return };
        drop(background::detach(best_effort(request)));
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        self.roll_back();
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("begun", &self.handle.is_some()).finish_non_exhaustive()
    }
}
