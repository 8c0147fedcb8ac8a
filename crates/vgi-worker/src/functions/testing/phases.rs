//! Functions that do something in one phase of a call: fail, hang, write log lines.

use std::marker::PhantomData;
use std::time::Duration;

use arrow_array::RecordBatch;

use crate::args::Args;
use crate::context::{BindContext, Context};
use crate::error::{Error, Result};
use crate::function::{Bound, BufferingFunction, FunctionSpec, Tick};
use crate::functions::testing::parts::{numbers, numbers_schema};
use crate::ids::{FinalizeId, StateId};
use crate::log::LogLevel;

const ROWS: i64 = 3;

/// What happens when a call reaches a phase.
pub(super) trait Act: Args {
    fn spec() -> FunctionSpec;
    fn reach(&self, phase: &str, log: &dyn Fn(LogLevel, String)) -> Result<()>;
}

/// Ignores its input and emits the rows `n = 0, 1, 2` twice. The phase `finalize` is reached between the two batches.
#[derive(Debug)]
pub(super) struct Phased<A>(PhantomData<A>);

impl<A> Phased<A> {
    pub(super) fn new() -> Self {
        Self(PhantomData)
    }
}

fn reach<A: Act>(ctx: &Context<'_, A>, phase: &str) -> Result<()> {
    ctx.args.reach(phase, &|level, message| ctx.log(level, message))
}

impl<A: Act> BufferingFunction for Phased<A> {
    type Args = A;
    type Position = bool;

    fn spec(&self) -> FunctionSpec {
        A::spec()
    }

    fn bind(&self, ctx: &BindContext<'_, A>) -> Result<Bound> {
        ctx.args.reach("bind", &|level, message| ctx.log(level, message))?;
        Ok(Bound::new(numbers_schema()))
    }

    fn init(&self, ctx: &Context<'_, A>) -> Result<()> {
        reach(ctx, "init")
    }

    fn process(&self, _: RecordBatch, ctx: &Context<'_, A>) -> Result<StateId> {
        reach(ctx, "process")?;
        Ok(StateId::of_numbers(&[]))
    }

    fn combine(&self, _: Vec<StateId>, ctx: &Context<'_, A>) -> Result<Vec<FinalizeId>> {
        reach(ctx, "combine")?;
        Ok(vec![FinalizeId::of_numbers(&[])])
    }

    fn finalize(&self, _: &FinalizeId, second: bool, ctx: &Context<'_, A>) -> Result<Tick<bool>> {
        if second {
            reach(ctx, "finalize")?;
        }
        let batch = numbers(ctx.output_schema(), ROWS)?;
        Ok(if second { Tick::last(batch) } else { Tick::more(batch, true) })
    }
}

/// Fails in a phase.
///
/// ```sql
/// FROM example.fail_in((FROM t), 'process');
/// FROM example.fail_in((FROM t), 'combine', panic := true);    -- panics instead
/// ```
#[derive(Debug, Args)]
pub(super) struct FailIn {
    #[arg(doc = "Where it happens.", choices = ["bind", "init", "process", "combine", "finalize"])]
    phase: String,
    #[arg(doc = "Panic instead of failing.", named, default = false)]
    panic: bool,
}

impl Act for FailIn {
    fn spec() -> FunctionSpec {
        FunctionSpec::new("fail_in", "Fails in a phase.")
            .example("FROM example.fail_in((FROM range(1)), 'bind');", "An error.")
    }

    fn reach(&self, phase: &str, _: &dyn Fn(LogLevel, String)) -> Result<()> {
        if self.phase != phase {
            return Ok(());
        }
        // quotes and a letter outside ASCII: what must come through unharmed
        let message = format!("boom in {phase} — café 'quoted' \"text\"");
        Err(if self.panic { panicked(&message) } else { Error::Failed(message) })
    }
}

#[expect(clippy::panic, reason = "the worker must survive it, which tests check")]
fn panicked(message: &str) -> Error {
    panic!("{message}")
}

/// Sleeps in a phase.
///
/// ```sql
/// FROM example.hang_in((FROM t), 'finalize', 2.5);
/// ```
#[derive(Debug, Args)]
pub(super) struct HangIn {
    #[arg(doc = "Where it happens.", choices = ["bind", "init", "process", "combine", "finalize"])]
    phase: String,
    #[arg(doc = "How long.", range = 0.0..=3600.0)]
    seconds: f64,
}

impl Act for HangIn {
    fn spec() -> FunctionSpec {
        FunctionSpec::new("hang_in", "Sleeps in a phase.")
            .example("FROM example.hang_in((FROM range(1)), 'process', 0.1);", "Slow rows.")
    }

    fn reach(&self, phase: &str, _: &dyn Fn(LogLevel, String)) -> Result<()> {
        if self.phase == phase {
            std::thread::sleep(Duration::from_secs_f64(self.seconds));
        }
        Ok(())
    }
}

/// Writes a log line of every level in every phase.
///
/// ```sql
/// FROM example.log_in_phases((FROM t));
/// ```
#[derive(Debug, Args)]
pub(super) struct LogIn {}

impl Act for LogIn {
    fn spec() -> FunctionSpec {
        FunctionSpec::new("log_in_phases", "Log lines of every level in every phase.")
            .example("FROM example.log_in_phases((FROM range(1)));", "Rows and log lines.")
    }

    fn reach(&self, phase: &str, log: &dyn Fn(LogLevel, String)) -> Result<()> {
        for level in [LogLevel::Trace, LogLevel::Debug, LogLevel::Info, LogLevel::Warn, LogLevel::Error] {
            log(level, format!("{} from {phase}", level.as_str()));
        }
        Ok(())
    }
}
