//! The back end in a Redis server, version 7 or newer, or one that is like it: for processes on many machines.
//!
//! A Redis server that starts again may have forgotten the last seconds, and one that takes over from another may never have heard of
//! them. Going on with an execution that lacks a few rows would give a wrong answer, so an execution belongs to the life of the server in
//! which it began; see [`Session::life`].

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use redis::{Client, Connection, ConnectionLike, FromRedisValue, IntoConnectionInfo, RedisError, RedisResult, Script};

use crate::ids::ExecutionId;
use crate::storage::pool::Pool;
use crate::storage::redis_scripts::{EXPIRED_AT_ONCE, GONE, SCANNED_AT_ONCE, Scripts};
use crate::storage::{ServerUrl, Storage, StorageError};

const PREFIX: &str = "vgi-worker:execution:";
const LIVE: &str = "vgi-worker:live";
const SECRET: &str = "vgi-worker:secret";

const CONNECT: Duration = Duration::from_secs(5);
/// How long the server may keep silent.
const SILENCE: Duration = Duration::from_secs(30);
/// How long to wait for a connection that others use.
const PATIENCE: Duration = Duration::from_secs(30);
/// A connection that rested for longer may have been closed unnoticed, so the server is asked for a sign of life first.
const RESTED: Duration = Duration::from_secs(5);
/// Redis takes no larger values.
const LARGEST: usize = 512 << 20;

/// Keeps everything in a Redis server, which processes of several machines may share.
pub struct RedisStorage {
    client: Client,
    url: ServerUrl,
    pool: Pool<Session>,
    scripts: Scripts,
    /// The secret that this process seals its tokens with.
    secret: Mutex<Option<[u8; 32]>>,
}

struct Session {
    connection: Connection,
    /// What tells the server's present life from its others: it changes when the server starts, and when it takes over from another.
    life: String,
}

impl RedisStorage {
    /// The storage in this server.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses the connection.
    pub fn open(url: &ServerUrl) -> Result<Self, StorageError> {
        let info = url.reveal().into_connection_info().map(|info| {
            let settings = info.tcp_settings().clone().set_nodelay(true);
            info.set_tcp_settings(settings)
        });
        let client = info.and_then(Client::open).map_err(|error| StorageError::Backend(format!("{url}: {error}")))?;
        let storage =
            Self { client, url: url.clone(), pool: Pool::new(), scripts: Scripts::new(), secret: Mutex::new(None) };
        storage.live()?;
        Ok(storage)
    }

    fn connect(&self) -> Result<Session, StorageError> {
        let refused = |error: RedisError| {
            let (server, reason) = (self.url.to_string(), error.to_string());
            if error.is_io_error() {
                StorageError::Unreachable { server, reason }
            } else {
                StorageError::Refused { server, reason }
            }
        };
        let begun = (|| {
            let mut connection = self.client.get_connection_with_timeout(CONNECT)?;
            connection.set_read_timeout(Some(SILENCE))?;
            connection.set_write_timeout(Some(SILENCE))?;
            let info: String = redis::cmd("INFO").query(&mut connection)?;
            let entry = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
            let life = [entry("run_id:"), entry("master_replid:")].join("/");
            Ok(Session { connection, life })
        })();
        let mut session = begun.map_err(refused)?;
        self.keep_secret(&mut session)?;
        Ok(session)
    }

    /// A server that forgot the secret is told again. When it was told another one meanwhile, by a process that started just then, the
    /// two of them cannot read each other's tokens.
    fn keep_secret(&self, session: &mut Session) -> Result<(), StorageError> {
        let own = *self.secret.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(own) = own else { return Ok(()) };
        let kept = agree(&mut session.connection, own).map_err(|error| self.failed(&error))?;
        if kept == own {
            return Ok(());
        }
        let reason =
            "it has forgotten the secret of this worker's tokens and knows another one; start this worker again";
        Err(StorageError::Backend(format!("{}: {reason}", self.url)))
    }

    fn failed(&self, error: &RedisError) -> StorageError {
        let server = self.url.to_string();
        if error.is_timeout() {
            let reason = format!("it did not answer within {} s", SILENCE.as_secs());
            return StorageError::Lost { server, reason };
        }
        if is_broken(error) {
            return StorageError::Lost { server, reason: error.to_string() };
        }
        StorageError::Backend(format!("{server}: {error}"))
    }

    /// Does something on a connection of the pool, or a new one. One that breaks is thrown away, so the next operation connects again.
    fn with<T>(&self, work: impl FnOnce(&mut Session) -> RedisResult<T>) -> Result<RedisResult<T>, StorageError> {
        let mut lease = self.pool.lend(PATIENCE).ok_or_else(|| {
            StorageError::Backend(format!("{}: all connections were in use for {} s", self.url, PATIENCE.as_secs()))
        })?;
        let usable = lease.take().and_then(|(mut session, rested)| {
            let usable = session.connection.is_open() && (rested < RESTED || session.connection.check_connection());
            usable.then_some(session)
        });
        let mut session = usable.map_or_else(|| self.connect(), Ok)?;
        let done = work(&mut session);
        if !done.as_ref().is_err_and(is_broken) {
            lease.keep(session);
        }
        Ok(done)
    }

