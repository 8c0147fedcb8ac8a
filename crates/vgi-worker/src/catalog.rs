//! A catalog: schemas with functions, as clients attach and list them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use serde_json::Value;
use vgi_wire::arguments::Values;
use vgi_wire::methods::SecretTypeSpec;

use crate::args::{self, Args, Argument, Arguments};
use crate::context::{BindContext, Context, Scope};
use crate::declared::Declared;
use crate::error::{Error, Result};
use crate::function::{Bound, BufferingFunction, Cardinality, FunctionSpec};
use crate::given::Given;
use crate::ids::{FinalizeId, StateId};
use crate::log::Logger;
use crate::transactions::Transactions;

/// The functions of one schema by name.
type Functions = BTreeMap<String, Arc<dyn Registered>>;

/// A catalog of functions.
pub struct Catalog {
    name: String,
    default_schema: String,
    schemas: BTreeMap<String, Functions>,
    pub(crate) settings: Vec<Declared>,
    pub(crate) attach_options: Vec<Declared>,
    pub(crate) secret_types: Vec<SecretTypeSpec>,
    pub(crate) transactions: Option<Box<dyn Transactions>>,
}

impl Catalog {
    /// A catalog whose default schema is empty yet.
    pub fn new(name: impl Into<String>, default_schema: impl Into<String>) -> Self {
        let default_schema = default_schema.into();
        let schemas = BTreeMap::from([(default_schema.clone(), BTreeMap::new())]);
        Self {
            name: name.into(),
            default_schema,
            schemas,
            settings: Vec::new(),
            attach_options: Vec::new(),
            secret_types: Vec::new(),
            transactions: None,
        }
    }

    /// Declares a setting, so that a client can offer it.
    ///
    /// # Errors
    /// [`Error::Declaration`] when its default is of another type.
    pub fn declare_setting(&mut self, setting: Declared) -> Result<()> {
        setting.check()?;
        declare_once(&mut self.settings, setting, "setting")
    }

    /// Declares an option of ATTACH.
    ///
    /// # Errors
    /// [`Error::Declaration`] when its default is of another type.
    pub fn declare_attach_option(&mut self, option: Declared) -> Result<()> {
        option.check()?;
        declare_once(&mut self.attach_options, option, "attach option")
    }

    /// Declares a type of secrets, so that a client can store them.
    pub fn declare_secret_type(&mut self, secret_type: SecretTypeSpec) {
        self.secret_types.push(secret_type);
    }

    /// Gives the catalog transactions: clients begin one before the first call in it, and name it in every call.
    pub fn with_transactions(&mut self, transactions: impl Transactions) {
        self.transactions = Some(Box::new(transactions));
    }

    /// Registers a function in a schema, which is made when it is new.
    ///
    /// # Errors
    /// [`Error::Declaration`] when the declaration contradicts itself or the name is taken.
    pub fn register<F: BufferingFunction>(&mut self, schema: &str, function: F) -> Result<()> {
        let spec = function.spec();
        let arguments = F::Args::declare();
        let refuse = |reason: &str| Err(Error::Declaration(format!("{}: {reason}", spec.name)));
        if let Some(flaw) = spec.flaw() {
            return refuse(&flaw);
        }
        args::check(&spec.name, &arguments)?;
        let functions = self.schemas.entry(schema.to_owned()).or_default();
        if functions.contains_key(&spec.name) {
            return refuse("the schema has a function of this name already");
        }
        functions.insert(spec.name.clone(), Arc::new(Typed { function, spec, arguments }));
        Ok(())
    }

    /// The catalog's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The schema of functions that are named without one.
    #[must_use]
    pub fn default_schema(&self) -> &str {
        &self.default_schema
    }

    /// The names of all schemas.
    pub fn schemas(&self) -> impl Iterator<Item = &str> {
        self.schemas.keys().map(String::as_str)
    }

    pub(crate) fn functions(&self, path: &[String]) -> Result<impl Iterator<Item = &Arc<dyn Registered>>> {
        Ok(self.schema(path)?.1.values())
    }

    /// Whether there is such a schema.
    pub(crate) fn check_schema(&self, path: &[String]) -> Result<()> {
        self.schema(path).map(drop)
    }

