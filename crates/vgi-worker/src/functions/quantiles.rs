//! Exact quantiles of all numeric columns.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};

use crate::args::Args;
use crate::context::{BindContext, Context};
use crate::error::Result;
use crate::function::{Bound, BufferingFunction, Cardinality, FunctionSpec, Tick};
use crate::functions::numeric::{column, doubles, numeric_columns, require_numeric};
use crate::ids::{FinalizeId, StateId};

const NAME: &str = "quantiles";
const VALUES: &str = "values";
const RESULT: &str = "result";

/// Exact quantiles of every numeric column: one row per column and probability.
///
/// ```sql
/// FROM example.quantiles((SELECT delay, distance FROM flights), 0.5, 0.9);
/// FROM example.quantiles((SELECT delay FROM flights), [0.25, 0.5, 0.75], exact := true);
/// ```
///
/// The result has the columns `column VARCHAR, prob DOUBLE, value DOUBLE`. Between two values it interpolates linearly, as `quantile_cont`
/// does. NULL and NaN are left out; a column without any value has the quantile NULL. The worker holds the numeric columns of the whole
/// input in memory.
#[derive(Debug)]
pub struct Quantiles;

/// Arguments of [`Quantiles`].
#[derive(Debug, Args)]
pub struct QuantilesArgs {
    #[arg(doc = "Probabilities from 0 to 1: numbers, or lists of numbers.", varargs, any, range = 0.0..=1.0)]
    probs: Vec<f64>,
    #[arg(doc = "Exact quantiles; there are no others.", named, default = true, choices = [true])]
    #[expect(dead_code, reason = "there is nothing to choose from yet")]
    exact: bool,
}

impl BufferingFunction for Quantiles {
    type Args = QuantilesArgs;
    type Position = ();

    fn spec(&self) -> FunctionSpec {
        FunctionSpec::new(NAME, "Exact quantiles of every numeric column; NULL and NaN are left out.")
            .category("statistics")
            .example("FROM example.quantiles((FROM range(11)), 0.5);", "The median, 5.0.")
            .example("FROM example.quantiles((FROM range(11)), [0.25, 0.75]);", "Two quartiles, 2.5 and 7.5.")
    }

    fn bind(&self, ctx: &BindContext<'_, QuantilesArgs>) -> Result<Bound> {
        require_numeric(NAME, ctx.input_schema())?;
        Ok(Bound::new(Schema::new(vec![
            Field::new("column", DataType::Utf8, false),
            Field::new("prob", DataType::Float64, false),
            Field::new("value", DataType::Float64, true),
        ])))
    }

    fn cardinality(&self, ctx: &BindContext<'_, QuantilesArgs>) -> Result<Cardinality> {
        let rows = numeric_columns(ctx.input_schema()).len().saturating_mul(ctx.args.probs.len());
        Ok(Cardinality::exactly(u64::try_from(rows).unwrap_or(u64::MAX)))
    }

    fn process(&self, batch: RecordBatch, ctx: &Context<'_, QuantilesArgs>) -> Result<StateId> {
        let numbers = batch.project(&numeric_columns(ctx.input_schema()))?;
        Ok(StateId::of_numbers(&[ctx.store().append_batch(VALUES, &numbers)?]))
    }

    fn combine(&self, ids: Vec<StateId>, ctx: &Context<'_, QuantilesArgs>) -> Result<Vec<FinalizeId>> {
        let columns = numeric_columns(ctx.input_schema());
        let mut values = vec![Vec::new(); columns.len()];
        for id in ids {
            let [position] = id.numbers()?;
            let batch = ctx.store().batch(VALUES, position)?;
            for (index, values) in values.iter_mut().enumerate() {
                values.extend(doubles(column(&batch, index)?)?.iter().flatten().filter(|value| !value.is_nan()));
            }
        }
        let input = ctx.input_schema();
        let names = columns.iter().filter_map(|index| input.fields().get(*index)).map(|field| field.name().as_str());
        let batch = table(ctx, names.zip(values))?;
        ctx.store().put_batch(RESULT, &batch)?;
        Ok(vec![FinalizeId::of_numbers(&[])])
    }

    fn finalize(&self, _: &FinalizeId, (): (), ctx: &Context<'_, QuantilesArgs>) -> Result<Tick<()>> {
        Ok(Tick::last(ctx.store().require_batch(RESULT)?))
    }
}

fn table<'a>(
    ctx: &Context<'_, QuantilesArgs>,
    columns: impl Iterator<Item = (&'a str, Vec<f64>)>,
) -> Result<RecordBatch> {
    let (mut names, mut probabilities, mut quantiles) = (Vec::new(), Vec::new(), Vec::new());
    for (name, mut values) in columns {
        values.sort_unstable_by(f64::total_cmp);
        for probability in &ctx.args.probs {
            names.push(name);
            probabilities.push(*probability);
            quantiles.push(quantile(&values, *probability));
        }
    }
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(names)),
        Arc::new(Float64Array::from(probabilities)),
        Arc::new(Float64Array::from(quantiles)),
    ];
    Ok(RecordBatch::try_new(Arc::clone(ctx.output_schema()), columns)?)
}

