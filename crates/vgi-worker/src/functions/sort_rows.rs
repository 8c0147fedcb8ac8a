//! The whole input, sorted.

use std::sync::Arc;

use arrow_array::RecordBatch;

use crate::context::{BindContext, Context};
use crate::error::Result;
use crate::function::{Bound, BufferingFunction, FunctionSpec, Tick};
use crate::functions::merge::{Run, merge};
use crate::functions::ordering::OrderArgs;
use crate::ids::{FinalizeId, StateId};

const NAME: &str = "sort_rows";

/// All rows, sorted by the named columns, or by all columns from left to right.
///
/// ```sql
/// FROM example.sort_rows((FROM orders), 'customer', 'price');
/// FROM example.sort_rows((FROM orders), descending := true);
/// ```
///
/// NULLs come last in both directions. Rows that are equal in the named columns come in any order. The input may be larger than memory:
/// pieces are sorted as they arrive and merged in the storage.
#[derive(Debug)]
pub struct SortRows;

impl BufferingFunction for SortRows {
    type Args = OrderArgs;
    type Position = u64;

    fn spec(&self) -> FunctionSpec {
        FunctionSpec::new(NAME, "All rows, sorted by the named columns or by all; NULLs last.")
            .source_order_dependent()
            .projection_pushdown()
            .category("table")
            .example("FROM example.sort_rows((FROM (VALUES (2), (NULL), (1)) t(i)), 'i');", "1, 2, NULL.")
    }

    fn bind(&self, ctx: &BindContext<'_, OrderArgs>) -> Result<Bound> {
        ctx.args.of(NAME, ctx.input_schema())?;
        Ok(Bound::new(Arc::clone(ctx.input_schema())))
    }

    fn process(&self, batch: RecordBatch, ctx: &Context<'_, OrderArgs>) -> Result<StateId> {
        let ordering = ctx.args.of(NAME, ctx.input_schema())?;
        Ok(Run::of_batch(ctx.store(), &ordering, &batch)?.id())
    }

    fn combine(&self, ids: Vec<StateId>, ctx: &Context<'_, OrderArgs>) -> Result<Vec<FinalizeId>> {
        let ordering = ctx.args.of(NAME, ctx.input_schema())?;
        let runs = ids.iter().map(Run::of_id).collect::<Result<Vec<_>>>()?;
        Ok(merge(ctx.store(), &ordering, runs)?.streams())
    }

    fn finalize(&self, id: &FinalizeId, position: u64, ctx: &Context<'_, OrderArgs>) -> Result<Tick<u64>> {
        Run::tick(ctx.store(), id, position)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int8Type, Int32Type, Int64Type};
    use arrow_array::{ArrayRef, BooleanArray, DictionaryArray, Int32Array, Int64Array, StringArray};

    use super::*;
    use crate::functions::harness::{Call, batch_of};
    use crate::functions::merge::PAGE;

    fn input() -> Vec<RecordBatch> {
        let batch = |ints: Vec<Option<i32>>, words: Vec<&str>| {
            // every batch has a dictionary of its own
            let words: DictionaryArray<Int8Type> = words.into_iter().collect();
            batch_of(vec![("n", Arc::new(Int32Array::from(ints)) as ArrayRef), ("word", Arc::new(words))])
        };
        vec![
            batch(vec![Some(2), None, Some(9)], vec!["pear", "fig", "apple"]),
            batch(vec![Some(-4), Some(2)], vec!["plum", "date"]),
        ]
    }

    fn rows(output: &[RecordBatch]) -> Vec<(Option<i32>, String)> {
        let of = |batch: &RecordBatch| {
            let words = arrow_cast::cast(batch.column(1), &arrow_schema::DataType::Utf8).unwrap();
            let words: Vec<_> = words.as_string::<i32>().iter().map(|word| word.unwrap().to_owned()).collect();
            batch.column(0).as_primitive::<Int32Type>().iter().zip(words).collect::<Vec<_>>()
        };
        output.iter().flat_map(of).collect()
    }

    fn expect(rows: &[(Option<i32>, String)], expected: [(Option<i32>, &str); 5]) {
        assert_eq!(rows, expected.map(|(n, word)| (n, word.to_owned())));
    }

    fn by(names: &[&str]) -> Call {
        names.iter().fold(Call::new(SortRows), |call, name| call.positional(Arc::new(StringArray::from(vec![*name]))))
    }

    #[test]
    fn rows_are_sorted_with_nulls_last() {
        let sorted = rows(&by(&["N", "word"]).run(&input()).unwrap());
        expect(&sorted, [(Some(-4), "plum"), (Some(2), "date"), (Some(2), "pear"), (Some(9), "apple"), (None, "fig")]);
        assert_eq!(sorted, rows(&by(&[]).run(&input()).unwrap()));
        let down = by(&["n"]).named("descending", Arc::new(BooleanArray::from(vec![true])));
        assert_eq!(
            rows(&down.run(&input()).unwrap()).iter().map(|row| row.0).collect::<Vec<_>>(),
            [Some(9), Some(2), Some(2), Some(-4), None]
        );
        let words = rows(&by(&["word"]).run(&input()).unwrap());
        expect(&words, [(Some(9), "apple"), (Some(2), "date"), (None, "fig"), (Some(2), "pear"), (Some(-4), "plum")]);
    }

    #[test]
    fn many_rows_come_in_pages() {
        let numbers = |start: i64| {
            batch_of(vec![(
                "n",
                Arc::new((0..50_000).map(|i| (i * 7919 + start) % 100_003).collect::<Int64Array>()) as ArrayRef,
            )])
        };
        let output = by(&[]).run(&[numbers(0), numbers(17)]).unwrap();
        assert!(output.iter().all(|batch| batch.num_rows() <= PAGE) && output.len() >= 100_000 / PAGE);
        let all: Vec<i64> =
            output.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect();
        assert_eq!(all.len(), 100_000);
        assert!(all.is_sorted());
    }

    #[test]
    fn an_unknown_column_is_refused_at_bind() {
        let message = by(&["nn"]).run(&input()).unwrap_err().to_string();
        assert_eq!(message, "sort_rows: the input has no column 'nn' (its columns: n, word)");
    }

    #[test]
    fn no_input_gives_no_rows() {
        assert!(by(&[]).input(input()[0].schema()).run(&[]).unwrap().is_empty());
    }

    #[test]
    fn many_runs_are_merged_in_several_passes() {
        let numbers = |start: i64| {
            let values: Int64Array = (0..300).map(|i| (i * 7919 + start * 31) % 1009).collect();
            batch_of(vec![("n", Arc::new(values) as ArrayRef)])
        };
        let input: Vec<RecordBatch> = (0..40).map(numbers).collect();
        let values = |batches: &[RecordBatch]| -> Vec<i64> {
            batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect()
        };
        let mut expected = values(&input);
        expected.sort_unstable();
        assert_eq!(values(&by(&[]).run(&input).unwrap()), expected);
    }
}
