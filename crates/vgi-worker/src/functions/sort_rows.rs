//! The whole input, sorted.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_row::{RowConverter, Rows, SortField};
use arrow_schema::{Schema, SortOptions};
use arrow_select::interleave::interleave_record_batch;

use crate::args::{Args, Argument, Arguments, DefaultValue};
use crate::context::{BindContext, Context};
use crate::error::{Error, Result};
use crate::function::{Bound, BufferingFunction, FunctionSpec, Tick};
use crate::functions::numeric::column;
use crate::functions::pages;
use crate::ids::{FinalizeId, StateId};

const NAME: &str = "sort_rows";
const INPUT: &str = "input";
const SORTED: &str = "sorted";

/// Rows of one output batch.
const PAGE: usize = 32_768;

/// All rows, sorted by the named columns, or by all columns from left to right.
///
/// ```sql
/// FROM example.sort_rows((FROM orders), 'customer', 'price');
/// FROM example.sort_rows((FROM orders), descending := true);
/// ```
///
/// NULLs come last in both directions. Rows that are equal in the named columns come in any order. The worker holds the input, its sort
/// keys and the sorted rows in memory.
#[derive(Debug)]
pub struct SortRows;

/// Arguments of [`SortRows`].
#[derive(Debug)]
pub struct SortArgs {
    by: Vec<String>,
    descending: bool,
}

impl Args for SortArgs {
    fn declare() -> Vec<Argument> {
        vec![
            Argument::varargs::<String>("by", "Columns to sort by; all columns when there is none.")
                .or(DefaultValue::Nothing),
            Argument::named::<bool>("descending", DefaultValue::Bool(false), "Largest first."),
        ]
    }

    fn parse(values: &Arguments) -> Result<Self> {
        Ok(Self { by: values.many("by")?, descending: values.get("descending")? })
    }
}

impl SortArgs {
    /// Places of the columns to sort by. As in SQL, case matters only between columns that differ in nothing else.
    fn columns(&self, schema: &Schema) -> Result<Vec<usize>> {
        if self.by.is_empty() {
            return Ok((0..schema.fields().len()).collect());
        }
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        let place = |wanted: &String| {
            let exact = names.iter().position(|name| name == wanted);
            exact.or_else(|| names.iter().position(|name| name.eq_ignore_ascii_case(wanted))).ok_or_else(|| {
                Error::Input(format!(
                    "{NAME}: the input has no column '{wanted}' to sort by (its columns: {})",
                    names.join(", ")
                ))
            })
        };
        self.by.iter().map(place).collect()
    }

    fn converter(&self, schema: &Schema) -> Result<(Vec<usize>, RowConverter)> {
        let columns = self.columns(schema)?;
        let options = SortOptions { descending: self.descending, nulls_first: false };
        let key = |index: &usize| {
            schema.fields().get(*index).map(|field| SortField::new_with_options(field.data_type().clone(), options))
        };
        let converter = RowConverter::new(columns.iter().filter_map(key).collect())?;
        Ok((columns, converter))
    }
}

impl BufferingFunction for SortRows {
    type Args = SortArgs;
    type Position = u64;

    fn spec(&self) -> FunctionSpec {
        FunctionSpec::new(NAME, "All rows, sorted by the named columns or by all; NULLs last.")
            .source_order_dependent()
            .projection_pushdown()
            .category("table")
            .example("FROM example.sort_rows((FROM (VALUES (2), (NULL), (1)) t(i)), 'i');", "1, 2, NULL.")
    }

    fn bind(&self, ctx: &BindContext<'_, SortArgs>) -> Result<Bound> {
        if ctx.input_schema().fields().is_empty() {
            return Err(Error::Input(format!("{NAME}: the input has no column")));
        }
        ctx.args.converter(ctx.input_schema())?;
        Ok(Bound::new(Arc::clone(ctx.input_schema())))
    }

    fn process(&self, _: RecordBatch, ctx: &Context<'_, SortArgs>) -> Result<StateId> {
        Ok(StateId::of_numbers(&[ctx.store().append(INPUT, ctx.input_blob().clone())?]))
    }

    fn combine(&self, ids: Vec<StateId>, ctx: &Context<'_, SortArgs>) -> Result<Vec<FinalizeId>> {
        let batch = |id: &StateId| ctx.store().batch(INPUT, id.numbers::<1>()?[0]);
        let batches = ids.iter().map(batch).collect::<Result<Vec<_>>>()?;
        let order = ctx.args.order(ctx.input_schema(), &batches)?;
        let batches: Vec<&RecordBatch> = batches.iter().collect();
        let store =
            |rows: &[(usize, usize)]| ctx.store().append_batch(SORTED, &interleave_record_batch(&batches, rows)?);
        let positions = order.chunks(PAGE).map(store).collect::<Result<Vec<_>>>()?;
        pages::plan(ctx.store(), &positions)
    }

    fn finalize(&self, id: &FinalizeId, position: u64, ctx: &Context<'_, SortArgs>) -> Result<Tick<u64>> {
        let Some(page) = pages::page(ctx.store(), id, position)? else { return Ok(Tick::end()) };
        let batch = ctx.store().batch(SORTED, page.entry)?;
        Ok(match page.next {
            Some(next) => Tick::more(batch, next),
            None => Tick::last(batch),
        })
    }
}

impl SortArgs {
    /// Batch and row of every row, in the wanted order.
    fn order(&self, schema: &Schema, batches: &[RecordBatch]) -> Result<Vec<(usize, usize)>> {
        let (columns, converter) = self.converter(schema)?;
        let keys = |batch: &RecordBatch| -> Result<Rows> {
            let key = columns.iter().map(|index| column(batch, *index).cloned()).collect::<Result<Vec<ArrayRef>>>()?;
            Ok(converter.convert_columns(&key)?)
        };
        let keys = batches.iter().map(keys).collect::<Result<Vec<_>>>()?;
        let places =
            |(batch, rows): (usize, &Rows)| (0..rows.num_rows()).map(move |row| (batch, row)).collect::<Vec<_>>();
        let mut order: Vec<(usize, usize)> = keys.iter().enumerate().flat_map(places).collect();
        let key = |place: &(usize, usize)| keys.get(place.0).map(|rows| rows.row(place.1));
        order.sort_unstable_by(|a, b| key(a).cmp(&key(b)).then(a.cmp(b)));
        Ok(order)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Int8Type, Int32Type, Int64Type};
    use arrow_array::{BooleanArray, DictionaryArray, Int32Array, Int64Array, StringArray};

    use super::*;
    use crate::functions::harness::{Call, batch_of};

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
        assert!(output.iter().all(|batch| batch.num_rows() <= PAGE) && output.len() == 4);
        let all: Vec<i64> =
            output.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect();
        assert_eq!(all.len(), 100_000);
        assert!(all.is_sorted());
    }

    #[test]
    fn an_unknown_column_is_refused_at_bind() {
        let message = by(&["nn"]).run(&input()).unwrap_err().to_string();
        assert_eq!(message, "sort_rows: the input has no column 'nn' to sort by (its columns: n, word)");
    }

    #[test]
    fn no_input_gives_no_rows() {
        assert!(by(&[]).input(input()[0].schema()).run(&[]).unwrap().is_empty());
    }
}
