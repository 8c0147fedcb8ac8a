//! Linear regression by least squares.

mod moments;

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Float64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};

use crate::args::Args;
use crate::context::{BindContext, Context};
use crate::error::{Error, Result};
use crate::function::{Bound, BufferingFunction, FunctionSpec, Tick};
use crate::functions::numeric::{column, doubles, numeric_columns};
use crate::functions::ordering::place;
use crate::ids::{FinalizeId, StateId};
use moments::Moments;

const NAME: &str = "train_linear";
const MOMENTS: &str = "moments";
const RESULT: &str = "result";

/// Name of the constant term in the output.
const INTERCEPT: &str = "(intercept)";

/// The coefficients of the linear function of the other numeric columns that is closest to the column `target`: one row `term,
/// coefficient` for the constant and one for each column.
///
/// ```sql
/// FROM example.train_linear((SELECT price, area, rooms FROM houses), 'price');
/// ```
///
/// A row with a NULL in one of these columns counts for nothing; without any row the coefficients are NULL. Columns of which one follows
/// from the others, or fewer rows than terms, are an error, and so is a value that is not finite. The input may be of any size: what is
/// kept of a piece is the square of the number of columns.
#[derive(Debug)]
pub struct TrainLinear;

/// Arguments of [`TrainLinear`].
#[derive(Debug, Args)]
pub struct TrainArgs {
    #[arg(doc = "The column to explain by the others.")]
    target: String,
}

impl TrainArgs {
    /// Places of the columns: the features, then the target.
    fn columns(&self, schema: &Schema) -> Result<Vec<usize>> {
        let target = place(NAME, schema, &self.target)?;
        let mut columns = numeric_columns(schema);
        if !columns.contains(&target) {
            return Err(Error::Input(format!("{NAME}: the column '{}' is not numeric", self.target)));
        }
        columns.retain(|column| *column != target);
        if columns.is_empty() {
            return Err(Error::Input(format!("{NAME}: the input has no numeric column besides '{}'", self.target)));
        }
        columns.push(target);
        Ok(columns)
    }
}

fn names(schema: &Schema, columns: &[usize]) -> Vec<String> {
    columns.iter().filter_map(|column| schema.fields().get(*column)).map(|field| field.name().clone()).collect()
}

impl BufferingFunction for TrainLinear {
    type Args = TrainArgs;
    type Position = ();

    fn spec(&self) -> FunctionSpec {
        FunctionSpec::new(NAME, "Coefficients of a linear regression of one column on the others.")
            .category("model")
            .example(
                "FROM example.train_linear((SELECT 3 * x + 1 AS y, x FROM range(10) r(x)), 'y');",
                "The constant 1 and the factor 3.",
            )
    }

    fn bind(&self, ctx: &BindContext<'_, TrainArgs>) -> Result<Bound> {
        ctx.args.columns(ctx.input_schema())?;
        Ok(Bound::new(Schema::new(vec![
            Field::new("term", DataType::Utf8, false),
            Field::new("coefficient", DataType::Float64, true),
        ])))
    }

    fn process(&self, batch: RecordBatch, ctx: &Context<'_, TrainArgs>) -> Result<StateId> {
        let columns = ctx.args.columns(ctx.input_schema())?;
        let names = names(ctx.input_schema(), &columns);
        let values = columns.iter().map(|place| doubles(column(&batch, *place)?)).collect::<Result<Vec<_>>>()?;
        let mut moments = Moments::new(columns.len());
        let mut row_values = Vec::with_capacity(columns.len());
        for row in 0..batch.num_rows() {
            if values.iter().any(|column| column.is_null(row)) {
                continue;
            }
            row_values.clear();
            row_values.extend(values.iter().map(|column| column.value(row)));
            if let Some((_, name)) = row_values.iter().zip(&names).find(|(value, _)| !value.is_finite()) {
                return Err(Error::Input(format!("{NAME}: the column '{name}' has a value that is not finite")));
            }
            moments.add(&row_values);
        }
        Ok(StateId::of_numbers(&[ctx.store().append(MOMENTS, moments.to_bytes())?]))
    }

