//! Where a call's state lives between its requests.
//!
//! Any request of an execution may reach any process that serves the function, so nothing that a later request needs may live in the
//! function itself. What `process` keeps and `finalize` reads goes through [`Storage`], scoped by the execution; a back end decides
//! whether that is this process's memory or something that several processes share. Operations may block, so the server calls them on
//! threads that may.

mod backend;
#[cfg(test)]
mod conformance;
mod held;
mod memory;
mod pool;
mod postgres;
mod postgres_session;
mod postgres_sql;
mod redis;
mod redis_scripts;
mod scratch;
mod server_url;
mod spill;
mod sqlite;

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use bytes::Bytes;
use vgi_wire::ipc;

pub use self::redis::RedisStorage;
pub use backend::Backend;
pub use memory::MemoryStorage;
pub use postgres::PostgresStorage;
pub use scratch::Scratch;
pub use server_url::ServerUrl;
pub use sqlite::SqliteStorage;

use crate::error::{Error, Result};
use crate::ids::ExecutionId;

/// Why a storage operation fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The execution was never begun, was destroyed, or has expired.
    #[error("unknown execution_id {0} (init never ran or destructor already fired)")]
    UnknownExecution(ExecutionId),
    /// A counter would leave the range of 64 bits.
    #[error("the counter '{0}' would overflow")]
    Overflow(String),
    /// The server that keeps the state cannot be reached.
    #[error(
        "the storage at {server} cannot be reached: {reason}; is the server running there, and may this machine connect to it?"
    )]
    Unreachable {
        /// Where it is, without credentials.
        server: String,
        /// What went wrong.
        reason: String,
    },
    /// The server that keeps the state does not let this worker in.
    #[error(
        "the storage at {server} refuses this worker: {reason}; check the user, the password and the database of its URL"
    )]
    Refused {
        /// Where it is, without credentials.
        server: String,
        /// What it says.
        reason: String,
    },
    /// The connection to the server that keeps the state broke, so nobody knows whether the operation was done.
    #[error("the connection to the storage at {server} broke: {reason}; start the call again, which connects anew")]
    Lost {
        /// Where it is, without credentials.
        server: String,
        /// What went wrong.
        reason: String,
    },
    /// The back end fails.
    #[error("the storage failed: {0}")]
    Backend(String),
}

impl StorageError {
    pub(crate) fn exception_type(&self) -> &'static str {
        match self {
            Self::UnknownExecution(_) => "UnknownExecutionError",
            Self::Unreachable { .. } | Self::Refused { .. } | Self::Lost { .. } => "StorageUnavailableError",
            Self::Overflow(_) | Self::Backend(_) => "StorageError",
        }
    }
}

/// A back end. Every operation is atomic, may be called by many threads at once, and fails with [`StorageError::UnknownExecution`] for
/// an execution that is not live. Implementations hold no lock while a function's code runs.
pub trait Storage: Send + Sync + 'static {
    /// Makes an execution live.
    ///
    /// # Errors
    /// When the back end fails.
    fn begin(&self, execution: &ExecutionId) -> Result<(), StorageError>;

    /// Sets the value of a key.
    ///
    /// # Errors
    /// When the execution is not live or the back end fails.
    fn put(&self, execution: &ExecutionId, key: &str, value: Bytes) -> Result<(), StorageError>;

    /// The value of a key.
    ///
    /// # Errors
    /// As [`Storage::put`].
    fn get(&self, execution: &ExecutionId, key: &str) -> Result<Option<Bytes>, StorageError>;

    /// Removes a key; whether it was there.
    ///
    /// # Errors
    /// As [`Storage::put`].
    fn delete(&self, execution: &ExecutionId, key: &str) -> Result<bool, StorageError>;

    /// Adds an entry at the end of a log and returns its position: 0, 1, 2 … in the order of the appends.
    ///
    /// # Errors
    /// As [`Storage::put`].
    fn append(&self, execution: &ExecutionId, log: &str, entry: Bytes) -> Result<u64, StorageError>;

    /// At most `limit` entries of a log, from a position on. A log that nothing was appended to is empty.
    ///
    /// # Errors
    /// As [`Storage::put`].
    fn scan(&self, execution: &ExecutionId, log: &str, from: u64, limit: usize) -> Result<Vec<Bytes>, StorageError>;

    /// Adds to a counter, which starts at zero, and returns what it is then.
    ///
    /// # Errors
    /// As [`Storage::put`], and when the sum does not fit.
    fn count(&self, execution: &ExecutionId, counter: &str, by: i64) -> Result<i64, StorageError>;

    /// Adds an item at the end of a work queue.
    ///
    /// # Errors
    /// As [`Storage::put`].
    fn push(&self, execution: &ExecutionId, queue: &str, item: Bytes) -> Result<(), StorageError>;

    /// Takes the first item of a work queue; each item is given to one caller only. A queue that nothing was pushed to is empty.
    ///
    /// # Errors
    /// As [`Storage::put`].
    fn pop(&self, execution: &ExecutionId, queue: &str) -> Result<Option<Bytes>, StorageError>;

    /// Ends an execution and frees all that it kept; whether it was live.
    ///
    /// # Errors
    /// When the back end fails.
    fn end(&self, execution: &ExecutionId) -> Result<bool, StorageError>;

    /// Ends all executions that no request touched for this long; how many.
    ///
    /// # Errors
    /// When the back end fails.
    fn expire(&self, idle: Duration) -> Result<usize, StorageError>;

    /// How many executions are live.
    ///
    /// # Errors
    /// When the back end fails.
    fn live(&self) -> Result<usize, StorageError>;

    /// The secret that all processes on this storage share: the one that was kept first, which is this one if there was none. Tokens
    /// are sealed with it, so that any of the processes can go on with a stream.
    ///
    /// # Errors
    /// When the back end fails.
    fn shared_secret(&self, fresh: [u8; 32]) -> Result<[u8; 32], StorageError>;
}

