//! DuckDB through its C API, as far as the runner needs it. This file and `printer.rs` hold all unsafe code of the harness.

use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use libduckdb_sys as ffi;

use crate::printer::Printer;

/// After an interrupt a query has this long to end; then the process is aborted, for a thread that does not answer cannot be ended alone.
const GRACE: Duration = Duration::from_secs(60);

/// What a column's values are compared as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Boolean,
    /// FLOAT and DOUBLE.
    Approximate,
    /// Integers and decimals.
    Exact,
    Other,
}

/// A result, printed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub names: Vec<String>,
    pub kinds: Vec<Kind>,
    pub rows: usize,
    /// `rows * names.len()` values, row after row; NULL is `NULL`, the empty string `(empty)`.
    pub values: Vec<String>,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// DuckDB's own message.
    #[error("{0}")]
    Sql(String),
    #[error("the query was interrupted after {} seconds", .0.as_secs())]
    TooLong(Duration),
    #[error("the harness cannot show this result: {0}")]
    Unprintable(String),
}

/// An open database.
pub struct Database {
    raw: ffi::duckdb_database,
}

// SAFETY: DuckDB allows a database handle to be used from any thread.
unsafe impl Send for Database {}
// SAFETY: as above; connecting takes DuckDB's own locks.
unsafe impl Sync for Database {}

impl Database {
    /// Opens a file, or memory when there is no path.
    pub fn open(path: Option<&str>, options: &[(&str, &str)]) -> Result<Self, String> {
        let path = c_string(path.unwrap_or(":memory:"))?;
        let config = Config::new(options)?;
        let mut raw = ptr::null_mut();
        let mut message: *mut c_char = ptr::null_mut();
        // SAFETY: all pointers are valid for the call; the config outlives it.
        let state = unsafe { ffi::duckdb_open_ext(path.as_ptr(), &raw mut raw, config.0, &raw mut message) };
        if state == ffi::DuckDBSuccess {
            return Ok(Self { raw });
        }
        // SAFETY: on failure DuckDB set the message to a string that the caller frees.
        Err(unsafe { take_string(message) }.unwrap_or_else(|| "the database cannot be opened".to_owned()))
    }

    /// Another connection.
    pub fn connect(&self) -> Result<Connection, String> {
        let mut raw = ptr::null_mut();
        // SAFETY: the database is open, and the out pointer is valid.
        if unsafe { ffi::duckdb_connect(self.raw, &raw mut raw) } == ffi::DuckDBSuccess {
            Ok(Connection { raw })
        } else {
            Err("the database gives no connection".to_owned())
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: opened by this value and closed once.
        unsafe { ffi::duckdb_close(&raw mut self.raw) };
    }
}

struct Config(ffi::duckdb_config);

impl Config {
    fn new(options: &[(&str, &str)]) -> Result<Self, String> {
        let mut raw = ptr::null_mut();
        // SAFETY: the out pointer is valid; the config is destroyed by `drop`, even when creating it failed.
        let state = unsafe { ffi::duckdb_create_config(&raw mut raw) };
        let config = Self(raw);
        if state != ffi::DuckDBSuccess {
            return Err("DuckDB makes no configuration".to_owned());
        }
        for (name, value) in options {
            let (name_c, value_c) = (c_string(name)?, c_string(value)?);
            // SAFETY: both strings are valid for the call.
            if unsafe { ffi::duckdb_set_config(config.0, name_c.as_ptr(), value_c.as_ptr()) } != ffi::DuckDBSuccess {
                return Err(format!("DuckDB has no option {name} = {value}"));
            }
        }
        Ok(config)
    }
}

impl Drop for Config {
    fn drop(&mut self) {
        // SAFETY: created by this value and destroyed once; null is allowed.
        unsafe { ffi::duckdb_destroy_config(&raw mut self.0) };
    }
}

/// One connection.
pub struct Connection {
    raw: ffi::duckdb_connection,
}

// SAFETY: a connection may move between threads; only interrupting is done from a second one, which DuckDB allows.
unsafe impl Send for Connection {}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: made by this value and closed once.
        unsafe { ffi::duckdb_disconnect(&raw mut self.raw) };
    }
}