    /// Runs a script on an execution.
    fn run<T: FromRedisValue>(
        &self,
        script: &Script,
        execution: &ExecutionId,
        arguments: &[&[u8]],
    ) -> Result<T, StorageError> {
        if let Some(large) = arguments.iter().find(|argument| argument.len() >= LARGEST) {
            let length = large.len();
            let message = format!("{}: a value of {length} bytes is too large (Redis takes {LARGEST})", self.url);
            return Err(StorageError::Backend(message));
        }
        let name = execution.to_string();
        let done = self.with(|session| {
            let mut invocation = script.prepare_invoke();
            invocation.key(format!("{PREFIX}{name}")).key(LIVE).arg(&session.life).arg(&name);
            for argument in arguments {
                invocation.arg(*argument);
            }
            invocation.invoke(&mut session.connection)
        })?;
        done.map_err(|error| match error.code() {
            Some(GONE) => StorageError::UnknownExecution(execution.clone()),
            _ => self.failed(&error),
        })
    }
}

/// Whether a connection with this error is of no more use.
fn is_broken(error: &RedisError) -> bool {
    // one that was made to a server which no longer takes changes leads nowhere either
    let demoted = matches!(error.code(), Some("READONLY" | "MASTERDOWN" | "LOADING"));
    demoted || error.is_io_error() || error.is_unrecoverable_error()
}

/// Keeps a secret unless there is one, and returns the one that is kept.
fn agree(connection: &mut Connection, secret: [u8; 32]) -> RedisResult<[u8; 32]> {
    let _: bool = redis::cmd("SETNX").arg(SECRET).arg(&secret[..]).query(connection)?;
    let kept: Vec<u8> = redis::cmd("GET").arg(SECRET).query(connection)?;
    kept.try_into().map_err(|_| RedisError::from((redis::ErrorKind::UnexpectedReturnType, "the secret is damaged")))
}

impl Storage for RedisStorage {
    fn begin(&self, execution: &ExecutionId) -> Result<(), StorageError> {
        self.run(&self.scripts.begin, execution, &[])
    }

    fn put(&self, execution: &ExecutionId, key: &str, value: Bytes) -> Result<(), StorageError> {
        self.run(&self.scripts.put, execution, &[key.as_bytes(), &value])
    }

    fn get(&self, execution: &ExecutionId, key: &str) -> Result<Option<Bytes>, StorageError> {
        let value: Option<Vec<u8>> = self.run(&self.scripts.get, execution, &[key.as_bytes()])?;
        Ok(value.map(Bytes::from))
    }

    fn delete(&self, execution: &ExecutionId, key: &str) -> Result<bool, StorageError> {
        self.run(&self.scripts.delete, execution, &[key.as_bytes()])
    }

    fn append(&self, execution: &ExecutionId, log: &str, entry: Bytes) -> Result<u64, StorageError> {
        self.run(&self.scripts.append, execution, &[log.as_bytes(), &entry])
    }

    /// In parts: entries are only ever added, so what the parts have together is what the log was when the last of them was read.
    fn scan(&self, execution: &ExecutionId, log: &str, from: u64, limit: usize) -> Result<Vec<Bytes>, StorageError> {
        let mut entries: Vec<Bytes> = Vec::new();
        loop {
            let wanted = (limit - entries.len()).min(SCANNED_AT_ONCE);
            let read = u64::try_from(entries.len()).unwrap_or(u64::MAX);
            let (from, count) = (from.saturating_add(read).to_string(), wanted.to_string());
            let arguments = [log.as_bytes(), from.as_bytes(), count.as_bytes()];
            let part: Vec<Vec<u8>> = self.run(&self.scripts.scan, execution, &arguments)?;
            let ended = part.len() < SCANNED_AT_ONCE;
            entries.extend(part.into_iter().map(Bytes::from));
            if ended || entries.len() >= limit {
                return Ok(entries);
            }
        }
    }

    fn count(&self, execution: &ExecutionId, counter: &str, by: i64) -> Result<i64, StorageError> {
        let value = self.run(&self.scripts.count, execution, &[counter.as_bytes(), by.to_string().as_bytes()]);
        value.map_err(|error| match error {
            StorageError::Backend(message) if message.contains("would overflow") => {
                StorageError::Overflow(counter.to_owned())
            }
            error => error,
        })
    }

    fn push(&self, execution: &ExecutionId, queue: &str, item: Bytes) -> Result<(), StorageError> {
        self.run(&self.scripts.push, execution, &[queue.as_bytes(), &item])
    }

    fn pop(&self, execution: &ExecutionId, queue: &str) -> Result<Option<Bytes>, StorageError> {
        let item: Option<Vec<u8>> = self.run(&self.scripts.pop, execution, &[queue.as_bytes()])?;
        Ok(item.map(Bytes::from))
    }

    fn end(&self, execution: &ExecutionId) -> Result<bool, StorageError> {
        self.run(&self.scripts.end, execution, &[])
    }

    fn expire(&self, idle: Duration) -> Result<usize, StorageError> {
        let mut expired = 0;
        loop {
            let done = self.with(|session| {
                let mut invocation = self.scripts.expire.prepare_invoke();
                invocation.key(PREFIX).key(LIVE).arg(idle.as_millis().to_string());
                invocation.invoke::<usize>(&mut session.connection)
            })?;
            let count = done.map_err(|error| self.failed(&error))?;
            expired += count;
            if count < EXPIRED_AT_ONCE {
                return Ok(expired);
            }
        }
    }

    fn live(&self) -> Result<usize, StorageError> {
        let counted = self.with(|session| redis::cmd("ZCARD").arg(LIVE).query(&mut session.connection))?;
        counted.map_err(|error| self.failed(&error))
    }

    fn shared_secret(&self, fresh: [u8; 32]) -> Result<[u8; 32], StorageError> {
        let agreed = self.with(|session| agree(&mut session.connection, fresh))?;
        let agreed = agreed.map_err(|error| self.failed(&error))?;
        *self.secret.lock().unwrap_or_else(PoisonError::into_inner) = Some(agreed);
        Ok(agreed)
    }
}
