//! The VGI wire protocol without I/O.
//!
//! A VGI exchange is an HTTP body that holds Arrow IPC streams. What a batch *is* (a result, a log line, an error, a token) stands in
//! the `custom_metadata` of its IPC message, which the Arrow crates drop; so this crate has its own message layer ([`ipc`]) around
//! their array encoding. On top of it stand one-row records ([`record`]), the typed requests and replies of the methods
//! ([`methods`]), the reading of replies ([`reply`]) and the writing of them ([`server`]). What differs between protocol generations
//! is a table ([`generation`]). Exchanges that are stored rather than sent are [`frame`]s.
//!
//! Nothing here opens a socket or knows DuckDB, and no input makes it panic or allocate more than the bytes at hand justify.
#![forbid(unsafe_code)]

pub mod arguments;
pub mod error;
pub mod external;
pub mod filter;
pub mod frame;
pub mod generation;
pub mod ipc;
pub mod meta;
pub mod methods;
pub mod record;
pub mod reply;
pub mod server;

pub use error::{RemoteError, WireError};
