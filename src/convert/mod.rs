//! DuckDB chunks to Arrow batches and back. What stands in a vector as it stands in an Arrow buffer is copied here ([`column`]); the
//! conversion of all other values is DuckDB's own (`cpp/arrow.cpp`), to which this module gives types, names and ownership, and from
//! which it takes Arrow structures over the C data interface.

mod column;
mod export;
mod import;
mod logical;
mod vector;

pub use export::{Exporter, exception_text, exported_fields, value_array};
pub use import::{Importer, duckdb_types};
