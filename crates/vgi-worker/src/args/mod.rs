//! Arguments: how a function declares them, how a call's values are checked against the declaration, and how a function reads them.
//!
//! Clients differ in how carefully they cast values to the declared types, and SQL writes `0.5` as a decimal, so values are converted
//! here when that loses nothing. Everything else is refused at bind with a sentence that names the function and the argument.

mod convert;
mod declare;
mod resolve;
mod rule;
mod value;

pub(crate) use convert::convert;
pub use convert::{FromArgument, sql_type};
pub use declare::{Argument, Kind};
pub(crate) use declare::{check, declaration, defaults};
pub use resolve::Arguments;
pub use value::DefaultValue;

use crate::error::Result;

/// The arguments of one function as a Rust type, usually derived:
///
/// ```
/// use vgi_worker::Args;
///
/// #[derive(Args)]
/// struct HistogramArgs {
///     /// How many bars.
///     #[arg(range = 1..=10_000)]
///     bars: usize,
///     #[arg(doc = "Columns to count; all of them when there is none.", varargs, default = [])]
///     columns: Vec<String>,
///     #[arg(doc = "How wide bars are.", named, default = "equal", choices = ["equal", "quantile"])]
///     widths: String,
///     #[arg(doc = "Begin of the first bar.", named)]
///     from: Option<f64>,
/// }
/// ```
///
/// | `#[arg(…)]` | Meaning |
/// |---|---|
/// | `doc = "…"` | Description; the field's documentation without it |
/// | `name = "…"` | Name in SQL, when it is not the field's |
/// | `named` | Given by name, `columns := …`; needs a default, or the type `Option` |
/// | `default = …` | Value when it is not given: a number, text, `true`, `false`, or a list of such |
/// | `choices = […]` | The only accepted values |
/// | `range = a..=b` | The accepted numbers, with or without either bound |
/// | `pattern = "…"` | Regular expression that must match the whole text |
/// | `varargs` | Positional, last, any number of times: a `Vec`; may be left out with `default = []` |
/// | `any` | With `varargs`: a value may also be a list of such values |
/// | `flatten` | The field's type has arguments of its own, which stand here |
///
/// Fields are `bool`, `String`, integers, `f32`, `f64`, `Option` of these, which is `None` for what is left out or NULL, and `Vec` of
/// these. `usize` is a BIGINT that is not negative. What is declared is told to clients, and checked before `bind` is called.
pub use vgi_worker_derive::Args;

/// The arguments of one function as a Rust type; see [the derive macro](derive@Args).
pub trait Args: Sized + Send + Sync + 'static {
    /// The declared arguments: positional ones in order, then named ones. The input table need not be declared; it comes first.
    fn declare() -> Vec<Argument>;

    /// Reads the values of a call, which have been checked against [`Args::declare`], and checks what a declaration cannot say.
    ///
    /// # Errors
    /// When a value is not acceptable; see [`Arguments::refuse`].
    fn parse(values: &Arguments) -> Result<Self>;
}

/// A function without arguments.
impl Args for () {
    fn declare() -> Vec<Argument> {
        Vec::new()
    }

    fn parse(_: &Arguments) -> Result<Self> {
        Ok(())
    }
}
