//! How many chunks go into one request.

/// Requests of one chunk that an execution sends before it merges: workers and their users expect about one call per chunk of a small
/// input, and the tests of the reference want 32 calls for 49 chunks. A server in Python spends 5 ms on each, so there are no more, and
/// an input that is known to be large begins to merge at once.
const UNMERGED_REQUESTS: u64 = 32;

/// Rows from which an input is large.
const LARGE_INPUT: u64 = 500_000;

/// Decides after each chunk whether the request is full.
#[derive(Debug)]
pub struct Merging {
    byte_target: usize,
    /// Requests of one chunk.
    unmerged: u64,
}

impl Merging {
    /// `byte_target` bounds a merged request; 0 never merges. The planner expects so many rows.
    pub fn new(byte_target: usize, expected_rows: u64) -> Self {
        Self { byte_target, unmerged: if expected_rows < LARGE_INPUT { UNMERGED_REQUESTS } else { 1 } }
    }

    /// How many rows of a chunk go into a request at once: all, unless they would make it larger than the target. `weight` is the size of
    /// the chunk in bytes, as far as it is known.
    pub fn rows_at_once(&self, rows: usize, weight: usize) -> usize {
        let whole = rows.max(1);
        if self.byte_target == 0 || weight <= self.byte_target {
            return whole;
        }
        let share = rows.saturating_mul(self.byte_target) / weight;
        share.clamp(1, whole)
    }

    /// Whether a request with so many bytes has to go before a chunk of this weight. Servers and what stands before them bound requests
    /// without saying so (axum 2 MiB, nginx 1 MiB), so the target is not passed by the rest of a chunk.
    pub fn has_no_room(&self, bytes: usize, weight: usize) -> bool {
        bytes > 0 && bytes.saturating_add(weight) > self.byte_target
    }

    /// Whether a request with so many chunks and bytes should be sent now, when all threads together have sent so many requests:
    /// after those of one chunk, each may hold twice the chunks of the one before.
    pub fn is_full(&self, sent: u64, chunks: usize, bytes: usize) -> bool {
        if self.byte_target == 0 {
            return true;
        }
        let doublings = sent.saturating_add(1).saturating_sub(self.unmerged).min(30);
        chunks >> doublings > 0 || bytes >= self.byte_target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_32_requests_have_one_chunk_and_then_they_double() {
        let merging = Merging::new(usize::MAX, 0);
        let chunks = |sent| (1..1000).find(|&chunks| merging.is_full(sent, chunks, 0));
        assert!((0..32).all(|sent| chunks(sent) == Some(1)));
        assert_eq!([32, 33, 34, 35].map(|sent| chunks(sent).unwrap()), [2, 4, 8, 16]);
        assert!(!merging.is_full(u64::MAX - 1, 1 << 29, 0));
        let large = Merging::new(usize::MAX, LARGE_INPUT);
        assert_eq!(
            [0, 1, 2].map(|sent| (1..9).find(|&chunks| large.is_full(sent, chunks, 0))),
            [Some(1), Some(2), Some(4)]
        );
    }

    #[test]
    fn a_hundred_thousand_rows_are_at_least_32_calls() {
        let merging = Merging::new(1_900_000, 100_000);
        let (mut sent, mut chunks) = (0, 0);
        for _ in 0..100_000_usize.div_ceil(2048) {
            chunks += 1;
            if merging.is_full(sent, chunks, chunks * 2048 * 8) {
                (sent, chunks) = (sent + 1, 0);
            }
        }
        assert!(sent >= 32, "{sent}");
    }

    #[test]
    fn the_byte_target_bounds_a_request() {
        let merging = Merging::new(1000, 0);
        assert!(!merging.is_full(60, 2, 999));
        assert!(merging.is_full(60, 2, 1000));
    }

    #[test]
    fn a_chunk_of_long_rows_goes_in_parts() {
        let merging = Merging::new(1000, 0);
        assert_eq!(merging.rows_at_once(2048, 0), 2048);
        assert_eq!(merging.rows_at_once(2048, 1000), 2048);
        assert_eq!(merging.rows_at_once(2048, 1_024_000), 2);
        assert_eq!(merging.rows_at_once(2, usize::MAX), 1);
        assert_eq!(merging.rows_at_once(0, 0), 1);
        assert_eq!(Merging::new(0, 0).rows_at_once(2048, usize::MAX), 2048);
    }

    #[test]
    fn the_rest_of_a_chunk_does_not_pass_the_target() {
        let merging = Merging::new(1000, 0);
        assert!(!merging.has_no_room(600, 400) && merging.has_no_room(600, 401));
        assert!(!merging.has_no_room(0, 5000), "nothing can go before it");
    }

    #[test]
    fn zero_never_merges() {
        let merging = Merging::new(0, 0);
        assert!((0..100).all(|sent| merging.is_full(sent, 1, 1)));
    }
}
