//! What of a query's projection and filters reached the worker.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_cast::display::array_value_to_string;
use arrow_schema::{DataType, Field, Schema};
use vgi_wire::filter::{Expression, Predicate};

use crate::context::{BindContext, Context};
use crate::error::{Error, Result};
use crate::function::{Bound, BufferingFunction, Filters, FunctionSpec, Tick};
use crate::ids::{FinalizeId, StateId};

/// Ten rows `a, b, at_init, at_finalize, projection`: `a` counts, `b` is its text, and the others say what the client asked for, in the
/// primary init and in the one of the stream.
///
/// ```sql
/// SELECT at_init FROM example.witness((FROM t)) WHERE a < 3;          -- takes filters, applies none
/// SELECT at_init FROM example.exact_witness((FROM t)) WHERE a < 3;    -- applies them
/// SELECT at_init FROM example.plain_witness((FROM t)) WHERE a < 3;    -- takes neither filters nor a projection
/// ```
#[derive(Debug)]
pub(super) struct Witness(FunctionSpec);

impl Witness {
    pub(super) fn all() -> [Self; 3] {
        let spec = |name: &str| {
            FunctionSpec::new(name, "What a query asked for.")
                .example(format!("FROM example.{name}((FROM range(1)));"), "Ten rows.")
        };
        [
            Self(spec("witness").filters(Filters::Ignored).projection_pushdown()),
            Self(spec("exact_witness").filters(Filters::Applied).projection_pushdown()),
            Self(spec("plain_witness")),
        ]
    }
}

const AT_INIT: &str = "at init";

impl BufferingFunction for Witness {
    type Args = ();
    type Position = ();

    fn spec(&self) -> FunctionSpec {
        self.0.clone()
    }

    fn bind(&self, _: &BindContext<'_, ()>) -> Result<Bound> {
        let text = |name: &str| Field::new(name, DataType::Utf8, true);
        Ok(Bound::new(Schema::new(vec![
            Field::new("a", DataType::Int64, true),
            text("b"),
            text("at_init"),
            text("at_finalize"),
            text("projection"),
        ])))
    }

    fn init(&self, ctx: &Context<'_, ()>) -> Result<()> {
        ctx.store().put(AT_INIT, asked(ctx.filters())?.into_bytes())
    }

    fn process(&self, _: RecordBatch, _: &Context<'_, ()>) -> Result<StateId> {
        Ok(StateId::of_numbers(&[]))
    }

    fn combine(&self, _: Vec<StateId>, _: &Context<'_, ()>) -> Result<Vec<FinalizeId>> {
        Ok(vec![FinalizeId::of_numbers(&[])])
    }

    fn finalize(&self, _: &FinalizeId, (): (), ctx: &Context<'_, ()>) -> Result<Tick<()>> {
        let at_init = ctx.store().require(AT_INIT)?;
        let at_init = String::from_utf8(at_init.to_vec()).map_err(|error| Error::Failed(error.to_string()))?;
        let projection = ctx.projection().map_or_else(|| "all".to_owned(), |columns| format!("{columns:?}"));
        let every_row = |text: String| Arc::new(StringArray::from(vec![text; 10])) as ArrayRef;
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from_iter_values(0..10)),
            Arc::new((0..10).map(|a: i64| Some(a.to_string())).collect::<StringArray>()),
            every_row(at_init),
            every_row(asked(ctx.filters())?),
            every_row(projection),
        ];
        Ok(Tick::last(RecordBatch::try_new(Arc::clone(ctx.output_schema()), columns)?))
    }
}

fn asked(predicates: &[Predicate]) -> Result<String> {
    let text = |predicate: &Predicate| {
        let mode = if predicate.required { "required" } else { "advisory" };
        Ok(format!("{mode} {}", written(&predicate.expression)?))
    };
    let texts = predicates.iter().map(text).collect::<Result<Vec<_>>>()?;
    Ok(if texts.is_empty() { "nothing".to_owned() } else { texts.join("; ") })
}

fn written(expression: &Expression) -> Result<String> {
    let join = |children: &[Expression], word: &str| {
        Ok::<_, Error>(format!("({})", children.iter().map(written).collect::<Result<Vec<_>>>()?.join(word)))
    };
    Ok(match expression {
        Expression::Column { name, .. } => name.clone(),
        Expression::Literal(value) => values(value)?,
        Expression::Comparison { op, left, right } => format!("{} {op:?} {}", written(left)?, written(right)?),
        Expression::And(children) => join(children, " and ")?,
        Expression::Or(children) => join(children, " or ")?,
        Expression::Not(expression) => format!("not {}", written(expression)?),
        Expression::IsNull { expression, negated } => {
            format!("{} is {}null", written(expression)?, if *negated { "not " } else { "" })
        }
        Expression::In { expression, negated, values: list } => {
            format!("{} {}in [{}]", written(expression)?, if *negated { "not " } else { "" }, values(list)?)
        }
        Expression::Call { function, arguments } => format!("{function}{}", join(arguments, ", ")?),
        other => format!("{other:?}"),
    })
}

fn values(array: &ArrayRef) -> Result<String> {
    let one = |row| if array.is_null(row) { Ok("NULL".to_owned()) } else { Ok(array_value_to_string(array, row)?) };
    Ok((0..array.len()).map(one).collect::<Result<Vec<_>>>()?.join(", "))
}
