//! What a buffered function is: it consumes its whole input table before the first row of its output.

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use serde::Serialize;
use serde::de::DeserializeOwned;
use vgi_wire::methods::SecretLookup;

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
/// A function that counts the rows of its input:
///
/// ```
/// use std::sync::Arc;
/// use arrow_array::{Int64Array, RecordBatch};
/// use arrow_schema::{DataType, Field, Schema};
/// use vgi_worker::{BindContext, Bound, BufferingFunction, Context, Error, FinalizeId, FunctionSpec, Result, StateId, Tick};
///
/// struct CountRows;
///
/// impl BufferingFunction for CountRows {
///     type Args = ();
///     type Position = ();
///
///     fn spec(&self) -> FunctionSpec {
///         FunctionSpec::new("count_rows", "The number of rows of the input.")
///     }
///
///     fn bind(&self, _: &BindContext<'_, ()>) -> Result<Bound> {
///         Ok(Bound::new(Schema::new(vec![Field::new("rows", DataType::Int64, false)])))
///     }
///
///     fn process(&self, batch: RecordBatch, _: &Context<'_, ()>) -> Result<StateId> {
///         Ok(StateId::of_numbers(&[batch.num_rows() as u64]))
///     }
///
///     fn combine(&self, ids: Vec<StateId>, _: &Context<'_, ()>) -> Result<Vec<FinalizeId>> {
///         let counts = ids.iter().map(|id| Ok(id.numbers::<1>()?[0])).collect::<Result<Vec<_>>>()?;
///         Ok(vec![FinalizeId::of_numbers(&[counts.iter().sum()])])
///     }
///
///     fn finalize(&self, id: &FinalizeId, _: (), ctx: &Context<'_, ()>) -> Result<Tick<()>> {
///         let rows = i64::try_from(id.numbers::<1>()?[0]).map_err(|error| Error::Failed(error.to_string()))?;
///         let column = Arc::new(Int64Array::from(vec![rows]));
///         Ok(Tick::last(RecordBatch::try_new(ctx.output_schema().clone(), vec![column])?))
///     }
/// }
///
/// let mut catalog = vgi_worker::Catalog::new("example", "main");
/// catalog.register("main", CountRows)?;
/// # Ok::<(), Error>(())
/// ```
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

    /// Bounds how many pieces of input a client sends at once.
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
}
