//! Arguments: how a function declares them, how a call's values are checked against the declaration, and how a function reads them.
//!
//! Clients differ in how carefully they cast values to the declared types, and SQL writes `0.5` as a decimal, so values are converted
//! here when that loses nothing. Everything else is refused at bind with a sentence that names the function and the argument.

mod convert;
mod declare;
mod resolve;

pub(crate) use convert::convert;
pub use convert::{FromArgument, sql_type};
pub use declare::{Argument, DefaultValue, Kind};
pub(crate) use declare::{check, declaration};
pub use resolve::Arguments;

use crate::error::Result;

/// The arguments of one function as a Rust type.
pub trait Args: Sized + Send + Sync + 'static {
    /// The declared arguments: positional ones in order, then named ones. The input table need not be declared; it comes first.
    fn declare() -> Vec<Argument>;

    /// Reads the values of a call, which have been checked against [`Args::declare`], and checks what types cannot say.
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
