//! Output of a wanted shape: many streams, many turns, one large batch.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::args::Args;
use crate::context::{BindContext, Context};
use crate::error::{Error, Result};
use crate::function::{Bound, BufferingFunction, FunctionSpec, Tick};
use crate::ids::{FinalizeId, StateId};

/// Several streams of rows `(part, n)`; the input is ignored.
///
/// ```sql
/// FROM example.emit_parts((FROM t), 3, 10);                 -- three streams, ten rows each
/// FROM example.ordered_parts((FROM t), 3, 10, ticks := 5);  -- the same in order, in five turns each
/// ```
///
/// A stream with fewer rows than turns has turns without rows.
#[derive(Debug)]
pub(super) struct EmitParts {
    pub(super) ordered: bool,
}

#[derive(Debug, Args)]
pub(super) struct PartsArgs {
    #[arg(doc = "Number of streams.", range = 0..=1_000_000)]
    parts: i64,
    #[arg(doc = "Rows of every stream.", range = 0..=1_000_000_000)]
    rows: i64,
    #[arg(doc = "Turns of every stream.", named, default = 2, range = 1..=1_000_000)]
    ticks: i64,
}

impl BufferingFunction for EmitParts {
    type Args = PartsArgs;
    type Position = i64;

    fn spec(&self) -> FunctionSpec {
        if self.ordered {
            FunctionSpec::new("ordered_parts", "Several streams of rows, in order.")
                .source_order_dependent()
                .example("FROM example.ordered_parts((FROM range(1)), 3, 10);", "Thirty rows in order.")
        } else {
            FunctionSpec::new("emit_parts", "Several streams of rows.")
                .example("FROM example.emit_parts((FROM range(1)), 3, 10);", "Thirty rows.")
        }
    }

    fn bind(&self, _: &BindContext<'_, PartsArgs>) -> Result<Bound> {
        Ok(Bound::new(Schema::new(vec![
            Field::new("part", DataType::Int64, false),
            Field::new("n", DataType::Int64, false),
        ])))
    }

    fn process(&self, _: RecordBatch, _: &Context<'_, PartsArgs>) -> Result<StateId> {
        Ok(StateId::of_numbers(&[]))
    }

    fn combine(&self, _: Vec<StateId>, ctx: &Context<'_, PartsArgs>) -> Result<Vec<FinalizeId>> {
        Ok((0..ctx.args.parts.cast_unsigned()).map(|part| FinalizeId::of_numbers(&[part])).collect())
    }

    fn finalize(&self, id: &FinalizeId, tick: i64, ctx: &Context<'_, PartsArgs>) -> Result<Tick<i64>> {
        let PartsArgs { rows, ticks, .. } = *ctx.args;
        let part = i64::try_from(id.numbers::<1>()?[0]).map_err(|error| Error::Failed(error.to_string()))?;
        let (start, end) = (rows * tick / ticks, rows * (tick + 1) / ticks);
        let numbers = Int64Array::from_iter_values(start..end);
        let parts = Int64Array::from_value(part, arrow_array::Array::len(&numbers));
        let batch = RecordBatch::try_new(
            Arc::clone(ctx.output_schema()),
            vec![Arc::new(parts) as ArrayRef, Arc::new(numbers)],
        )?;
        let next = (tick + 1 < ticks).then_some(tick + 1);
        let batch = (start < end).then_some(batch);
        Ok(Tick { batch, next })
    }
}

/// One batch with the rows `n = 0, 1, 2 …`, however many; the input is ignored.
///
/// ```sql
/// FROM example.emit_wide((FROM t), 1000000);
/// ```
#[derive(Debug)]
pub(super) struct EmitWide;

#[derive(Debug, Args)]
pub(super) struct WideArgs {
    #[arg(doc = "Number of rows.", range = 0..=100_000_000)]
    rows: i64,
}

impl BufferingFunction for EmitWide {
    type Args = WideArgs;
    type Position = ();

    fn spec(&self) -> FunctionSpec {
        FunctionSpec::new("emit_wide", "One batch of many rows.")
            .example("FROM example.emit_wide((FROM range(1)), 5000);", "5000 rows.")
    }

    fn bind(&self, _: &BindContext<'_, WideArgs>) -> Result<Bound> {
        Ok(Bound::new(numbers_schema()))
    }

    fn process(&self, _: RecordBatch, _: &Context<'_, WideArgs>) -> Result<StateId> {
        Ok(StateId::of_numbers(&[]))
    }

    fn combine(&self, _: Vec<StateId>, _: &Context<'_, WideArgs>) -> Result<Vec<FinalizeId>> {
        Ok(vec![FinalizeId::of_numbers(&[])])
    }

    fn finalize(&self, _: &FinalizeId, (): (), ctx: &Context<'_, WideArgs>) -> Result<Tick<()>> {
        Ok(Tick::last(numbers(ctx.output_schema(), ctx.args.rows)?))
    }
}

/// One column `n`.
pub(super) fn numbers_schema() -> Schema {
    Schema::new(vec![Field::new("n", DataType::Int64, false)])
}

/// Rows `n = 0, 1, 2 …`
pub(super) fn numbers(schema: &SchemaRef, rows: i64) -> Result<RecordBatch> {
    Ok(RecordBatch::try_new(Arc::clone(schema), vec![Arc::new(Int64Array::from_iter_values(0..rows))])?)
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;

    use super::*;
    use crate::functions::harness::{Call, batch_of};

    fn int(value: i64) -> ArrayRef {
        Arc::new(Int64Array::from(vec![value]))
    }

    fn any_input() -> Vec<RecordBatch> {
        vec![batch_of(vec![("x", int(1))])]
    }

    #[test]
    fn parts_come_in_turns_and_empty_turns_do_not_end_them() {
        let call = |rows, ticks| {
            Call::new(EmitParts { ordered: true }).positional(int(2)).positional(int(rows)).named("ticks", int(ticks))
        };
        let pairs = |output: &[RecordBatch]| {
            let of = |batch: &RecordBatch| {
                let column = |index: usize| batch.column(index).as_primitive::<Int64Type>().values().to_vec();
                column(0).into_iter().zip(column(1)).collect::<Vec<_>>()
            };
            output.iter().flat_map(of).collect::<Vec<_>>()
        };
        let output = call(5, 2).run(&any_input()).unwrap();
        assert_eq!(output.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [2, 3, 2, 3]);
        assert_eq!(pairs(&output), (0..2).flat_map(|part| (0..5).map(move |n| (part, n))).collect::<Vec<_>>());
        assert_eq!(pairs(&call(2, 7).run(&any_input()).unwrap()), [(0, 0), (0, 1), (1, 0), (1, 1)]);
        assert!(call(0, 3).run(&any_input()).unwrap().is_empty());
    }

    #[test]
    fn a_wide_batch_has_all_rows() {
        let output = Call::new(EmitWide).positional(int(10_000)).run(&any_input()).unwrap();
        assert_eq!((output.len(), output[0].num_rows()), (1, 10_000));
        assert_eq!(output[0].column(0).as_primitive::<Int64Type>().value(9_999), 9_999);
    }
}
