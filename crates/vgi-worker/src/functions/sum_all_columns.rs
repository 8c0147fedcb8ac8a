//! Sums of all numeric columns, without any storage: the partial sums travel in the ids.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch};
use arrow_cast::cast;
use arrow_schema::{DataType, Field, Schema};

use crate::args::Args;
use crate::context::{BindContext, Context};
use crate::error::{Error, Result};
use crate::function::{Bound, BufferingFunction, Cardinality, FunctionSpec, Tick};
use crate::functions::numeric::{column, doubles, numeric_columns, require_numeric};
use crate::ids::{FinalizeId, StateId};
use crate::log::LogLevel;

const NAME: &str = "sum_all_columns";

/// One row with the sum of every numeric column; other columns are left out.
///
/// ```sql
/// FROM example.sum_all_columns((SELECT quantity, price FROM orders));
/// FROM example.sum_all_columns((FROM orders), logging := true);    -- the worker reports its steps as log lines
/// ```
///
/// Integers are summed exactly as BIGINT, and a sum beyond it is an error; DOUBLE, FLOAT and DECIMAL are summed as DOUBLE. NULLs count
/// for nothing, so an empty input gives zeros. The input may be of any size: nothing of it is kept.
#[derive(Debug)]
pub struct SumAllColumns;

/// Arguments of [`SumAllColumns`].
#[derive(Debug, Args)]
pub struct SumArgs {
    #[arg(doc = "Report every step as a log line.", named, default = false)]
    logging: bool,
}

impl BufferingFunction for SumAllColumns {
    type Args = SumArgs;
    type Position = ();

    fn spec(&self) -> FunctionSpec {
        FunctionSpec::new(NAME, "One row with the sum of every numeric column.").category("aggregate").example(
            "FROM example.sum_all_columns((SELECT i, i / 2 AS half FROM range(10) r(i)));",
            "Sums of two columns: 45 and 22.5.",
        )
    }

    fn bind(&self, ctx: &BindContext<'_, SumArgs>) -> Result<Bound> {
        let input = ctx.input_schema();
        let columns = require_numeric(NAME, input)?;
        let field = |index: &usize| {
            input.fields().get(*index).map(|field| Field::new(field.name(), sum_type(field.data_type()), true))
        };
        Ok(Bound::new(Schema::new(columns.iter().filter_map(field).collect::<Vec<_>>())))
    }

    fn cardinality(&self, _: &BindContext<'_, SumArgs>) -> Result<Cardinality> {
        Ok(Cardinality::exactly(1))
    }

    fn process(&self, batch: RecordBatch, ctx: &Context<'_, SumArgs>) -> Result<StateId> {
        if ctx.args.logging {
            ctx.log(LogLevel::Info, format!("Processing batch with {} rows", batch.num_rows()));
        }
        let sums = numeric_columns(ctx.input_schema())
            .into_iter()
            .map(|index| Sum::of(column(&batch, index)?))
            .collect::<Result<Vec<_>>>()?;
        Ok(StateId::from(write(&sums)))
    }

    fn combine(&self, ids: Vec<StateId>, ctx: &Context<'_, SumArgs>) -> Result<Vec<FinalizeId>> {
        if ctx.args.logging {
            ctx.log(LogLevel::Info, format!("Combining {} state_ids", ids.len()));
        }
        let mut totals: Vec<Sum> =
            ctx.output_schema().fields().iter().map(|field| Sum::zero(field.data_type())).collect();
        for id in ids {
            let sums = read(id.as_bytes())?;
            if sums.len() != totals.len() {
                return Err(foreign(&id.to_string()));
            }
            for (total, sum) in totals.iter_mut().zip(sums) {
                *total = total.add(sum)?;
            }
        }
        Ok(vec![FinalizeId::from(write(&totals))])
    }

    fn finalize(&self, id: &FinalizeId, (): (), ctx: &Context<'_, SumArgs>) -> Result<Tick<()>> {
        let schema = ctx.output_schema();
        let columns = schema
            .fields()
            .iter()
            .zip(read(id.as_bytes())?)
            .map(|(field, sum)| sum.column(field.name()))
            .collect::<Result<_>>()?;
        Ok(Tick::last(RecordBatch::try_new(Arc::clone(schema), columns)?))
    }
}

