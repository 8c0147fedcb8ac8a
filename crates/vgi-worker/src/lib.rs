//! A kit to write VGI functions in Rust, and the server that serves them to any VGI client.
//!
//! A function implements [`BufferingFunction`]; a [`Catalog`] holds functions; [`serve`] serves a catalog over HTTP.
//!
//! ```
//! use vgi_worker::{Options, functions, serve};
//!
//! let server = serve(functions::example_catalog(false)?, Options::default())?;
//! println!("listening on {}", server.url());
//! assert_eq!(server.stats().executions, 0);
//! server.shutdown();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Any request may reach any process that serves the function, so what one request leaves for the next goes through the
//! [storage]: this process's memory, SQLite, Redis or PostgreSQL, whichever [`Options::storage`] names.
//!
//! ```
//! use vgi_worker::Options;
//!
//! let options = Options { storage: "redis://state.example:6379".parse()?, ..Options::default() };
//! assert!(options.storage.is_shared());
//! # Ok::<(), String>(())
//! ```
#![forbid(unsafe_code)]

pub mod args;
mod catalog;
mod context;
mod declared;
mod error;
mod filtering;
mod function;
pub mod functions;
mod given;
mod ids;
pub mod log;
mod server;
pub mod storage;
pub mod tokens;

pub use args::{Args, Argument, Arguments, DefaultValue};
pub use catalog::Catalog;
pub use context::{BindContext, Context};
pub use declared::Declared;
pub use error::{Error, Result};
pub use function::{Bound, BufferingFunction, Example, Filters, Flags, FunctionSpec, Tick};
pub use ids::{ExecutionId, FinalizeId, StateId};
pub use server::{Credential, Handle, Options, Stats, serve, serve_on};
pub use vgi_wire::methods::{SecretLookup, SecretTypeSpec};
