//! The extension's error: a sentence for the user, and the DuckDB exception that carries it.

use std::fmt;

use vgi_transport::ErrorKind;
use vgi_wire::WireError;

/// Which exception DuckDB raises. The letter is what crosses the bridge; `Rethrow` in `cpp/exception.cpp` knows the same letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExceptionClass {
    /// The statement is wrong: unknown function, wrong arguments.
    Binder,
    /// A value cannot be represented on the other side.
    Conversion,
    /// The server's function refused, or the data are not what it said.
    InvalidInput,
    /// DuckDB's memory limit allows no more.
    OutOfMemory,
    /// The server, the protocol or the query shape needs what this version does not have.
    NotImplemented,
    /// The user stopped the query.
    Interrupt,
    /// Network, HTTP, protocol.
    Io,
}

impl ExceptionClass {
    fn letter(self) -> char {
        match self {
            Self::Binder => 'B',
            Self::Conversion => 'C',
            Self::InvalidInput => 'I',
            Self::OutOfMemory => 'M',
            Self::NotImplemented => 'N',
            Self::Interrupt => 'X',
            Self::Io => 'O',
        }
    }
}

/// An error on its way to DuckDB.
#[derive(Clone, Debug)]
pub struct Error {
    class: ExceptionClass,
    message: String,
    outdated: bool,
}

impl Error {
    /// An error of the given class; the message is one sentence without the class's name.
    pub fn new(class: ExceptionClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into(), outdated: false }
    }

    /// The exception that DuckDB will raise.
    pub fn class(&self) -> ExceptionClass {
        self.class
    }

    /// Whether the server has lost what was agreed with it, as after a restart, so that a new attachment may help.
    pub fn is_outdated(&self) -> bool {
        self.outdated
    }

    /// The same error with more said about it. An interrupt needs no explanation.
    #[must_use]
    pub fn and(mut self, more: &impl fmt::Display) -> Self {
        if self.class != ExceptionClass::Interrupt {
            self.message = format!("{} ({more})", self.message);
        }
        self
    }

    /// What the bridge hands to C++: the class's letter, then the message.
    pub fn encode(&self) -> String {
        format!("{}{}", self.class.letter(), self.message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<vgi_transport::Error> for Error {
    fn from(error: vgi_transport::Error) -> Self {
        let class = match error.kind() {
            ErrorKind::InvalidLocation | ErrorKind::NotFound => ExceptionClass::Binder,
            ErrorKind::Interrupted => ExceptionClass::Interrupt,
            ErrorKind::Version => ExceptionClass::NotImplemented,
            // what a server refuses while binding is a mistake in the statement, later it is the data's
            ErrorKind::Remote if error.phase() == vgi_transport::Phase::Bind => ExceptionClass::Binder,
            ErrorKind::Remote => ExceptionClass::InvalidInput,
            _ => ExceptionClass::Io,
        };
        Self { class, message: error.to_string(), outdated: error.is_outdated() }
    }
}

impl From<WireError> for Error {
    fn from(error: WireError) -> Self {
        Self::new(ExceptionClass::Io, error.to_string())
    }
}