impl Connection {
    /// Runs SQL, interrupts it when it takes longer than `limit`, and prints the result.
    pub fn query(&self, sql: &str, limit: Duration, printer: &Printer) -> Result<Table, QueryError> {
        let mut result = self.run_limited(sql, limit)?;
        let values = printer.print(&mut result).map_err(QueryError::Unprintable)?;
        let columns = result.columns();
        let rows = values.len().checked_div(columns.len()).unwrap_or(0);
        let (names, kinds) = columns.into_iter().unzip();
        Ok(Table { names, kinds, rows, values })
    }

    fn run_limited(&self, sql: &str, limit: Duration) -> Result<Rows, QueryError> {
        let handle = Interruptible(self.raw);
        let (done, ended) = mpsc::channel::<()>();
        thread::scope(|scope| {
            let watcher = scope.spawn(move || {
                if ended.recv_timeout(limit) != Err(RecvTimeoutError::Timeout) {
                    return false;
                }
                handle.interrupt();
                if ended.recv_timeout(GRACE) == Err(RecvTimeoutError::Timeout) {
                    eprintln!("a query ignores its interrupt; aborting: {sql}");
                    std::process::abort();
                }
                true
            });
            let result = self.run(sql);
            drop(done);
            match watcher.join() {
                Ok(false) => result.map_err(QueryError::Sql),
                _ => Err(QueryError::TooLong(limit)),
            }
        })
    }

    /// Runs SQL to the end; the error is DuckDB's message.
    pub(crate) fn run(&self, sql: &str) -> Result<Rows, String> {
        let sql = c_string(sql)?;
        let mut rows = Rows::empty();
        // SAFETY: the connection is open; the result is destroyed by `Rows`, whatever the outcome.
        let state = unsafe { ffi::duckdb_query(self.raw, sql.as_ptr(), &raw mut rows.raw) };
        if state == ffi::DuckDBSuccess {
            return Ok(rows);
        }
        // SAFETY: the message belongs to the result, which is still alive here.
        let message = unsafe { copy_string(ffi::duckdb_result_error(&raw mut rows.raw)) };
        Err(message.unwrap_or_else(|| "DuckDB gives no message".to_owned()))
    }

    pub(crate) fn raw(&self) -> ffi::duckdb_connection {
        self.raw
    }
}

#[derive(Clone, Copy)]
struct Interruptible(ffi::duckdb_connection);

// SAFETY: used for nothing but `duckdb_interrupt`, which may be called from any thread.
unsafe impl Send for Interruptible {}

impl Interruptible {
    fn interrupt(self) {
        // SAFETY: the scope that owns the watcher ends before the connection does.
        unsafe { ffi::duckdb_interrupt(self.0) };
    }
}

/// A materialized result.
pub(crate) struct Rows {
    raw: ffi::duckdb_result,
}

impl Rows {
    fn empty() -> Self {
        let raw = ffi::duckdb_result {
            deprecated_column_count: 0,
            deprecated_row_count: 0,
            deprecated_rows_changed: 0,
            deprecated_columns: ptr::null_mut(),
            deprecated_error_message: ptr::null_mut(),
            internal_data: ptr::null_mut(),
        };
        Self { raw }
    }

    /// Names and kinds of the columns.
    pub(crate) fn columns(&mut self) -> Vec<(String, Kind)> {
        (0..self.width())
            .map(|column| {
                // SAFETY: the column is within bounds; the name belongs to the result.
                let name = unsafe { copy_string(ffi::duckdb_column_name(&raw mut self.raw, column)) };
                // SAFETY: as above.
                let kind = kind(unsafe { ffi::duckdb_column_type(&raw mut self.raw, column) });
                (name.unwrap_or_default(), kind)
            })
            .collect()
    }

    pub(crate) fn width(&mut self) -> ffi::idx_t {
        // SAFETY: the result is initialized.
        unsafe { ffi::duckdb_column_count(&raw mut self.raw) }
    }

    /// The type of a column, which the caller destroys.
    pub(crate) fn logical_type(&mut self, column: ffi::idx_t) -> ffi::duckdb_logical_type {
        // SAFETY: the result is initialized; DuckDB checks the bounds.
        unsafe { ffi::duckdb_column_logical_type(&raw mut self.raw, column) }
    }

    /// The next rows, until there are none.
    pub(crate) fn next_chunk(&mut self) -> Option<Chunk> {
        // SAFETY: the result is initialized and is not fetched from in another way.
        let raw = unsafe { ffi::duckdb_fetch_chunk(self.raw) };
        (!raw.is_null()).then_some(Chunk(raw))
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        // SAFETY: destroyed once; an empty result is allowed.
        unsafe { ffi::duckdb_destroy_result(&raw mut self.raw) };
    }
}

