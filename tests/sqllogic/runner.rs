//! Runs a parsed file: its databases, connections and loops.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::checks::{Checks, Failure, Place, Stop};
use crate::database::{Connection, Database};
use crate::script::{Command, Loop, Record, Script};
use crate::variables::{Loops, Variables};

/// What DuckDB's tests may require that is no extension, and that holds for every run here.
const ALWAYS_GIVEN: [&str; 7] =
    ["notwindows", "notmingw", "64bit", "noforcestorage", "nothreadsan", "skip_reload", "no_extension_autoloading"];

/// How a file is to be run.
pub struct Setup<'a> {
    /// What failures call the file.
    pub name: &'a str,
    /// DuckDB threads.
    pub threads: usize,
    /// The file that `require vgi` loads.
    pub extension: &'a Path,
    /// Values for `require-env` and `test-env`; an error is a reason to fail, `None` one to skip.
    pub environment: &'a dyn Fn(&str) -> Result<Option<String>, String>,
    /// A query that takes longer is interrupted, and the test has failed.
    pub limit: Duration,
}

/// How a file that did not fail ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    Skipped(String),
}

/// Runs a file.
pub fn run(script: &Script, setup: &Setup) -> Result<Verdict, Failure> {
    let place = Place { line: 1, loops: &Loops::default() };
    let broken = |problem: String| Failure { file: setup.name.to_owned(), line: 1, problem, ..Failure::default() };
    let directory = tempfile::tempdir().map_err(|error| broken(error.to_string()))?;
    let working = std::env::current_dir().map_err(|error| broken(error.to_string()))?;
    let variables = Variables::new(&directory.path().to_string_lossy(), &working.to_string_lossy());
    let checks = Checks::new(setup.name, setup.limit, variables).map_err(broken)?;
    let mut runner = Runner { setup, checks, session: None, path: None, read_only: false, extensions: Vec::new() };
    let outcome = runner.reopen(place).and_then(|()| runner.records(&script.records, place.loops)).and_then(|()| {
        if runner.checks.executed() > 0 {
            return Ok(());
        }
        runner.checks.fail(place, "", "the file ran no statement and no query, so it tests nothing")
    });
    match outcome {
        Ok(()) => Ok(Verdict::Passed),
        Err(Stop::Skipped(reason)) => Ok(Verdict::Skipped(reason)),
        Err(Stop::Failed(failure)) => Err(failure),
    }
}

struct Runner<'a> {
    setup: &'a Setup<'a>,
    checks: Checks,
    session: Option<Session>,
    /// The database file; memory when there is none.
    path: Option<String>,
    read_only: bool,
    /// What `require` loaded, to be loaded again into every database.
    extensions: Vec<String>,
}

/// An open database. The connections come first, so that they are closed first.
struct Session {
    main: Connection,
    named: HashMap<String, Connection>,
    database: Database,
}

impl Session {
    fn connection(&mut self, name: Option<&str>) -> Result<&Connection, String> {
        let Some(name) = name else { return Ok(&self.main) };
        if !self.named.contains_key(name) {
            self.named.insert(name.to_owned(), self.database.connect()?);
        }
        self.named.get(name).ok_or_else(|| format!("no connection {name}"))
    }
}

