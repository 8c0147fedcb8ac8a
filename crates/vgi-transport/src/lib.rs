//! Blocking, interruptible HTTP client for VGI servers.
//!
//! A buffered call is [`attach`], [`Attachment::bind`], [`Execution::start`], [`Execution::process`] for every chunk,
//! [`Execution::combine`], and [`Execution::open_stream`] for every stream of the output. Callers are plain threads: every wait takes an
//! [`Interrupt`] that it asks many times a second, every request runs under clocks and limits ([`Options`]), and every failure is one
//! sentence that names phase, function and server ([`Error`]). A request that never left, or that changes nothing on the server, is tried
//! again ([`Options::retries`]).
//!
//! The bytes are moved by two threads that belong to the process; all other work happens on the threads that wait. Executions and streams
//! that are dropped clean up behind themselves in the background; [`drain_background`] waits for that.
#![forbid(unsafe_code)]

mod attachment;
mod background;
mod body;
mod capabilities;
mod catalog;
mod client;
mod clocks;
mod compression;
mod contact;
mod cookies;
mod encoding;
mod error;
mod exchange;
mod execution;
mod external;
mod flight;
mod interrupt;
mod listings;
mod location;
mod lookup;
mod near;
mod options;
mod peer;
mod pending;
mod retry;
mod runtime;
mod session;
mod stream;
mod transaction;
mod upload;
mod verdict;

pub use attachment::{Attachment, Bound, attach, attach_with};
pub use background::drain_background;
pub use capabilities::Capabilities;
pub use catalog::catalogs;
pub use compression::Compression;
pub use error::{Error, ErrorKind, Phase};
pub use execution::{Execution, InitOptions};
pub use interrupt::{Interrupt, NeverInterrupted};
pub use listings::{FunctionKind, Listing};
pub use location::Location;
pub use options::{EventSink, Exchange, Options, Proxy};
pub use pending::Pending;
pub use runtime::shutdown;
pub use stream::FinalizeStream;
pub use transaction::Transaction;
