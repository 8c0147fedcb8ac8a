//! The server's side of one of DuckDB's transactions. It begins when a function of the catalog is first bound in it, since most
//! transactions never touch the catalog.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use vgi_transport::{Attachment, Options, Transaction};

use crate::bridge::{QueryInterrupt, ffi};
use crate::error::Error;
use crate::settings;

/// What a transaction of DuckDB's holds for one attached catalog.
#[derive(Default)]
pub struct CatalogTransaction {
    begun: Mutex<Option<Transaction>>,
}

impl CatalogTransaction {
    /// What requests of this transaction repeat; begins it when it has not begun. One thread binds at a time, so no lock is held while the
    /// server is asked.
    pub fn handle(&self, context: &ffi::ClientContext, attachment: &Arc<Attachment>) -> Result<Option<Bytes>, Error> {
        if let Some(transaction) = &*self.begun.lock().unwrap_or_else(PoisonError::into_inner) {
            return Ok(transaction.handle());
        }
        // the transaction outlives the query, and must not keep its log alive
        let options = Options { events: None, ..settings::transport_options(context)? };
        let interrupt = QueryInterrupt(context);
        let transaction = attachment.with_options(&options, &interrupt)?.begin_transaction(&interrupt)?;
        let handle = transaction.handle();
        *self.begun.lock().unwrap_or_else(PoisonError::into_inner) = Some(transaction);
        Ok(handle)
    }

    /// Whether the server knows of it.
    pub fn has_begun(&self) -> bool {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.as_ref().is_some_and(|transaction| transaction.handle().is_some())
    }

    /// Gives up what has begun, so that it can begin anew.
    pub fn forget(&self) {
        drop(self.begun.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Commits what has begun. What is dropped without it is rolled back.
    pub fn commit_begun(&self, context: &ffi::ClientContext) -> Result<(), Error> {
        let begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner).take();
        begun.map_or(Ok(()), |transaction| Ok(transaction.commit(&QueryInterrupt(context))?))
    }
}
