//! Reads a test file in the dialect of DuckDB's own sqllogictest runner.
//!
//! The rules are those of that runner, so that the same file means the same thing there: a command starts on the first line after an
//! empty line or a comment, its SQL ends at `----`, a comment or an empty line, its expected result ends at an empty line. What that
//! runner would silently skip is an error here.

use std::time::Duration;

use crate::script::{Command, Comparison, Condition, Header, Loop, Outcome, Query, Record, Script, Sort, Statement};

/// What is wrong with a file, and on which line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {message}")]
pub struct ParseError {
    pub line: usize,
    pub message: String,
}

type Result<T> = std::result::Result<T, ParseError>;

/// Parses the text of a file.
pub fn parse(text: &str) -> Result<Script> {
    let lines: Vec<&str> = text.lines().map(|line| line.trim_end_matches('\r')).collect();
    let header = header(&lines);
    let mut parser = Parser { lines, at: 0, halted: false };
    let records = parser.block(None)?;
    Ok(Script { header, records })
}

fn header(lines: &[&str]) -> Header {
    let mut header = Header::default();
    for line in lines.iter().take_while(|line| is_blank(line)) {
        let Some((key, value)) = line.trim_start_matches('#').split_once(':') else { continue };
        let value = value.trim().to_owned();
        match key.trim() {
            "name" => header.name = Some(value),
            "description" => header.description = Some(value),
            "group" => header.group = Some(value),
            "threads" => header.all_threads = value == "all",
            _ => {}
        }
    }
    header
}

fn is_blank(line: &str) -> bool {
    line.is_empty() || line.starts_with('#')
}

struct Parser<'a> {
    lines: Vec<&'a str>,
    /// Index of the line to be read next.
    at: usize,
    /// `halt` was seen: nothing after it exists.
    halted: bool,
}

