//! One reply of a finalize stream: ticks of the function, as many as fill it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{Schema, SchemaRef};
use serde_json::Value;
use vgi_wire::ipc::Segments;
use vgi_wire::reply::Tokens;
use vgi_wire::server::ReplyWriter;

use crate::catalog::{ErasedTick, Registered};
use crate::context::Scope;
use crate::error::{Error, Result};
use crate::filtering;
use crate::function::Filters;
use crate::ids::FinalizeId;
use crate::server::execution::{Execution, guarded};
use crate::server::fault::Fault;
use crate::server::stream::{Cursor, StreamCall};
use crate::server::{Exchange, budget};
use crate::tokens::Kind;

/// How long rows wait for more of them.
const PATIENCE: Duration = Duration::from_millis(20);

/// What a batch may need in a reply beside its values: headers, padding, tokens.
const FRAME: usize = 64 << 10;

impl Exchange<'_> {
    /// A reply as a data stream, from this position on; true when it ends with an error.
    pub(super) fn next_turn(
        &self,
        execution: &Execution,
        stream: &FinalizeId,
        call: &StreamCall,
        position: Option<Value>,
        call_token: Option<String>,
    ) -> Result<(Segments, bool)> {
        self.server.counters.turns.add(1);
        let schema = execution.scope.projected_schema()?;
        let mut writer = self.writer(&schema)?;
        let limit = budget::tighter(self.budget, call.budget);
        let gathered = self.gather(execution, stream, limit, position, &mut writer);
        match &gathered {
            Ok(None) => {}
            Ok(Some(next)) => {
                let cursor = self.seal(Kind::Cursor, &Cursor { nonce: call.nonce, position: next.clone() })?;
                writer.token(&Tokens { cursor, call: call_token })?;
            }
            Err(error) => writer.error(&error.error)?,
        }
        Ok((writer.finish()?, gathered.is_err()))
    }

    /// Writes batches, and answers where the next turn begins.
    ///
    /// A reply costs both sides more than a tick of few rows does, and the client a round trip, so it holds as many batches as
    /// [`Options::page_bytes`](crate::Options::page_bytes) says, if they come quickly and the client reads several.
    fn gather(
        &self,
        execution: &Execution,
        stream: &FinalizeId,
        limit: Option<u64>,
        mut position: Option<Value>,
        writer: &mut ReplyWriter,
    ) -> Result<Option<Value>, Fault> {
        let started = Instant::now();
        let mut has_rows = false;
        loop {
            let ticked = tick(execution, stream, position.clone(), writer.schema());
            let logs = self.logger.take();
            if has_rows && ticked.as_ref().is_ok_and(|tick| is_above(limit, writer.len(), tick)) {
                // a tick may be repeated: the next turn begins with this one
                return Ok(position);
            }
            logs.iter().try_for_each(|record| writer.log(record)).map_err(Error::from)?;
            let ErasedTick { batch, next } = ticked?;
            if let Some(batch) = batch {
                writer.data(&batch).map_err(Error::from)?;
                self.server.counters.batches_out.add(usize::from(batch.num_rows() > 0));
                self.server.counters.rows_out.add(batch.num_rows());
                has_rows |= batch.num_rows() > 0;
            }
            let is_full = writer.len() >= self.server.options.page_bytes || started.elapsed() > PATIENCE;
            if next.is_none() || is_full || !self.reads_several {
                return Ok(next);
            }
            position = next;
        }
    }
}

/// One step of the function, as the client wants its rows.
fn tick(execution: &Execution, stream: &FinalizeId, position: Option<Value>, schema: &SchemaRef) -> Result<ErasedTick> {
    let Execution { function, values, scope } = execution;
    guarded(|| {
        let tick = function.finalize(values.clone(), stream, position, scope)?;
        let batch = tick.batch.map(|batch| filtered(function.as_ref(), batch, scope)).transpose()?;
        let batch = batch.map(|batch| narrow(&function.spec().name, &batch, scope, schema)).transpose()?;
        Ok(ErasedTick { batch, next: tick.next })
    })
}

