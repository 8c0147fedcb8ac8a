//! Why a request is answered with an error: refused before any function ran, or failed by one.

use http::StatusCode;
use vgi_wire::{RemoteError, WireError};

use crate::error::Error;
use crate::tokens::TokenError;

/// An answer that is an error.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) status: StatusCode,
    pub(super) error: Box<RemoteError>,
}

impl Fault {
    pub(super) fn new(status: StatusCode, exception_type: &str, message: impl Into<String>) -> Self {
        let error = RemoteError {
            exception_type: Some(exception_type.to_owned()),
            message: message.into(),
            ..RemoteError::default()
        };
        Self { status, error: Box::new(error) }
    }

    /// The request itself is wrong.
    pub(super) fn bad_request(exception_type: &str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, exception_type, message).code("INVALID_ARGUMENT")
    }

    pub(super) fn kind(mut self, kind: &str) -> Self {
        self.error.kind = Some(kind.to_owned());
        self
    }

    pub(super) fn code(mut self, code: &str) -> Self {
        self.error.code = Some(code.to_owned());
        self
    }
}

/// What a function, the catalog or the storage says is a result of the call, not a failure of HTTP.
impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::new(StatusCode::OK, error.exception_type(), error.to_string()).code(error.code())
    }
}

/// Bytes that cannot be read are the client's fault.
impl From<WireError> for Fault {
    fn from(error: WireError) -> Self {
        Self::bad_request("ProtocolError", error.to_string())
    }
}

impl From<TokenError> for Fault {
    fn from(error: TokenError) -> Self {
        Self::bad_request("InvalidStateTokenError", error.to_string())
    }
}
