//! The back end in a SQLite database: for many processes on one machine.
//!
//! SQLite lets one writer in at a time, so the writers of a process queue on a lock of their own instead of polling the file's; readers
//! see a snapshot and wait for nobody. Large values are files beside the database, or in memory where one process alone has it.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use rusqlite::{Connection, ErrorCode, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use crate::ids::ExecutionId;
use crate::storage::held::Held;
use crate::storage::spill::Spill;
use crate::storage::{Scratch, Storage, StorageError};

/// Values of this many bytes or more are files.
const SPILL_FROM: usize = 64 * 1024;
/// How many bytes of large values the only process of a database holds in memory.
const HELD: usize = 1 << 30;
/// That an execution lives is noted at most this often, because noting is a write.
const TOUCH_EVERY: i64 = 250;
/// How long a writer waits for those of other processes.
const BUSY: Duration = Duration::from_secs(30);
const READERS: usize = 4;
/// A reader that finds its file replaced looks again this often.
const LOOKS: usize = 5;

const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS secrets(name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;
    CREATE TABLE IF NOT EXISTS executions(
        number INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL UNIQUE, touched INTEGER NOT NULL) STRICT;
    CREATE INDEX IF NOT EXISTS executions_by_age ON executions(touched);
    CREATE TABLE IF NOT EXISTS pairs(
        execution INTEGER NOT NULL REFERENCES executions ON DELETE CASCADE, key TEXT NOT NULL,
        value BLOB, file TEXT, length INTEGER NOT NULL, UNIQUE(execution, key)) STRICT;
    CREATE TABLE IF NOT EXISTS logs(
        execution INTEGER NOT NULL REFERENCES executions ON DELETE CASCADE, log TEXT NOT NULL, position INTEGER NOT NULL,
        value BLOB, file TEXT, length INTEGER NOT NULL, UNIQUE(execution, log, position)) STRICT;
    CREATE TABLE IF NOT EXISTS counters(
        execution INTEGER NOT NULL REFERENCES executions ON DELETE CASCADE, counter TEXT NOT NULL,
        value INTEGER NOT NULL, UNIQUE(execution, counter)) STRICT;
    CREATE TABLE IF NOT EXISTS queues(
        number INTEGER PRIMARY KEY AUTOINCREMENT, execution INTEGER NOT NULL REFERENCES executions ON DELETE CASCADE,
        queue TEXT NOT NULL, value BLOB, file TEXT, length INTEGER NOT NULL) STRICT;
    CREATE INDEX IF NOT EXISTS queues_by_name ON queues(execution, queue, number);
";

/// Keeps everything in a SQLite database in WAL mode, which several processes of one machine may share.
pub struct SqliteStorage {
    writer: Mutex<Connection>,
    readers: Vec<Mutex<Connection>>,
    next_reader: AtomicUsize,
    spill: Spill,
    /// Last, so that it goes after the connections to what is in it.
    _scratch: Option<Scratch>,
}

impl From<rusqlite::Error> for StorageError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Backend(error.to_string())
    }
}

/// A value as a row holds it.
enum Stored {
    Inline(Bytes),
    File { name: String, length: u64 },
}

impl Stored {
    /// Reads the columns `value`, `file` and `length`, from this one on.
    fn of(row: &Row<'_>, from: usize) -> rusqlite::Result<Self> {
        let file: Option<String> = row.get(from + 1)?;
        Ok(match file {
            Some(name) => Self::File { name, length: row.get(from + 2)? },
            None => Self::Inline(Bytes::from(row.get::<_, Vec<u8>>(from)?)),
        })
    }

    fn file(&self) -> Option<&str> {
        match self {
            Self::File { name, .. } => Some(name),
            Self::Inline(_) => None,
        }
    }
}

/// A value that is about to be stored: its file is written before the transaction begins, so that no writer waits for it.
struct Prepared<'a> {
    inline: Option<&'a [u8]>,
    file: Option<String>,
    length: i64,
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn number_of(connection: &Connection, execution: &ExecutionId) -> Result<(i64, i64), StorageError> {
    let mut statement = connection.prepare_cached("SELECT number, touched FROM executions WHERE id = ?")?;
    let found = statement.query_row([execution.as_bytes().as_ref()], |row| Ok((row.get(0)?, row.get(1)?)));
    found.optional()?.ok_or_else(|| StorageError::UnknownExecution(execution.clone()))
}

fn connect(path: &Path) -> Result<Connection, StorageError> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    // SQLite does not wait by itself for another process that makes the same file at the same time: two that switch a file to WAL refuse
    // each other at once
    let begun = Instant::now();
    while let Err(error) = configure(&connection) {
        if error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) || begun.elapsed() > BUSY {
            return Err(error.into());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(connection)
}

