#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

// what `#[derive(Args)]` generates names this crate
extern crate self as vgi_worker;

pub mod args;
mod catalog;
mod context;
mod declared;
mod error;
#[cfg(feature = "faults")]
pub mod faults;
mod filtering;
mod function;
pub mod functions;
mod given;
mod ids;
pub mod log;
mod server;
pub mod storage;
pub mod tokens;
mod transactions;

pub use args::{Args, Argument, Arguments, DefaultValue};
pub use catalog::Catalog;
pub use context::{BindContext, Context};
pub use declared::Declared;
pub use error::{Error, Result};
pub use function::{Bound, BufferingFunction, Cardinality, Example, Filters, Flags, FunctionSpec, Tick};
pub use ids::{ExecutionId, FinalizeId, StateId};
pub use server::{Credential, Handle, Options, Stats, serve, serve_on};
pub use transactions::{TransactionContext, Transactions};
pub use vgi_wire::methods::{SecretLookup, SecretTypeSpec, Stability};
