//! Ranks over the whole input.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use arrow_row::OwnedRow;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use crate::context::{BindContext, Context};
use crate::error::{Error, Result};
use crate::function::{Bound, BufferingFunction, FunctionSpec, Tick};
use crate::functions::merge::{Run, merge};
use crate::functions::ordering::{OrderArgs, Ordering};
use crate::functions::pages;
use crate::ids::{FinalizeId, StateId};

const NAME: &str = "rank_all";
const RANKED: &str = "ranked";
const ADDED: [&str; 2] = ["rank", "dense_rank"];

/// All rows in the order of the named columns, or of all columns, with two more columns: `rank`, one more than the number of rows that
/// come before, and `dense_rank`, one more than the number of different values that do.
///
/// ```sql
/// FROM example.rank_all((FROM orders), 'price', descending := true);
/// ```
///
/// Rows that tie have the same ranks; NULLs tie with each other and come last in both directions. The input may be larger than memory,
/// as that of `sort_rows`.
#[derive(Debug)]
pub struct RankAll;

impl BufferingFunction for RankAll {
    type Args = OrderArgs;
    type Position = u64;

    fn spec(&self) -> FunctionSpec {
        FunctionSpec::new(NAME, "All rows in order with their rank and dense_rank.")
            .source_order_dependent()
            .projection_pushdown()
            .category("table")
            .example("FROM example.rank_all((FROM (VALUES (7), (7), (9)) t(i)), 'i');", "Ranks 1, 1, 3 and 1, 1, 2.")
    }

    fn bind(&self, ctx: &BindContext<'_, OrderArgs>) -> Result<Bound> {
        let input = ctx.input_schema();
        ctx.args.of(NAME, input)?;
        if let Some(field) =
            input.fields().iter().find(|field| ADDED.iter().any(|name| field.name().eq_ignore_ascii_case(name)))
        {
            return Err(Error::Input(format!("{NAME}: the input has a column '{}' already; rename it", field.name())));
        }
        let added = ADDED.map(|name| Arc::new(Field::new(name, DataType::Int64, false)));
        let fields: Vec<_> = input.fields().iter().cloned().chain(added).collect();
        Ok(Bound::new(Schema::new_with_metadata(fields, input.metadata().clone())))
    }

    fn process(&self, batch: RecordBatch, ctx: &Context<'_, OrderArgs>) -> Result<StateId> {
        let ordering = ctx.args.of(NAME, ctx.input_schema())?;
        Ok(Run::of_batch(ctx.store(), &ordering, &batch)?.id())
    }

    fn combine(&self, ids: Vec<StateId>, ctx: &Context<'_, OrderArgs>) -> Result<Vec<FinalizeId>> {
        let ordering = ctx.args.of(NAME, ctx.input_schema())?;
        let runs = ids.iter().map(Run::of_id).collect::<Result<Vec<_>>>()?;
        let sorted = merge(ctx.store(), &ordering, runs)?;
        let mut ranks = Ranks::default();
        let mut positions = Vec::new();
        for page in sorted.pages() {
            let batch = ranks.add(&ordering, &sorted.page(ctx.store(), page)?, ctx.output_schema())?;
            positions.push(ctx.store().append_batch(RANKED, &batch)?);
            sorted.delete(ctx.store(), page)?;
        }
        pages::plan(ctx.store(), &positions)
    }

    fn finalize(&self, id: &FinalizeId, position: u64, ctx: &Context<'_, OrderArgs>) -> Result<Tick<u64>> {
        pages::tick(ctx.store(), RANKED, id, position)
    }
}

/// The ranks of sorted rows, from page to page.
#[derive(Default)]
struct Ranks {
    rows: i64,
    rank: i64,
    dense_rank: i64,
    last: Option<OwnedRow>,
}

impl Ranks {
    fn add(&mut self, ordering: &Ordering, page: &RecordBatch, output: &SchemaRef) -> Result<RecordBatch> {
        let keys = ordering.keys(page)?;
        let (mut ranks, mut dense_ranks) = (Vec::with_capacity(keys.num_rows()), Vec::with_capacity(keys.num_rows()));
        let mut last = self.last.as_ref().map(OwnedRow::row);
        for key in &keys {
            self.rows += 1;
            if last != Some(key) {
                self.rank = self.rows;
                self.dense_rank += 1;
            }
            last = Some(key);
            ranks.push(self.rank);
            dense_ranks.push(self.dense_rank);
        }
        let last = last.map(|row| row.owned());
        self.last = last;
        let added = [ranks, dense_ranks].map(|values| Arc::new(Int64Array::from(values)) as ArrayRef);
        Ok(RecordBatch::try_new(Arc::clone(output), page.columns().iter().cloned().chain(added).collect())?)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::StringArray;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;

    use super::*;
    use crate::functions::harness::{Call, batch_of};
    use crate::functions::merge::PAGE;

    fn batch(values: Vec<Option<&str>>) -> RecordBatch {
        batch_of(vec![("word", Arc::new(StringArray::from(values)) as ArrayRef)])
    }

    fn ranked(input: &[RecordBatch]) -> Vec<(Option<String>, i64, i64)> {
        let output = Call::new(RankAll).input(batch(vec![]).schema()).run(input).unwrap();
        let rows = |batch: &RecordBatch| {
            let ranks = |column| batch.column(column).as_primitive::<Int64Type>().values().to_vec();
            let words =
                batch.column(0).as_string::<i32>().iter().map(|word| word.map(str::to_owned)).collect::<Vec<_>>();
            words
                .into_iter()
                .zip(ranks(1))
                .zip(ranks(2))
                .map(|((word, rank), dense)| (word, rank, dense))
                .collect::<Vec<_>>()
        };
        output.iter().flat_map(rows).collect()
    }

    #[test]
    fn ties_share_ranks_across_batches_and_nulls_come_last() {
        let input = [batch(vec![Some("b"), None, Some("a")]), batch(vec![Some("c"), Some("b"), None])];
        let expected =
            [(Some("a"), 1, 1), (Some("b"), 2, 2), (Some("b"), 2, 2), (Some("c"), 4, 3), (None, 5, 4), (None, 5, 4)];
        assert_eq!(ranked(&input), expected.map(|(word, rank, dense)| (word.map(str::to_owned), rank, dense)));
        assert_eq!(ranked(&[]), []);
        assert_eq!(ranked(&[batch(vec![Some("x")])]), [(Some("x".to_owned()), 1, 1)]);
    }

    #[test]
    fn ties_go_on_over_pages() {
        let rows = ranked(&[batch(vec![Some("same"); PAGE + 7]), batch(vec![Some("z")])]);
        assert!(rows[..PAGE + 7].iter().all(|(_, rank, dense)| (*rank, *dense) == (1, 1)));
        assert_eq!(rows[PAGE + 7].1, i64::try_from(PAGE).unwrap() + 8);
    }

    #[test]
    fn a_column_that_would_be_there_twice_is_refused() {
        let input = batch_of(vec![("Rank", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]);
        let message = Call::new(RankAll).run(&[input]).unwrap_err().to_string();
        assert_eq!(message, "rank_all: the input has a column 'Rank' already; rename it");
    }
}
