//! Runs one statement or query and compares what comes back with what the file expects.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::compare::{self, as_hash, by_pattern, hash_input};
use crate::database::{Connection, QueryError, Table};
use crate::printer::Printer;
use crate::script::{Outcome, Query, Statement};
use crate::variables::{Loops, Variables};

/// Lines of a result that a failure shows.
const SHOWN: usize = 40;

/// Why a file is not run to its end.
#[derive(Debug)]
pub enum Stop {
    Failed(Failure),
    /// Something that the file requires is missing.
    Skipped(String),
}

/// What went wrong, and where.
#[derive(Debug, Default)]
pub struct Failure {
    pub file: String,
    pub line: usize,
    /// `i=3`, empty outside of loops.
    pub loops: String,
    /// Empty when no SQL is concerned.
    pub sql: String,
    pub problem: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)?;
        if !self.loops.is_empty() {
            write!(f, " (with {})", self.loops)?;
        }
        if !self.sql.is_empty() {
            write!(f, "\n{}", indented(&self.sql))?;
        }
        write!(f, "\n{}", self.problem)
    }
}

/// Where a command stands.
#[derive(Clone, Copy)]
pub struct Place<'a> {
    pub line: usize,
    pub loops: &'a Loops,
}

/// What checking needs; shared by the threads of a concurrent loop.
pub struct Checks {
    file: String,
    limit: Duration,
    printer: Printer,
    labels: Mutex<HashMap<String, String>>,
    executed: AtomicUsize,
    pub variables: Variables,
    pub ignored_errors: Vec<String>,
    pub fatal_errors: Vec<String>,
    pub hash_threshold: usize,
    pub print_results: bool,
}

impl Checks {
    pub fn new(file: &str, limit: Duration, variables: Variables) -> Result<Self, String> {
        Ok(Self {
            file: file.to_owned(),
            limit,
            printer: Printer::new()?,
            labels: Mutex::default(),
            executed: AtomicUsize::new(0),
            variables,
            // DuckDB's runner starts with messages that contain "HTTP"; here such an error is what is being tested
            ignored_errors: Vec::new(),
            fatal_errors: vec!["INTERNAL".to_owned(), "differs from original result!".to_owned()],
            hash_threshold: 0,
            print_results: false,
        })
    }

    /// Statements and queries that were run.
    pub fn executed(&self) -> usize {
        self.executed.load(Ordering::Relaxed)
    }

    /// Forgets the result of the queries with this label; `false` when there was none.
    pub fn reset_label(&self, label: &str) -> bool {
        self.labels.lock().unwrap_or_else(PoisonError::into_inner).remove(label).is_some()
    }

    /// The end of the test with this problem.
    pub fn fail<T>(&self, place: Place, sql: &str, problem: impl Into<String>) -> Result<T, Stop> {
        Err(Stop::Failed(Failure {
            file: self.file.clone(),
            line: place.line,
            loops: place.loops.describe(),
            sql: sql.to_owned(),
            problem: problem.into(),
        }))
    }

    /// Rows of a helper query that the file does not contain.
    pub fn look_up(&self, connection: &Connection, sql: &str) -> Result<Table, QueryError> {
        connection.query(sql, self.limit, &self.printer)
    }

    /// Runs a statement.
    pub fn statement(&self, connection: &Connection, place: Place, statement: &Statement) -> Result<(), Stop> {
        let sql = self.replaced(&statement.sql, place);
        let error = match self.execute(connection, &sql) {
            Ok(_) if statement.outcome == Outcome::Error => {
                let problem = format!(
                    "an error is expected, but it succeeded; expected:\n{}",
                    indented(&statement.expected_error)
                );
                return self.fail(place, &sql, problem);
            }
            Ok(_) => return Ok(()),
            Err(QueryError::Sql(error)) => error,
            Err(other) => return self.fail(place, &sql, other.to_string()),
        };
        if self.fatal_errors.iter().any(|fatal| error.contains(fatal)) {
            return self.fail(place, &sql, format!("this error is never expected:\n{}", indented(&error)));
        }
        let expected = &statement.expected_error;
        let as_expected = match statement.outcome {
            Outcome::Ok => false,
            Outcome::Maybe if expected.is_empty() => true,
            Outcome::Maybe | Outcome::Error => {
                error_matches(&error, expected) || error_matches(&error, &self.replaced(expected, place))
            }
        };
        if as_expected {
            return Ok(());
        }
        self.skip_if_ignored(&error)?;
        let problem = if statement.outcome == Outcome::Ok {
            format!("unexpected error:\n{}", indented(&error))
        } else {
            format!("another error is expected:\n{}\ngot:\n{}", indented(expected), indented(&error))
        };
        self.fail(place, &sql, problem)
    }