    fn schema(&self, path: &[String]) -> Result<(&str, &Functions)> {
        let name = if path.is_empty() { self.default_schema.clone() } else { path.join(".") };
        let found = self.schemas.get_key_value(&name);
        found.map(|(name, functions)| (name.as_str(), functions)).ok_or_else(|| {
            let known: Vec<_> = self.schemas().collect();
            Error::NotFound(format!("catalog '{}' has no schema '{name}' (it has: {})", self.name, known.join(", ")))
        })
    }

    /// The function of this name in this schema; without a schema, in the default one.
    pub(crate) fn function(&self, path: &[String], name: &str) -> Result<Arc<dyn Registered>> {
        let (schema, functions) = self.schema(path)?;
        functions.get(name).cloned().ok_or_else(|| {
            let elsewhere: Vec<_> = self
                .schemas
                .iter()
                .filter(|(_, functions)| functions.contains_key(name))
                .map(|(schema, _)| schema.as_str())
                .collect();
            let hint = if elsewhere.is_empty() {
                format!("it has: {}", functions.keys().map(String::as_str).collect::<Vec<_>>().join(", "))
            } else {
                format!("it is in: {}", elsewhere.join(", "))
            };
            Error::NotFound(format!("schema '{}.{schema}' has no function '{name}' ({hint})", self.name))
        })
    }
}

fn declare_once(declared: &mut Vec<Declared>, new: Declared, kind: &str) -> Result<()> {
    if declared.iter().any(|other| other.name.eq_ignore_ascii_case(&new.name)) {
        return Err(Error::Declaration(format!("the {kind} '{}' is declared twice", new.name)));
    }
    declared.push(new);
    Ok(())
}

/// A turn whose position is JSON.
pub(crate) struct ErasedTick {
    pub(crate) batch: Option<RecordBatch>,
    pub(crate) next: Option<Value>,
}

/// A function without its types, as the server calls it.
pub(crate) trait Registered: Send + Sync {
    fn spec(&self) -> &FunctionSpec;
    fn arguments(&self) -> &[Argument];
    fn bind(&self, values: Values, input_schema: &SchemaRef, given: &Given, logger: &Logger) -> Result<Bound>;
    fn cardinality(
        &self,
        values: Values,
        input_schema: &SchemaRef,
        given: &Given,
        logger: &Logger,
    ) -> Result<Cardinality>;
    fn init(&self, values: Values, scope: &Scope) -> Result<()>;
    fn process(&self, values: Values, batch: RecordBatch, scope: &Scope) -> Result<StateId>;
    fn combine(&self, values: Values, ids: Vec<StateId>, scope: &Scope) -> Result<Vec<FinalizeId>>;
    fn finalize(&self, values: Values, id: &FinalizeId, position: Option<Value>, scope: &Scope) -> Result<ErasedTick>;
}

struct Typed<F> {
    function: F,
    spec: FunctionSpec,
    arguments: Vec<Argument>,
}

impl<F: BufferingFunction> Typed<F> {
    fn parse(&self, values: Values) -> Result<F::Args> {
        F::Args::parse(&Arguments::resolve(&self.spec.name, &self.arguments, values)?)
    }
}

impl<F: BufferingFunction> Registered for Typed<F> {
    fn spec(&self) -> &FunctionSpec {
        &self.spec
    }

    fn arguments(&self) -> &[Argument] {
        &self.arguments
    }

    fn bind(&self, values: Values, input_schema: &SchemaRef, given: &Given, logger: &Logger) -> Result<Bound> {
        let args = self.parse(values)?;
        let bound = self.function.bind(&BindContext { args: &args, input_schema, given, logger })?;
        if given.secrets_resolved && !bound.lookups.is_empty() {
            return Err(Error::Failed(format!("{} asks for secrets a second time", self.spec.name)));
        }
        Ok(bound)
    }

    fn cardinality(
        &self,
        values: Values,
        input_schema: &SchemaRef,
        given: &Given,
        logger: &Logger,
    ) -> Result<Cardinality> {
        let args = self.parse(values)?;
        self.function.cardinality(&BindContext { args: &args, input_schema, given, logger })
    }

    fn init(&self, values: Values, scope: &Scope) -> Result<()> {
        self.function.init(&Context { args: &self.parse(values)?, scope })
    }

    fn process(&self, values: Values, batch: RecordBatch, scope: &Scope) -> Result<StateId> {
        if self.spec.flags.requires_input_batch_index && scope.batch_index.is_none() {
            return Err(Error::Protocol(format!("{} requires a batch_index with every batch", self.spec.name)));
        }
        self.function.process(batch, &Context { args: &self.parse(values)?, scope })
    }

