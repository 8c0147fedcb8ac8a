//! Transactions of a catalog that has them.

use bytes::Bytes;

use crate::args::FromArgument;
use crate::error::Result;
use crate::given::Given;
use crate::log::{LogLevel, Logger};

/// What a catalog does when its clients begin and end transactions. Every request may reach another process.
///
/// The worker makes an id for each transaction, which nobody can guess; the calls in it find it in
/// [`Context::transaction`](crate::Context::transaction). The client holds it sealed for its principal, so that nobody else can use it, with
/// the secret of the storage: a transaction that shall outlive the worker needs a storage that does. A client that disappears ends nothing:
/// a transaction needs an expiry of its own.
pub trait Transactions: Send + Sync + 'static {
    /// A transaction begins.
    ///
    /// # Errors
    /// To refuse it.
    fn begin(&self, transaction: &TransactionContext<'_>) -> Result<()>;

    /// What was done in the transaction shall last.
    ///
    /// # Errors
    /// When it cannot, or when there is no such transaction; nothing of it may last then.
    fn commit(&self, transaction: &TransactionContext<'_>) -> Result<()>;

    /// What was done in the transaction shall be as if it had not been. It may be asked for twice.
    ///
    /// # Errors
    /// When that fails.
    fn rollback(&self, transaction: &TransactionContext<'_>) -> Result<()>;
}

/// A transaction, and whose it is.
pub struct TransactionContext<'a> {
    pub(crate) id: &'a Bytes,
    pub(crate) principal: &'a str,
    pub(crate) given: &'a Given,
    pub(crate) logger: &'a Logger,
}

impl TransactionContext<'_> {
    /// The transaction's id.
    #[must_use]
    pub fn id(&self) -> &Bytes {
        self.id
    }

    /// Whose transaction it is; empty when the worker asks nobody for a token.
    #[must_use]
    pub fn principal(&self) -> &str {
        self.principal
    }

    /// What tells the attachment from others.
    #[must_use]
    pub fn attachment(&self) -> Option<&Bytes> {
        self.given.attachment.as_ref()
    }

    /// An option that ATTACH was given, or its default.
    ///
    /// # Errors
    /// When it is of another type.
    pub fn attach_option<T: FromArgument>(&self, name: &str) -> Result<Option<T>> {
        self.given.option(name)
    }

    /// Writes a log line that the client gets with the reply.
    pub fn log(&self, level: LogLevel, message: impl Into<String>) {
        self.logger.write(level, message);
    }
}
