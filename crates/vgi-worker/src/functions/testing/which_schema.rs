//! Tells which of two schemas a call went to.

use std::sync::Arc;

use arrow_array::{RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};

use crate::context::{BindContext, Context};
use crate::error::Result;
use crate::function::{Bound, BufferingFunction, FunctionSpec, Tick};
use crate::ids::{FinalizeId, StateId};

/// One row with the name of the schema that the function was called in.
///
/// ```sql
/// FROM example.alt.which_schema((FROM t));
/// ```
#[derive(Debug)]
pub(super) struct WhichSchema(pub(super) &'static str);

impl BufferingFunction for WhichSchema {
    type Args = ();
    type Position = ();

    fn spec(&self) -> FunctionSpec {
        let sql = format!("FROM example.{}.which_schema((FROM range(1)));", self.0);
        FunctionSpec::new("which_schema", "The schema that the function was called in.").example(sql, "One row.")
    }

    fn bind(&self, _: &BindContext<'_, ()>) -> Result<Bound> {
        Ok(Bound::new(Schema::new(vec![Field::new("schema", DataType::Utf8, false)])))
    }

    fn process(&self, _: RecordBatch, _: &Context<'_, ()>) -> Result<StateId> {
        Ok(StateId::of_numbers(&[]))
    }

    fn combine(&self, _: Vec<StateId>, _: &Context<'_, ()>) -> Result<Vec<FinalizeId>> {
        Ok(vec![FinalizeId::of_numbers(&[])])
    }

    fn finalize(&self, _: &FinalizeId, (): (), ctx: &Context<'_, ()>) -> Result<Tick<()>> {
        let name = StringArray::from(vec![self.0]);
        Ok(Tick::last(RecordBatch::try_new(Arc::clone(ctx.output_schema()), vec![Arc::new(name)])?))
    }
}