impl Runner<'_> {
    fn records(&mut self, records: &[Record], loops: &Loops) -> Result<(), Stop> {
        records.iter().try_for_each(|record| self.record(record, loops))
    }

    fn record(&mut self, record: &Record, loops: &Loops) -> Result<(), Stop> {
        let place = Place { line: record.line, loops };
        match loops.admit(&record.conditions) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(problem) => return self.checks.fail(place, "", problem),
        }
        match &record.command {
            Command::Statement(statement) => {
                let (checks, connection) = self.connected(place, statement.connection.as_deref())?;
                checks.statement(connection, place, statement)
            }
            Command::Query(query) => {
                let (checks, connection) = self.connected(place, query.connection.as_deref())?;
                checks.query(connection, place, query)
            }
            Command::Loop(inner) if inner.concurrent => self.concurrently(inner, place),
            Command::Loop(inner) => {
                inner.values.iter().try_for_each(|value| self.records(&inner.body, &loops.with(&inner.variable, value)))
            }
            Command::Sleep(duration) => {
                thread::sleep(*duration);
                Ok(())
            }
            _ => self.control(&record.command, place),
        }
    }

    /// Commands about the run itself.
    fn control(&mut self, command: &Command, place: Place) -> Result<(), Stop> {
        match command {
            Command::Require(parameters) => self.require(parameters, place),
            Command::RequireEnv { name, value } => match self.environment(name, place)? {
                None => Err(Stop::Skipped(format!("{name} is not set"))),
                Some(actual) if value.as_ref().is_some_and(|value| *value != actual) => {
                    Err(Stop::Skipped(format!("{name} is {actual:?}")))
                }
                Some(actual) => self.define(name, actual, place),
            },
            Command::TestEnv { name, default } => {
                let value = self.environment(name, place)?.unwrap_or_else(|| default.clone());
                self.define(name, value, place)
            }
            Command::Load { path, read_only } => self.load(path.as_deref(), *read_only, place),
            Command::Restart if self.path.is_none() => {
                self.checks.fail(place, "", "a database in memory cannot be restarted; use load first")
            }
            Command::Restart => self.reopen(place),
            Command::Reconnect => match self.session.as_mut().map(|session| (session.database.connect(), session)) {
                Some((Ok(connection), session)) => {
                    session.main = connection;
                    Ok(())
                }
                Some((Err(problem), _)) => self.checks.fail(place, "", problem),
                None => self.checks.fail(place, "", "no database is open"),
            },
            Command::ResetLabel(label) if !self.checks.reset_label(label) => {
                self.checks.fail(place, "", format!("no query had the label {label}"))
            }
            Command::OutputResult(on) => {
                self.checks.print_results = *on;
                Ok(())
            }
            Command::IgnoreErrors(messages) => {
                self.checks.ignored_errors.clone_from(messages);
                Ok(())
            }
            Command::AlwaysFailErrors(messages) => {
                self.checks.fatal_errors.clone_from(messages);
                Ok(())
            }
            Command::HashThreshold(threshold) => {
                self.checks.hash_threshold = *threshold;
                Ok(())
            }
            Command::ResetLabel(_)
            | Command::Statement(_)
            | Command::Query(_)
            | Command::Loop(_)
            | Command::Sleep(_) => Ok(()),
        }
    }

    /// Every iteration at the same time; the first failure in the order of the values counts.
    fn concurrently(&self, inner: &Loop, place: Place) -> Result<(), Stop> {
        let Some(session) = &self.session else { return self.checks.fail(place, "", "no database is open") };
        let mut iterations = Vec::new();
        for value in &inner.values {
            match session.database.connect() {
                Ok(connection) => iterations.push((connection, place.loops.with(&inner.variable, value))),
                Err(problem) => return self.checks.fail(place, "", problem),
            }
        }
        let checks = &self.checks;
        thread::scope(|scope| {
            let threads: Vec<_> = iterations
                .into_iter()
                .map(|(connection, loops)| scope.spawn(move || isolated(checks, &connection, &inner.body, &loops)))
                .collect();
            let outcomes: Vec<_> = threads.into_iter().map(thread::ScopedJoinHandle::join).collect();
            outcomes.into_iter().try_for_each(|outcome| {
                outcome.unwrap_or_else(|_| checks.fail(place, "", "a thread of this loop panicked"))
            })
        })
    }

    fn connected(&mut self, place: Place, name: Option<&str>) -> Result<(&Checks, &Connection), Stop> {
        let connection = match &mut self.session {
            Some(session) => session.connection(name),
            None => Err("no database is open".to_owned()),
        };
        match connection {
            Ok(connection) => Ok((&self.checks, connection)),
            Err(problem) => self.checks.fail(place, "", problem),
        }
    }

    fn environment(&self, name: &str, place: Place) -> Result<Option<String>, Stop> {
        (self.setup.environment)(name).or_else(|problem| self.checks.fail(place, "", problem))
    }

    fn define(&mut self, name: &str, value: String, place: Place) -> Result<(), Stop> {
        if self.checks.variables.define(name, value) {
            return Ok(());
        }
        self.checks.fail(place, "", format!("{name} is defined already"))
    }

    fn require(&mut self, parameters: &[String], place: Place) -> Result<(), Stop> {
        let words: Vec<&str> = parameters.iter().map(String::as_str).collect();
        let name = match words.as_slice() {
            [plain] if ALWAYS_GIVEN.contains(plain) => return Ok(()),
            ["vector_size", size] if size.parse::<usize>().is_ok_and(|size| size <= 2048) => return Ok(()),
            [name] => (*name).to_owned(),
            _ => return Err(Stop::Skipped(format!("require {}", words.join(" ")))),
        };
        if name == "vgi" {
            self.load_extension(place)?;
            self.extensions.push(name);
            return Ok(());
        }
        let (checks, connection) = self.connected(place, None)?;
        let sql =
            format!("SELECT loaded FROM duckdb_extensions() WHERE extension_name = '{}'", name.replace('\'', "''"));
        match checks.look_up(connection, &sql) {
            Ok(table) if table.values == ["true"] => Ok(()),
            Ok(_) => Err(Stop::Skipped(format!("require {name}: the extension is not there"))),
            Err(error) => checks.fail(place, &sql, error.to_string()),
        }
    }

    /// Loads the packaged file as a user does.
    fn load_extension(&mut self, place: Place) -> Result<(), Stop> {
        let extension = self.setup.extension;
        if !extension.is_file() {
            let problem = format!("{} is missing; `make build` makes it", extension.display());
            return self.checks.fail(place, "", problem);
        }
        let sql = format!("LOAD '{}'", extension.display().to_string().replace('\'', "''"));
        let (checks, connection) = self.connected(place, None)?;
        match checks.look_up(connection, &sql) {
            Ok(_) => Ok(()),
            Err(error) => checks.fail(place, &sql, error.to_string()),
        }
    }

    fn load(&mut self, path: Option<&str>, read_only: bool, place: Place) -> Result<(), Stop> {
        self.path = path.map(|path| self.checks.variables.replace(path));
        self.read_only = read_only;
        // closed before its files are deleted
        self.session = None;
        if let Some(path) = self.path.as_deref().filter(|_| !read_only) {
            for file in [path.to_owned(), format!("{path}.wal")] {
                match fs::remove_file(&file) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return self.checks.fail(place, "", format!("{file}: {error}"));
                    }
                    _ => {}
                }
            }
        }
        self.reopen(place)
    }

    /// Closes the database and opens it again. Settings do not survive this; extensions are loaded again.
    fn reopen(&mut self, place: Place) -> Result<(), Stop> {
        self.session = None;
        let threads = self.setup.threads.to_string();
        let mut options = vec![
            ("allow_unsigned_extensions", "true"),
            ("autoinstall_known_extensions", "false"),
            ("autoload_known_extensions", "false"),
            ("threads", threads.as_str()),
        ];
        if self.read_only {
            options.push(("access_mode", "READ_ONLY"));
        }
        let opened = Database::open(self.path.as_deref(), &options).and_then(|database| {
            let main = database.connect()?;
            Ok(Session { main, named: HashMap::new(), database })
        });
        match opened {
            Ok(session) => self.session = Some(session),
            Err(problem) => return self.checks.fail(place, "", problem),
        }
        if self.extensions.is_empty() { Ok(()) } else { self.load_extension(place) }
    }
}

/// The body of a concurrent loop, on a connection of its own; the parser admits nothing else than these commands.
fn isolated(checks: &Checks, connection: &Connection, body: &[Record], loops: &Loops) -> Result<(), Stop> {
    for record in body {
        let place = Place { line: record.line, loops };
        match loops.admit(&record.conditions) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(problem) => return checks.fail(place, "", problem),
        }
        match &record.command {
            Command::Statement(statement) => checks.statement(connection, place, statement)?,
            Command::Query(query) => checks.query(connection, place, query)?,
            Command::Sleep(duration) => thread::sleep(*duration),
            Command::Loop(inner) => {
                for value in &inner.values {
                    isolated(checks, connection, &inner.body, &loops.with(&inner.variable, value))?;
                }
            }
            _ => return checks.fail(place, "", "this cannot be done in a concurrent loop"),
        }
    }
    Ok(())
}