impl<'a> Parser<'a> {
    fn line(&self) -> Option<&'a str> {
        self.lines.get(self.at).copied()
    }

    /// An error about the line `line`, counted from 1.
    fn error<T>(line: usize, message: impl Into<String>) -> Result<T> {
        Err(ParseError { line, message: message.into() })
    }

    /// Commands up to the `endloop` of the loop that began on line `opened`, or to the end of the file.
    fn block(&mut self, opened: Option<usize>) -> Result<Vec<Record>> {
        let mut records = Vec::new();
        let mut skipped = 0_usize;
        while let Some((line, words)) = self.next_command()? {
            if let ["mode", mode] = words.as_slice() {
                match *mode {
                    "skip" => skipped += 1,
                    "unskip" if skipped == 0 => return Self::error(line, "mode unskip without mode skip"),
                    "unskip" => skipped -= 1,
                    _ if skipped > 0 => {}
                    "output_result" => records.push(record(line, Command::OutputResult(true))),
                    "no_output" => records.push(record(line, Command::OutputResult(false))),
                    other => return Self::error(line, format!("mode {other:?} is not supported")),
                }
                continue;
            }
            if skipped > 0 {
                self.skip_body();
                continue;
            }
            match words.as_slice() {
                ["halt"] => {
                    self.halted = true;
                    self.at = self.lines.len();
                }
                ["endloop"] if opened.is_some() => return Ok(records),
                ["endloop"] => return Self::error(line, "endloop without a loop"),
                _ => {
                    if let Some(parsed) = self.conditional(line, words, opened.is_some())? {
                        records.push(parsed);
                    }
                }
            }
        }
        match opened {
            Some(line) if !self.halted => Self::error(line, "this loop has no endloop"),
            _ => Ok(records),
        }
    }

    /// Moves to the next command; gives its line number and its words.
    fn next_command(&mut self) -> Result<Option<(usize, Vec<&'a str>)>> {
        while self.line().is_some_and(is_blank) {
            self.at += 1;
        }
        let Some(line) = self.line() else { return Ok(None) };
        self.at += 1;
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        if words.is_empty() {
            return Self::error(self.at, "a line of blanks where a command is expected");
        }
        Ok(Some((self.at, words)))
    }

    fn skip_body(&mut self) {
        while self.line().is_some_and(|line| !is_blank(line)) {
            self.at += 1;
        }
    }

    /// A command with any number of `onlyif` and `skipif` lines in front of it; `None` when they rule DuckDB out.
    fn conditional(&mut self, line: usize, words: Vec<&'a str>, in_loop: bool) -> Result<Option<Record>> {
        let (mut line, mut words) = (line, words);
        let mut conditions = Vec::new();
        loop {
            let skip = match words.first().copied() {
                Some("skipif") => true,
                Some("onlyif") => false,
                _ => break,
            };
            let &[_, subject] = words.as_slice() else {
                return Self::error(line, "onlyif and skipif take one word: a system, or a comparison such as i=3");
            };
            match condition(subject, skip) {
                Some(condition) if in_loop => conditions.push(condition),
                Some(_) => return Self::error(line, "a condition on a loop variable outside of a loop"),
                None if subject.eq_ignore_ascii_case("duckdb") == skip => {
                    self.skip_body();
                    return Ok(None);
                }
                None => {}
            }
            (line, words) = match self.line().map(str::trim) {
                Some(next) if !is_blank(next) => {
                    self.at += 1;
                    (self.at, next.split_ascii_whitespace().collect())
                }
                _ => return Self::error(line, "no command follows this condition"),
            };
        }
        let command = self.command(line, &words, in_loop)?;
        Ok(Some(Record { line, conditions, command }))
    }

    fn command(&mut self, line: usize, words: &[&str], in_loop: bool) -> Result<Command> {
        match words {
            ["statement", rest @ ..] => return self.statement(line, rest).map(Command::Statement),
            ["query", rest @ ..] => return self.query(line, rest).map(Command::Query),
            _ => {}
        }
        if self.line().is_some_and(|next| !is_blank(next)) {
            return Self::error(line, "an empty line or a comment must follow this command");
        }
        match words {
            ["loop" | "concurrentloop" | "foreach" | "concurrentforeach", ..] => self.repeat(line, words),
            ["require", parameters @ ..] if !parameters.is_empty() && !in_loop => {
                Ok(Command::Require(parameters.iter().map(ToString::to_string).collect()))
            }
            ["require-env", name] if !in_loop => Ok(Command::RequireEnv { name: (*name).to_owned(), value: None }),
            ["require-env", name, value] if !in_loop => {
                Ok(Command::RequireEnv { name: (*name).to_owned(), value: Some((*value).to_owned()) })
            }
            ["test-env", name, default] if !in_loop => {
                Ok(Command::TestEnv { name: (*name).to_owned(), default: (*default).to_owned() })
            }
            ["load"] if !in_loop => Ok(Command::Load { path: None, read_only: false }),
            ["load", path] if !in_loop => Ok(Command::Load { path: Some((*path).to_owned()), read_only: false }),
            ["load", path, "readonly"] if !in_loop => {
                Ok(Command::Load { path: Some((*path).to_owned()), read_only: true })
            }
            ["require" | "require-env" | "test-env" | "load", _, ..] if in_loop => {
                Self::error(line, format!("{} cannot stand in a loop", words.first().unwrap_or(&"")))
            }
            ["restart"] => Ok(Command::Restart),
            ["reconnect"] => Ok(Command::Reconnect),
            ["reset", "label", label] => Ok(Command::ResetLabel((*label).to_owned())),
            ["sleep", count, unit] => sleep(count, unit)
                .map(Command::Sleep)
                .map_or_else(|| Self::error(line, format!("cannot sleep {count} {unit}")), Ok),
            ["set", "ignore_error_messages", list @ ..] => Ok(Command::IgnoreErrors(comma_list(list))),
            ["set", "always_fail_error_messages", list @ ..] => Ok(Command::AlwaysFailErrors(comma_list(list))),
            ["hash-threshold", count] => count
                .parse()
                .map(Command::HashThreshold)
                .or_else(|_| Self::error(line, "hash-threshold takes a number")),
            _ => Self::error(line, format!("unknown or malformed command {:?}", words.join(" "))),
        }
    }

    fn statement(&mut self, line: usize, words: &[&str]) -> Result<Statement> {
        let (outcome, connection) = match words {
            ["ok", rest @ ..] => (Outcome::Ok, rest),
            ["error", rest @ ..] => (Outcome::Error, rest),
            ["maybe", rest @ ..] => (Outcome::Maybe, rest),
            _ => return Self::error(line, "statement takes ok, error or maybe"),
        };
        if connection.len() > 1 {
            return Self::error(line, "statement takes at most one connection name");
        }
        let sql = self.sql(line)?;
        let expected = self.expected();
        match (outcome, &expected) {
            (Outcome::Ok, Some(_)) => return Self::error(line, "statement ok cannot have an expected error"),
            (Outcome::Error, None) => return Self::error(line, "statement error needs the expected error after ----"),
            (Outcome::Error, Some(lines)) if lines.is_empty() => {
                return Self::error(line, "the expected error is empty, which every error matches");
            }
            _ => {}
        }
        let expected_error = expected.unwrap_or_default().join("\n");
        Ok(Statement { outcome, sql, expected_error, connection: connection.first().map(ToString::to_string) })
    }

    fn query(&mut self, line: usize, words: &[&str]) -> Result<Query> {
        let [types, rest @ ..] = words else { return Self::error(line, "query takes the column types, such as IIT") };
        if let Some(unknown) = types.chars().find(|kind| !matches!(kind, 'I' | 'R' | 'T')) {
            return Self::error(line, format!("unknown column type {unknown:?}; there are I, R and T"));
        }
        let mut query = Query {
            columns: types.len(),
            sort: Sort::None,
            label: None,
            connection: None,
            sql: String::new(),
            expected: Vec::new(),
        };
        // DuckDB takes whatever is no sort style for a connection
        match rest.first().copied() {
            None | Some("nosort") => {}
            Some("rowsort" | "sort") => query.sort = Sort::Rows,
            Some("valuesort") => query.sort = Sort::Values,
            Some(connection) => query.connection = Some(connection.to_owned()),
        }
        query.label = rest.get(1).map(ToString::to_string);
        if rest.len() > 2 {
            return Self::error(line, "query takes types, a sort style and a label");
        }
        query.sql = self.sql(line)?;
        match self.expected() {
            Some(expected) => query.expected = expected,
            // with a label the results of two queries are compared with each other
            None if query.label.is_some() => {}
            None => return Self::error(line, "query needs ---- in front of the expected result"),
        }
        Ok(query)
    }

    fn sql(&mut self, line: usize) -> Result<String> {
        let start = self.at;
        while self.line().is_some_and(|line| !is_blank(line) && line != "----") {
            self.at += 1;
        }
        let sql = self.lines.get(start..self.at).unwrap_or_default().join("\n");
        if sql.trim().is_empty() { Self::error(line, "there is no SQL") } else { Ok(sql) }
    }

    /// The lines after `----`, if there is one.
    fn expected(&mut self) -> Option<Vec<String>> {
        if self.line() != Some("----") {
            return None;
        }
        self.at += 1;
        let start = self.at;
        while self.line().is_some_and(|line| !line.is_empty()) {
            self.at += 1;
        }
        Some(self.lines.get(start..self.at).unwrap_or_default().iter().map(ToString::to_string).collect())
    }

    fn repeat(&mut self, line: usize, words: &[&str]) -> Result<Command> {
        let (variable, values) = match words {
            ["loop" | "concurrentloop", variable, first, end] => match (first.parse::<i64>(), end.parse::<i64>()) {
                (Ok(first), Ok(end)) if first < end => (variable, (first..end).map(|i| i.to_string()).collect()),
                _ => return Self::error(line, "a loop goes from a number up to, and without, a larger one"),
            },
            ["foreach" | "concurrentforeach", variable, values @ ..] if !values.is_empty() => {
                (variable, values.iter().flat_map(|value| collection(value)).collect::<Vec<_>>())
            }
            _ => return Self::error(line, "expected: loop NAME FIRST END, or foreach NAME VALUE…"),
        };
        let names = variable.split(',').count();
        if let Some(value) = values.iter().find(|value| names > 1 && value.split(',').count() != names) {
            return Self::error(line, format!("{value:?} does not give {names} values for {variable:?}"));
        }
        let body = self.block(Some(line))?;
        let concurrent = words.first().is_some_and(|word| word.starts_with("concurrent"));
        if concurrent && let Some(unfit) = not_concurrent(&body) {
            return Self::error(unfit, "this cannot be done in a concurrent loop");
        }
        Ok(Command::Loop(Loop { variable: (*variable).to_owned(), values, concurrent, body }))
    }
}

