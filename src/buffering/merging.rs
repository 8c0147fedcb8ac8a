//! How many chunks go into one request.

/// Requests of one chunk that an execution sends before it merges: workers and their users expect about one call per chunk of a small
/// input, and a large one does not feel these.
const UNMERGED_REQUESTS: u64 = 48;

/// Decides after each chunk whether the request is full.
#[derive(Debug)]
pub struct Merging {
    byte_target: usize,
}

impl Merging {
    /// `byte_target` bounds a merged request; 0 never merges.
    pub fn new(byte_target: usize) -> Self {
        Self { byte_target }
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

    /// Whether a request with so many chunks and bytes should be sent now, when all threads together have sent so many requests: from
    /// the 48th on, each may hold twice the chunks of the one before.
    pub fn is_full(&self, sent: u64, chunks: usize, bytes: usize) -> bool {
        if self.byte_target == 0 {
            return true;
        }
        let doublings = sent.saturating_add(1).saturating_sub(UNMERGED_REQUESTS).min(30);
        chunks >> doublings > 0 || bytes >= self.byte_target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_48_requests_have_one_chunk_and_then_they_double() {
        let merging = Merging::new(usize::MAX);
        let chunks = |sent| (1..1000).find(|&chunks| merging.is_full(sent, chunks, 0));
        assert!((0..48).all(|sent| chunks(sent) == Some(1)));
        assert_eq!([48, 49, 50, 51].map(|sent| chunks(sent).unwrap()), [2, 4, 8, 16]);
        assert!(!merging.is_full(u64::MAX - 1, 1 << 29, 0));
    }

    #[test]
    fn the_byte_target_bounds_a_request() {
        let merging = Merging::new(1000);
        assert!(!merging.is_full(60, 2, 999));
        assert!(merging.is_full(60, 2, 1000));
    }

    #[test]
    fn a_chunk_of_long_rows_goes_in_parts() {
        let merging = Merging::new(1000);
        assert_eq!(merging.rows_at_once(2048, 0), 2048);
        assert_eq!(merging.rows_at_once(2048, 1000), 2048);
        assert_eq!(merging.rows_at_once(2048, 1_024_000), 2);
        assert_eq!(merging.rows_at_once(2, usize::MAX), 1);
        assert_eq!(merging.rows_at_once(0, 0), 1);
        assert_eq!(Merging::new(0).rows_at_once(2048, usize::MAX), 2048);
    }

    #[test]
    fn the_rest_of_a_chunk_does_not_pass_the_target() {
        let merging = Merging::new(1000);
        assert!(!merging.has_no_room(600, 400) && merging.has_no_room(600, 401));
        assert!(!merging.has_no_room(0, 5000), "nothing can go before it");
    }

    #[test]
    fn zero_never_merges() {
        let merging = Merging::new(0);
        assert!((0..100).all(|sent| merging.is_full(sent, 1, 1)));
    }
}