/// Up to 2048 rows.
pub(crate) struct Chunk(ffi::duckdb_data_chunk);

// SAFETY: a chunk is plain memory behind a pointer; it is read by one thread at a time, under the printer's lock.
unsafe impl Send for Chunk {}

impl Chunk {
    pub(crate) fn raw(&self) -> ffi::duckdb_data_chunk {
        self.0
    }

    pub(crate) fn rows(&self) -> ffi::idx_t {
        // SAFETY: the chunk is alive.
        unsafe { ffi::duckdb_data_chunk_get_size(self.0) }
    }

    pub(crate) fn vector(&self, column: ffi::idx_t) -> ffi::duckdb_vector {
        // SAFETY: the chunk is alive; DuckDB checks the bounds.
        unsafe { ffi::duckdb_data_chunk_get_vector(self.0, column) }
    }

    /// A value of a VARCHAR column; `None` for NULL.
    pub(crate) fn text(&self, column: ffi::idx_t, row: ffi::idx_t) -> Option<String> {
        let vector = self.vector(column);
        let index = usize::try_from(row).ok()?;
        // SAFETY: the vector belongs to the live chunk and is flat, as those of a fetched chunk are; `row` is below its size,
        // the column is VARCHAR, and the string's bytes live as long as the chunk.
        unsafe {
            let validity = ffi::duckdb_vector_get_validity(vector);
            if !validity.is_null() && !ffi::duckdb_validity_row_is_valid(validity, row) {
                return None;
            }
            let strings = ffi::duckdb_vector_get_data(vector).cast::<ffi::duckdb_string_t>();
            let string = strings.add(index);
            let length = usize::try_from(ffi::duckdb_string_t_length(*string)).ok()?;
            let bytes = std::slice::from_raw_parts(ffi::duckdb_string_t_data(string).cast::<u8>(), length);
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        // SAFETY: made by a fetch and destroyed once.
        unsafe { ffi::duckdb_destroy_data_chunk(&raw mut self.0) };
    }
}

/// The version of the DuckDB in this process, `v2.0.0`.
pub fn library_version() -> String {
    // SAFETY: the string is static.
    unsafe { copy_string(ffi::duckdb_library_version()) }.unwrap_or_default()
}

pub(crate) fn c_string(text: &str) -> Result<CString, String> {
    CString::new(text).map_err(|_| "a NUL inside of the text".to_owned())
}

/// # Safety
///
/// `text` is null or points to a string that lives during the call.
unsafe fn copy_string(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: promised by the caller.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// # Safety
///
/// `text` is null or a string that DuckDB allocated for the caller.
unsafe fn take_string(text: *mut c_char) -> Option<String> {
    // SAFETY: promised by the caller; freed once, after the copy.
    unsafe {
        let copy = copy_string(text);
        ffi::duckdb_free(text.cast::<c_void>());
        copy
    }
}

fn kind(raw: ffi::duckdb_type) -> Kind {
    match raw {
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_BOOLEAN => Kind::Boolean,
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_FLOAT | ffi::DUCKDB_TYPE_DUCKDB_TYPE_DOUBLE => Kind::Approximate,
        ffi::DUCKDB_TYPE_DUCKDB_TYPE_TINYINT
        | ffi::DUCKDB_TYPE_DUCKDB_TYPE_SMALLINT
        | ffi::DUCKDB_TYPE_DUCKDB_TYPE_INTEGER
        | ffi::DUCKDB_TYPE_DUCKDB_TYPE_BIGINT
        | ffi::DUCKDB_TYPE_DUCKDB_TYPE_HUGEINT
        | ffi::DUCKDB_TYPE_DUCKDB_TYPE_UTINYINT
        | ffi::DUCKDB_TYPE_DUCKDB_TYPE_USMALLINT
        | ffi::DUCKDB_TYPE_DUCKDB_TYPE_UINTEGER
        | ffi::DUCKDB_TYPE_DUCKDB_TYPE_UBIGINT
        | ffi::DUCKDB_TYPE_DUCKDB_TYPE_UHUGEINT
        | ffi::DUCKDB_TYPE_DUCKDB_TYPE_BIGNUM
        | ffi::DUCKDB_TYPE_DUCKDB_TYPE_DECIMAL => Kind::Exact,
        _ => Kind::Other,
    }
}