fn record(line: usize, command: Command) -> Record {
    Record { line, conditions: Vec::new(), command }
}

/// `i=3`, `x<>y`, `i>=2` …; `None` for the name of a system.
pub fn condition(subject: &str, skip: bool) -> Option<Condition> {
    // the longer operators first, for `<` is the start of two others
    let operators = [
        ("<>", Comparison::NotEqual),
        ("<=", Comparison::LessOrEqual),
        (">=", Comparison::GreaterOrEqual),
        ("=", Comparison::Equal),
        ("<", Comparison::Less),
        (">", Comparison::Greater),
    ];
    operators.into_iter().find_map(|(operator, comparison)| {
        let (variable, value) = subject.split_once(operator)?;
        Some(Condition { variable: variable.to_owned(), comparison, value: value.to_owned(), skip })
    })
}

fn sleep(count: &str, unit: &str) -> Option<Duration> {
    let count = count.parse().ok()?;
    match unit {
        "second" | "seconds" | "sec" => Some(Duration::from_secs(count)),
        "millisecond" | "milliseconds" | "milli" => Some(Duration::from_millis(count)),
        "microsecond" | "microseconds" | "micro" => Some(Duration::from_micros(count)),
        "nanosecond" | "nanoseconds" | "nano" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

/// `a message, another` → both.
fn comma_list(words: &[&str]) -> Vec<String> {
    words.join(" ").split(',').map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

/// The values that a word of `foreach` stands for.
fn collection(word: &str) -> Vec<String> {
    const SIGNED: &[&str] = &["tinyint", "smallint", "integer", "bigint", "hugeint"];
    const UNSIGNED: &[&str] = &["utinyint", "usmallint", "uinteger", "ubigint", "uhugeint"];
    const FLOATING: &[&str] = &["float", "double"];
    const OTHER: &[&str] = &["bool", "interval", "varchar"];
    let groups: &[&[&str]] = match word.to_ascii_lowercase().as_str() {
        "<signed>" => &[SIGNED],
        "<unsigned>" => &[UNSIGNED],
        "<integral>" => &[SIGNED, UNSIGNED],
        "<numeric>" => &[SIGNED, UNSIGNED, FLOATING],
        "<alltypes>" => &[SIGNED, UNSIGNED, FLOATING, OTHER],
        _ => return vec![word.to_owned()],
    };
    groups.concat().into_iter().map(str::to_owned).collect()
}

/// The line of the first command that needs the whole database, or a connection that others use too.
fn not_concurrent(body: &[Record]) -> Option<usize> {
    body.iter().find_map(|record| match &record.command {
        Command::Statement(Statement { connection: None, .. })
        | Command::Query(Query { connection: None, .. })
        | Command::Sleep(_) => None,
        Command::Loop(inner) if !inner.concurrent => not_concurrent(&inner.body),
        _ => Some(record.line),
    })
}
