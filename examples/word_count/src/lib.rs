//! A catalog with one function, `word_count`. It shows all that a function needs: arguments, bind, state in the storage, output.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use vgi_worker::{
    Args, BindContext, Bound, BufferingFunction, Catalog, Context, Error, FinalizeId, FunctionSpec, Result, StateId,
    Tick,
};

/// The catalog `words`.
///
/// # Errors
/// When a declaration contradicts itself.
pub fn catalog() -> Result<Catalog> {
    let mut catalog = Catalog::new("words", "main");
    catalog.register("main", WordCount)?;
    Ok(catalog)
}

/// Each word of a column with its count.
#[derive(Debug)]
pub struct WordCount;

/// Arguments of [`WordCount`].
#[derive(Debug, Args)]
pub struct WordArgs {
    #[arg(doc = "The column of texts.")]
    column: String,
    #[arg(doc = "Leave out words with fewer letters.", named, default = 1, range = 0..=1000)]
    min_length: usize,
}

/// The log of the pieces' counts.
const PARTS: &str = "parts";
const RESULT: &str = "result";

type Counts = BTreeMap<String, i64>;

impl BufferingFunction for WordCount {
    type Args = WordArgs;
    type Position = ();

    fn spec(&self) -> FunctionSpec {
        FunctionSpec::new("word_count", "Each word of a column with its count.").projection_pushdown().example(
            "FROM words.word_count((SELECT 'to be or not to be' AS line), 'line');",
            "Four words, two of which come twice.",
        )
    }

    fn bind(&self, ctx: &BindContext<'_, WordArgs>) -> Result<Bound> {
        let column = &ctx.args.column;
        match ctx.input_schema().field_with_name(column).map(Field::data_type) {
            Ok(DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) => Ok(Bound::new(Schema::new(vec![
                Field::new("word", DataType::Utf8, false),
                Field::new("count", DataType::Int64, false),
            ]))),
            Ok(_) => Err(Error::Input(format!("word_count: the column '{column}' holds no text"))),
            Err(_) => Err(Error::Input(format!("word_count: the input has no column '{column}'"))),
        }
    }

    /// Called for many pieces at once, maybe in several processes: what must be remembered goes into the storage, and the id says where.
    fn process(&self, batch: RecordBatch, ctx: &Context<'_, WordArgs>) -> Result<StateId> {
        let missing = || Error::Protocol(format!("the batch has no column '{}'", ctx.args.column));
        let column = batch.column_by_name(&ctx.args.column).ok_or_else(missing)?;
        let texts = arrow_cast::cast(column, &DataType::Utf8)?;
        let mut counts = Counts::new();
        for text in texts.as_string::<i32>().iter().flatten() {
            for word in text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()) {
                if word.chars().count() >= ctx.args.min_length {
                    *counts.entry(word.to_lowercase()).or_default() += 1;
                }
            }
        }
        let position = ctx.store().append_batch(PARTS, &as_batch(&counts, ctx.output_schema())?)?;
        Ok(StateId::of_numbers(&[position]))
    }

    /// Called once, with the ids of all pieces.
    fn combine(&self, ids: Vec<StateId>, ctx: &Context<'_, WordArgs>) -> Result<Vec<FinalizeId>> {
        let mut total = Counts::new();
        for id in ids {
            let [position] = id.numbers()?;
            let part = ctx.store().batch(PARTS, position)?;
            let (words, counts) = (part.column(0).as_string::<i32>(), part.column(1).as_primitive::<Int64Type>());
            for (word, count) in words.iter().flatten().zip(counts.values()) {
                *total.entry(word.to_owned()).or_default() += count;
            }
        }
        ctx.store().put_batch(RESULT, &as_batch(&total, ctx.output_schema())?)?;
        Ok(vec![FinalizeId::of_numbers(&[])])
    }

    /// One stream with one batch.
    fn finalize(&self, _: &FinalizeId, (): (), ctx: &Context<'_, WordArgs>) -> Result<Tick<()>> {
        Ok(Tick::last(ctx.store().require_batch(RESULT)?))
    }
}

fn as_batch(counts: &Counts, schema: &SchemaRef) -> Result<RecordBatch> {
    let words: ArrayRef = Arc::new(StringArray::from_iter_values(counts.keys()));
    let counts: ArrayRef = Arc::new(Int64Array::from_iter_values(counts.values().copied()));
    Ok(RecordBatch::try_new(Arc::clone(schema), vec![words, counts])?)
}
