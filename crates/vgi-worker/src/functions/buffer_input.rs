//! Functions that give every row of their input back.

use std::sync::Arc;

use arrow_array::RecordBatch;

use crate::context::{BindContext, Context};
use crate::error::{Error, Result};
use crate::function::{Bound, BufferingFunction, Filters, FunctionSpec, Tick};
use crate::functions::pages;
use crate::ids::{FinalizeId, StateId};

const INPUT: &str = "input";

/// Gives every row back, one output batch per input batch, whatever the types of the columns.
///
/// ```sql
/// FROM example.buffer_input((FROM orders));
/// FROM example.filtered_buffer_input((FROM orders)) WHERE id < 10;  -- rows that the query drops do not come back
/// FROM example.ordered_buffer_input((FROM orders ORDER BY id));     -- rows in the order of the source
/// FROM example.batch_index_buffer_input((FROM 'orders.parquet'));   -- the same, but the input is sent in parallel
/// ```
///
/// The batches are stored as they came, so the worker holds the whole input.
#[derive(Debug)]
pub struct BufferInput(Order);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// None.
    Any,
    /// None, without the rows that the query drops.
    Filtered,
    /// That of the calls of `process`.
    Arrival,
    /// That of the batch indexes.
    BatchIndex,
}

impl BufferInput {
    /// `buffer_input`: rows in any order.
    #[must_use]
    pub fn new() -> Self {
        Self(Order::Any)
    }

    /// `filtered_buffer_input`: rows in any order, without those that the query drops.
    #[must_use]
    pub fn filtered() -> Self {
        Self(Order::Filtered)
    }

    /// `ordered_buffer_input`: rows in source order, through a serial input.
    #[must_use]
    pub fn ordered() -> Self {
        Self(Order::Arrival)
    }

    /// `batch_index_buffer_input`: rows in source order, through the index of every batch.
    #[must_use]
    pub fn by_batch_index() -> Self {
        Self(Order::BatchIndex)
    }
}

impl Default for BufferInput {
    fn default() -> Self {
        Self::new()
    }
}

impl BufferingFunction for BufferInput {
    type Args = ();
    type Position = u64;

    fn spec(&self) -> FunctionSpec {
        let spec = match self.0 {
            Order::Any => FunctionSpec::new("buffer_input", "Every row of the input, in any order.")
                .example("FROM example.buffer_input((FROM range(10)));", "Ten rows go to the worker and come back."),
            Order::Filtered => {
                FunctionSpec::new("filtered_buffer_input", "The rows of the input that the query wants.")
                    .filters(Filters::Applied)
                    .example(
                        "FROM example.filtered_buffer_input((FROM range(10))) WHERE range < 3;",
                        "Three rows come back.",
                    )
            }
            Order::Arrival => {
                FunctionSpec::new("ordered_buffer_input", "Every row of the input, in the order of the source.")
                    .sink_order_dependent()
                    .source_order_dependent()
                    .example("FROM example.ordered_buffer_input((FROM range(10)));", "Ten rows come back in order.")
            }
            Order::BatchIndex => FunctionSpec::new(
                "batch_index_buffer_input",
                "Every row of the input, in the order of the source, which is sent in parallel.",
            )
            .requires_input_batch_index()
            .source_order_dependent()
            .example("FROM example.batch_index_buffer_input((FROM range(10)));", "Ten rows come back in order."),
        };
        spec.projection_pushdown().category("table")
    }

    fn bind(&self, ctx: &BindContext<'_, ()>) -> Result<Bound> {
        Ok(Bound::new(Arc::clone(ctx.input_schema())))
    }

    /// The id is the batch's place in the storage, so that a client that loses one loses rows.
    fn process(&self, _: RecordBatch, ctx: &Context<'_, ()>) -> Result<StateId> {
        let position = ctx.store().append(INPUT, ctx.input_blob().clone())?;
        let index = match self.0 {
            Order::BatchIndex => ctx.batch_index().unwrap_or_default(),
            Order::Any | Order::Filtered | Order::Arrival => 0,
        };
        let index = u64::try_from(index).map_err(|_| Error::Protocol(format!("batch_index {index} is negative")))?;
        Ok(StateId::of_numbers(&[index, position]))
    }

    fn combine(&self, ids: Vec<StateId>, ctx: &Context<'_, ()>) -> Result<Vec<FinalizeId>> {
        let mut batches = ids.iter().map(StateId::numbers::<2>).collect::<Result<Vec<_>>>()?;
        if self.0 == Order::BatchIndex {
            batches.sort_unstable();
        }
        pages::plan(ctx.store(), &batches.into_iter().map(|[_, position]| position).collect::<Vec<_>>())
    }

    fn finalize(&self, id: &FinalizeId, position: u64, ctx: &Context<'_, ()>) -> Result<Tick<u64>> {
        let Some(page) = pages::page(ctx.store(), id, position)? else { return Ok(Tick::end()) };
        let batch = ctx.store().batch(INPUT, page.entry)?;
        Ok(match page.next {
            Some(next) => Tick::more(batch, next),
            None => Tick::last(batch),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::harness::{Call, batch_of};
    use arrow_array::{ArrayRef, Int64Array, StringArray};

    fn numbers(values: Vec<i64>) -> RecordBatch {
        batch_of(vec![("n", Arc::new(Int64Array::from(values)) as ArrayRef)])
    }

    #[test]
    fn every_batch_comes_back_whole() {
        let input = [
            numbers(vec![1, 2]),
            numbers(vec![3]),
            numbers(vec![]),
            numbers(vec![4, 5, 6]),
            numbers(vec![7]),
            numbers(vec![8]),
        ];
        let output = Call::new(BufferInput::new()).run(&input).unwrap();
        assert_eq!(output, input);
        assert!(Call::new(BufferInput::new()).input(input[0].schema()).run(&[]).unwrap().is_empty());
    }

    #[test]
    fn only_batches_whose_id_reaches_combine_come_back_and_in_its_order() {
        let call = Call::new(BufferInput::ordered());
        let input = [numbers(vec![1]), numbers(vec![2]), numbers(vec![3])];
        let mut ids = call.process(&input).unwrap();
        ids.reverse();
        ids.pop();
        assert_eq!(call.rest(ids).unwrap(), [numbers(vec![3]), numbers(vec![2])]);
    }

    #[test]
    fn batch_indexes_decide_the_order() {
        let call = Call::new(BufferInput::by_batch_index());
        let ids = [(7, "c"), (0, "a"), (3, "b")].map(|(index, text)| {
            let batch = batch_of(vec![("s", Arc::new(StringArray::from(vec![text])) as ArrayRef)]);
            call.process_one(&batch, Some(index)).unwrap()
        });
        let output = call.rest(ids.to_vec()).unwrap();
        let text: Vec<_> =
            output.iter().map(|batch| arrow_array::cast::AsArray::as_string::<i32>(batch.column(0)).value(0)).collect();
        assert_eq!(text, ["a", "b", "c"]);
        let error = call.process_one(&numbers(vec![1]), None).unwrap_err();
        assert_eq!(error.to_string(), "batch_index_buffer_input requires a batch_index with every batch");
    }
}
