//! Who may run beside whom: the decision that a call's flags and its input's source leave, taken once per plan.

/// What a function declares about order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OrderFlags {
    /// The server must see the input in source order, one request after the other.
    pub sink_order_dependent: bool,
    /// Every request must carry an index that grows with source order.
    pub requires_input_batch_index: bool,
    /// The finalize streams must be read one after the other, and their rows keep that order.
    pub source_order_dependent: bool,
}

/// How the sink sends chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SinkMode {
    /// Any thread, any order, no index.
    Parallel,
    /// One thread, one request at a time, no index.
    Serial,
    /// Any thread; DuckDB's batch index says where a chunk belongs.
    Indexed,
    /// One thread, one request at a time, numbered 0, 1, 2 … because the source cannot give an index.
    Counted,
}

impl SinkMode {
    /// The table of `docs/ARCHITECTURE.md`, "Ordering". A server refuses functions with both sink flags; should one say both, order
    /// is the stronger demand, and counting serves both.
    pub fn decide(flags: OrderFlags, source_has_batch_index: bool) -> Self {
        match (flags.sink_order_dependent, flags.requires_input_batch_index) {
            (false, false) => Self::Parallel,
            (true, false) => Self::Serial,
            (false, true) if source_has_batch_index => Self::Indexed,
            (_, true) => Self::Counted,
        }
    }

    /// Whether several threads may sink.
    pub fn is_parallel(self) -> bool {
        matches!(self, Self::Parallel | Self::Indexed)
    }

    /// Whether DuckDB must keep the order of the input's parts (of UNION ALL, for one).
    pub fn depends_on_order(self) -> bool {
        self != Self::Parallel
    }

    /// Requests in flight per thread.
    pub fn window(self, wanted: usize) -> usize {
        if self.is_parallel() { wanted.max(1) } else { 1 }
    }
}

/// DuckDB numbers the batches of the n-th pipeline below a UNION ALL from n · 10^13 (`PipelineBuildState::BATCH_INCREMENT`).
const PIPELINE_STRIDE: u64 = 10_000_000_000_000;
/// A wire index has 63 bits: 13 for the pipeline, 30 for the batch in it, 20 for the request in the batch.
const PIPELINE_BITS: u32 = 13;
const BATCH_BITS: u32 = 30;
const REQUEST_BITS: u32 = 20;

/// The index of the `request`-th request of one of DuckDB's batches: unique, and growing with source order. `None` when the numbers
/// do not fit, which takes 8,192 pipelines, 10^9 row groups or 10^6 requests of one row group.
pub fn wire_batch_index(batch: u64, request: u64) -> Option<i64> {
    let pipeline = batch / PIPELINE_STRIDE;
    let batch = batch % PIPELINE_STRIDE;
    if pipeline >> PIPELINE_BITS != 0 || batch >> BATCH_BITS != 0 || request >> REQUEST_BITS != 0 {
        return None;
    }
    i64::try_from(pipeline << (BATCH_BITS + REQUEST_BITS) | batch << REQUEST_BITS | request).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flags(sink_order_dependent: bool, requires_input_batch_index: bool) -> OrderFlags {
        OrderFlags { sink_order_dependent, requires_input_batch_index, source_order_dependent: false }
    }

    #[test]
    fn truth_table() {
        let table = [
            (flags(false, false), false, SinkMode::Parallel),
            (flags(false, false), true, SinkMode::Parallel),
            (flags(true, false), false, SinkMode::Serial),
            (flags(true, false), true, SinkMode::Serial),
            (flags(false, true), true, SinkMode::Indexed),
            (flags(false, true), false, SinkMode::Counted),
            (flags(true, true), true, SinkMode::Counted),
            (flags(true, true), false, SinkMode::Counted),
        ];
        for (flags, source, mode) in table {
            assert_eq!(SinkMode::decide(flags, source), mode, "{flags:?} {source}");
        }
    }

    #[test]
    fn only_parallel_modes_have_a_window() {
        assert_eq!(SinkMode::Parallel.window(4), 4);
        assert_eq!(SinkMode::Indexed.window(4), 4);
        assert_eq!(SinkMode::Serial.window(4), 1);
        assert_eq!(SinkMode::Counted.window(4), 1);
        assert_eq!(SinkMode::Parallel.window(0), 1);
    }

    #[test]
    fn wire_indexes_grow_with_source_order_and_fit() {
        assert_eq!(wire_batch_index(0, 0), Some(0));
        assert_eq!(wire_batch_index(3, 7), Some(3 * (1 << 20) + 7));
        let order =
            [(0, 0), (0, 1), (1, 0), (999_999_999, 1_048_575), (PIPELINE_STRIDE, 0), (PIPELINE_STRIDE * 2 + 5, 1)];
        let indexes: Vec<_> = order.iter().map(|&(batch, request)| wire_batch_index(batch, request).unwrap()).collect();
        assert!(indexes.is_sorted() && indexes.windows(2).all(|pair| pair[0] < pair[1]), "{indexes:?}");
        assert_eq!(wire_batch_index(PIPELINE_STRIDE * 8_191, 0).map(|index| index > 0), Some(true));
        assert_eq!(wire_batch_index(PIPELINE_STRIDE * 8_192, 0), None);
        assert_eq!(wire_batch_index(0, 1 << 20), None);
        assert_eq!(wire_batch_index(1 << 30, 0), None);
    }
}