/// The quantile of sorted values: the value at the place `(n - 1) · p`, linearly between its neighbours.
fn quantile(sorted: &[f64], probability: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    #[expect(clippy::cast_precision_loss, reason = "no table has 2^53 rows")]
    let place = last as f64 * probability;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to the last index")]
    let below = place.floor() as usize;
    let low = *sorted.get(below)?;
    let fraction = place - place.floor();
    if fraction == 0.0 {
        // also keeps infinity from becoming NaN
        return Some(low);
    }
    let high = *sorted.get(below + 1)?;
    Some(low * (1.0 - fraction) + high * fraction)
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Float64Type;
    use arrow_array::{Decimal128Array, Int32Array, ListArray};

    use super::*;
    use crate::functions::harness::{Call, batch_of};

    fn number(value: f64) -> ArrayRef {
        Arc::new(Float64Array::from(vec![value]))
    }

    fn rows(batches: &[RecordBatch]) -> Vec<(String, f64, Option<f64>)> {
        let batch = &batches[0];
        let (names, probabilities, values) = (
            batch.column(0).as_string::<i32>(),
            batch.column(1).as_primitive::<Float64Type>(),
            batch.column(2).as_primitive::<Float64Type>(),
        );
        (0..batch.num_rows())
            .map(|row| (names.value(row).to_owned(), probabilities.value(row), values.iter().nth(row).unwrap()))
            .collect()
    }

    fn input() -> Vec<RecordBatch> {
        let batch = |ints: Vec<Option<i32>>, floats: Vec<Option<f64>>| {
            let text = StringArray::from(vec!["x"; ints.len()]);
            batch_of(vec![
                ("i", Arc::new(Int32Array::from(ints)) as ArrayRef),
                ("s", Arc::new(text)),
                ("f", Arc::new(Float64Array::from(floats))),
            ])
        };
        vec![
            batch(vec![Some(40), Some(10), None], vec![None, None, Some(f64::NAN)]),
            batch(vec![Some(30), Some(20)], vec![Some(-1.5), Some(2.5)]),
        ]
    }

    #[test]
    fn quantiles_interpolate_linearly() {
        // by hand: 10 20 30 40 at 0.25 stands at place 0.75, at 0.9 at place 2.7
        let output = Call::new(Quantiles)
            .positional(number(0.25))
            .positional(number(0.9))
            .positional(number(1.0))
            .run(&input())
            .unwrap();
        let expected = [
            ("i", 0.25, 17.5),
            ("i", 0.9, 37.0),
            ("i", 1.0, 40.0),
            ("f", 0.25, -0.5),
            ("f", 0.9, 2.1),
            ("f", 1.0, 2.5),
        ];
        for ((name, probability, value), wanted) in rows(&output).into_iter().zip(expected) {
            assert_eq!((name.as_str(), probability), (wanted.0, wanted.1));
            assert!((value.unwrap() - wanted.2).abs() < 1e-12, "{value:?} {wanted:?}");
        }
        assert_eq!(output[0].num_rows(), 6);
    }

    #[test]
    fn a_list_of_decimals_is_accepted() {
        let decimals = Decimal128Array::from(vec![5, 9]).with_precision_and_scale(2, 1).unwrap();
        let offsets = arrow_buffer::OffsetBuffer::from_lengths([2]);
        let item = Arc::new(Field::new_list_field(DataType::Decimal128(2, 1), true));
        let list = ListArray::new(item, offsets, Arc::new(decimals), None);
        let output = Call::new(Quantiles).positional(Arc::new(list)).run(&input()).unwrap();
        assert_eq!(rows(&output)[0], ("i".to_owned(), 0.5, Some(25.0)));
        assert_eq!(rows(&output).len(), 4);
    }

    #[test]
    fn without_values_the_quantile_is_null() {
        let output = Call::new(Quantiles).positional(number(0.5)).input(input()[0].schema()).run(&[]).unwrap();
        assert_eq!(rows(&output), [("i".to_owned(), 0.5, None), ("f".to_owned(), 0.5, None)]);
    }

    #[test]
    fn infinities_are_values() {
        assert_eq!(quantile(&[f64::NEG_INFINITY, 1.0, f64::INFINITY], 1.0), Some(f64::INFINITY));
        assert_eq!(quantile(&[f64::NEG_INFINITY, 1.0, f64::INFINITY], 0.5), Some(1.0));
    }

    #[test]
    fn bad_arguments_are_refused_at_bind() {
        let message = |call: Call| call.run(&input()).unwrap_err().to_string();
        let outside = Call::new(Quantiles).positional(number(1.5));
        assert_eq!(message(outside), "quantiles: argument 'probs' must be from 0 to 1, not 1.5");
        assert!(message(Call::new(Quantiles).positional(number(f64::NAN))).contains("NaN"));
        let inexact = Call::new(Quantiles)
            .positional(number(0.5))
            .named("exact", Arc::new(arrow_array::BooleanArray::from(vec![false])));
        assert_eq!(message(inexact), "quantiles: argument 'exact' must be one of true, not false");
        assert!(message(Call::new(Quantiles)).contains("'probs' (a value) is missing"));
    }
}
