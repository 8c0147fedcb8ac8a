//! What a buffered function is: it consumes its whole input table before the first row of its output.

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use serde::Serialize;
use serde::de::DeserializeOwned;
use vgi_wire::methods::{SecretLookup, Stability};

use crate::args::Args;
use crate::context::{BindContext, Context};
use crate::error::Result;
use crate::ids::{FinalizeId, StateId};

/// A function over a whole table.
///
/// A call goes `bind` (at plan time, possibly several times) → `init` → `process` once per piece of the input, by many threads at once
/// unless the flags say otherwise → `combine` once → `finalize`, turn by turn, one stream per id that `combine` answered. Every request
/// may reach another process: what must be remembered goes through [`Context::store`], or by value through the ids and positions.
///
/// The crate's own documentation has a complete one.
pub trait BufferingFunction: Send + Sync + 'static {
    /// The function's arguments.
    type Args: Args;
    /// Where a finalize stream stands. It travels in the cursor token, so it should be small; a stream starts at the default.
    type Position: Serialize + DeserializeOwned + Default + Send;

    /// What the function tells about itself.
    fn spec(&self) -> FunctionSpec;

    /// The output's schema for these arguments and this input.
    ///
    /// # Errors
    /// When the input does not fit, or the arguments do not fit the input.
    fn bind(&self, ctx: &BindContext<'_, Self::Args>) -> Result<Bound>;

    /// How many rows a call will give, as far as that is known before it. Clients plan with it; they ask after `bind`.
    ///
    /// # Errors
    /// When the arguments do not fit the input.
    fn cardinality(&self, _ctx: &BindContext<'_, Self::Args>) -> Result<Cardinality> {
        Ok(Cardinality::default())
    }

    /// Called when an execution begins.
    ///
    /// # Errors
    /// To refuse the execution.
    fn init(&self, _ctx: &Context<'_, Self::Args>) -> Result<()> {
        Ok(())
    }

    /// Takes one piece of the input, in the schema given at bind.
    ///
    /// # Errors
    /// To fail the execution.
    fn process(&self, batch: RecordBatch, ctx: &Context<'_, Self::Args>) -> Result<StateId>;

    /// Called once, after all input, with every id that `process` answered. Each id of the result is one output stream; none at all is
    /// no output.
    ///
    /// # Errors
    /// To fail the execution.
    fn combine(&self, ids: Vec<StateId>, ctx: &Context<'_, Self::Args>) -> Result<Vec<FinalizeId>>;

    /// One turn of an output stream. A turn may be repeated, from the same position, and must give the same rows again.
    ///
    /// # Errors
    /// To fail the execution.
    fn finalize(
        &self,
        id: &FinalizeId,
        position: Self::Position,
        ctx: &Context<'_, Self::Args>,
    ) -> Result<Tick<Self::Position>>;
}

/// What bind answers.
#[derive(Clone, Debug)]
pub struct Bound {
    pub(crate) output_schema: SchemaRef,
    pub(crate) lookups: Vec<SecretLookup>,
}

impl Bound {
    /// The output has this schema.
    pub fn new(output_schema: impl Into<SchemaRef>) -> Self {
        Self { output_schema: output_schema.into(), lookups: Vec::new() }
    }

    /// The function must see these secrets first: the client looks for them and binds again, once.
    #[must_use]
    pub fn lookup(lookups: Vec<SecretLookup>) -> Self {
        Self { output_schema: SchemaRef::new(Schema::empty()), lookups }
    }
}

/// How many rows a call gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cardinality {
    /// Likely.
    pub estimate: Option<u64>,
    /// At most.
    pub max: Option<u64>,
}

impl Cardinality {
    /// So many, whatever the input.
    #[must_use]
    pub fn exactly(rows: u64) -> Self {
        Self { estimate: Some(rows), max: Some(rows) }
    }

    /// Not more than so many.
    #[must_use]
    pub fn at_most(rows: u64) -> Self {
        Self { estimate: None, max: Some(rows) }
    }
}

/// One turn of an output stream: possibly rows, and where to go on.
#[derive(Debug)]
pub struct Tick<P> {
    pub(crate) batch: Option<RecordBatch>,
    pub(crate) next: Option<P>,
}

impl<P> Tick<P> {
    /// The stream has ended.
    #[must_use]
    pub fn end() -> Self {
        Self { batch: None, next: None }
    }

    /// The last rows.
    #[must_use]
    pub fn last(batch: RecordBatch) -> Self {
        Self { batch: Some(batch), next: None }
    }

    /// Rows, with more to come.
    #[must_use]
    pub fn more(batch: RecordBatch, next: P) -> Self {
        Self { batch: Some(batch), next: Some(next) }
    }

    /// No rows in this turn, but more turns.
    #[must_use]
    pub fn again(next: P) -> Self {
        Self { batch: None, next: Some(next) }
    }
}

/// What a function tells about itself.
#[derive(Clone, Debug, Default)]
pub struct FunctionSpec {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) examples: Vec<Example>,
    pub(crate) categories: Vec<String>,
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) stability: Option<Stability>,
    pub(crate) flags: Flags,
    pub(crate) settings: Vec<String>,
    pub(crate) secrets: Vec<SecretLookup>,
    pub(crate) max_workers: Option<i64>,
}

