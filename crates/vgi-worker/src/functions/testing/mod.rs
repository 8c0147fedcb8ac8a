//! Functions that only tests need: they show what a client sent, and misbehave on request.

mod count_rows;
pub(crate) mod forms;
mod listed;
mod parts;
mod phases;
mod session;
mod trace;
mod which_schema;
mod witness;

use count_rows::CountRows;
use parts::{EmitParts, EmitWide};
use phases::{FailIn, HangIn, LogIn, Phased};
use trace::BatchTrace;
use which_schema::WhichSchema;
use witness::Witness;

use crate::catalog::Catalog;
use crate::error::Result;

pub(crate) fn register(catalog: &mut Catalog) -> Result<()> {
    catalog.register("main", EmitParts { ordered: false })?;
    catalog.register("main", EmitParts { ordered: true })?;
    catalog.register("main", EmitWide)?;
    catalog.register("main", BatchTrace::plain())?;
    catalog.register("main", BatchTrace::serial())?;
    catalog.register("main", BatchTrace::indexed())?;
    catalog.register("main", Phased::<FailIn>::new())?;
    catalog.register("main", Phased::<HangIn>::new())?;
    catalog.register("main", Phased::<LogIn>::new())?;
    for witness in Witness::all() {
        catalog.register("main", witness)?;
    }
    session::register(catalog)?;
    catalog.register("main", CountRows)?;
    forms::register(catalog)?;
    listed::declare(catalog);
    catalog.register("main", WhichSchema("main"))?;
    catalog.register("alt", WhichSchema("alt"))
}
