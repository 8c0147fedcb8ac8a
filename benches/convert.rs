//! What it costs to turn DuckDB's chunks into a batch, and a batch into chunks.

#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark")]

use std::ffi::CString;
use std::hint::black_box;
use std::pin::Pin;
use std::ptr;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use libduckdb_sys as duckdb;
use vgi::bridge::{SharedType, ffi};
use vgi::convert::{Exporter, Importer, exported_fields};

/// Rows of a chunk, and chunks of a batch.
const ROWS: usize = 2048;
const CHUNKS: usize = 30;

const COLUMNS: [(&str, &str); 6] = [
    ("bigint", "i"),
    ("bigint with NULLs", "CASE WHEN i % 7 > 0 THEN i END"),
    ("varchar(16)", "lpad(i::VARCHAR, 16, 'x')"),
    ("varchar(16) with NULLs", "CASE WHEN i % 7 > 0 THEN lpad(i::VARCHAR, 16, 'x') END"),
    ("256-byte strings", "repeat('é', 124) || lpad(i::VARCHAR, 8, '0')"),
    ("list<struct>", "[{'a': i, 'b': 'x' || i}, {'a': i + 1, 'b': NULL}]"),
];

/// A connection to a database in memory; it lives as long as the process.
#[derive(Clone, Copy)]
struct Connection {
    raw: duckdb::duckdb_connection,
    context: *mut ffi::ClientContext,
}

/// The first chunk of a query's result, and the type of its column.
struct Input {
    chunk: duckdb::duckdb_data_chunk,
    column_type: duckdb::duckdb_logical_type,
}

impl Connection {
    fn new() -> Self {
        let (mut database, mut raw, mut wrapper) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: the handles are valid from their creation on, and never closed. The wrapper holds nothing but a reference to the context.
        let context = unsafe {
            assert_eq!(duckdb::duckdb_open(ptr::null(), &raw mut database), duckdb::DuckDBSuccess);
            assert_eq!(duckdb::duckdb_connect(database, &raw mut raw), duckdb::DuckDBSuccess);
            duckdb::duckdb_connection_get_client_context(raw, &raw mut wrapper);
            *wrapper.cast::<*mut ffi::ClientContext>()
        };
        Self { raw, context }
    }

    fn context<'a>(self) -> Pin<&'a mut ffi::ClientContext> {
        // SAFETY: the context lives as long as the connection, which is for ever, and is used by one thread.
        unsafe { Pin::new_unchecked(&mut *self.context) }
    }

    fn query(self, expression: &str) -> Input {
        let sql = CString::new(format!("SELECT {expression} AS c FROM range({ROWS}) r(i)")).unwrap();
        // SAFETY: the result is live until the end of the block; chunk and type are of their own.
        unsafe {
            let mut result = std::mem::zeroed();
            assert_eq!(duckdb::duckdb_query(self.raw, sql.as_ptr(), &raw mut result), duckdb::DuckDBSuccess);
            let column_type = duckdb::duckdb_column_logical_type(&raw mut result, 0);
            let chunk = duckdb::duckdb_fetch_chunk(result);
            duckdb::duckdb_destroy_result(&raw mut result);
            assert_eq!(duckdb::duckdb_data_chunk_get_size(chunk), ROWS as u64);
            Input { chunk, column_type }
        }
    }
}

impl Input {
    fn chunk(&self) -> &ffi::DataChunk {
        // SAFETY: the handle of a chunk is a pointer to it.
        unsafe { &*self.chunk.cast::<ffi::DataChunk>() }
    }

    fn columns(&self) -> Vec<(String, SharedType)> {
        // SAFETY: the handle of a type is a pointer to it.
        let column_type = unsafe { &*self.column_type.cast::<ffi::LogicalType>() };
        vec![("c".to_owned(), SharedType::copy(column_type))]
    }
}

fn collect(exporter: &mut Exporter, chunk: &ffi::DataChunk) -> RecordBatch {
    for _ in 0..CHUNKS {
        exporter.append(black_box(chunk), 0, ROWS).unwrap();
    }
    exporter.take().unwrap()
}

fn benches(criterion: &mut Criterion) {
    let connection = Connection::new();
    for (name, expression) in COLUMNS {
        let input = connection.query(expression);
        let fields = exported_fields(connection.context(), &input.columns()).unwrap();
        let schema: SchemaRef = Arc::new(Schema::new(fields));
        let mut exporter = Exporter::new(connection.context(), &input.columns(), Arc::clone(&schema)).unwrap();
        let batch = collect(&mut exporter, input.chunk());
        let mut importer = Importer::new(connection.context(), &schema).unwrap();
        let mut types = [input.column_type];
        // SAFETY: the type is live; the chunk is never freed.
        let target = unsafe { duckdb::duckdb_create_data_chunk(types.as_mut_ptr(), 1) };

        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements((ROWS * CHUNKS) as u64));
        group.bench_function("out", |bencher| bencher.iter(|| collect(&mut exporter, input.chunk())));
        group.bench_function("in", |bencher| {
            bencher.iter(|| {
                importer.set_batch(black_box(&batch)).unwrap();
                for chunk in 0..CHUNKS {
                    // SAFETY: the handle of a chunk is a pointer to it, and nothing else refers to this one.
                    let filled = unsafe {
                        duckdb::duckdb_data_chunk_reset(target);
                        Pin::new_unchecked(&mut *target.cast::<ffi::DataChunk>())
                    };
                    importer.read(connection.context(), chunk * ROWS, ROWS, &[0], filled).unwrap();
                }
            });
        });
        group.finish();
    }
}

criterion_group!(convert, benches);
criterion_main!(convert);
