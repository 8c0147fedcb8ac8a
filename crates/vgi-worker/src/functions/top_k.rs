//! The first rows of an order.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_select::concat::concat_batches;

use crate::args::Args;
use crate::context::{BindContext, Context};
use crate::error::Result;
use crate::function::{Bound, BufferingFunction, Cardinality, FunctionSpec, Tick};
use crate::functions::merge::PAGE;
use crate::functions::ordering::{OrderArgs, Ordering, take_rows};
use crate::functions::pages;
use crate::ids::{FinalizeId, StateId};

const NAME: &str = "top_k";
const CANDIDATES: &str = "candidates";
const TOP: &str = "top";

/// The first `k` rows in the order of the named columns, or of all columns from left to right.
///
/// ```sql
/// FROM example.top_k((FROM orders), 10, 'price', descending := true);
/// FROM example.top_k((FROM orders), 10);
/// ```
///
/// NULLs come last in both directions. Which of the rows that tie for the last place are given is open. The input may be of any size:
/// only the first `k` rows of each piece are kept, and two times `k` rows are in memory.
#[derive(Debug)]
pub struct TopK;

/// Arguments of [`TopK`].
#[derive(Debug, Args)]
pub struct TopArgs {
    #[arg(doc = "How many rows.")]
    k: usize,
    #[arg(flatten)]
    order: OrderArgs,
}

impl TopArgs {
    fn first(&self, ordering: &Ordering, batch: &RecordBatch) -> Result<RecordBatch> {
        let mut places = ordering.sorted_places(batch)?;
        places.truncate(self.k);
        take_rows(batch, &places)
    }
}

impl BufferingFunction for TopK {
    type Args = TopArgs;
    type Position = u64;

    fn spec(&self) -> FunctionSpec {
        FunctionSpec::new(NAME, "The first k rows in the order of the named columns or of all; NULLs last.")
            .source_order_dependent()
            .projection_pushdown()
            .category("table")
            .example("FROM example.top_k((FROM range(10) t(i)), 2, 'i', descending := true);", "9 and 8.")
    }

    fn bind(&self, ctx: &BindContext<'_, TopArgs>) -> Result<Bound> {
        ctx.args.order.of(NAME, ctx.input_schema())?;
        Ok(Bound::new(Arc::clone(ctx.input_schema())))
    }

    fn cardinality(&self, ctx: &BindContext<'_, TopArgs>) -> Result<Cardinality> {
        Ok(Cardinality::at_most(u64::try_from(ctx.args.k).unwrap_or(u64::MAX)))
    }

    fn process(&self, batch: RecordBatch, ctx: &Context<'_, TopArgs>) -> Result<StateId> {
        let ordering = ctx.args.order.of(NAME, ctx.input_schema())?;
        let first = ctx.args.first(&ordering, &batch)?;
        Ok(StateId::of_numbers(&[ctx.store().append_batch(CANDIDATES, &first)?]))
    }

    fn combine(&self, ids: Vec<StateId>, ctx: &Context<'_, TopArgs>) -> Result<Vec<FinalizeId>> {
        let ordering = ctx.args.order.of(NAME, ctx.input_schema())?;
        let mut top = RecordBatch::new_empty(Arc::clone(ctx.input_schema()));
        for id in &ids {
            let more = ctx.store().batch(CANDIDATES, id.numbers::<1>()?[0])?;
            top = ctx.args.first(&ordering, &concat_batches(ctx.input_schema(), [&top, &more])?)?;
        }
        let pages = (0..top.num_rows())
            .step_by(PAGE)
            .map(|start| ctx.store().append_batch(TOP, &top.slice(start, PAGE.min(top.num_rows() - start))));
        pages::plan(ctx.store(), &pages.collect::<Result<Vec<_>>>()?)
    }

    fn finalize(&self, id: &FinalizeId, position: u64, ctx: &Context<'_, TopArgs>) -> Result<Tick<u64>> {
        pages::tick(ctx.store(), TOP, id, position)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{ArrayRef, BooleanArray, Int64Array};

    use super::*;
    use crate::functions::harness::{Call, batch_of};

    fn numbers(values: Vec<Option<i64>>) -> RecordBatch {
        batch_of(vec![("n", Arc::new(Int64Array::from(values)) as ArrayRef)])
    }

    fn top(k: i64, descending: bool, input: &[RecordBatch]) -> Vec<Option<i64>> {
        let call = Call::new(TopK).input(numbers(vec![]).schema()).positional(Arc::new(Int64Array::from(vec![k])));
        let output = call.named("descending", Arc::new(BooleanArray::from(vec![descending]))).run(input).unwrap();
        output.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().iter().collect::<Vec<_>>()).collect()
    }

    #[test]
    fn the_first_rows_come_in_order_with_ties_and_nulls_last() {
        let input = [numbers(vec![Some(5), None, Some(1)]), numbers(vec![]), numbers(vec![Some(1), Some(9)])];
        assert_eq!(top(3, false, &input), [Some(1), Some(1), Some(5)]);
        assert_eq!(top(2, true, &input), [Some(9), Some(5)]);
        assert_eq!(top(9, false, &input), [Some(1), Some(1), Some(5), Some(9), None]);
        assert_eq!(top(0, false, &input), []);
        assert_eq!(top(1, false, &[numbers(vec![Some(7)])]), [Some(7)]);
        assert_eq!(top(3, false, &[]), []);
    }

    #[test]
    fn a_large_k_comes_in_pages() {
        let count = i64::try_from(PAGE).unwrap() * 2;
        let input: Vec<_> =
            (0..4).map(|start| numbers((0..count / 2).map(|i| Some(i * 4 + start)).collect())).collect();
        let all = top(count + 5, false, &input);
        assert_eq!(all, (0..count + 5).map(|i| (i < 2 * count).then_some(i)).collect::<Vec<_>>());
    }

    #[test]
    fn a_negative_k_is_refused() {
        let call = Call::new(TopK).positional(Arc::new(Int64Array::from(vec![-1])));
        let message = call.run(&[numbers(vec![Some(1)])]).unwrap_err().to_string();
        assert_eq!(message, "top_k: argument 'k' must be at least 0, not -1");
    }
}
