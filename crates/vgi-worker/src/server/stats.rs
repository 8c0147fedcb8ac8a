//! Counters of what a server did, for tests and operators.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// The counters themselves.
        #[derive(Debug, Default)]
        pub(super) struct Counters {
            $(pub(super) $name: Counter,)*
        }

        /// Their names.
        pub(super) const NAMES: [&str; COUNT] = [$(stringify!($name)),*];

        /// How many there are.
        pub(super) const COUNT: usize = [$(stringify!($name)),*].len();

        /// What a server, or several that [share their counters](crate::Options::shared_counters), did since they started.
        #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
        #[non_exhaustive]
        pub struct Stats {
            /// Executions that have begun and neither ended nor expired.
            pub live_executions: u64,
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counters {
            pub(super) fn values(&self) -> [u64; COUNT] {
                [$(self.$name.get()),*]
            }
        }

        impl Stats {
            pub(super) fn of([$($name),*]: [u64; COUNT], live_executions: u64) -> Self {
                Self { live_executions, $($name),* }
            }
        }
    };
}

/// The counter that tells a height rather than how many there were.
pub(super) const PEAK: &str = "process_concurrency";

counters! {
    /// Calls of `bind`.
    bind_calls,
    /// Executions that began.
    executions,
    /// Calls of `table_buffering_process`.
    process_calls,
    /// The most calls of `table_buffering_process` that one process answered at the same time.
    process_concurrency,
    /// Calls of `table_buffering_combine`.
    combine_calls,
    /// Finalize streams that were opened.
    streams,
    /// Turns of finalize streams, the first ones included.
    turns,
    /// Streams that were cancelled.
    cancels,
    /// Calls of `table_buffering_destructor`.
    destructor_calls,
    /// Batches that `process` accepted.
    batches_in,
    /// Rows that `process` accepted.
    rows_in,
    /// Batches with rows that streams delivered.
    batches_out,
    /// Rows that streams delivered.
    rows_out,
    /// Requests that were answered with an error.
    errors,
}

#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, count: usize) {
        self.0.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn raise_to(&self, level: u64) {
        self.0.fetch_max(level, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How many there are right now.
#[derive(Debug, Default)]
pub(super) struct Gauge(AtomicU64);

impl Gauge {
    /// One more, until what is returned is dropped; also how many there are then.
    pub(super) fn enter(&self) -> (Entered<'_>, u64) {
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        (Entered(self), before + 1)
    }
}

pub(super) struct Entered<'a>(&'a Gauge);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
