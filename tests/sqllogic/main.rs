//! Runs every file below `test/sql` as a test case, in a process that hosts DuckDB itself and LOADs the packaged extension as a user does.
//!
//! ```text
//! make test T=vgi_call                         # the files whose name contains this
//! VGI_SLOW=1 make test                         # also the .test_slow files
//! VGI_PYTHON_SERVER=http://… make test         # also the files that need this server
//! ```
//!
//! The dialect is that of DuckDB's own runner (`script.rs` and `parser.rs` say what is understood), and the files are meant to run there too,
//! with the variables below set by hand. What differs here:
//!
//! - `require-env VGI_WORKER` starts the project's worker, once per process, and `${VGI_WORKER}` is its URL. When the variable is
//!   set already, that server is used instead. All other variables come from the environment; a file that requires one that is
//!   not set is reported as ignored, with the reason.
//! - `# threads: all` in the header runs the file three times, with 1, 2 and 8 DuckDB threads. All other files run with 4.
//! - The header must have `# name:` (the path), `# description:` and `# group:`.
//! - `statement error` needs a text, a file must run at least one statement, and errors about HTTP never skip a file.
//! - `restart` loads the extension again but does not keep settings.
//! - A query has `VGI_TEST_SECONDS` (120) to end.

mod cases;
mod checks;
mod compare;
mod database;
mod parser;
mod printer;
mod runner;
mod script;
mod variables;
#[path = "../support/worker.rs"]
mod worker;

use std::process::ExitCode;
use std::sync::Arc;

use libtest_mimic::Arguments;

use cases::Environment;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let environment = Arc::new(Environment::default());
    let trials = match cases::all(&environment) {
        Ok(trials) => trials,
        Err(problem) => {
            eprintln!("{problem}");
            return ExitCode::FAILURE;
        }
    };
    let conclusion = libtest_mimic::run(&arguments, trials);
    environment.end();
    conclusion.exit_code()
}
