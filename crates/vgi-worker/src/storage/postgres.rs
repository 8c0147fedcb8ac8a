//! The back end in a PostgreSQL database, version 15 or newer: for processes on many machines.
//!
//! Callers block, as they do with every back end; the bytes are moved by a thread of the storage's own, so it can be called from
//! anywhere, and no operation waits for ever.

use std::sync::mpsc;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Runtime;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::FromSqlOwned;
use tokio_postgres::{Config, Error, Row};

use crate::ids::ExecutionId;
use crate::storage::pool::Pool;
use crate::storage::postgres_session::{Session, Value};
use crate::storage::{ServerUrl, Storage, StorageError, postgres_sql as sql};

const CONNECT: Duration = Duration::from_secs(5);
/// How long an operation may take, the way of a large value included.
const ANSWER: Duration = Duration::from_secs(60);
/// How long to wait for a connection that others use.
const PATIENCE: Duration = Duration::from_secs(30);
/// A connection that rested for longer may have been closed unnoticed, so the server is asked for a sign of life first.
const RESTED: Duration = Duration::from_secs(5);
/// PostgreSQL takes no larger values; the rest of the message needs some room too.
const LARGEST: usize = (1 << 30) - (64 << 10);

/// Keeps everything in a schema `vgi_worker` of a PostgreSQL database, which processes of several machines may share.
pub struct PostgresStorage {
    /// There until this is dropped.
    runtime: Option<Runtime>,
    config: Config,
    url: ServerUrl,
    pool: Pool<Session>,
}

/// What became of an operation.
enum Done {
    /// The connection is good, whatever the answer is.
    Answered(Box<Session>, Result<Vec<Row>, Error>),
    Broken(Error),
    Unconnected(Error),
    Unanswered,
}