/// Whether a tick may make a reply of this length one that the client refuses.
fn is_above(limit: Option<u64>, length: usize, tick: &ErasedTick) -> bool {
    let (Some(batch), Some(limit)) = (&tick.batch, limit) else { return false };
    // of what the batch shows, not of all the memory behind it, which many columns may share
    let sizes = batch.columns().iter().map(|column| column.to_data().get_slice_memory_size().unwrap_or(usize::MAX));
    let whole = sizes.fold(length.saturating_add(FRAME), usize::saturating_add);
    u64::try_from(whole).map_or(true, |whole| whole > limit)
}

/// Whether a batch of the function has all columns rather than the wanted ones only.
fn is_whole(batch: &RecordBatch, scope: &Scope) -> bool {
    let names = |schema: &Schema| schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>();
    scope.projection.is_none() || names(batch.schema_ref()) == names(&scope.output_schema)
}

/// Without the rows that the client drops, where the function leaves that to the worker.
fn filtered(function: &dyn Registered, batch: RecordBatch, scope: &Scope) -> Result<RecordBatch> {
    if function.spec().flags.filters != Filters::Applied {
        return Ok(batch);
    }
    let whole = is_whole(&batch, scope);
    let place = |column: usize| match &scope.projection {
        Some(projection) if !whole => projection.iter().position(|&wanted| wanted == column),
        _ => Some(column),
    };
    filtering::apply(&batch, &scope.filters, &place)
}

/// What a function emitted, as the client wants it. A function may emit the wanted columns only, or all.
fn narrow(function: &str, batch: &RecordBatch, scope: &Scope, wanted: &SchemaRef) -> Result<RecordBatch> {
    let unfit = |reason: &dyn std::fmt::Display| {
        Error::Failed(format!("{function} emitted a batch that does not fit its output schema: {reason}"))
    };
    let columns = match &scope.projection {
        Some(places) if is_whole(batch, scope) => {
            let column = |place: &usize| {
                batch.columns().get(*place).cloned().ok_or_else(|| unfit(&format!("no column {place}")))
            };
            places.iter().map(column).collect::<Result<Vec<_>>>()?
        }
        _ => batch.columns().to_vec(),
    };
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(Arc::clone(wanted), columns, &options).map_err(|error| unfit(&error))
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array};
    use bytes::Bytes;

    use super::*;
    use crate::functions::harness::batch_of;
    use crate::ids::ExecutionId;

    fn narrowed(batch: &RecordBatch, whole: &RecordBatch, projection: Option<Vec<usize>>) -> Result<RecordBatch> {
        let storage = Arc::new(crate::storage::MemoryStorage::new());
        let scope = Scope {
            store: crate::storage::Store::new(storage, ExecutionId::new("test")),
            input_schema: whole.schema(),
            output_schema: whole.schema(),
            projection,
            filters: Vec::new(),
            batch_index: None,
            input_blob: Bytes::new(),
            given: crate::given::Given::default(),
            logger: crate::log::Logger::default(),
        };
        narrow("f", batch, &scope, &scope.projected_schema()?)
    }

    #[test]
    fn columns_are_narrowed_by_place_and_not_by_name() {
        let column = |value: i64| Arc::new(Int64Array::from(vec![value])) as ArrayRef;
        let whole = batch_of(vec![("x", column(1)), ("x", column(2)), ("y", column(3))]);
        assert_eq!(narrowed(&whole, &whole, Some(vec![1])).unwrap().columns(), [column(2)]);
        assert_eq!(narrowed(&whole, &whole, Some(vec![2, 0])).unwrap().columns(), [column(3), column(1)]);
        assert_eq!(narrowed(&whole, &whole, None).unwrap(), whole);
        assert_eq!(narrowed(&whole, &whole, Some(vec![])).unwrap().num_rows(), 1);
        let only_y = batch_of(vec![("y", column(4))]);
        assert_eq!(narrowed(&only_y, &whole, Some(vec![2])).unwrap().columns(), [column(4)]);
        let message = narrowed(&only_y, &whole, None).unwrap_err().to_string();
        assert!(message.starts_with("f emitted a batch that does not fit its output schema"), "{message}");
    }
}