/// The storage of one execution, as functions see it. Keys that begin with a zero byte are the kit's own.
#[derive(Clone)]
pub struct Store {
    storage: Arc<dyn Storage>,
    execution: ExecutionId,
}

impl Store {
    pub(crate) fn new(storage: Arc<dyn Storage>, execution: ExecutionId) -> Self {
        Self { storage, execution }
    }

    /// The execution.
    #[must_use]
    pub fn execution(&self) -> &ExecutionId {
        &self.execution
    }

    /// Sets the value of a key.
    ///
    /// # Errors
    /// When the execution is gone or the storage fails; so do all others.
    pub fn put(&self, key: &str, value: impl Into<Bytes>) -> Result<()> {
        Ok(self.storage.put(&self.execution, key, value.into())?)
    }

    /// The value of a key.
    ///
    /// # Errors
    /// As [`Store::put`].
    pub fn get(&self, key: &str) -> Result<Option<Bytes>> {
        Ok(self.storage.get(&self.execution, key)?)
    }

    /// The value of a key that an earlier step wrote.
    ///
    /// # Errors
    /// As [`Store::put`], and when it is not there.
    pub fn require(&self, key: &str) -> Result<Bytes> {
        self.get(key)?
            .ok_or_else(|| Error::Protocol(format!("the step that writes '{key}' has not run for {}", self.execution)))
    }

    /// Removes a key; whether it was there.
    ///
    /// # Errors
    /// As [`Store::put`].
    pub fn delete(&self, key: &str) -> Result<bool> {
        Ok(self.storage.delete(&self.execution, key)?)
    }

    /// Adds an entry to a log and returns its position.
    ///
    /// # Errors
    /// As [`Store::put`].
    pub fn append(&self, log: &str, entry: impl Into<Bytes>) -> Result<u64> {
        Ok(self.storage.append(&self.execution, log, entry.into())?)
    }

    /// At most `limit` entries of a log, from a position on.
    ///
    /// # Errors
    /// As [`Store::put`].
    pub fn scan(&self, log: &str, from: u64, limit: usize) -> Result<Vec<Bytes>> {
        Ok(self.storage.scan(&self.execution, log, from, limit)?)
    }

    /// Adds to a counter, which starts at zero, and returns what it is then.
    ///
    /// # Errors
    /// As [`Store::put`], and when the sum does not fit.
    pub fn count(&self, counter: &str, by: i64) -> Result<i64> {
        Ok(self.storage.count(&self.execution, counter, by)?)
    }

    /// Adds an item at the end of a work queue.
    ///
    /// # Errors
    /// As [`Store::put`].
    pub fn push(&self, queue: &str, item: impl Into<Bytes>) -> Result<()> {
        Ok(self.storage.push(&self.execution, queue, item.into())?)
    }

    /// Takes the first item of a work queue; each item is given to one caller only.
    ///
    /// # Errors
    /// As [`Store::put`].
    pub fn pop(&self, queue: &str) -> Result<Option<Bytes>> {
        Ok(self.storage.pop(&self.execution, queue)?)
    }

    /// One entry of a log, if it is there.
    ///
    /// # Errors
    /// As [`Store::put`].
    pub fn entry(&self, log: &str, position: u64) -> Result<Option<Bytes>> {
        Ok(self.scan(log, position, 1)?.into_iter().next())
    }

    /// Appends a batch to a log.
    ///
    /// # Errors
    /// As [`Store::put`], and when it cannot be encoded.
    pub fn append_batch(&self, log: &str, batch: &RecordBatch) -> Result<u64> {
        self.append(log, ipc::encode_stream(batch, &[])?.to_bytes())
    }

    /// Sets the value of a key to a batch.
    ///
    /// # Errors
    /// As [`Store::put`], and when it cannot be encoded.
    pub fn put_batch(&self, key: &str, batch: &RecordBatch) -> Result<()> {
        self.put(key, ipc::encode_stream(batch, &[])?.to_bytes())
    }

    /// The batch that an earlier step put at a key.
    ///
    /// # Errors
    /// As [`Store::require`], and when it is not a batch.
    pub fn require_batch(&self, key: &str) -> Result<RecordBatch> {
        Ok(ipc::decode_batch(self.require(key)?)?)
    }

    /// A batch of a log.
    ///
    /// # Errors
    /// As [`Store::put`], and when it is not there or not a batch.
    pub fn batch(&self, log: &str, position: u64) -> Result<RecordBatch> {
        let missing = || Error::Protocol(format!("'{log}' of {} has no entry {position}", self.execution));
        Ok(ipc::decode_batch(self.entry(log, position)?.ok_or_else(missing)?)?)
    }
}
