//! How far an execution got. What was observed and what was accepted are counted apart, on the way in and on the way out, so that an
//! error can say which rows the server had.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use vgi_transport::{Exchange, Phase};

/// Batches and their rows.
#[derive(Default)]
pub struct Tally {
    batches: AtomicU64,
    rows: AtomicU64,
}

impl Tally {
    /// Counts one batch.
    pub(super) fn add(&self, rows: usize) {
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.rows.fetch_add(count(rows), Ordering::Relaxed);
    }

    /// Batches so far.
    pub fn batches(&self) -> u64 {
        self.batches.load(Ordering::Relaxed)
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (batches, rows) = (self.batches(), self.rows());
        let plural = |count: u64, one, many| if count == 1 { one } else { many };
        write!(f, "{rows} row{} in {batches} batch{}", plural(rows, "", "s"), plural(batches, "", "es"))
    }
}

/// Time that threads spent on something, added up over all of them.
#[derive(Default)]
pub struct Clock(AtomicU64);

impl Clock {
    /// Runs the body and adds the time that it took.
    pub(super) fn time<T>(&self, body: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = body();
        self.add(start.elapsed());
        result
    }

    fn add(&self, duration: Duration) {
        self.0.fetch_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Milliseconds so far.
    pub fn milliseconds(&self) -> f64 {
        Duration::from_nanos(self.0.load(Ordering::Relaxed)).as_secs_f64() * 1000.0
    }
}

/// Requests of one phase.
#[derive(Default)]
pub struct Requests {
    count: AtomicU64,
    /// From the hand-over of a request to the last byte of its reply, added up: network and server.
    pub answered_in: Clock,
}

impl Requests {
    /// Answered requests so far.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// Everything that is counted of an execution.
#[derive(Default)]
pub struct Counters {
    /// Sent to the server.
    pub sent: Tally,
    /// Acknowledged by it.
    pub accepted: Tally,
    /// Read from its streams.
    pub received: Tally,
    /// Given to the query.
    pub delivered: Tally,
    /// Bytes of requests.
    pub bytes_out: AtomicU64,
    /// Bytes of replies.
    pub bytes_in: AtomicU64,
    /// Converting and encoding the input.
    pub encoding: Clock,
    /// Waiting for replies.
    pub waiting: Clock,
    /// Decoding and converting the output.
    pub decoding: Clock,
    /// The primary init.
    pub init: Requests,
    /// Requests of the input.
    pub process: Requests,
    /// The end of the input.
    pub combine: Requests,
    /// Turns of the output's streams.
    pub finalize: Requests,
}

impl Counters {
    /// Whether the server was sent anything.
    pub(super) fn any_sent(&self) -> bool {
        self.sent.batches() > 0
    }

    /// Which part of the rows sent the server has accepted; 1 before there are any.
    pub(super) fn accepted_share(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a progress bar needs no more")]
        let part = |tally: &Tally| tally.rows() as f64;
        if self.any_sent() { (part(&self.accepted) / part(&self.sent)).clamp(0.0, 1.0) } else { 1.0 }
    }

    pub(super) fn exchanged(&self, exchange: &Exchange<'_>) {
        self.bytes_out.fetch_add(count(exchange.sent_bytes), Ordering::Relaxed);
        self.bytes_in.fetch_add(count(exchange.received_bytes), Ordering::Relaxed);
        let requests = match exchange.phase {
            Phase::Init => &self.init,
            Phase::Process => &self.process,
            Phase::Combine => &self.combine,
            Phase::Finalize => &self.finalize,
            _ => return,
        };
        requests.count.fetch_add(1, Ordering::Relaxed);
        requests.answered_in.add(exchange.elapsed);
    }

    /// Lines for EXPLAIN ANALYZE.
    pub(super) fn report(&self) -> Vec<(&'static str, String)> {
        let total = |bytes: &AtomicU64| bytes.load(Ordering::Relaxed);
        let phases = [&self.init, &self.process, &self.combine, &self.finalize];
        let answered: f64 = phases.iter().map(|requests| requests.answered_in.milliseconds()).sum();
        vec![
            ("Sent", self.sent.to_string()),
            ("Accepted", self.accepted.to_string()),
            ("Received", self.received.to_string()),
            (
                "Requests",
                format!(
                    "{} process, {} finalize, {} other",
                    self.process.count(),
                    self.finalize.count(),
                    self.init.count() + self.combine.count()
                ),
            ),
            ("Bytes", format!("{} out, {} in", total(&self.bytes_out), total(&self.bytes_in))),
            (
                "Milliseconds",
                format!(
                    "encode {:.1}, wait {:.1}, decode {:.1}, server and network {answered:.1}",
                    self.encoding.milliseconds(),
                    self.waiting.milliseconds(),
                    self.decoding.milliseconds()
                ),
            ),
        ]
    }
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

impl fmt::Display for Counters {
    /// The sentence that an error ends with.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server had accepted {} of {} sent", self.accepted, self.sent)?;
        if self.received.batches() > 0 {
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
