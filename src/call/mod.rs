//! Binding of a call: from what the statement says to what the server agreed to.

mod arguments;
mod bound;
mod filters;
mod request;
mod secrets;

pub use bound::BoundCall;
pub use filters::{FilterBuilder, Filters};
pub use request::CallRequest;
