//! Sessions: rows that follow each other closely in time.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{Array, ArrayRef, Float64Array, Int64Array, RecordBatch};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{DataType, Field, Schema, SchemaRef, SortOptions, TimeUnit};

use crate::args::Args;
use crate::context::{BindContext, Context};
use crate::error::{Error, Result};
use crate::function::{Bound, BufferingFunction, FunctionSpec, Tick};
use crate::functions::numeric::{column, doubles};
use crate::functions::ordering::{Ordering, place};
use crate::functions::pages;
use crate::ids::{FinalizeId, StateId};

const NAME: &str = "sessionize";
const INPUT: &str = "input";
const OUTPUT: &str = "output";
const SESSION: &str = "session";

/// All rows, in their order, with one more column `session`: a number that changes where more than `gap` lies between the times of two
/// rows of the same `key`.
///
/// ```sql
/// FROM example.sessionize((FROM clicks ORDER BY at), 'at', 1800);
/// FROM example.sessionize((FROM clicks ORDER BY at), 'at', 1800, key := 'visitor');
/// ```
///
/// `gap` is in seconds for dates and timestamps, and in the column's own unit for numbers. The input must be in the order of its times,
/// which is checked for each key; its pieces may arrive in any order, as their batch index tells their places. A row without a time has
/// no session; NULL is a key like any other. The input may be larger than memory; of each key the last time is in memory.
#[derive(Debug)]
pub struct Sessionize;

/// Arguments of [`Sessionize`].
#[derive(Debug, Args)]
pub struct SessionArgs {
    #[arg(doc = "The column of times, or of numbers that grow with time.")]
    time: String,
    #[arg(doc = "The longest time between two rows of a session.", range = 0.0..)]
    gap: f64,
    #[arg(doc = "The column that tells whose session it is.", named, default = "")]
    key: String,
}

impl SessionArgs {
    fn time(&self, schema: &Schema) -> Result<usize> {
        let place = place(NAME, schema, &self.time)?;
        let data_type = schema.fields().get(place).map(|field| field.data_type());
        let fits = data_type.is_some_and(|data_type| data_type.is_numeric() || is_instant(data_type));
        if fits { Ok(place) } else { Err(Error::Input(format!("{NAME}: the column '{}' holds no times", self.time))) }
    }

    /// The gap in the unit of [`times`].
    fn gap(&self, schema: &Schema) -> Result<f64> {
        let field = schema.fields().get(self.time(schema)?);
        let instant = field.is_some_and(|field| is_instant(field.data_type()));
        Ok(if instant { (self.gap * 1e6).round() } else { self.gap })
    }

    fn key(&self, schema: &Schema) -> Result<Option<Ordering>> {
        if self.key.is_empty() {
            return Ok(None);
        }
        Ordering::new(schema, vec![place(NAME, schema, &self.key)?], SortOptions::default()).map(Some)
    }
}

fn is_instant(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Date32 | DataType::Date64 | DataType::Timestamp(..))
}

/// Instants as microseconds, whose differences are exact; numbers as they are.
fn times(column: &ArrayRef) -> Result<Float64Array> {
    if !is_instant(column.data_type()) {
        return doubles(column);
    }
    let strict = CastOptions { safe: false, ..CastOptions::default() };
    let zone = match column.data_type() {
        DataType::Timestamp(_, zone) => zone.clone(),
        _ => None,
    };
    let instants = cast_with_options(column, &DataType::Timestamp(TimeUnit::Microsecond, zone), &strict)?;
    let instants = instants.as_primitive_opt::<TimestampMicrosecondType>();
    let instants = instants.ok_or_else(|| Error::Failed(format!("{} is no instant", column.data_type())))?;
    #[expect(clippy::cast_precision_loss, reason = "microseconds of all years up to 2255 fit into 53 bits")]
    Ok(instants.unary(|micros| micros as f64))
}

impl BufferingFunction for Sessionize {
    type Args = SessionArgs;
    type Position = u64;

    fn spec(&self) -> FunctionSpec {
        FunctionSpec::new(NAME, "All rows with the number of the session that they belong to.")
            .requires_input_batch_index()
            .source_order_dependent()
            .projection_pushdown()
            .category("table")
            .example(
                "FROM example.sessionize((FROM (VALUES (1), (2), (9)) t(at)), 'at', 5);",
                "The third row begins the second session.",
            )
    }

    fn bind(&self, ctx: &BindContext<'_, SessionArgs>) -> Result<Bound> {
        let input = ctx.input_schema();
        ctx.args.time(input)?;
        ctx.args.key(input)?;
        if let Some(field) = input.fields().iter().find(|field| field.name().eq_ignore_ascii_case(SESSION)) {
            return Err(Error::Input(format!("{NAME}: the input has a column '{}' already; rename it", field.name())));
        }
        let session = Arc::new(Field::new(SESSION, DataType::Int64, true));
        let fields: Vec<_> = input.fields().iter().cloned().chain([session]).collect();
        Ok(Bound::new(Schema::new_with_metadata(fields, input.metadata().clone())))
    }

    fn process(&self, _: RecordBatch, ctx: &Context<'_, SessionArgs>) -> Result<StateId> {
        let index = ctx.batch_index().unwrap_or_default();
        let index = u64::try_from(index).map_err(|_| Error::Protocol(format!("batch_index {index} is negative")))?;
        Ok(StateId::of_numbers(&[index, ctx.store().append(INPUT, ctx.input_blob().clone())?]))
    }

