//! Functions that only their arguments tell apart, and as many functions as a test wants.

use std::sync::Arc;

use arrow_array::{RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};

use crate::args::{Args, Argument, Arguments, DefaultValue};
use crate::catalog::Catalog;
use crate::context::{BindContext, Context};
use crate::error::Result;
use crate::function::{Bound, BufferingFunction, FunctionSpec, Tick};
use crate::ids::{FinalizeId, StateId};

/// The forms of `which_form`, and the schema `geo.points` inside of `geo`.
pub(super) fn register(catalog: &mut Catalog) -> Result<()> {
    catalog.register_form("main", Shown::<Number>::form())?;
    catalog.register_form("main", Shown::<Text>::form())?;
    catalog.register_form("main", Shown::<Two>::form())?;
    catalog.register("main", Shown::<Anything>::new("which_value"))?;
    catalog.register("geo.points", Shown::<Anything>::new("which_value"))?;
    // a name that DuckDB has too
    catalog.register("main", Shown::<Text>::new("repeat_row"))?;
    // published as `repeat_row`, which is taken, and as `repeat_which_value`
    catalog.register("main", Shown::<Text>::new("row"))?;
    catalog.publish("repeat", "main", &["row", "which_value"]);
    Ok(())
}

/// Functions `generated_0`, `generated_1` … in the schema `generated`.
pub(crate) fn generate(catalog: &mut Catalog, count: usize) -> Result<()> {
    for number in 0..count {
        catalog.register("generated", Shown::<Two>::new(format!("generated_{number}")))?;
    }
    Ok(())
}

/// One row with the values of a call, as text.
trait Values: Args + Send + Sync + 'static {
    fn text(&self) -> String;
}

struct Number(i64);

impl Args for Number {
    fn declare() -> Vec<Argument> {
        vec![Argument::positional::<i64>("number", "A number.")]
    }

    fn parse(values: &Arguments) -> Result<Self> {
        Ok(Self(values.get("number")?))
    }
}

impl Values for Number {
    fn text(&self) -> String {
        format!("number {}", self.0)
    }
}

struct Text(String);

impl Args for Text {
    fn declare() -> Vec<Argument> {
        vec![Argument::positional::<String>("text", "A text.")]
    }

    fn parse(values: &Arguments) -> Result<Self> {
        Ok(Self(values.get("text")?))
    }
}

impl Values for Text {
    fn text(&self) -> String {
        format!("text {}", self.0)
    }
}

struct Two(i64, f64, String);

impl Args for Two {
    fn declare() -> Vec<Argument> {
        vec![
            Argument::positional::<i64>("number", "A number."),
            Argument::positional::<f64>("share", "A share.").or(DefaultValue::Double(0.5)),
            Argument::named::<String>("label", DefaultValue::Text("none"), "A label."),
        ]
    }

    fn parse(values: &Arguments) -> Result<Self> {
        Ok(Self(values.get("number")?, values.get("share")?, values.get("label")?))
    }
}

impl Values for Two {
    fn text(&self) -> String {
        format!("number {}, share {}, label {}", self.0, self.1, self.2)
    }
}

struct Anything(usize);

impl Args for Anything {
    fn declare() -> Vec<Argument> {
        vec![Argument::any_varargs("values", "Anything.").or(DefaultValue::Nothing)]
    }

    fn parse(values: &Arguments) -> Result<Self> {
        Ok(Self(values.many::<f64>("values")?.len()))
    }
}

impl Values for Anything {
    fn text(&self) -> String {
        format!("{} values", self.0)
    }
}

/// One row `form` with what it was called with.
///
/// ```sql
/// FROM example.which_form((FROM range(1)), 42);
/// FROM example.which_form((FROM range(1)), 'x');
/// ```
struct Shown<A> {
    name: String,
    args: std::marker::PhantomData<fn() -> A>,
}

impl<A> Shown<A> {
    fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), args: std::marker::PhantomData }
    }

    fn form() -> Self {
        Self::new("which_form")
    }
}

impl<A: Values> BufferingFunction for Shown<A> {
    type Args = A;
    type Position = ();

    fn spec(&self) -> FunctionSpec {
        FunctionSpec::new(self.name.clone(), "The values that the function was called with.")
            .example(format!("FROM example.{}((FROM range(1)), 1);", self.name), "One row.")
    }

    fn bind(&self, _: &BindContext<'_, A>) -> Result<Bound> {
        Ok(Bound::new(Schema::new(vec![Field::new("form", DataType::Utf8, false)])))
    }

    fn process(&self, _: RecordBatch, _: &Context<'_, A>) -> Result<StateId> {
        Ok(StateId::of_numbers(&[]))
    }

    fn combine(&self, _: Vec<StateId>, _: &Context<'_, A>) -> Result<Vec<FinalizeId>> {
        Ok(vec![FinalizeId::of_numbers(&[])])
    }

    fn finalize(&self, _: &FinalizeId, (): (), ctx: &Context<'_, A>) -> Result<Tick<()>> {
        let text = StringArray::from(vec![ctx.args.text()]);
        Ok(Tick::last(RecordBatch::try_new(Arc::clone(ctx.output_schema()), vec![Arc::new(text)])?))
    }
}
