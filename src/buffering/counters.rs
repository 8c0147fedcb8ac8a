//! How far an execution got. What was observed and what was accepted are counted apart, on the way in and on the way out, so that an
//! error can say which rows the server had.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Batches and their rows.
#[derive(Default)]
pub(super) struct Tally {
    batches: AtomicU64,
    rows: AtomicU64,
}

impl Tally {
    /// Counts one batch.
    pub(super) fn add(&self, rows: usize) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.rows.fetch_add(u64::try_from(rows).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (batches, rows) = (self.batches.load(Ordering::Relaxed), self.rows.load(Ordering::Relaxed));
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        write!(f, "{rows} row{} in {batches} batch{}", plural(rows), if batches == 1 { "" } else { "es" })
    }
}

/// All four counts.
#[derive(Default)]
pub(super) struct Counters {
    /// Sent to the server.
    pub(super) sent: Tally,
    /// Acknowledged by it.
    pub(super) accepted: Tally,
    /// Read from its streams.
    pub(super) received: Tally,
}

impl Counters {
    /// Whether the server was sent anything.
    pub(super) fn any_sent(&self) -> bool {
        self.sent.batches.load(Ordering::Relaxed) > 0
    }
}

impl fmt::Display for Counters {
    /// The sentence that an error ends with.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server had accepted {} of {} sent", self.accepted, self.sent)?;
        if self.received.batches.load(Ordering::Relaxed) > 0 {
            write!(f, " and had returned {}", self.received)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_the_server_had() {
        let counters = Counters::default();
        assert!(!counters.any_sent());
        counters.sent.add(2048);
        counters.sent.add(1);
        counters.accepted.add(1);
        assert_eq!(counters.to_string(), "the server had accepted 1 row in 1 batch of 2049 rows in 2 batches sent");
        counters.received.add(7);
        assert!(counters.to_string().ends_with("and had returned 7 rows in 1 batch"));
    }
}
