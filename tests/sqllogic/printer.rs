//! Turns results into text with DuckDB's own casts.
//!
//! The C API gives values of nested and rarer types only as raw vectors, and casting within the query under test would change its plan.
//! So a second, private database has a table function that returns the chunks of a finished result, and `CAST(… AS VARCHAR)`
//! over that function prints every type just as DuckDB does.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libduckdb_sys as ffi;

use crate::database::{Chunk, Connection, Database, Rows, c_string};

/// The private database.
pub struct Printer {
    // Dropped in this order: the function that points to the source goes with the database.
    connection: Mutex<Connection>,
    _database: Database,
    source: Arc<Mutex<Source>>,
}

/// What the table function returns next.
#[derive(Default)]
struct Source {
    types: Vec<LogicalType>,
    waiting: VecDeque<Chunk>,
    /// Chunks whose memory the running query may still refer to.
    returned: Vec<Chunk>,
}

struct LogicalType(ffi::duckdb_logical_type);

// SAFETY: an immutable description; used under the lock of the source.
unsafe impl Send for LogicalType {}

impl Drop for LogicalType {
    fn drop(&mut self) {
        // SAFETY: owned by this value and destroyed once.
        unsafe { ffi::duckdb_destroy_logical_type(&raw mut self.0) };
    }
}

impl Printer {
    /// Opens the private database.
    pub fn new() -> Result<Self, String> {
        let database = Database::open(None, &[("threads", "1")])?;
        let connection = database.connect()?;
        let source = Arc::new(Mutex::new(Source::default()));
        register(&connection, &source)?;
        Ok(Self { connection: Mutex::new(connection), _database: database, source })
    }

    /// All values, row after row.
    pub(crate) fn print(&self, result: &mut Rows) -> Result<Vec<String>, String> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut source = lock(&self.source);
            source.types = (0..result.width()).map(|column| LogicalType(result.logical_type(column))).collect();
            source.waiting = std::iter::from_fn(|| result.next_chunk()).collect();
        }
        let printed = print_waiting(&connection);
        // also after an error, so that nothing of this result is left for the next one
        *lock(&self.source) = Source::default();
        printed
    }

    /// The MD5 of a text, as hexadecimal digits.
    pub fn md5(&self, text: &str) -> Result<String, String> {
        let connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rows = connection.run(&format!("SELECT md5('{}')", text.replace('\'', "''")))?;
        rows.next_chunk().and_then(|chunk| chunk.text(0, 0)).ok_or_else(|| "no digest".to_owned())
    }
}

fn print_waiting(connection: &Connection) -> Result<Vec<String>, String> {
    let mut rows = connection.run("SELECT CAST(COLUMNS(*) AS VARCHAR) FROM result_under_test()")?;
    let width = rows.width();
    let mut values = Vec::new();
    while let Some(chunk) = rows.next_chunk() {
        for row in 0..chunk.rows() {
            values.extend((0..width).map(|column| match chunk.text(column, row) {
                None => "NULL".to_owned(),
                Some(text) if text.is_empty() => "(empty)".to_owned(),
                Some(text) => text.replace('\0', "\\0"),
            }));
        }
    }
    Ok(values)
}

fn lock(source: &Mutex<Source>) -> MutexGuard<'_, Source> {
    source.lock().unwrap_or_else(PoisonError::into_inner)
}

fn register(connection: &Connection, source: &Mutex<Source>) -> Result<(), String> {
    let name = c_string("result_under_test")?;
    // SAFETY: the function's extra information points to the shared source, which the printer keeps until after the database; the callbacks
    // have the signatures that DuckDB asks for, and registering copies the function before it is destroyed.
    let state = unsafe {
        let mut function = ffi::duckdb_create_table_function();
        ffi::duckdb_table_function_set_name(function, name.as_ptr());
        ffi::duckdb_table_function_set_extra_info(
            function,
            std::ptr::from_ref(source).cast_mut().cast::<c_void>(),
            None,
        );
        ffi::duckdb_table_function_set_bind(function, Some(bind));
        ffi::duckdb_table_function_set_init(function, Some(init));
        ffi::duckdb_table_function_set_function(function, Some(next));
        let state = ffi::duckdb_register_table_function(connection.raw(), function);
        ffi::duckdb_destroy_table_function(&raw mut function);
        state
    };
    if state == ffi::DuckDBSuccess { Ok(()) } else { Err("DuckDB refuses the table function".to_owned()) }
}

unsafe extern "C" fn bind(info: ffi::duckdb_bind_info) {
    // SAFETY: DuckDB calls with a valid info, whose extra information is the source.
    unsafe {
        let source = lock(&*ffi::duckdb_bind_get_extra_info(info).cast::<Mutex<Source>>());
        for (column, logical_type) in source.types.iter().enumerate() {
            // the names are the harness's own: those of the result may repeat
            if let Ok(name) = c_string(&format!("c{column}")) {
                ffi::duckdb_bind_add_result_column(info, name.as_ptr(), logical_type.0);
            }
        }
    }
}

unsafe extern "C" fn init(info: ffi::duckdb_init_info) {
    // SAFETY: DuckDB calls with a valid info. One thread keeps the order of the rows.
    unsafe { ffi::duckdb_init_set_max_threads(info, 1) };
}

unsafe extern "C" fn next(info: ffi::duckdb_function_info, output: ffi::duckdb_data_chunk) {
    // SAFETY: DuckDB calls with a valid info and an output chunk of the types given at bind; the chunk that is referred to
    // is kept in `returned` until the query has ended.
    unsafe {
        let mut source = lock(&*ffi::duckdb_function_get_extra_info(info).cast::<Mutex<Source>>());
        let Some(chunk) = source.waiting.pop_front() else {
            ffi::duckdb_data_chunk_set_size(output, 0);
            return;
        };
        for column in 0..ffi::duckdb_data_chunk_get_column_count(chunk.raw()) {
            let target = ffi::duckdb_data_chunk_get_vector(output, column);
            ffi::duckdb_vector_reference_vector(target, chunk.vector(column));
        }
        ffi::duckdb_data_chunk_set_size(output, chunk.rows());
        source.returned.push(chunk);
    }
}
