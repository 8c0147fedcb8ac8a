//! The packaged extension in the official Python wheels: the one it was built for, and another one.
//!
//! `make test` makes the environments and names their interpreters in `VGI_PYTHON` and `VGI_PYTHON_OTHER`; without these variables
//! the cases are reported as ignored.

#[path = "support/worker.rs"]
mod worker;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Completion, Failed, Trial};

use worker::Worker;

fn main() -> ExitCode {
    let trials = vec![
        Trial::ignorable_test("wheel runs statements", || python("VGI_PYTHON", "statements.py")),
        Trial::ignorable_test("wheel leaves nothing behind", || python("VGI_PYTHON", "teardown.py")),
        Trial::ignorable_test("wheel records a call and plays it again", || python("VGI_PYTHON", "replay.py")),
        Trial::ignorable_test("wheel sends less after a refusal", || python("VGI_PYTHON", "refused.py")),
        Trial::ignorable_test("wheel attaches a large catalog", || python("VGI_PYTHON", "large_catalog.py")),
        Trial::ignorable_test("wheel survives a restart of the server", || python("VGI_PYTHON", "restart.py")),
        Trial::ignorable_test("wheel releases threads that wait", || python("VGI_PYTHON", "released.py")),
        Trial::ignorable_test("wheel takes all sizes", || python("VGI_PYTHON", "sizes.py")),
        Trial::ignorable_test("wheel of another version refuses plainly", || {
            python("VGI_PYTHON_OTHER", "other_version.py")
        }),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Runs a script of `tests/wheel` with the interpreter that a variable names; it gets the extension, a worker's URL and the DuckDB version of the footer.
fn python(variable: &str, script: &str) -> Result<Completion, Failed> {
    let Some(interpreter) = std::env::var_os(variable) else {
        return Ok(Completion::ignored_with(format!("{variable} is not set")));
    };
    // where the package is now: clones that share a target directory share the compiled test too
    let root =
        std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    let extension =
        std::env::var_os("VGI_EXTENSION").map_or_else(|| root.join("build/vgi.duckdb_extension"), PathBuf::from);
    let worker = Worker::start()?;
    let footer = vgi_footer::read(&extension)?.ok_or("the extension has no footer; `make build` adds it")?;
    let arguments: [OsString; 4] = [
        root.join("tests/wheel").join(script).into(),
        extension.into(),
        worker.url().to_owned().into(),
        footer.duckdb_version.into(),
    ];
    let binary = worker::binary()?;
    let output = Command::new(&interpreter).args(arguments).env("VGI_WORKER_BINARY", binary).output()?;
    if output.status.success() {
        return Ok(Completion::Completed);
    }
    let text = [output.stdout, output.stderr].concat();
    Err(format!("{script} ended with {}:\n{}", output.status, String::from_utf8_lossy(&text)).into())
}
