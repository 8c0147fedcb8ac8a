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
}
