//! DuckDB chunks to Arrow batches and back. The conversion of values is DuckDB's own (`cpp/arrow.cpp`); this module gives it types,
//! names and ownership, and takes Arrow structures over the C data interface.

mod export;
mod import;

pub use export::{Exporter, exception_text, exported_fields, value_array};
pub use import::{Importer, duckdb_types};