fn sum_type(data_type: &DataType) -> DataType {
    if data_type.is_integer() { DataType::Int64 } else { DataType::Float64 }
}

fn foreign(id: &str) -> Error {
    Error::Protocol(format!("{id} is not an id of {NAME}"))
}

/// A partial sum. Integers have room to spare, so only the final sum can overflow; doubles carry the rounding error along
/// (Neumaier), so the result hardly depends on how the input was cut into batches.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Sum {
    Integer(i128),
    Double { sum: f64, lost: f64 },
}

impl Sum {
    fn zero(data_type: &DataType) -> Self {
        if data_type.is_integer() { Self::Integer(0) } else { Self::Double { sum: 0.0, lost: 0.0 } }
    }

    fn of(column: &ArrayRef) -> Result<Self> {
        if let Some(unsigned) = column.as_primitive_opt::<UInt64Type>() {
            return Ok(Self::Integer(unsigned.iter().flatten().map(i128::from).sum()));
        }
        if column.data_type().is_integer() {
            let integers = cast(column, &DataType::Int64)?;
            let integers = integers
                .as_primitive_opt::<Int64Type>()
                .ok_or_else(|| Error::Failed("an integer column is not one".to_owned()))?;
            return Ok(Self::Integer(integers.iter().flatten().map(i128::from).sum()));
        }
        let zero = Self::Double { sum: 0.0, lost: 0.0 };
        doubles(column)?.iter().flatten().try_fold(zero, |sum, value| sum.add(Self::Double { sum: value, lost: 0.0 }))
    }

    fn add(self, other: Self) -> Result<Self> {
        Ok(match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => {
                Self::Integer(a.checked_add(b).ok_or_else(|| Error::Failed(format!("{NAME}: the sum is too large")))?)
            }
            (Self::Double { sum: a, lost: x }, Self::Double { sum: b, lost: y }) => {
                let sum = a + b;
                let rounding = if a.abs() >= b.abs() { (a - sum) + b } else { (b - sum) + a };
                Self::Double { sum, lost: x + y + rounding }
            }
            _ => return Err(foreign("an id of other columns")),
        })
    }

    fn column(self, name: &str) -> Result<ArrayRef> {
        Ok(match self {
            Self::Integer(sum) => {
                let sum = i64::try_from(sum).map_err(|_| {
                    Error::Failed(format!("{NAME}: the sum of '{name}' is {sum}, which does not fit BIGINT"))
                })?;
                Arc::new(Int64Array::from(vec![sum]))
            }
            // an infinite sum makes the lost part NaN
            Self::Double { sum, lost } => {
                Arc::new(Float64Array::from(vec![if sum.is_finite() { sum + lost } else { sum }]))
            }
        })
    }
}

/// One byte that tells the kind, then sixteen of value, per column.
fn write(sums: &[Sum]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(sums.len() * 17);
    for sum in sums {
        match sum {
            Sum::Integer(value) => {
                bytes.push(0);
                bytes.extend(value.to_le_bytes());
            }
            Sum::Double { sum, lost } => {
                bytes.push(1);
                bytes.extend(sum.to_le_bytes());
                bytes.extend(lost.to_le_bytes());
            }
        }
    }
    bytes
}