    fn combine(&self, values: Values, ids: Vec<StateId>, scope: &Scope) -> Result<Vec<FinalizeId>> {
        self.function.combine(ids, &Context { args: &self.parse(values)?, scope })
    }

    fn finalize(&self, values: Values, id: &FinalizeId, position: Option<Value>, scope: &Scope) -> Result<ErasedTick> {
        let broken =
            |error: serde_json::Error| Error::Protocol(format!("the position of the stream cannot be used: {error}"));
        let position = match position {
            Some(position) => serde_json::from_value(position).map_err(broken)?,
            None => F::Position::default(),
        };
        let tick = self.function.finalize(id, position, &Context { args: &self.parse(values)?, scope })?;
        let next = tick.next.map(|next| serde_json::to_value(next).map_err(broken)).transpose()?;
        Ok(ErasedTick { batch: tick.batch, next })
    }
}

#[cfg(test)]
mod tests {
    use vgi_wire::methods::SecretLookup;

    use super::*;
    use crate::function::{Bound, Tick};

    struct Named(FunctionSpec);

    impl BufferingFunction for Named {
        type Args = ();
        type Position = ();
        fn spec(&self) -> FunctionSpec {
            self.0.clone()
        }
        fn bind(&self, ctx: &BindContext<'_, ()>) -> Result<Bound> {
            Ok(Bound::new(Arc::clone(ctx.input_schema())))
        }
        fn process(&self, _: RecordBatch, _: &Context<'_, ()>) -> Result<StateId> {
            Ok(StateId::from(vec![]))
        }
        fn combine(&self, _: Vec<StateId>, _: &Context<'_, ()>) -> Result<Vec<FinalizeId>> {
            Ok(Vec::new())
        }
        fn finalize(&self, _: &FinalizeId, (): (), _: &Context<'_, ()>) -> Result<Tick<()>> {
            Ok(Tick::end())
        }
    }

    #[test]
    fn contradictions_are_refused_at_registration() {
        let mut catalog = Catalog::new("example", "main");
        let both = FunctionSpec::new("f", "").sink_order_dependent().requires_input_batch_index();
        let message = catalog.register("main", Named(both)).unwrap_err().to_string();
        assert_eq!(message, "f: sink_order_dependent and requires_input_batch_index exclude each other");
        catalog.register("main", Named(FunctionSpec::new("f", ""))).unwrap();
        assert!(catalog.register("main", Named(FunctionSpec::new("f", ""))).is_err());
        let secret = SecretLookup { secret_type: String::new(), scope: String::new(), name: "s".to_owned() };
        let new = || FunctionSpec::new("g", "");
        for (spec, reason) in [
            (FunctionSpec::new("", ""), "needs a name"),
            (new().max_workers(0), "max_workers must be at least 1"),
            (new().tag("a", "1").tag("a", "2"), "the tag 'a' is given twice"),
            (new().setting("s").setting("s"), "the setting 's' is required twice"),
            (new().setting(""), "a required setting needs a name"),
            (new().secret(secret), "a required secret needs a type"),
        ] {
            let message = catalog.register("main", Named(spec)).unwrap_err().to_string();
            assert!(message.ends_with(reason), "{message}");
        }
        catalog.register("alt", Named(FunctionSpec::new("f", ""))).unwrap();
    }

    #[test]
    fn a_function_that_is_not_there_is_answered_with_what_is() {
        let mut catalog = Catalog::new("example", "main");
        catalog.register("main", Named(FunctionSpec::new("f", ""))).unwrap();
        catalog.register("alt", Named(FunctionSpec::new("g", ""))).unwrap();
        let path = |name: &str| vec![name.to_owned()];
        let message = |schema: &[String], name: &str| catalog.function(schema, name).err().unwrap().to_string();
        assert!(catalog.function(&[], "f").is_ok() && catalog.function(&path("alt"), "g").is_ok());
        assert_eq!(message(&[], "h"), "schema 'example.main' has no function 'h' (it has: f)");
        assert_eq!(message(&path("main"), "g"), "schema 'example.main' has no function 'g' (it is in: alt)");
        assert_eq!(message(&path("x"), "f"), "catalog 'example' has no schema 'x' (it has: alt, main)");
    }
}
