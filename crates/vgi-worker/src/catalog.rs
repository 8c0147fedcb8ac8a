//! A catalog: schemas with functions, as clients attach and list them.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::SchemaRef;
use serde_json::Value;
use vgi_wire::arguments::Values;
use vgi_wire::methods::{FunctionInfo, ObjectInfo, SecretTypeSpec, SqlInfo};

use crate::args::{self, Args, Argument, Arguments, Kind};
use crate::context::{BindContext, Context, Scope};
use crate::declared::Declared;
use crate::error::{Error, Result};
use crate::function::{Bound, BufferingFunction, Cardinality, FunctionSpec};
use crate::given::Given;
use crate::ids::{FinalizeId, StateId};
use crate::log::Logger;
use crate::transactions::Transactions;

/// The functions of one schema by name; several forms of a name differ in their arguments.
type Functions = BTreeMap<String, Vec<Arc<dyn Registered>>>;

/// A catalog of functions.
pub struct Catalog {
    name: String,
    default_schema: String,
    schemas: BTreeMap<String, Functions>,
    pub(crate) settings: Vec<Declared>,
    pub(crate) attach_options: Vec<Declared>,
    pub(crate) secret_types: Vec<SecretTypeSpec>,
    pub(crate) transactions: Option<Box<dyn Transactions>>,
    pub(crate) views: Vec<SqlInfo>,
    pub(crate) macros: Vec<SqlInfo>,
    /// Put before the names of published functions.
    pub(crate) prefix: String,
    /// Schema and name.
    pub(crate) published: Vec<(String, String)>,
    /// What is listed although it cannot be called here.
    pub(crate) listed: Listed,
}

/// Objects that are told by name alone.
#[derive(Default)]
pub(crate) struct Listed {
    pub(crate) tables: Vec<ObjectInfo>,
    pub(crate) indexes: Vec<ObjectInfo>,
    pub(crate) functions: Vec<FunctionInfo>,
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
            views: Vec::new(),
            macros: Vec::new(),
            prefix: String::new(),
            published: Vec::new(),
            listed: Listed::default(),
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

    /// Lets clients call functions without the catalog's name, as `prefix_name`. A client does so where the name is free.
    pub fn publish(&mut self, prefix: &str, schema: &str, names: &[&str]) {
        prefix.clone_into(&mut self.prefix);
        self.published.extend(names.iter().map(|&name| (schema.to_owned(), name.to_owned())));
    }

    /// Declares a view: a query that a client runs under this name. Names in it are the client's.
    pub fn declare_view(&mut self, schema: &str, name: &str, query: &str) {
        self.add_schema(schema);
        self.views.push(sql(schema, name, query));
    }

    /// Declares a macro: an expression, or with `table` a query, over its parameters.
    pub fn declare_macro(&mut self, schema: &str, name: &str, parameters: &[&str], definition: &str, table: bool) {
        self.add_schema(schema);
        let parameters = parameters.iter().map(|&parameter| parameter.to_owned()).collect();
        self.macros.push(SqlInfo { table, parameters, ..sql(schema, name, definition) });
    }

    /// What a schema stands in is a schema, too.
    fn add_schema(&mut self, schema: &str) -> &mut Functions {
        for (end, _) in schema.match_indices('.') {
            self.schemas.entry(schema[..end].to_owned()).or_default();
        }
        self.schemas.entry(schema.to_owned()).or_default()
    }

    /// Registers a function in a schema, which is made when it is new. A dot in the schema's name makes it one inside of another.
    ///
    /// # Errors
    /// [`Error::Declaration`] when the declaration contradicts itself or the name is taken.
    pub fn register<F: BufferingFunction>(&mut self, schema: &str, function: F) -> Result<()> {
        let name = function.spec().name;
        if self.schemas.get(schema).is_some_and(|functions| functions.contains_key(&name)) {
            return Err(Error::Declaration(format!("{name}: the schema has a function of this name already")));
        }
        self.register_form(schema, function)
    }

