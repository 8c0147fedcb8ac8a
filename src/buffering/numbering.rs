//! The indexes that requests carry: where their rows stand in source order.

use std::sync::atomic::{AtomicU64, Ordering};

use super::ordering::SinkMode;
use crate::error::{Error, ExceptionClass};

/// DuckDB numbers the batches of the n-th pipeline below a UNION ALL from n · 10^13 (`PipelineBuildState::BATCH_INCREMENT`).
const PIPELINE_STRIDE: u64 = 10_000_000_000_000;
/// An index on the wire has 63 bits: 10 for the pipeline, 27 for the batch in it, 18 for the request in the batch, and 8 for the piece of a
/// request that the server found too large.
const PIPELINE_BITS: u32 = 10;
const BATCH_BITS: u32 = 27;
const REQUEST_BITS: u32 = 18;
const PIECE_BITS: u32 = 8;

/// The index of a request, and how many indexes from there on are its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) index: Option<i64>,
    room: i64,
}

impl Place {
    /// The places of the pieces that a request is sent in; `None` when it has too few. Where nothing is numbered there are always enough.
    pub(super) fn divide(self, pieces: usize) -> Option<Vec<Self>> {
        let Some(first) = self.index else { return Some(vec![self; pieces]) };
        let room = self.room / i64::try_from(pieces.max(1)).ok()?;
        (room > 0).then(|| (0..).take(pieces).map(|piece| Self { index: Some(first + piece * room), room }).collect())
    }
}

/// Numbers the requests of one sink thread.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    /// DuckDB's batch that the chunks in the exporter belong to.
    pub(super) batch: u64,
    /// Requests sent of this batch.
    requests: u64,
}

impl Numbering {
    /// The first request of a batch comes next.
    pub(super) fn of(batch: u64) -> Self {
        Self { batch, requests: 0 }
    }

    /// The place of the next request. The parts of a UNION ALL have a sink thread each, so the sink that counts does so for all of them.
    pub(super) fn next(&mut self, mode: SinkMode, counted: &AtomicU64) -> Result<Place, Error> {
        let (index, room) = match mode {
            SinkMode::Parallel | SinkMode::Serial => return Ok(Place::default()),
            SinkMode::Counted => (i64::try_from(counted.fetch_add(1, Ordering::Relaxed)).ok(), 1),
            SinkMode::Indexed => (wire_index(self.batch, self.requests), 1 << PIECE_BITS),
        };
        self.requests += 1;
        let too_large =
            || Error::new(ExceptionClass::NotImplemented, "the input has more batches than a batch index can number");
        index.map(|index| Place { index: Some(index), room }).ok_or_else(too_large)
    }
}

/// The index of the `request`-th request of one of DuckDB's batches: unique, and growing with source order. `None` when the numbers
/// do not fit, which takes 1,024 pipelines, 10^8 row groups or 262,144 requests of one row group.
fn wire_index(batch: u64, request: u64) -> Option<i64> {
    let pipeline = batch / PIPELINE_STRIDE;
    let batch = batch % PIPELINE_STRIDE;
    if pipeline >> PIPELINE_BITS != 0 || batch >> BATCH_BITS != 0 || request >> REQUEST_BITS != 0 {
        return None;
    }
    let index = (pipeline << BATCH_BITS | batch) << REQUEST_BITS | request;
    i64::try_from(index << PIECE_BITS).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_grow_with_source_order_and_fit() {
        assert_eq!(wire_index(0, 0), Some(0));
        assert_eq!(wire_index(3, 7), Some((3 * (1 << 18) + 7) * 256));
        let order =
            [(0, 0), (0, 1), (1, 0), ((1 << 27) - 1, 262_143), (PIPELINE_STRIDE, 0), (PIPELINE_STRIDE * 2 + 5, 1)];
        let indexes: Vec<_> = order.iter().map(|&(batch, request)| wire_index(batch, request).unwrap()).collect();
        assert!(indexes.windows(2).all(|pair| pair[0] + 256 <= pair[1]), "{indexes:?}");
        assert_eq!(wire_index(PIPELINE_STRIDE * 1_023, 0).map(|index| index > 0), Some(true));
        assert_eq!(wire_index(PIPELINE_STRIDE * 1_024, 0), None);
        assert_eq!(wire_index(0, 1 << 18), None);
        assert_eq!(wire_index(1 << 27, 0), None);
    }

    #[test]
    fn pieces_and_their_pieces_stand_between_two_requests() {
        let counted = AtomicU64::new(0);
        let mut numbering = Numbering::of(5);
        let [first, second] = [(); 2].map(|()| numbering.next(SinkMode::Indexed, &counted).unwrap());
        let halves = first.divide(2).unwrap();
        let mut places = halves[0].divide(3).unwrap();
        places.push(halves[1]);
        places.push(second);
        let indexes: Vec<_> = places.iter().map(|place| place.index.unwrap()).collect();
        assert!(indexes.windows(2).all(|pair| pair[0] < pair[1]) && indexes[0] == first.index.unwrap(), "{indexes:?}");
        assert_eq!(first.divide(256).map(|pieces| pieces.len()), Some(256));
        assert_eq!(first.divide(257), None);
        assert_eq!(halves[0].divide(129), None);
    }

    #[test]
    fn a_sink_that_counts_has_no_room_and_one_without_indexes_needs_none() {
        let counted = AtomicU64::new(7);
        let mut numbering = Numbering::default();
        let place = numbering.next(SinkMode::Counted, &counted).unwrap();
        assert_eq!((place.index, place.divide(1), place.divide(2)), (Some(7), Some(vec![place]), None));
        let place = numbering.next(SinkMode::Parallel, &counted).unwrap();
        assert_eq!((place.index, place.divide(100).map(|pieces| pieces.len())), (None, Some(100)));
    }
}
