//! Every different row once.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SortOptions;

use crate::context::{BindContext, Context};
use crate::error::{Error, Result};
use crate::function::{Bound, BufferingFunction, FunctionSpec, Tick};
use crate::functions::merge::PAGE;
use crate::functions::ordering::{Ordering, take_rows};
use crate::functions::pages;
use crate::ids::{FinalizeId, StateId};
use crate::storage::Store;

const NAME: &str = "distinct_rows";
const DISTINCT: &str = "distinct";

/// Parts that rows are divided into by their hash: one after the other is in memory.
const PARTS: u64 = 16;

/// Every different row of the input once, in any order.
///
/// ```sql
/// FROM example.distinct_rows((SELECT customer, product FROM orders));
/// ```
///
/// NULLs are equal to each other. Unlike in SQL, `0.0` and `-0.0` are different rows. The input may be of any size; about a sixteenth of
/// its different rows is in memory at once.
#[derive(Debug)]
pub struct DistinctRows;

fn all_columns(batch: &arrow_schema::Schema) -> Result<Ordering> {
    if batch.fields().is_empty() {
        return Err(Error::Input(format!("{NAME}: the input has no column")));
    }
    Ordering::new(batch, (0..batch.fields().len()).collect(), SortOptions::default())
}

fn part_log(part: u64) -> String {
    format!("part {part}")
}

impl BufferingFunction for DistinctRows {
    type Args = ();
    type Position = u64;

    fn spec(&self) -> FunctionSpec {
        FunctionSpec::new(NAME, "Every different row of the input once, in any order.")
            .projection_pushdown()
            .category("table")
            .example("FROM example.distinct_rows((SELECT i % 3 AS m FROM range(10) r(i)));", "0, 1 and 2.")
    }

    fn bind(&self, ctx: &BindContext<'_, ()>) -> Result<Bound> {
        all_columns(ctx.input_schema())?;
        Ok(Bound::new(Arc::clone(ctx.input_schema())))
    }

    /// The parts are read as they are in the storage: a piece that arrived twice adds nothing.
    fn process(&self, batch: RecordBatch, ctx: &Context<'_, ()>) -> Result<StateId> {
        let keys = all_columns(ctx.input_schema())?.keys(&batch)?;
        let mut seen = HashSet::with_capacity(keys.num_rows());
        let mut parts: Vec<Vec<usize>> = (0..PARTS).map(|_| Vec::new()).collect();
        for (place, key) in keys.iter().enumerate() {
            if seen.insert(key) {
                let part = usize::try_from(part_of(key.as_ref())).unwrap_or_default();
                parts.get_mut(part).into_iter().for_each(|part| part.push(place));
            }
        }
        for (part, places) in (0..).zip(&parts).filter(|(_, places)| !places.is_empty()) {
            ctx.store().append_batch(&part_log(part), &take_rows(&batch, places)?)?;
        }
        Ok(StateId::of_numbers(&[]))
    }

    fn combine(&self, _: Vec<StateId>, ctx: &Context<'_, ()>) -> Result<Vec<FinalizeId>> {
        let ordering = all_columns(ctx.input_schema())?;
        let mut positions = Vec::new();
        for part in 0..PARTS {
            distinct_of_part(ctx.store(), &ordering, part, &mut positions)?;
        }
        pages::plan(ctx.store(), &positions)
    }

    fn finalize(&self, id: &FinalizeId, position: u64, ctx: &Context<'_, ()>) -> Result<Tick<u64>> {
        pages::tick(ctx.store(), DISTINCT, id, position)
    }
}

/// Every process of a worker must find the same part, which a hasher of fixed keys gives.
fn part_of(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(key);
    hasher.finish() % PARTS
}

fn distinct_of_part(store: &Store, ordering: &Ordering, part: u64, positions: &mut Vec<u64>) -> Result<()> {
    let log = part_log(part);
    let mut seen: HashSet<Box<[u8]>> = HashSet::new();
    for entry in 0.. {
        let Some(blob) = store.entry(&log, entry)? else { break };
        let batch = vgi_wire::ipc::decode_batch(blob)?;
        let keys = ordering.keys(&batch)?;
        let new = keys.iter().enumerate().filter(|(_, key)| seen.insert(Box::from(key.as_ref())));
        let places: Vec<usize> = new.map(|(place, _)| place).collect();
        for places in places.chunks(PAGE) {
            positions.push(store.append_batch(DISTINCT, &take_rows(&batch, places)?)?);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;
    use arrow_array::{ArrayRef, Int64Array, StringArray};

    use super::*;
    use crate::functions::harness::{Call, batch_of};

    type Row = (Option<i64>, Option<String>);

    fn batch(rows: &[(Option<i64>, Option<&str>)]) -> RecordBatch {
        let numbers: Int64Array = rows.iter().map(|row| row.0).collect();
        let words: StringArray = rows.iter().map(|row| row.1).collect();
        batch_of(vec![("n", Arc::new(numbers) as ArrayRef), ("w", Arc::new(words) as ArrayRef)])
    }

    fn distinct(input: &[RecordBatch]) -> Vec<Row> {
        let output = Call::new(DistinctRows).input(batch(&[]).schema()).run(input).unwrap();
        let rows = |batch: &RecordBatch| {
            let words =
                batch.column(1).as_string::<i32>().iter().map(|word| word.map(str::to_owned)).collect::<Vec<_>>();
            batch.column(0).as_primitive::<Int64Type>().iter().zip(words).collect::<Vec<_>>()
        };
        let mut rows: Vec<Row> = output.iter().flat_map(rows).collect();
        rows.sort();
        rows
    }

    #[test]
    fn duplicates_go_within_and_across_batches() {
        let one = batch(&[(Some(1), Some("a")), (None, Some("a")), (Some(1), Some("a")), (None, None)]);
        let two = batch(&[(None, None), (Some(1), Some("b")), (None, Some("a"))]);
        let a = |n| (n, Some("a".to_owned()));
        assert_eq!(distinct(&[one, two]), [(None, None), a(None), a(Some(1)), (Some(1), Some("b".to_owned()))]);
        assert_eq!(distinct(&[]), []);
        assert_eq!(distinct(&[batch(&[])]), []);
        assert_eq!(distinct(&[batch(&[(Some(3), None)])]), [(Some(3), None)]);
    }

    #[test]
    fn many_rows_spread_over_the_parts() {
        let numbers = |start: i64| {
            batch_of(vec![("n", Arc::new((start..start + 5000).map(|i| i % 7000).collect::<Int64Array>()) as ArrayRef)])
        };
        let output = Call::new(DistinctRows).run(&[numbers(0), numbers(2500), numbers(5000)]).unwrap();
        let mut all: Vec<i64> =
            output.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..7000).collect::<Vec<_>>());
    }
}