    /// Registers a function that may be one of several forms of its name. A call is for the first one, in the order of registration, whose
    /// declared types its arguments have; when there is none, for the first one that takes them.
    ///
    /// # Errors
    /// [`Error::Declaration`] when the declaration contradicts itself.
    pub fn register_form<F: BufferingFunction>(&mut self, schema: &str, function: F) -> Result<()> {
        let spec = function.spec();
        let arguments = F::Args::declare();
        let refuse = |reason: &str| Err(Error::Declaration(format!("{}: {reason}", spec.name)));
        if let Some(flaw) = spec.flaw() {
            return refuse(&flaw);
        }
        args::check(&spec.name, &arguments)?;
        let functions = self.add_schema(schema);
        functions.entry(spec.name.clone()).or_default().push(Arc::new(Typed { function, spec, arguments }));
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
        Ok(self.schema(path)?.1.values().flatten())
    }

    /// Tells catalogs apart that offer different things: the same in every process that serves the same.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        let mut add = |text: &str| {
            for byte in text.bytes().chain([0]) {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        };
        for (schema, functions) in &self.schemas {
            add(schema);
            for function in functions.values().flatten() {
                add(&format!("{:?} {:?}", function.spec(), function.arguments()));
            }
        }
        self.published.iter().for_each(|(schema, name)| add(&format!("{}_{schema}.{name}", self.prefix)));
        self.views.iter().chain(&self.macros).for_each(|item| add(&format!("{item:?}")));
        self.settings.iter().chain(&self.attach_options).for_each(|declared| add(&declared.spec().name));
        self.secret_types.iter().for_each(|secret_type| add(&secret_type.name));
        hash
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

    /// The function of this name that takes these values, in this schema; without a schema, in the default one.
    pub(crate) fn function_for(&self, path: &[String], name: &str, values: &Values) -> Result<Arc<dyn Registered>> {
        let forms = self.forms(path, name)?;
        if let [only] = forms {
            return Ok(Arc::clone(only));
        }
        let exact = |form: &&Arc<dyn Registered>| form.takes(values, true);
        let form = forms.iter().find(exact).or_else(|| forms.iter().find(|form| form.takes(values, false)));
        form.or(forms.first()).cloned().ok_or_else(|| Error::NotFound(name.to_owned()))
    }

    /// The first form of a name.
    #[cfg(test)]
    pub(crate) fn function(&self, path: &[String], name: &str) -> Result<Arc<dyn Registered>> {
        self.forms(path, name)?.first().cloned().ok_or_else(|| Error::NotFound(name.to_owned()))
    }

    fn forms(&self, path: &[String], name: &str) -> Result<&[Arc<dyn Registered>]> {
        let (schema, functions) = self.schema(path)?;
        functions.get(name).map(Vec::as_slice).ok_or_else(|| {
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

/// The path of a dotted name.
pub(crate) fn path(schema: &str) -> Vec<String> {
    schema.split('.').map(str::to_owned).collect()
}

fn sql(schema: &str, name: &str, definition: &str) -> SqlInfo {
    let (name, definition) = (name.to_owned(), definition.to_owned());
    SqlInfo { name, definition, schema_path: path(schema), ..SqlInfo::default() }
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
    /// Whether it takes these values: as they are, or after a cast.
    fn takes(&self, values: &Values, exactly: bool) -> bool;
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

    fn takes(&self, values: &Values, exactly: bool) -> bool {
        let by_position: Vec<_> = self.arguments.iter().filter(|argument| argument.kind != Kind::Named).collect();
        let same = |(index, value): (usize, &ArrayRef)| {
            let argument = by_position.get(index).or(by_position.last());
            argument
                .is_some_and(|argument| argument.data_type.as_ref().is_none_or(|wanted| wanted == value.data_type()))
        };
        (!exactly || values.positional.iter().enumerate().all(same))
            && Arguments::resolve(&self.spec.name, &self.arguments, values.clone()).is_ok()
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
    fn a_fingerprint_tells_catalogs_apart() {
        let catalog = |names: &[&str]| {
            let mut catalog = Catalog::new("example", "main");
            for name in names {
                catalog.register("geo.points", Named(FunctionSpec::new(*name, ""))).unwrap();
            }
            catalog
        };
        assert_eq!(catalog(&["f", "g"]).fingerprint(), catalog(&["g", "f"]).fingerprint());
        assert_ne!(catalog(&["f", "g"]).fingerprint(), catalog(&["f", "h"]).fingerprint());
        assert_eq!(catalog(&["f"]).schemas().collect::<Vec<_>>(), ["geo", "geo.points", "main"]);
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
