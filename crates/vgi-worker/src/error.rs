//! Errors of the kit: what a function may answer instead of a result.

use arrow_schema::ArrowError;
use vgi_wire::WireError;

use crate::storage::StorageError;

/// Why a call of a function fails. The client sees the class ([`Error::exception_type`]) and the text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An argument is missing, unknown, of the wrong type or out of range.
    #[error("{0}")]
    Argument(String),
    /// The input table does not fit the function.
    #[error("{0}")]
    Input(String),
    /// A catalog, schema or function is not there.
    #[error("{0}")]
    NotFound(String),
    /// The function itself gives up.
    #[error("{0}")]
    Failed(String),
    /// The client breaks the protocol.
    #[error("{0}")]
    Protocol(String),
    /// A declaration contradicts itself; raised when a function is registered.
    #[error("{0}")]
    Declaration(String),
    /// A computation on Arrow data fails.
    #[error(transparent)]
    Arrow(#[from] ArrowError),
    /// A blob cannot be written or read.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The storage fails, or the execution is gone.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The function panicked.
    #[error("the function panicked: {0}")]
    Panicked(String),
}

impl Error {
    /// The class that the client sees.
    #[must_use]
    pub fn exception_type(&self) -> &'static str {
        match self {
            Self::Argument(_) => "ArgumentError",
            Self::Input(_) => "InputError",
            Self::NotFound(_) => "NotFoundError",
            Self::Failed(_) => "FunctionError",
            Self::Protocol(_) => "ProtocolError",
            Self::Declaration(_) => "DeclarationError",
            Self::Arrow(_) => "ArrowError",
            Self::Wire(_) => "WireError",
            Self::Storage(error) => error.exception_type(),
            Self::Panicked(_) => "PanicError",
        }
    }

    /// The code of the class, as the protocol lists them.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Argument(_) | Self::Input(_) | Self::Protocol(_) => "INVALID_ARGUMENT",
            Self::NotFound(_) => "NOT_FOUND",
            Self::Storage(StorageError::UnknownExecution(_)) => "FAILED_PRECONDITION",
            Self::Failed(_) | Self::Arrow(_) => "UNKNOWN",
            // never UNAVAILABLE, which invites clients to repeat a request that may have stored a part of what it had to store
            Self::Declaration(_) | Self::Wire(_) | Self::Storage(_) | Self::Panicked(_) => "INTERNAL",
        }
    }
}

/// The result of everything that a function does.
pub type Result<T, E = Error> = std::result::Result<T, E>;