    /// Runs a query and compares its result.
    pub fn query(&self, connection: &Connection, place: Place, query: &Query) -> Result<(), Stop> {
        let sql = self.replaced(&query.sql, place);
        let mut table = match self.execute(connection, &sql) {
            Ok(table) => table,
            Err(error) => {
                self.skip_if_ignored(&error.to_string())?;
                return self.fail(place, &sql, format!("unexpected error:\n{}", indented(&error.to_string())));
            }
        };
        if self.print_results {
            println!("{}:{}\n{}", self.file, place.line, shown(&table));
        }
        compare::sort(&mut table.values, table.names.len(), query.sort);
        let digest = self.digest(&table, place, &sql, query)?;
        let expected: Vec<String> = query.expected.iter().map(|line| self.replaced(line, place)).collect();
        if let Some(line) = as_hash(&expected) {
            if digest == line {
                return Ok(());
            }
            return self.fail(place, &sql, format!("expected:\n{}\ngot:\n{}", indented(line), indented(&digest)));
        }
        // a labelled query may leave the comparison to the other queries of its label
        if query.label.is_some() && expected.is_empty() {
            return Ok(());
        }
        compare::compare(query.columns, &expected, &table)
            .or_else(|mismatch| {
                // a line may stand for itself, braces included
                compare::compare(query.columns, &query.expected, &table).map_err(|_| mismatch)
            })
            .or_else(|mismatch| {
                let problem = format!(
                    "{mismatch}\nexpected:\n{}\ngot:\n{}",
                    indented(&clipped(&expected)),
                    indented(&shown(&table))
                );
                self.fail(place, &sql, problem)
            })
    }

    fn execute(&self, connection: &Connection, sql: &str) -> Result<Table, QueryError> {
        self.executed.fetch_add(1, Ordering::Relaxed);
        connection.query(sql, self.limit, &self.printer)
    }

    fn replaced(&self, text: &str, place: Place) -> String {
        place.loops.replace(&self.variables.replace(text))
    }

    fn skip_if_ignored(&self, error: &str) -> Result<(), Stop> {
        match self.ignored_errors.iter().find(|ignored| error.contains(*ignored)) {
            Some(ignored) => Err(Stop::Skipped(format!("an error contains {ignored:?}"))),
            None => Ok(()),
        }
    }

    /// The line `N values hashing to …` of a result, which must be the same for all queries with one label.
    fn digest(&self, table: &Table, place: Place, sql: &str, query: &Query) -> Result<String, Stop> {
        let wanted = query.label.is_some() || as_hash(&query.expected).is_some();
        if !wanted && (self.hash_threshold == 0 || table.values.len() <= self.hash_threshold) {
            return Ok(String::new());
        }
        let digest = match self.printer.md5(&hash_input(&table.values)) {
            Ok(digest) => format!("{} values hashing to {digest}", table.values.len()),
            Err(error) => return self.fail(place, sql, error),
        };
        if let Some(label) = &query.label {
            let mut labels = self.labels.lock().unwrap_or_else(PoisonError::into_inner);
            let first = labels.entry(label.clone()).or_insert_with(|| digest.clone()).clone();
            drop(labels);
            if first != digest {
                let problem = format!(
                    "the result differs from the first one with the label {label}: {first}\ngot: {digest}\n{}",
                    indented(&shown(table))
                );
                return self.fail(place, sql, problem);
            }
        }
        Ok(digest)
    }
}

fn error_matches(error: &str, expected: &str) -> bool {
    // DuckDB's runner applies patterns to the message with a line's end behind it
    by_pattern(expected, &format!("{error}\n")).unwrap_or_else(|| error.contains(expected))
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

fn clipped(lines: &[String]) -> String {
    let mut parts: Vec<String> = lines.iter().take(SHOWN).cloned().collect();
    if lines.is_empty() {
        parts.push("(no rows)".to_owned());
    }
    if lines.len() > SHOWN {
        parts.push(format!("… {} more", lines.len() - SHOWN));
    }
    parts.join("\n")
}

fn shown(table: &Table) -> String {
    let width = table.names.len().max(1);
    clipped(&table.values.chunks(width).map(|row| row.join("\t")).collect::<Vec<_>>())
}
