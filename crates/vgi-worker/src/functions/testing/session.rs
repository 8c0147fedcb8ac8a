//! What of a client's session reached the worker. The testing catalog declares, for it:
//!
//! - the attach option `label` VARCHAR, `'none'` when it is not given;
//! - the setting `vgi_example_greeting` VARCHAR, `'hello'` by default;
//! - the type of secrets `vgi_example`, with `token` (hidden) and `port`.
//!
//! `session_values` requires the setting and a secret of that type; `session_lookup` asks for the secret of a name when it is bound.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use vgi_wire::methods::{SecretLookup, SecretTypeSpec};

use crate::args::{Args, DefaultValue};
use crate::catalog::Catalog;
use crate::context::{BindContext, Context};
use crate::declared::Declared;
use crate::error::Result;
use crate::function::{Bound, BufferingFunction, FunctionSpec, Tick};
use crate::ids::{FinalizeId, StateId};
use crate::log::LogLevel;

const LABEL: &str = "label";
const GREETING: &str = "vgi_example_greeting";
const SECRET: &str = "vgi_example";

pub(super) fn register(catalog: &mut Catalog) -> Result<()> {
    let label = Declared::new::<String>(LABEL, "Shown by session_values.").or(DefaultValue::Text("none"));
    catalog.declare_attach_option(label)?;
    let greeting = Declared::new::<String>(GREETING, "Shown by session_values.").or(DefaultValue::Text("hello"));
    catalog.declare_setting(greeting)?;
    let flag = |redact: &str| HashMap::from([("redact".to_owned(), redact.to_owned())]);
    catalog.declare_secret_type(SecretTypeSpec {
        name: SECRET.to_owned(),
        description: "A secret that session_values shows.".to_owned(),
        parameters: Arc::new(Schema::new(vec![
            Field::new("token", DataType::Utf8, true).with_metadata(flag("true")),
            Field::new("port", DataType::Int64, true).with_metadata(flag("false")),
        ])),
    });
    catalog.register("main", SessionValues { lookup: false })?;
    catalog.register("main", SessionValues { lookup: true })
}

/// Rows `what, value` with what the client gave besides its rows; a NULL is what it did not give.
///
/// ```sql
/// FROM example.session_values((FROM range(1)));
/// FROM example.session_lookup((FROM range(1)), secret := 'mine');
/// ```
#[derive(Debug)]
pub(super) struct SessionValues {
    lookup: bool,
}

/// Arguments of [`SessionValues`].
#[derive(Debug, Args)]
pub(super) struct SessionArgs {
    #[arg(doc = "Name of the secret; any of the type without one.", named, default = "")]
    secret: String,
}

impl SessionArgs {
    fn lookup(&self) -> SecretLookup {
        SecretLookup { secret_type: SECRET.to_owned(), scope: String::new(), name: self.secret.clone() }
    }
}

impl BufferingFunction for SessionValues {
    type Args = SessionArgs;
    type Position = ();

    fn spec(&self) -> FunctionSpec {
        let name = if self.lookup { "session_lookup" } else { "session_values" };
        let spec = FunctionSpec::new(name, "What the client gave besides its rows.")
            .setting(GREETING)
            .max_workers(2)
            .example(format!("FROM example.{name}((FROM range(1)));"), "The setting, the option and the secret.");
        if self.lookup {
            return spec;
        }
        spec.secret(SecretLookup { secret_type: SECRET.to_owned(), scope: String::new(), name: String::new() })
    }

    fn bind(&self, ctx: &BindContext<'_, SessionArgs>) -> Result<Bound> {
        if self.lookup && !ctx.secrets_resolved() {
            ctx.log(LogLevel::Info, "asking for a secret");
            return Ok(Bound::lookup(vec![ctx.args.lookup()]));
        }
        Ok(Bound::new(Schema::new(vec![
            Field::new("what", DataType::Utf8, false),
            Field::new("value", DataType::Utf8, true),
        ])))
    }

    fn process(&self, _: RecordBatch, _: &Context<'_, SessionArgs>) -> Result<StateId> {
        Ok(StateId::of_numbers(&[]))
    }

    fn combine(&self, _: Vec<StateId>, _: &Context<'_, SessionArgs>) -> Result<Vec<FinalizeId>> {
        Ok(vec![FinalizeId::of_numbers(&[])])
    }

    fn finalize(&self, _: &FinalizeId, (): (), ctx: &Context<'_, SessionArgs>) -> Result<Tick<()>> {
        let secret = if ctx.args.secret.is_empty() { SECRET } else { ctx.args.secret.as_str() };
        let transaction = ctx.transaction().map(|handle| String::from_utf8_lossy(handle).into_owned());
        let rows = [
            ("setting", ctx.setting::<String>(GREETING)?),
            ("attach option", ctx.attach_option::<String>(LABEL)?),
            ("secret token", ctx.secret(secret, "token")?),
            ("secret port", ctx.secret(secret, "port")?),
            ("transaction", transaction),
        ];
        let (what, values): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        let columns: Vec<ArrayRef> = vec![Arc::new(StringArray::from(what)), Arc::new(StringArray::from(values))];
        Ok(Tick::last(RecordBatch::try_new(Arc::clone(ctx.output_schema()), columns)?))
    }
}