/// An example of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The statement.
    pub sql: String,
    /// What it shows.
    pub description: String,
}

/// What a function requires of its client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "the protocol's own list of independent flags")]
pub struct Flags {
    /// The input must come in source order, one piece after the other.
    pub sink_order_dependent: bool,
    /// The output streams must be read one after the other, in the order that `combine` gave.
    pub source_order_dependent: bool,
    /// Every piece of the input must carry its place in the source.
    pub requires_input_batch_index: bool,
    /// The client may ask for some columns only.
    pub projection_pushdown: bool,
    /// The client may say which rows it drops.
    pub filters: Filters,
}

/// What a function does with the filters that a client puts on its output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Filters {
    /// It is not sent any.
    #[default]
    Unsupported,
    /// It finds them in [`Context::filters`] and uses what it can; the client filters its output.
    Ignored,
    /// The worker removes excluded rows from what `finalize` emits, so that none travels.
    Applied,
}

impl FunctionSpec {
    /// A function that requires nothing of its client.
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self { name: name.into(), description: description.into(), ..Self::default() }
    }

    /// Adds an example.
    #[must_use]
    pub fn example(mut self, sql: impl Into<String>, description: impl Into<String>) -> Self {
        self.examples.push(Example { sql: sql.into(), description: description.into() });
        self
    }

    /// Adds a category.
    #[must_use]
    pub fn category(mut self, category: impl Into<String>) -> Self {
        self.categories.push(category.into());
        self
    }

    /// Adds a tag, which means what its readers agree on.
    #[must_use]
    pub fn tag(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.push((key.into(), value.into()));
        self
    }

    /// Tells whether the function gives the same rows for the same input.
    #[must_use]
    pub fn stability(mut self, stability: Stability) -> Self {
        self.stability = Some(stability);
        self
    }

    /// Asks for the value of a setting of the client's session with every bind.
    #[must_use]
    pub fn setting(mut self, name: impl Into<String>) -> Self {
        self.settings.push(name.into());
        self
    }

    /// Asks for a secret with every bind; the client sends it when it has one.
    #[must_use]
    pub fn secret(mut self, secret: SecretLookup) -> Self {
        self.secrets.push(secret);
        self
    }

    /// Bounds how many pieces of input a client sends at once. At least one.
    #[must_use]
    pub fn max_workers(mut self, workers: u16) -> Self {
        self.max_workers = Some(workers.into());
        self
    }

    /// Sets [`Flags::sink_order_dependent`].
    #[must_use]
    pub fn sink_order_dependent(mut self) -> Self {
        self.flags.sink_order_dependent = true;
        self
    }

    /// Sets [`Flags::source_order_dependent`].
    #[must_use]
    pub fn source_order_dependent(mut self) -> Self {
        self.flags.source_order_dependent = true;
        self
    }

    /// Sets [`Flags::requires_input_batch_index`].
    #[must_use]
    pub fn requires_input_batch_index(mut self) -> Self {
        self.flags.requires_input_batch_index = true;
        self
    }

    /// Sets [`Flags::filters`].
    #[must_use]
    pub fn filters(mut self, filters: Filters) -> Self {
        self.flags.filters = filters;
        self
    }

    /// Sets [`Flags::projection_pushdown`]. The worker narrows what `finalize` emits, unless the function did so already.
    #[must_use]
    pub fn projection_pushdown(mut self) -> Self {
        self.flags.projection_pushdown = true;
        self
    }

    /// Why no client could use a function that is declared so.
    pub(crate) fn flaw(&self) -> Option<String> {
        let repeated = |names: Vec<&str>| {
            let mut seen = std::collections::HashSet::new();
            names.into_iter().find(|name| !seen.insert(*name)).map(str::to_owned)
        };
        if self.name.is_empty() {
            return Some("a function needs a name".to_owned());
        }
        if self.flags.sink_order_dependent && self.flags.requires_input_batch_index {
            return Some("sink_order_dependent and requires_input_batch_index exclude each other".to_owned());
        }
        if self.max_workers == Some(0) {
            return Some("max_workers must be at least 1".to_owned());
        }
        if let Some(key) = repeated(self.tags.iter().map(|(key, _)| key.as_str()).collect()) {
            return Some(format!("the tag '{key}' is given twice"));
        }
        if let Some(name) = repeated(self.settings.iter().map(String::as_str).collect()) {
            return Some(format!("the setting '{name}' is required twice"));
        }
        if self.settings.iter().any(String::is_empty) {
            return Some("a required setting needs a name".to_owned());
        }
        let anonymous = |secret: &SecretLookup| secret.secret_type.is_empty();
        self.secrets.iter().any(anonymous).then(|| "a required secret needs a type".to_owned())
    }
}
