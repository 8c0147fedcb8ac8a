//! `vgi`: a DuckDB extension that runs a query's table through functions on a remote VGI server.
//!
//! See `docs/ARCHITECTURE.md` for the life of a chunk. [`bridge`] is the only door between C++ and Rust; [`call`] binds a call,
//! [`buffering`] runs it, [`convert`] turns chunks into Arrow batches and back.

#[cfg(all(target_os = "linux", not(sanitized)))]
mod allocator;
pub mod bridge;
pub mod buffering;
pub mod call;
pub mod calls;
pub mod catalog;
pub mod convert;
pub mod error;
pub mod logging;
pub mod recording;
pub mod settings;