fn configure(connection: &Connection) -> Result<(), rusqlite::Error> {
    // after a power cut no execution goes on, so no commit needs to reach the disk
    connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;")
}

/// The connection, when the tables are there.
fn prepared(mut connection: Connection) -> Result<Connection, StorageError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(SCHEMA)?;
    transaction.commit()?;
    Ok(connection)
}

impl SqliteStorage {
    /// The storage in this file, which is made if it is not there. Large values go to the folder of the same name and `-files`.
    ///
    /// # Errors
    /// When the file cannot be opened or is no such database.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self, StorageError> {
        let path = path.into();
        // it holds the secret of the tokens; SQLite gives its other files the same permissions
        let made = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path);
        made.map_err(|error| StorageError::Backend(format!("{}: {error}", path.display())))?;
        let mut folder = path.clone().into_os_string();
        folder.push("-files");
        let writer = prepared(connect(&path)?)?;
        let readers = (0..READERS).map(|_| connect(&path).map(Mutex::new)).collect::<Result<_, _>>()?;
        Ok(Self::of(writer, readers, Spill::new(folder.into(), None)?))
    }

    /// A storage for this process alone: a database without a name, which SQLite writes to a nameless file as far as its cache is too
    /// small. Large values stay in memory, up to 1 GiB, and are files in this folder beyond that.
    ///
    /// # Errors
    /// When the folder or the database cannot be made.
    pub fn exclusive(folder: impl Into<PathBuf>) -> Result<Self, StorageError> {
        Self::holding(folder.into(), HELD)
    }

    fn holding(folder: PathBuf, held: usize) -> Result<Self, StorageError> {
        let writer = Connection::open("")?;
        writer.execute_batch("PRAGMA journal_mode = MEMORY; PRAGMA foreign_keys = ON;")?;
        // what one connection has without a name, another cannot open
        Ok(Self::of(prepared(writer)?, Vec::new(), Spill::new(folder, Some(Held::new(held)))?))
    }

    fn of(writer: Connection, readers: Vec<Mutex<Connection>>, spill: Spill) -> Self {
        Self { writer: Mutex::new(writer), readers, next_reader: AtomicUsize::new(0), spill, _scratch: None }
    }

    /// A storage in a folder of its own, which is removed when the storage is dropped.
    ///
    /// # Errors
    /// When the folder or the database in it cannot be made.
    pub fn private() -> Result<Self, StorageError> {
        let scratch = Scratch::new()?;
        let opened = Self::exclusive(scratch.values())?;
        Ok(Self { _scratch: Some(scratch), ..opened })
    }

    /// A transaction that a panic or an error left open was rolled back when it was dropped.
    fn write<T>(&self, change: impl FnOnce(&Transaction<'_>) -> Result<T, StorageError>) -> Result<T, StorageError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let changed = change(&transaction)?;
        transaction.commit()?;
        Ok(changed)
    }

    /// A change of a live execution.
    fn change<T>(
        &self,
        execution: &ExecutionId,
        change: impl FnOnce(&Transaction<'_>, i64) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        self.write(|transaction| {
            let (number, touched) = number_of(transaction, execution)?;
            if is_due(touched) {
                transaction
                    .prepare_cached("UPDATE executions SET touched = ? WHERE number = ?")?
                    .execute(params![now(), number])?;
            }
            change(transaction, number)
        })
    }

    /// A look at a live execution.
    fn look<T>(
        &self,
        execution: &ExecutionId,
        look: impl FnOnce(&Connection, i64) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let (found, touched) = {
            let turn = self.next_reader.fetch_add(1, Ordering::Relaxed) % READERS;
            // one without readers has nobody beside its writer
            let reader = self.readers.get(turn).unwrap_or(&self.writer);
            let mut reader = reader.lock().unwrap_or_else(PoisonError::into_inner);
            let snapshot = reader.transaction()?;
            let (number, touched) = number_of(&snapshot, execution)?;
            (look(&snapshot, number)?, touched)
        };
        if is_due(touched) {
            self.change(execution, |_, _| Ok(()))?;
        }
        Ok(found)
    }

    fn prepare<'a>(&self, execution: &ExecutionId, value: &'a Bytes) -> Result<Prepared<'a>, StorageError> {
        let length = i64::try_from(value.len()).map_err(|error| StorageError::Backend(error.to_string()))?;
        let file = match self.spill.hold(execution, value) {
            None if value.len() >= SPILL_FROM => Some(self.spill.write(execution, value)?),
            held => held,
        };
        Ok(Prepared { inline: file.is_none().then_some(value), file, length })
    }

    /// Stores a value; its file does not outlive a transaction that fails.
    fn keep<T>(
        &self,
        execution: &ExecutionId,
        value: &Bytes,
        store: impl FnOnce(&Transaction<'_>, i64, &Prepared<'_>) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        let prepared = self.prepare(execution, value)?;
        let stored = self.change(execution, |transaction, number| store(transaction, number, &prepared));
        if let (Err(_), Some(file)) = (&stored, &prepared.file) {
            self.spill.remove(execution, file).ok();
        }
        stored
    }

    fn load(&self, execution: &ExecutionId, stored: Stored) -> Result<Option<Bytes>, StorageError> {
        match stored {
            Stored::Inline(bytes) => Ok(Some(bytes)),
            Stored::File { name, length } => self.spill.read(execution, &name, length),
        }
    }

    fn discard(&self, execution: &ExecutionId, stored: Option<&Stored>) -> Result<(), StorageError> {
        stored.and_then(Stored::file).map_or(Ok(()), |name| self.spill.remove(execution, name))
    }
}

