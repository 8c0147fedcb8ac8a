//! What is decided once per plan: order, columns, limits.

use std::sync::Arc;

use super::ordering::SinkMode;
use crate::bridge::ffi;
use crate::call::BoundCall;
use crate::error::Error;
use crate::settings;

/// A plan of one buffered call. Executions of the plan share it.
pub struct CallPlan {
    pub(super) inner: Arc<Plan>,
}

pub(super) struct Plan {
    pub(super) call: BoundCall,
    pub(super) mode: SinkMode,
    /// Columns that the query wants, as positions in the bound output schema.
    pub(super) columns: Vec<usize>,
    /// Whether the server narrows its output to them.
    pub(super) projected: bool,
    /// Requests in flight per sink thread.
    pub(super) window: usize,
    /// Rows of the input, as the planner estimates them.
    pub(super) expected_rows: u64,
    /// Bytes up to which chunks are merged.
    pub(super) batch_bytes: usize,
    /// Finalize streams that are open at once.
    pub(super) read_ahead: usize,
    /// Whether threads that would wait for the server are released.
    pub(super) releases_threads: bool,
    /// Bytes that the server accepts in one request.
    pub(super) request_limit: Option<usize>,
}

impl CallPlan {
    /// Plans a call for a query that wants these columns of its output.
    pub fn new(
        call: BoundCall,
        context: &ffi::ClientContext,
        columns: Vec<usize>,
        source_has_batch_index: bool,
        expected_rows: u64,
    ) -> Result<Self, Error> {
        let mode = SinkMode::decide(call.order(), source_has_batch_index);
        let request_limit = call.bound().attachment.capabilities().max_request_bytes;
        let request_limit = request_limit.map(|limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let batch_bytes = settings::size_of(context, settings::BATCH_BYTES)?;
        // merging beyond what the server accepts would only be undone
        let batch_bytes = request_limit.map_or(batch_bytes, |limit| batch_bytes.min(limit / 2));
        let all = columns.iter().copied().eq(0..call.output().len());
        let plan = Plan {
            mode,
            projected: call.function().projection_pushdown && !all && !columns.is_empty(),
            window: mode.window(settings::size_of(context, settings::INFLIGHT)?),
            expected_rows,
            batch_bytes,
            read_ahead: settings::size_of(context, settings::READ_AHEAD)?,
            releases_threads: settings::number_of(context, settings::RELEASE_THREADS)? != 0,
            request_limit,
            columns,
            call,
        };
        Ok(Self { inner: Arc::new(plan) })
    }

    /// Lines for EXPLAIN.
    pub fn explain(&self) -> Vec<(&'static str, String)> {
        let plan = &self.inner;
        let order = if self.output_order_matters() { "ordered" } else { "parallel" };
        let sink = match plan.mode {
            SinkMode::Parallel => "parallel",
            SinkMode::Serial => "one thread, in order",
            SinkMode::Indexed => "parallel, with DuckDB's batch index",
            SinkMode::Counted => "one thread, numbered",
        };
        let filters = plan.call.filters();
        let pushdown = match (plan.projected, filters.is_empty()) {
            (true, true) => "projection",
            (true, false) => "projection, filters",
            (false, true) => "none",
            (false, false) => "filters",
        };
        let mut lines = vec![
            ("Name", plan.call.function_name().to_owned()),
            ("Server", plan.call.bound().attachment.location().as_str().to_owned()),
            ("Sink", sink.to_owned()),
            ("Source", order.to_owned()),
            ("Pushdown", pushdown.to_owned()),
        ];
        if !filters.is_empty() {
            lines.push(("Filters", filters.text()));
        }
        lines
    }

    /// Whether several threads may sink.
    pub fn parallel_sink(&self) -> bool {
        self.inner.mode.is_parallel()
    }

    /// Whether the input's order must be kept.
    pub fn input_order_matters(&self) -> bool {
        self.inner.mode.depends_on_order()
    }

    /// Whether the sink needs DuckDB's batch index.
    pub fn wants_batch_index(&self) -> bool {
        self.inner.mode == SinkMode::Indexed
    }

    /// Whether the output's order must be kept.
    pub fn output_order_matters(&self) -> bool {
        self.inner.call.order().source_order_dependent
    }
}