fn read(bytes: &[u8]) -> Result<Vec<Sum>> {
    let (sums, rest) = bytes.as_chunks::<17>();
    if !rest.is_empty() {
        return Err(foreign("an id of another length"));
    }
    let read = |[kind, value @ ..]: &[u8; 17]| {
        let number = u128::from_le_bytes(*value);
        let halves = [number, number >> 64]
            .map(|half| f64::from_bits(u64::try_from(half & u128::from(u64::MAX)).unwrap_or_default()));
        match kind {
            0 => Ok(Sum::Integer(i128::from_le_bytes(*value))),
            1 => Ok(Sum::Double { sum: halves[0], lost: halves[1] }),
            _ => Err(foreign("an id with an unknown kind")),
        }
    };
    sums.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Float64Type;
    use arrow_array::{Decimal128Array, Int32Array, StringArray, UInt64Array};

    use super::*;
    use crate::functions::harness::{Call, batch_of};

    fn mixed(start: i32) -> RecordBatch {
        let ints = Int32Array::from(vec![Some(start), None, Some(start + 1)]);
        let decimals = Decimal128Array::from(vec![Some(150), Some(-25), None]).with_precision_and_scale(10, 2).unwrap();
        batch_of(vec![
            ("i", Arc::new(ints) as ArrayRef),
            ("s", Arc::new(StringArray::from(vec!["x", "y", "z"]))),
            ("d", Arc::new(decimals)),
            ("f", Arc::new(Float64Array::from(vec![0.1, 0.2, 0.3]))),
        ])
    }

    /// As text, since every digit counts.
    fn doubles_of(batch: &RecordBatch, index: usize) -> String {
        batch.column(index).as_primitive::<Float64Type>().value(0).to_string()
    }

    #[test]
    fn sums_are_exact_and_keep_their_names() {
        let output = Call::new(SumAllColumns).run(&[mixed(1), mixed(10), mixed(-4)]).unwrap();
        assert_eq!(output.len(), 1);
        let names: Vec<_> = output[0].schema().fields().iter().map(|field| field.name().clone()).collect();
        assert_eq!(names, ["i", "d", "f"]);
        assert_eq!(output[0].column(0).as_primitive::<Int64Type>().value(0), 1 + 2 + 10 + 11 - 4 - 3);
        assert_eq!(doubles_of(&output[0], 1), "3.75");
        // one rounding of the exact sum, where adding up one by one gives 1.8000000000000003
        assert_eq!(doubles_of(&output[0], 2), "1.8");
    }

    #[test]
    fn an_empty_input_gives_zeros() {
        let output = Call::new(SumAllColumns).input(mixed(0).schema()).run(&[]).unwrap();
        assert_eq!(output[0].column(0).as_primitive::<Int64Type>().value(0), 0);
        assert_eq!([doubles_of(&output[0], 1), doubles_of(&output[0], 2)], ["0", "0"]);
    }

    #[test]
    fn only_a_final_sum_overflows() {
        let ints = |values: Vec<i64>| batch_of(vec![("n", Arc::new(Int64Array::from(values)) as ArrayRef)]);
        let output = Call::new(SumAllColumns).run(&[ints(vec![i64::MAX, 1]), ints(vec![-2])]).unwrap();
        assert_eq!(output[0].column(0).as_primitive::<Int64Type>().value(0), i64::MAX - 1);
        let message = Call::new(SumAllColumns).run(&[ints(vec![i64::MAX, 1])]).unwrap_err().to_string();
        assert_eq!(message, "sum_all_columns: the sum of 'n' is 9223372036854775808, which does not fit BIGINT");
        let unsigned = batch_of(vec![("u", Arc::new(UInt64Array::from(vec![u64::MAX])) as ArrayRef)]);
        assert!(Call::new(SumAllColumns).run(&[unsigned]).unwrap_err().to_string().contains("18446744073709551615"));
    }

    #[test]
    fn equal_ids_count_as_often_as_they_come() {
        let call = Call::new(SumAllColumns);
        let ids = call.process(&[mixed(1), mixed(1)]).unwrap();
        assert_eq!(ids[0], ids[1]);
        let output = call.rest(ids).unwrap();
        assert_eq!(output[0].column(0).as_primitive::<Int64Type>().value(0), 6);
    }

    #[test]
    fn a_table_without_numbers_is_refused_at_bind() {
        let text = batch_of(vec![("s", Arc::new(StringArray::from(vec!["x"])) as ArrayRef)]);
        let message = Call::new(SumAllColumns).run(&[text]).unwrap_err().to_string();
        assert_eq!(message, "sum_all_columns: the input has no numeric column (its columns: s)");
    }

    #[test]
    fn steps_are_reported_when_asked() {
        let call = Call::new(SumAllColumns).named("logging", Arc::new(arrow_array::BooleanArray::from(vec![true])));
        call.run(&[mixed(1), mixed(2)]).unwrap();
        assert_eq!(
            call.logs(),
            ["Processing batch with 3 rows", "Processing batch with 3 rows", "Combining 2 state_ids"]
        );
    }
}
