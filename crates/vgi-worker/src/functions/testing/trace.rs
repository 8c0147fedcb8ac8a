//! What of the input reached the worker.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};

use crate::context::{BindContext, Context};
use crate::error::{Error, Result};
use crate::function::{Bound, BufferingFunction, FunctionSpec, Tick};
use crate::ids::{FinalizeId, StateId};

const CALLS: &str = "calls";

/// One row per call of `process`, in the order of their arrival: `seq, batch_index, num_rows`.
///
/// ```sql
/// FROM example.batch_trace((FROM t));
/// FROM example.serial_batch_trace((FROM t));     -- requires the input in order
/// FROM example.indexed_batch_trace((FROM t));    -- requires batch indexes
/// ```
#[derive(Debug)]
pub(super) struct BatchTrace(FunctionSpec);

impl BatchTrace {
    pub(super) fn plain() -> Self {
        Self(Self::named("batch_trace"))
    }

    pub(super) fn serial() -> Self {
        Self(Self::named("serial_batch_trace").sink_order_dependent())
    }

    pub(super) fn indexed() -> Self {
        Self(Self::named("indexed_batch_trace").requires_input_batch_index())
    }

    fn named(name: &str) -> FunctionSpec {
        FunctionSpec::new(name, "One row per batch that arrived.")
            .source_order_dependent()
            .example(format!("FROM example.{name}((FROM range(3)));"), "One batch of three rows.")
    }
}

impl BufferingFunction for BatchTrace {
    type Args = ();
    type Position = ();

    fn spec(&self) -> FunctionSpec {
        self.0.clone()
    }

    fn bind(&self, _: &BindContext<'_, ()>) -> Result<Bound> {
        let column = |name: &str, nullable| Field::new(name, DataType::Int64, nullable);
        Ok(Bound::new(Schema::new(vec![column("seq", false), column("batch_index", true), column("num_rows", false)])))
    }

    fn process(&self, batch: RecordBatch, ctx: &Context<'_, ()>) -> Result<StateId> {
        let call = serde_json::to_vec(&(ctx.batch_index(), batch.num_rows()))
            .map_err(|error| Error::Failed(error.to_string()))?;
        Ok(StateId::of_numbers(&[ctx.store().append(CALLS, call)?]))
    }

    fn combine(&self, _: Vec<StateId>, _: &Context<'_, ()>) -> Result<Vec<FinalizeId>> {
        Ok(vec![FinalizeId::of_numbers(&[])])
    }

    fn finalize(&self, _: &FinalizeId, (): (), ctx: &Context<'_, ()>) -> Result<Tick<()>> {
        let calls = ctx.store().scan(CALLS, 0, usize::MAX)?;
        let read = |call: &bytes::Bytes| {
            serde_json::from_slice::<(Option<i64>, i64)>(call).map_err(|error| Error::Failed(error.to_string()))
        };
        let (indexes, rows): (Vec<_>, Vec<_>) = calls.iter().map(read).collect::<Result<Vec<_>>>()?.into_iter().unzip();
        let sequence: Int64Array = (0..).take(rows.len()).map(Some).collect();
        let columns: Vec<ArrayRef> =
            vec![Arc::new(sequence), Arc::new(Int64Array::from(indexes)), Arc::new(Int64Array::from(rows))];
        Ok(Tick::last(RecordBatch::try_new(Arc::clone(ctx.output_schema()), columns)?))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;

    use super::*;
    use crate::functions::harness::{Call, batch_of};

    #[test]
    fn every_call_is_a_row() {
        let call = Call::new(BatchTrace::plain());
        let batch = |rows: i64| batch_of(vec![("x", Arc::new(Int64Array::from_iter_values(0..rows)) as ArrayRef)]);
        let ids = vec![call.process_one(&batch(4), Some(9)).unwrap(), call.process_one(&batch(0), None).unwrap()];
        let output = call.rest(ids).unwrap();
        let column = |index: usize| output[0].column(index).as_primitive::<Int64Type>().iter().collect::<Vec<_>>();
        assert_eq!(
            (column(0), column(1), column(2)),
            (vec![Some(0), Some(1)], vec![Some(9), None], vec![Some(4), Some(0)])
        );
    }
}