    fn combine(&self, ids: Vec<StateId>, ctx: &Context<'_, TrainArgs>) -> Result<Vec<FinalizeId>> {
        let columns = ctx.args.columns(ctx.input_schema())?;
        let mut moments = Moments::new(columns.len());
        for id in &ids {
            let [position] = id.numbers()?;
            let bytes = ctx.store().entry(MOMENTS, position)?;
            let part = bytes.and_then(|bytes| Moments::from_bytes(columns.len(), &bytes));
            moments.merge(&part.ok_or_else(|| Error::Protocol(format!("{NAME}: there is no part {position}")))?);
        }
        let mut terms = names(ctx.input_schema(), &columns);
        terms.pop();
        let coefficients: Vec<Option<f64>> = if moments.rows() == 0 {
            vec![None; columns.len()]
        } else {
            let solved = moments.solve().map_err(|dependent| {
                let name = terms.get(dependent).map_or("", String::as_str);
                Error::Input(format!(
                    "{NAME}: the coefficients are not determined: over {} rows, '{name}' follows from the constant and the columns before it",
                    moments.rows()
                ))
            })?;
            solved.into_iter().map(Some).collect()
        };
        let terms = StringArray::from_iter_values(std::iter::once(INTERCEPT.to_owned()).chain(terms));
        let columns: Vec<ArrayRef> = vec![Arc::new(terms), Arc::new(Float64Array::from(coefficients))];
        ctx.store().put_batch(RESULT, &RecordBatch::try_new(Arc::clone(ctx.output_schema()), columns)?)?;
        Ok(vec![FinalizeId::of_numbers(&[])])
    }

    fn finalize(&self, _: &FinalizeId, (): (), ctx: &Context<'_, TrainArgs>) -> Result<Tick<()>> {
        Ok(Tick::last(ctx.store().require_batch(RESULT)?))
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Int64Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Float64Type;

    use super::*;
    use crate::functions::harness::{Call, batch_of};

    type Triple = (Option<f64>, Option<f64>, Option<i64>);

    fn batch(rows: &[Triple]) -> RecordBatch {
        batch_of(vec![
            ("a", Arc::new(rows.iter().map(|row| row.0).collect::<Float64Array>()) as ArrayRef),
            ("y", Arc::new(rows.iter().map(|row| row.1).collect::<Float64Array>())),
            ("b", Arc::new(rows.iter().map(|row| row.2).collect::<Int64Array>())),
        ])
    }

    fn train(input: &[RecordBatch]) -> Result<Vec<(String, Option<f64>)>> {
        let call = Call::new(TrainLinear).positional(Arc::new(StringArray::from(vec!["Y"]))).input(batch(&[]).schema());
        let output = call.run(input)?;
        let rows = |batch: &RecordBatch| {
            let terms =
                batch.column(0).as_string::<i32>().iter().map(|term| term.unwrap().to_owned()).collect::<Vec<_>>();
            terms.into_iter().zip(batch.column(1).as_primitive::<Float64Type>()).collect::<Vec<_>>()
        };
        Ok(output.iter().flat_map(rows).collect())
    }

    #[test]
    fn an_exact_line_is_found_over_several_batches_whatever_its_offset() {
        // far from zero, where sums of squares would cancel
        let row = |i: i32| {
            let (a, b) = (1e6 + f64::from(i) * 0.5, (i * i) % 17);
            (Some(a), Some(4.0 + 2.0 * a - 3.0 * f64::from(b)), Some(b.into()))
        };
        let rows: Vec<Triple> = (0..100).map(row).collect();
        let with_null = [(None, Some(1.0), Some(2)), (Some(1.0), None, Some(2)), (Some(5.0), Some(9.0), None)];
        let result = train(&[batch(&rows[..40]), batch(&with_null), batch(&[]), batch(&rows[40..])]).unwrap();
        for ((term, value), (name, expected, tolerance)) in
            result.iter().zip([("(intercept)", 4.0, 1e-3), ("a", 2.0, 1e-9), ("b", -3.0, 1e-9)])
        {
            assert_eq!(term, name);
            assert!((value.unwrap() - expected).abs() < tolerance, "{name}: {value:?}");
        }
        assert_eq!(result.len(), 3);
    }

    #[test]
    fn no_row_gives_nulls() {
        let nulls =
            |result: Vec<(String, Option<f64>)>| result.len() == 3 && result.iter().all(|(_, value)| value.is_none());
        assert!(nulls(train(&[]).unwrap()));
        assert!(nulls(train(&[batch(&[(None, Some(1.0), Some(1))])]).unwrap()));
    }

    #[test]
    fn what_is_not_determined_is_an_error() {
        let one = train(&[batch(&[(Some(1.0), Some(2.0), Some(3))])]).unwrap_err().to_string();
        assert!(one.contains("over 1 rows, 'a' follows"), "{one}");
        let dependent: Vec<Triple> =
            (0..9).map(|i: i32| (Some(i.into()), Some(1.0), Some((2 * i + 1).into()))).collect();
        let message = train(&[batch(&dependent)]).unwrap_err().to_string();
        assert!(message.contains("'b' follows"), "{message}");
        let infinite = train(&[batch(&[(Some(f64::INFINITY), Some(2.0), Some(3))])]).unwrap_err().to_string();
        assert_eq!(infinite, "train_linear: the column 'a' has a value that is not finite");
    }
}
