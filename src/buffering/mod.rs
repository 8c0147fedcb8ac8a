//! The operator: a parallel sink that sends the input, one combine, and a parallel source that drains the finalize streams.
//!
//! Nothing here touches the wire or a socket (that is `vgi-transport`'s), and of DuckDB it sees chunks and the query's interrupt flag.

mod counters;
mod execution;
mod memory;
mod merging;
mod numbering;
mod observer;
mod ordering;
mod plan;
mod sink;
mod source;
mod splitting;
mod streams;

pub use counters::Clock;
pub use execution::Execution;
pub use observer::{Observer, Outcome};
pub use ordering::OrderFlags;
pub use plan::CallPlan;
pub use sink::SinkThread;
pub use source::SourceThread;
