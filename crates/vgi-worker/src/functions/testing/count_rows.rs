//! The function of the documentation: `README.md` has this very text, which a test compares.
#![allow(missing_docs, missing_debug_implementations, reason = "the shortest complete function")]

// README: begin
use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use vgi_worker::{
    Args, BindContext, Bound, BufferingFunction, Context, FinalizeId, FunctionSpec, Result, StateId, Tick,
};

#[derive(Args)]
pub struct CountArgs {
    #[arg(doc = "Count no further than this.", named, default = 1_000_000, range = 1..)]
    at_most: i64,
}

pub struct CountRows;

impl BufferingFunction for CountRows {
    type Args = CountArgs;
    type Position = ();

    fn spec(&self) -> FunctionSpec {
        FunctionSpec::new("count_rows", "How many rows the table has.")
            .example("FROM example.count_rows((FROM range(42)), at_most := 10);", "10.")
    }

    fn bind(&self, _: &BindContext<'_, CountArgs>) -> Result<Bound> {
        Ok(Bound::new(Schema::new(vec![Field::new("rows", DataType::Int64, false)])))
    }

    fn process(&self, batch: RecordBatch, _: &Context<'_, CountArgs>) -> Result<StateId> {
        Ok(StateId::of_numbers(&[batch.num_rows() as u64]))
    }

    fn combine(&self, ids: Vec<StateId>, _: &Context<'_, CountArgs>) -> Result<Vec<FinalizeId>> {
        let counts = ids.iter().map(|id| Ok(id.numbers::<1>()?[0])).collect::<Result<Vec<_>>>()?;
        Ok(vec![FinalizeId::of_numbers(&[counts.iter().sum()])])
    }

    fn finalize(&self, id: &FinalizeId, (): (), ctx: &Context<'_, CountArgs>) -> Result<Tick<()>> {
        let rows = i64::try_from(id.numbers::<1>()?[0]).unwrap_or(i64::MAX).min(ctx.args.at_most);
        let column = Arc::new(Int64Array::from(vec![rows]));
        Ok(Tick::last(RecordBatch::try_new(ctx.output_schema().clone(), vec![column])?))
    }
}
// README: end

#[cfg(test)]
mod tests {
    use arrow_array::ArrayRef;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int64Type;

    use super::*;
    use crate::functions::harness::{Call, batch_of};

    #[test]
    fn it_counts_up_to_its_limit() {
        let batch = |rows: i64| batch_of(vec![("x", Arc::new(Int64Array::from_iter_values(0..rows)) as ArrayRef)]);
        let count =
            |call: Call| call.run(&[batch(40), batch(2)]).unwrap()[0].column(0).as_primitive::<Int64Type>().value(0);
        assert_eq!(count(Call::new(CountRows)), 42);
        assert_eq!(count(Call::new(CountRows).named("at_most", Arc::new(Int64Array::from(vec![10])))), 10);
        let none = Call::new(CountRows).input(batch(0).schema()).run(&[]).unwrap();
        assert_eq!(none[0].column(0).as_primitive::<Int64Type>().value(0), 0);
    }

    #[test]
    fn it_is_the_function_of_the_documentation() {
        let source = include_str!("count_rows.rs");
        let (_, source) = source.split_once("// README: begin\n").unwrap();
        let (function, _) = source.split_once("// README: end\n").unwrap();
        for readme in [include_str!("../../../README.md"), include_str!("../../../../../README.md")] {
            assert!(readme.contains(function), "a README has another text");
        }
    }
}
