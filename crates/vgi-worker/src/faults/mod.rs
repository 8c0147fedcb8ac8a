//! A server that misbehaves on request, for the tests of clients (feature `faults`).
//!
//! It is a good server with a front before it that spoils what goes through. What shall go wrong is switched per call: by [`Rule`]s,
//! `process#3=stall-in-the-body`, or by the request itself, whose header `x-vgi-fault` names a fault.
//!
//! ```
//! use vgi_worker::faults::serve_with_faults;
//! use vgi_worker::{Options, functions};
//!
//! let rules = vec!["process#3=reset-in-the-body".parse()?, "combine=status:500".parse()?];
//! let server = serve_with_faults(functions::example_catalog(true)?, Options::default(), rules)?;
//! println!("misbehaves on {}", server.url());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod fault;
mod front;
mod http;
mod reply;
mod spoil;

pub use fault::{Fault, Rule, UnknownFault};
pub use front::{FaultyHandle, serve_with_faults};
