//! What a test file consists of, after parsing.

use std::time::Duration;

/// The comments at the top of a file: what it is and how it wants to be run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    pub name: Option<String>,
    pub description: Option<String>,
    pub group: Option<String>,
    /// `# threads: all`: run once with each of 1, 2 and 8 DuckDB threads.
    pub all_threads: bool,
}

/// A parsed file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    pub header: Header,
    pub records: Vec<Record>,
}

/// One command and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Line of the command word, from 1.
    pub line: usize,
    /// `onlyif i=3`, `skipif x>2` in front of it; those about systems are resolved by the parser.
    pub conditions: Vec<Condition>,
    pub command: Command,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Statement(Statement),
    Query(Query),
    Loop(Loop),
    Require(Vec<String>),
    RequireEnv {
        name: String,
        value: Option<String>,
    },
    TestEnv {
        name: String,
        default: String,
    },
    /// Opens a database file, or memory again when there is no path.
    Load {
        path: Option<String>,
        read_only: bool,
    },
    Restart,
    Reconnect,
    Sleep(Duration),
    OutputResult(bool),
    IgnoreErrors(Vec<String>),
    AlwaysFailErrors(Vec<String>),
    HashThreshold(usize),
    ResetLabel(String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Ok,
    Error,
    /// Either will do.
    Maybe,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    pub outcome: Outcome,
    pub sql: String,
    /// Text, `<REGEX>:…` or `<!REGEX>:…` after `----`; empty when there is none.
    pub expected_error: String,
    pub connection: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    None,
    Rows,
    Values,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    pub columns: usize,
    pub sort: Sort,
    pub label: Option<String>,
    pub connection: Option<String>,
    pub sql: String,
    /// The lines after `----`.
    pub expected: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loop {
    /// One name, or several separated by commas.
    pub variable: String,
    pub values: Vec<String>,
    /// All iterations at the same time, each with a connection of its own.
    pub concurrent: bool,
    pub body: Vec<Record>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    pub variable: String,
    pub comparison: Comparison,
    pub value: String,
    /// `skipif` rather than `onlyif`.
    pub skip: bool,
}