/// Whether it has to be noted that an execution lives.
fn is_due(touched: i64) -> bool {
    now().saturating_sub(touched) >= TOUCH_EVERY
}

fn gone(execution: &ExecutionId) -> StorageError {
    StorageError::Backend(format!("a stored value of {execution} has lost its file"))
}

fn pair(connection: &Connection, number: i64, key: &str) -> Result<Option<Stored>, StorageError> {
    let mut statement =
        connection.prepare_cached("SELECT value, file, length FROM pairs WHERE execution = ? AND key = ?")?;
    Ok(statement.query_row(params![number, key], |row| Stored::of(row, 0)).optional()?)
}

fn entries(
    connection: &Connection,
    number: i64,
    log: &str,
    from: u64,
    limit: usize,
) -> Result<Vec<Stored>, StorageError> {
    let from = i64::try_from(from).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(
        "SELECT value, file, length FROM logs WHERE execution = ? AND log = ? AND position >= ? ORDER BY position LIMIT ?",
    )?;
    let rows = statement.query_map(params![number, log, from, limit], |row| Stored::of(row, 0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

impl Storage for SqliteStorage {
    fn begin(&self, execution: &ExecutionId) -> Result<(), StorageError> {
        self.write(|transaction| {
            let mut statement = transaction
                .prepare_cached("INSERT INTO executions(id, touched) VALUES (?, ?) ON CONFLICT DO NOTHING")?;
            statement.execute(params![execution.as_bytes().as_ref(), now()])?;
            Ok(())
        })?;
        self.spill.begin(execution)
    }

    fn put(&self, execution: &ExecutionId, key: &str, value: Bytes) -> Result<(), StorageError> {
        let replaced = self.keep(execution, &value, |transaction, number, prepared| {
            let replaced = pair(transaction, number, key)?;
            let mut statement = transaction.prepare_cached(
                "INSERT OR REPLACE INTO pairs(execution, key, value, file, length) VALUES (?, ?, ?, ?, ?)",
            )?;
            statement.execute(params![number, key, prepared.inline, prepared.file, prepared.length])?;
            Ok(replaced)
        })?;
        self.discard(execution, replaced.as_ref())
    }

    fn get(&self, execution: &ExecutionId, key: &str) -> Result<Option<Bytes>, StorageError> {
        for _ in 0..LOOKS {
            let Some(stored) = self.look(execution, |snapshot, number| pair(snapshot, number, key))? else {
                return Ok(None);
            };
            if let Some(value) = self.load(execution, stored)? {
                return Ok(Some(value));
            }
        }
        Err(gone(execution))
    }

    fn delete(&self, execution: &ExecutionId, key: &str) -> Result<bool, StorageError> {
        let deleted = self.change(execution, |transaction, number| {
            let found = pair(transaction, number, key)?;
            let mut statement = transaction.prepare_cached("DELETE FROM pairs WHERE execution = ? AND key = ?")?;
            statement.execute(params![number, key])?;
            Ok(found)
        })?;
        self.discard(execution, deleted.as_ref())?;
        Ok(deleted.is_some())
    }

    fn append(&self, execution: &ExecutionId, log: &str, entry: Bytes) -> Result<u64, StorageError> {
        self.keep(execution, &entry, |transaction, number, prepared| {
            let mut statement = transaction.prepare_cached(
                "INSERT INTO logs(execution, log, position, value, file, length)
                 SELECT ?1, ?2, coalesce(max(position) + 1, 0), ?3, ?4, ?5 FROM logs WHERE execution = ?1 AND log = ?2
                 RETURNING position",
            )?;
            let values = params![number, log, prepared.inline, prepared.file, prepared.length];
            Ok(statement.query_row(values, |row| row.get(0))?)
        })
    }

    fn scan(&self, execution: &ExecutionId, log: &str, from: u64, limit: usize) -> Result<Vec<Bytes>, StorageError> {
        let found = self.look(execution, |snapshot, number| entries(snapshot, number, log, from, limit))?;
        // entries are never replaced: a file that is gone went with its execution
        let load =
            |stored| self.load(execution, stored)?.ok_or_else(|| StorageError::UnknownExecution(execution.clone()));
        found.into_iter().map(load).collect()
    }

    fn count(&self, execution: &ExecutionId, counter: &str, by: i64) -> Result<i64, StorageError> {
        self.change(execution, |transaction, number| {
            let mut statement =
                transaction.prepare_cached("SELECT value FROM counters WHERE execution = ? AND counter = ?")?;
            let before: Option<i64> = statement.query_row(params![number, counter], |row| row.get(0)).optional()?;
            let value = before.unwrap_or_default().checked_add(by);
            let value = value.ok_or_else(|| StorageError::Overflow(counter.to_owned()))?;
            let mut statement = transaction
                .prepare_cached("INSERT OR REPLACE INTO counters(execution, counter, value) VALUES (?, ?, ?)")?;
            statement.execute(params![number, counter, value])?;
            Ok(value)
        })
    }

    fn push(&self, execution: &ExecutionId, queue: &str, item: Bytes) -> Result<(), StorageError> {
        self.keep(execution, &item, |transaction, number, prepared| {
            let mut statement = transaction
                .prepare_cached("INSERT INTO queues(execution, queue, value, file, length) VALUES (?, ?, ?, ?, ?)")?;
            statement.execute(params![number, queue, prepared.inline, prepared.file, prepared.length])?;
            Ok(())
        })
    }

    fn pop(&self, execution: &ExecutionId, queue: &str) -> Result<Option<Bytes>, StorageError> {
        let taken = self.change(execution, |transaction, number| {
            let mut statement = transaction.prepare_cached(
                "DELETE FROM queues WHERE number =
                     (SELECT number FROM queues WHERE execution = ? AND queue = ? ORDER BY number LIMIT 1)
                 RETURNING value, file, length",
            )?;
            Ok(statement.query_row(params![number, queue], |row| Stored::of(row, 0)).optional()?)
        })?;
        let Some(stored) = taken else { return Ok(None) };
        let file = stored.file().map(str::to_owned);
        let item = self.load(execution, stored)?.ok_or_else(|| StorageError::UnknownExecution(execution.clone()))?;
        file.map_or(Ok(()), |name| self.spill.remove(execution, &name))?;
        Ok(Some(item))
    }

    fn end(&self, execution: &ExecutionId) -> Result<bool, StorageError> {
        let ended = self.write(|transaction| {
            let mut statement = transaction.prepare_cached("DELETE FROM executions WHERE id = ?")?;
            Ok(statement.execute([execution.as_bytes().as_ref()])? > 0)
        })?;
        self.spill.end(execution)?;
        Ok(ended)
    }

    fn expire(&self, idle: Duration) -> Result<usize, StorageError> {
        // listed first: the folder of an execution that begins meanwhile is not in it
        let folders = self.spill.executions()?;
        let idle = i64::try_from(idle.as_millis()).unwrap_or(i64::MAX);
        let (expired, live) = self.write(|transaction| {
            let mut statement = transaction.prepare_cached("DELETE FROM executions WHERE touched <= ?")?;
            let expired = statement.execute([now().saturating_sub(idle)])?;
            let mut statement = transaction.prepare_cached("SELECT lower(hex(id)) FROM executions")?;
            let live = statement.query_map([], |row| row.get::<_, String>(0))?;
            Ok((expired, live.collect::<rusqlite::Result<std::collections::HashSet<_>>>()?))
        })?;
        folders.iter().filter(|name| !live.contains(*name)).try_for_each(|name| self.spill.sweep(name))?;
        Ok(expired)
    }

    fn live(&self) -> Result<usize, StorageError> {
        let reader = self.readers.first().unwrap_or(&self.writer).lock().unwrap_or_else(PoisonError::into_inner);
        Ok(reader.query_row("SELECT count(*) FROM executions", [], |row| row.get(0))?)
    }

    fn shared_secret(&self, fresh: [u8; 32]) -> Result<[u8; 32], StorageError> {
        self.write(|transaction| {
            let insert = "INSERT INTO secrets(name, value) VALUES ('tokens', ?) ON CONFLICT DO NOTHING";
            transaction.execute(insert, [fresh])?;
            Ok(transaction.query_row("SELECT value FROM secrets WHERE name = 'tokens'", [], |row| row.get(0))?)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::conformance;

    fn files(folder: &Path) -> usize {
        std::fs::read_dir(folder.join("state.db-files")).unwrap().count()
    }

    #[test]
    fn it_conforms() {
        let folder = tempfile::tempdir().unwrap();
        conformance::check(&SqliteStorage::open(folder.path().join("state.db")).unwrap());
        assert_eq!(files(folder.path()), 0);
    }

    #[test]
    fn it_conforms_with_values_in_memory_and_when_there_is_no_room_for_them() {
        for room in [HELD, 5000, 0] {
            let folder = tempfile::tempdir().unwrap();
            conformance::check(&SqliteStorage::holding(folder.path().join("state.db-files"), room).unwrap());
            assert_eq!(files(folder.path()), 0);
        }
    }

    #[test]
    fn what_has_no_room_in_memory_is_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let storage = SqliteStorage::holding(folder.path().into(), 2 * SPILL_FROM).unwrap();
        let id = ExecutionId::from(vec![1]);
        storage.begin(&id).unwrap();
        let values: Vec<_> = (0..4).map(|number| Bytes::from(vec![number; SPILL_FROM])).collect();
        for value in &values {
            storage.append(&id, "log", value.clone()).unwrap();
        }
        assert_eq!(std::fs::read_dir(folder.path().join("x01")).unwrap().count(), 2);
        assert_eq!(storage.scan(&id, "log", 0, 10).unwrap(), values);
        // what expires leaves its room to the next
        assert_eq!(storage.expire(Duration::ZERO).unwrap(), 1);
        let next = ExecutionId::from(vec![2]);
        storage.begin(&next).unwrap();
        storage.put(&next, "k", values[0].clone()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path().join("x02")).unwrap().count(), 0);
    }

    #[test]
    fn a_private_one_takes_its_folder_along() {
        let storage = SqliteStorage::private().unwrap();
        let path = storage.spill.folder().parent().unwrap().to_owned();
        conformance::check(&storage);
        assert!(path.exists());
        drop(storage);
        assert!(!path.exists());
    }

    #[test]
    fn two_processes_share_what_one_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let open = || SqliteStorage::open(folder.path().join("state.db")).unwrap();
        let (one, two) = (open(), open());
        let id = ExecutionId::new("shared");
        one.begin(&id).unwrap();
        one.put(&id, "k", Bytes::from(vec![1; SPILL_FROM])).unwrap();
        assert_eq!(two.get(&id, "k").unwrap().unwrap().len(), SPILL_FROM);
        assert_eq!(
            (one.append(&id, "log", Bytes::new()).unwrap(), two.append(&id, "log", Bytes::new()).unwrap()),
            (0, 1)
        );
        assert_eq!(one.shared_secret([1; 32]).unwrap(), two.shared_secret([2; 32]).unwrap());
        assert!(two.end(&id).unwrap());
        assert!(one.get(&id, "k").is_err());
        assert_eq!(files(folder.path()), 0);
    }

    #[test]
    fn what_a_crash_left_is_swept() {
        let folder = tempfile::tempdir().unwrap();
        let storage = SqliteStorage::open(folder.path().join("state.db")).unwrap();
        std::fs::create_dir(folder.path().join("state.db-files/x00ff")).unwrap();
        storage.begin(&ExecutionId::new("live")).unwrap();
        assert_eq!(storage.expire(Duration::from_secs(60)).unwrap(), 0);
        assert_eq!(files(folder.path()), 1);
    }

    #[test]
    fn a_damaged_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let storage = SqliteStorage::open(folder.path().join("state.db")).unwrap();
        let id = ExecutionId::from(vec![1]);
        storage.begin(&id).unwrap();
        storage.append(&id, "log", Bytes::from(vec![1; SPILL_FROM])).unwrap();
        let file = std::fs::read_dir(folder.path().join("state.db-files/x01")).unwrap().next().unwrap().unwrap();
        std::fs::write(file.path(), b"short").unwrap();
        assert!(storage.scan(&id, "log", 0, 1).unwrap_err().to_string().contains("has 5 bytes instead of 65536"));
    }
}