impl Drop for PostgresStorage {
    fn drop(&mut self) {
        // an ordinary end waits, which is forbidden where this may be dropped
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl PostgresStorage {
    /// The storage in this database. Its tables are made if they are not there.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses the connection, or the tables cannot be made.
    pub fn open(url: &ServerUrl) -> Result<Self, StorageError> {
        let failed = |error: &dyn std::fmt::Display| StorageError::Backend(format!("{url}: {error}"));
        let mut config: Config = url.reveal().parse().map_err(|_| failed(&"the URL is not valid"))?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_application_name().is_none() {
            config.application_name("vgi-worker");
        }
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("vgi-worker-pg")
            .enable_all()
            .build()
            .map_err(|error| failed(&error))?;
        let storage = Self { runtime: Some(runtime), config, url: url.clone(), pool: Pool::new() };
        storage.live()?;
        Ok(storage)
    }

    /// Runs a statement on a connection of the pool, or a new one. One that breaks is thrown away, so the next operation connects again.
    fn ask(&self, sql: &'static str, values: Vec<Value>) -> Result<Result<Vec<Row>, Error>, StorageError> {
        let stopped = || StorageError::Backend(format!("{}: the storage has been closed", self.url));
        let mut lease = self.pool.lend(PATIENCE).ok_or_else(|| {
            StorageError::Backend(format!("{}: all connections were in use for {} s", self.url, PATIENCE.as_secs()))
        })?;
        let (sender, receiver) = mpsc::sync_channel(1);
        let work = attend(self.config.clone(), lease.take(), sql, values);
        self.runtime.as_ref().ok_or_else(stopped)?.spawn(async move {
            let done = tokio::time::timeout(ANSWER, work).await.unwrap_or(Done::Unanswered);
            // the receiver waits for nothing else
            sender.send(done).ok();
        });
        match receiver.recv().map_err(|_| stopped())? {
            Done::Answered(session, answer) => {
                lease.keep(*session);
                Ok(answer)
            }
            Done::Broken(error) => Err(StorageError::Lost { server: self.url.to_string(), reason: told(&error) }),
            Done::Unconnected(error) => Err(self.unconnected(&error)),
            Done::Unanswered => {
                let reason = format!("it did not answer within {} s", ANSWER.as_secs());
                Err(StorageError::Lost { server: self.url.to_string(), reason })
            }
        }
    }

    fn unconnected(&self, error: &Error) -> StorageError {
        let server = self.url.to_string();
        let refused = |reason: String| StorageError::Refused { server: server.clone(), reason };
        match error.code() {
            // the server's own words name the user
            Some(&SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => {
                refused("it does not let in this user with this password".to_owned())
            }
            Some(&SqlState::CANNOT_CONNECT_NOW) => StorageError::Unreachable { server, reason: told(error) },
            None if has_io(error) => StorageError::Unreachable { server, reason: told(error) },
            _ => refused(told(error)),
        }
    }

    fn failed(&self, error: &Error) -> StorageError {
        StorageError::Backend(format!("{}: {}", self.url, told(error)))
    }

    /// Runs a statement on an execution, which answers with at least one row if the execution is live. The first column of it asks to
    /// note that it lives.
    fn on(&self, execution: &ExecutionId, sql: &'static str, values: Vec<Value>) -> Result<Vec<Row>, StorageError> {
        let gone = || StorageError::UnknownExecution(execution.clone());
        if let Some(length) = values.iter().filter_map(Value::length).find(|length| *length >= LARGEST) {
            let message = format!("{}: a value of {length} bytes is too large (PostgreSQL takes {LARGEST})", self.url);
            return Err(StorageError::Backend(message));
        }
        let id = Value::Bytes(execution.as_bytes().clone());
        let values = [vec![id.clone()], values].concat();
        let rows = self.ask(sql, values)?.map_err(|error| match error.code() {
            // it ended between two steps of the statement
            Some(&SqlState::FOREIGN_KEY_VIOLATION) => gone(),
            _ => self.failed(&error),
        })?;
        if self.column::<bool>(rows.first().ok_or_else(gone)?, 0)? {
            self.ask(sql::TOUCH, vec![id])?.map_err(|error| self.failed(&error))?;
        }
        Ok(rows)
    }

    /// Runs a statement that is of no execution, or begins or ends one.
    fn plain(&self, sql: &'static str, values: Vec<Value>) -> Result<Vec<Row>, StorageError> {
        self.ask(sql, values)?.map_err(|error| self.failed(&error))
    }

    fn column<T: FromSqlOwned>(&self, row: &Row, place: usize) -> Result<T, StorageError> {
        row.try_get(place).map_err(|error| self.failed(&error))
    }

    fn number<T: TryFrom<i64>>(&self, number: i64) -> Result<T, StorageError> {
        T::try_from(number).map_err(|_| StorageError::Backend(format!("{}: {number} is no count", self.url)))
    }

    /// A column of the first row.
    fn first<T: FromSqlOwned>(&self, rows: &[Row], place: usize) -> Result<T, StorageError> {
        let row = rows.first().ok_or_else(|| StorageError::Backend(format!("{}: a row is missing", self.url)))?;
        self.column(row, place)
    }
}

async fn attend(config: Config, resting: Option<(Session, Duration)>, sql: &'static str, values: Vec<Value>) -> Done {
    let usable = match resting {
        Some((session, rested)) if session.is_usable(rested, RESTED).await => Some(session),
        _ => None,
    };
    let mut session = match usable {
        Some(session) => session,
        None => match Session::connect(config).await {
            Ok(session) => session,
            Err(error) => return Done::Unconnected(error),
        },
    };
    match session.run(sql, &values).await {
        Ok(rows) => Done::Answered(Box::new(session), Ok(rows)),
        Err(error) if is_broken(&error) => Done::Broken(error),
        Err(error) => Done::Answered(Box::new(session), Err(error)),
    }
}

/// Whether a connection with this error is of no more use. The server ends connections when it stops, and one that was made to a server
/// which has become a copy of another leads nowhere.
fn is_broken(error: &Error) -> bool {
    const ENDING: [SqlState; 4] = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::READ_ONLY_SQL_TRANSACTION,
    ];
    error.code().is_none_or(|code| ENDING.contains(code))
}

fn sources(error: &Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error as &(dyn std::error::Error + 'static)), |error| error.source())
}

fn has_io(error: &Error) -> bool {
    sources(error).any(<dyn std::error::Error>::is::<std::io::Error>)
}

/// What the innermost error says.
fn told(error: &Error) -> String {
    if let Some(error) = error.as_db_error() {
        return error.message().to_owned();
    }
    sources(error).last().unwrap_or(error).to_string()
}

fn bytes(text: &str) -> Value {
    Value::Bytes(Bytes::copy_from_slice(text.as_bytes()))
}

impl Storage for PostgresStorage {
    fn begin(&self, execution: &ExecutionId) -> Result<(), StorageError> {
        self.plain(sql::BEGIN, vec![Value::Bytes(execution.as_bytes().clone())])?;
        Ok(())
    }

    fn put(&self, execution: &ExecutionId, key: &str, value: Bytes) -> Result<(), StorageError> {
        self.on(execution, sql::PUT, vec![bytes(key), Value::Bytes(value)])?;
        Ok(())
    }

    fn get(&self, execution: &ExecutionId, key: &str) -> Result<Option<Bytes>, StorageError> {
        let rows = self.on(execution, sql::GET, vec![bytes(key)])?;
        Ok(self.first::<Option<Vec<u8>>>(&rows, 1)?.map(Bytes::from))
    }

    fn delete(&self, execution: &ExecutionId, key: &str) -> Result<bool, StorageError> {
        let rows = self.on(execution, sql::DELETE, vec![bytes(key)])?;
        Ok(self.first::<i64>(&rows, 1)? > 0)
    }

    fn append(&self, execution: &ExecutionId, log: &str, entry: Bytes) -> Result<u64, StorageError> {
        let rows = self.on(execution, sql::APPEND, vec![bytes(log), Value::Bytes(entry)])?;
        self.number(self.first(&rows, 1)?)
    }

    fn scan(&self, execution: &ExecutionId, log: &str, from: u64, limit: usize) -> Result<Vec<Bytes>, StorageError> {
        let from = i64::try_from(from).unwrap_or(i64::MAX);
        let to = from.saturating_add(i64::try_from(limit).unwrap_or(i64::MAX));
        let rows = self.on(execution, sql::SCAN, vec![bytes(log), Value::Number(from), Value::Number(to)])?;
        // a log without such entries is one row without a value
        let values = rows.iter().map(|row| self.column::<Option<Vec<u8>>>(row, 1));
        Ok(values.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().map(Bytes::from).collect())
    }

    fn count(&self, execution: &ExecutionId, counter: &str, by: i64) -> Result<i64, StorageError> {
        let rows = self.on(execution, sql::COUNT, vec![bytes(counter), Value::Number(by)]);
        let rows = rows.map_err(|error| match error {
            StorageError::Backend(message) if message.ends_with("bigint out of range") => {
                StorageError::Overflow(counter.to_owned())
            }
            error => error,
        })?;
        self.first(&rows, 1)
    }

    fn push(&self, execution: &ExecutionId, queue: &str, item: Bytes) -> Result<(), StorageError> {
        self.on(execution, sql::PUSH, vec![bytes(queue), Value::Bytes(item)])?;
        Ok(())
    }

    fn pop(&self, execution: &ExecutionId, queue: &str) -> Result<Option<Bytes>, StorageError> {
        let rows = self.on(execution, sql::POP, vec![bytes(queue)])?;
        Ok(self.first::<Option<Vec<u8>>>(&rows, 1)?.map(Bytes::from))
    }

    fn end(&self, execution: &ExecutionId) -> Result<bool, StorageError> {
        Ok(!self.plain(sql::END, vec![Value::Bytes(execution.as_bytes().clone())])?.is_empty())
    }

    fn expire(&self, idle: Duration) -> Result<usize, StorageError> {
        let rows = self.plain(sql::EXPIRE, vec![Value::Seconds(idle.as_secs_f64())])?;
        self.number(self.first(&rows, 0)?)
    }

    fn live(&self) -> Result<usize, StorageError> {
        let rows = self.plain(sql::LIVE, Vec::new())?;
        self.number(self.first(&rows, 0)?)
    }

    fn shared_secret(&self, fresh: [u8; 32]) -> Result<[u8; 32], StorageError> {
        self.plain(sql::OFFER_SECRET, vec![Value::Bytes(Bytes::copy_from_slice(&fresh))])?;
        let kept: Vec<u8> = self.first(&self.plain(sql::SECRET, Vec::new())?, 0)?;
        kept.try_into().map_err(|_| StorageError::Backend(format!("{}: the secret is damaged", self.url)))
    }
}
