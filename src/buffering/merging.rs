//! How many chunks go into one request.

/// Requests of one chunk that a thread sends before it merges: workers and their users expect about one call per chunk of a small
/// input, and a large one does not feel these.
const UNMERGED_REQUESTS: u32 = 48;

/// A chunk of more texts than this many requests should hold is sent in parts.
const LONGEST_CHUNK: usize = 8;

/// Decides after each chunk whether the request is full. One per sink thread.
#[derive(Debug)]
pub struct Merging {
    byte_target: usize,
    sent: u32,
    chunks_wanted: usize,
}

impl Merging {
    /// `byte_target` bounds a merged request; 0 never merges.
    pub fn new(byte_target: usize) -> Self {
        Self { byte_target, sent: 0, chunks_wanted: 1 }
    }

    /// How many rows of a chunk go into a request at once: all, unless they are so long that they would make a request of many times the
    /// target. `weight` is the size of the chunk's texts in bytes.
    pub fn rows_at_once(&self, rows: usize, weight: usize) -> usize {
        let whole = rows.max(1);
        if self.byte_target == 0 || weight / LONGEST_CHUNK <= self.byte_target {
            return whole;
        }
        let share = rows.saturating_mul(self.byte_target) / weight;
        share.clamp(1, whole)
    }

    /// Whether a request with so many chunks and bytes should be sent now.
    pub fn is_full(&self, chunks: usize, bytes: usize) -> bool {
        chunks >= self.chunks_wanted || bytes >= self.byte_target
    }

    /// Called after each request: from the 48th on, each may hold twice the chunks of the one before.
    pub fn request_sent(&mut self) {
        self.sent = self.sent.saturating_add(1);
        if self.byte_target > 0 && self.sent >= UNMERGED_REQUESTS {
            self.chunks_wanted = self.chunks_wanted.saturating_mul(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_48_requests_have_one_chunk_and_then_they_double() {
        let mut merging = Merging::new(usize::MAX);
        let mut sizes = Vec::new();
        for _ in 0..52 {
            let chunks = (1..1000).find(|&chunks| merging.is_full(chunks, 0)).unwrap();
            sizes.push(chunks);
            merging.request_sent();
        }
        assert!(sizes[..48].iter().all(|&chunks| chunks == 1));
        assert_eq!(sizes[48..], [2, 4, 8, 16]);
    }

    #[test]
    fn the_byte_target_bounds_a_request() {
        let mut merging = Merging::new(1000);
        for _ in 0..60 {
            merging.request_sent();
        }
        assert!(!merging.is_full(2, 999));
        assert!(merging.is_full(2, 1000));
    }

    #[test]
    fn a_chunk_of_long_rows_goes_in_parts() {
        let merging = Merging::new(1000);
        assert_eq!(merging.rows_at_once(2048, 0), 2048);
        assert_eq!(merging.rows_at_once(2048, 8007), 2048);
        assert_eq!(merging.rows_at_once(2048, 1_024_000), 2);
        assert_eq!(merging.rows_at_once(2, usize::MAX), 1);
        assert_eq!(merging.rows_at_once(0, 0), 1);
        assert_eq!(Merging::new(0).rows_at_once(2048, usize::MAX), 2048);
    }

    #[test]
    fn zero_never_merges() {
        let mut merging = Merging::new(0);
        for _ in 0..100 {
            assert!(merging.is_full(1, 1));
            merging.request_sent();
        }
    }
}