    fn combine(&self, ids: Vec<StateId>, ctx: &Context<'_, SessionArgs>) -> Result<Vec<FinalizeId>> {
        let mut pieces = ids.iter().map(StateId::numbers::<2>).collect::<Result<Vec<_>>>()?;
        pieces.sort_unstable();
        let mut sessions = Sessions {
            time: ctx.args.time(ctx.input_schema())?,
            key: ctx.args.key(ctx.input_schema())?,
            gap: ctx.args.gap(ctx.input_schema())?,
            count: 0,
            open: HashMap::new(),
        };
        let mut positions = Vec::with_capacity(pieces.len());
        for [_, position] in pieces {
            let batch = sessions.add(&ctx.store().batch(INPUT, position)?, ctx.output_schema())?;
            positions.push(ctx.store().append_batch(OUTPUT, &batch)?);
        }
        pages::plan(ctx.store(), &positions)
    }

    fn finalize(&self, id: &FinalizeId, position: u64, ctx: &Context<'_, SessionArgs>) -> Result<Tick<u64>> {
        pages::tick(ctx.store(), OUTPUT, id, position)
    }
}

/// The sessions that are open, from piece to piece: the last time and the number of each key's.
struct Sessions {
    time: usize,
    key: Option<Ordering>,
    gap: f64,
    count: i64,
    open: HashMap<Box<[u8]>, (f64, i64)>,
}

impl Sessions {
    fn add(&mut self, batch: &RecordBatch, output: &SchemaRef) -> Result<RecordBatch> {
        let times = times(column(batch, self.time)?)?;
        let keys = self.key.as_ref().map(|key| key.keys(batch)).transpose()?;
        let mut sessions = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            let time = times.is_valid(row).then(|| times.value(row)).filter(|time| !time.is_nan());
            let key = keys.as_ref().map(|keys| Box::from(keys.row(row).as_ref())).unwrap_or_default();
            sessions.push(time.map(|time| self.session(key, time)).transpose()?);
        }
        let sessions: ArrayRef = Arc::new(Int64Array::from(sessions));
        Ok(RecordBatch::try_new(Arc::clone(output), batch.columns().iter().cloned().chain([sessions]).collect())?)
    }

    fn session(&mut self, key: Box<[u8]>, time: f64) -> Result<i64> {
        let number = match self.open.get(&key) {
            Some((last, _)) if time < *last => {
                return Err(Error::Input(format!("{NAME}: the input is not in the order of its times; add ORDER BY")));
            }
            Some((last, number)) if time - last <= self.gap => *number,
            _ => {
                self.count += 1;
                self.count
            }
        };
        self.open.insert(key, (time, number));
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int64Type;
    use arrow_array::{StringArray, TimestampMillisecondArray};

    use super::*;
    use crate::functions::harness::{Call, batch_of};

    fn batch(rows: &[(Option<i64>, Option<&str>)]) -> RecordBatch {
        // milliseconds, so that the gap's unit shows
        let times: TimestampMillisecondArray = rows.iter().map(|row| row.0.map(|time| time * 1000)).collect();
        let visitors: StringArray = rows.iter().map(|row| row.1).collect();
        batch_of(vec![("at", Arc::new(times) as ArrayRef), ("visitor", Arc::new(visitors) as ArrayRef)])
    }

    fn call(key: &str) -> Call {
        let call = Call::new(Sessionize).input(batch(&[]).schema());
        let call = call
            .positional(Arc::new(StringArray::from(vec!["at"])))
            .positional(Arc::new(Float64Array::from(vec![5.0])));
        call.named("key", Arc::new(StringArray::from(vec![key])))
    }

    fn sessions(output: &[RecordBatch]) -> Vec<Option<i64>> {
        output.iter().flat_map(|batch| batch.column(2).as_primitive::<Int64Type>().iter().collect::<Vec<_>>()).collect()
    }

    #[test]
    fn a_gap_begins_a_session_though_pieces_arrive_in_any_order() {
        let (one, two) =
            (batch(&[(Some(0), None), (None, None), (Some(5), None)]), batch(&[(Some(5), None), (Some(11), None)]));
        let call = call("");
        let ids = vec![call.process_one(&two, Some(1)).unwrap(), call.process_one(&one, Some(0)).unwrap()];
        assert_eq!(sessions(&call.rest(ids).unwrap()), [Some(1), None, Some(1), Some(1), Some(2)]);
    }

    #[test]
    fn each_key_has_its_own_sessions_and_null_is_a_key() {
        let rows = [(Some(0), Some("a")), (Some(1), None), (Some(6), Some("a")), (Some(6), None), (Some(7), Some("b"))];
        let input = [batch(&rows[..2]), batch(&[]), batch(&rows[2..])];
        assert_eq!(sessions(&call("Visitor").run(&input).unwrap()), [1, 2, 3, 2, 4].map(Some));
        assert_eq!(sessions(&call("").run(&[]).unwrap()), []);
        assert_eq!(sessions(&call("").run(&input[..1]).unwrap()), [Some(1), Some(1)]);
    }

    #[test]
    fn disorder_and_bad_arguments_are_refused() {
        let message = call("").run(&[batch(&[(Some(3), None), (Some(2), None)])]).unwrap_err().to_string();
        assert_eq!(message, "sessionize: the input is not in the order of its times; add ORDER BY");
        let message = call("who").run(&[batch(&[])]).unwrap_err().to_string();
        assert_eq!(message, "sessionize: the input has no column 'who' (its columns: at, visitor)");
        let bad = Call::new(Sessionize).positional(Arc::new(StringArray::from(vec!["at"])));
        let message =
            bad.positional(Arc::new(Float64Array::from(vec![-1.0]))).run(&[batch(&[])]).unwrap_err().to_string();
        assert_eq!(message, "sessionize: argument 'gap' must be at least 0, not -1.0");
    }
}
