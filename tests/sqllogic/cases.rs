//! Finds the files, and makes a test case of each.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use libtest_mimic::{Completion, Failed, Trial};
use vgi_footer::Footer;

use crate::database::library_version;
use crate::parser;
use crate::runner::{self, Setup, Verdict};
use crate::script::Script;
use crate::worker::Worker;

const DEFAULT_THREADS: usize = 4;
const ALL_THREADS: [usize; 3] = [1, 2, 8];
const DEFAULT_SECONDS: u64 = 120;

/// Where the variables of the files come from.
#[derive(Default)]
pub struct Environment {
    /// Started by the first file that needs it. An error is kept, so that every such file fails with it.
    worker: Mutex<Option<Result<Worker, String>>>,
}

impl Environment {
    fn get(&self, name: &str) -> Result<Option<String>, String> {
        match std::env::var(name).ok().filter(|value| !value.is_empty()) {
            Some(value) => Ok(Some(value)),
            None if name == "VGI_WORKER" => self.worker().map(Some),
            None => Ok(None),
        }
    }

    fn worker(&self) -> Result<String, String> {
        let mut worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        match worker.get_or_insert_with(Worker::start) {
            Ok(worker) => Ok(worker.url().to_owned()),
            Err(problem) => Err(problem.clone()),
        }
    }

    /// Ends what was started.
    pub fn end(&self) {
        drop(self.worker.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Where the package is now: clones that share a target directory share the compiled test too.
fn package_root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from)
}

/// All test cases.
pub fn all(environment: &Arc<Environment>) -> Result<Vec<Trial>, String> {
    let root = package_root();
    let extension = match std::env::var_os("VGI_EXTENSION") {
        Some(path) => PathBuf::from(path),
        None => root.join("build").join("vgi.duckdb_extension"),
    };
    let limit = match std::env::var("VGI_TEST_SECONDS") {
        Ok(text) => text.parse().map_err(|_| format!("VGI_TEST_SECONDS is {text:?}, which is no number"))?,
        Err(_) => DEFAULT_SECONDS,
    };
    let slow = std::env::var_os("VGI_SLOW").is_some_and(|value| value == "1");
    let mut files = BTreeSet::new();
    find(&root.join("test").join("sql"), &mut files)?;
    if files.is_empty() {
        return Err("there are no files below test/sql".to_owned());
    }
    let mut trials = vec![package(extension.clone())];
    for file in files {
        let name = file.strip_prefix(&root).unwrap_or(&file).to_string_lossy().into_owned();
        let left_out = !slow && file.extension().is_some_and(|extension| extension == "test_slow");
        let script = read(&file, &name);
        let all_threads = script.as_ref().is_ok_and(|script| script.header.all_threads);
        let threads = if all_threads { &ALL_THREADS[..] } else { &[DEFAULT_THREADS] };
        for &threads in threads {
            let title = if all_threads { format!("{name} threads={threads}") } else { name.clone() };
            let (name, script) = (name.clone(), script.clone());
            let (environment, extension) = (Arc::clone(environment), extension.clone());
            let case = move || {
                let setup = Setup {
                    name: &name,
                    threads,
                    extension: &extension,
                    environment: &|variable| environment.get(variable),
                    limit: Duration::from_secs(limit),
                };
                match runner::run(&script?, &setup) {
                    Ok(Verdict::Passed) => Ok(Completion::Completed),
                    Ok(Verdict::Skipped(reason)) => Ok(Completion::ignored_with(reason)),
                    Err(failure) => Err(Failed::from(failure)),
                }
            };
            trials.push(Trial::ignorable_test(title, case).with_ignored_flag(left_out));
        }
    }
    Ok(trials)
}

/// The packaged file was made for the DuckDB in this process: otherwise every other case would fail for the same dull reason.
fn package(extension: PathBuf) -> Trial {
    Trial::test("package fits this DuckDB", move || {
        let footer = vgi_footer::read(&extension)?;
        let Footer { abi_type, duckdb_version, .. } =
            footer.ok_or_else(|| format!("{} has no footer", extension.display()))?;
        let expected = ("CPP".to_owned(), library_version());
        if (&abi_type, &duckdb_version) == (&expected.0, &expected.1) {
            return Ok(());
        }
        Err(format!("the footer says {abi_type} {duckdb_version}, and not {} {}", expected.0, expected.1).into())
    })
}

fn find(directory: &Path, files: &mut BTreeSet<PathBuf>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            find(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "test" || extension == "test_slow") {
            files.insert(path);
        }
    }
    Ok(())
}

fn read(file: &Path, name: &str) -> Result<Script, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{name}: {error}"))?;
    let script = parser::parse(&text).map_err(|error| format!("{name}:{error}"))?;
    let header = &script.header;
    if header.name.as_deref() != Some(name) {
        return Err(format!("{name}:1: the header must say `# name: {name}`"));
    }
    for (key, value) in [("description", &header.description), ("group", &header.group)] {
        if value.as_ref().is_none_or(String::is_empty) {
            return Err(format!("{name}:1: the header has no `# {key}:`"));
        }
    }
    Ok(script)
}
