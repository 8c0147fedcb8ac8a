//! Errors: of the wire itself, and those that a server reports.

use std::fmt;

use arrow_schema::ArrowError;

/// Why bytes could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The body ends before the stream does.
    #[error("the body is truncated: {0}")]
    Truncated(&'static str),
    /// The bytes are not what the format allows.
    #[error("the body is not a valid Arrow stream: {0}")]
    Corrupt(String),
    /// A record, column or batch that the protocol requires is not there, or has another type.
    #[error("the message breaks the protocol: {0}")]
    Protocol(String),
    /// A value does not fit the wire's limits.
    #[error("{0}")]
    TooLarge(String),
    /// The server speaks a version that this library has no layout for.
    #[error(
        "the server speaks {protocol} {server}, this client speaks {}; one of them must be upgraded",
        crate::generation::supported()
    )]
    UnknownVersion {
        /// Name of the protocol as the server gave it.
        protocol: String,
        /// Version of the server.
        server: String,
    },
    /// A stored exchange is not one.
    #[error("the frame is not valid: {0}")]
    Frame(String),
    /// The Arrow crates refuse to encode an array.
    #[error("cannot encode the batch: {0}")]
    Encode(#[source] ArrowError),
}

impl WireError {
    pub(crate) fn corrupt(error: impl fmt::Display) -> Self {
        Self::Corrupt(error.to_string())
    }

    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self::Protocol(message.into())
    }
}

/// An error batch: what the server's code raised.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteError {
    /// Class of the exception, such as `ValueError`.
    pub exception_type: Option<String>,
    /// The text without the class.
    pub message: String,
    /// Machine word that a client may act on, such as `protocol_version_mismatch`.
    pub kind: Option<String>,
    /// Code such as `NOT_FOUND`.
    pub code: Option<String>,
    /// Where in the server it was raised; for debug logs only.
    pub traceback: Option<String>,
    /// Which server answered.
    pub server_id: Option<String>,
    /// Which request it was.
    pub request_id: Option<String>,
}

impl fmt::Display for RemoteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.exception_type {
            Some(name) => write!(f, "{name}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for RemoteError {}
