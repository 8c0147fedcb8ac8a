//! Errors: one sentence that names what was done, for which function, where, and why it failed.

use std::fmt;
use std::sync::Arc;

use vgi_wire::{RemoteError, WireError};

use crate::contact::refuses_version;

/// What went wrong; decides how a caller reports the error and whether it makes sense to act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The location, or an option that goes with it, cannot be used.
    InvalidLocation,
    /// No connection could be made.
    Connect,
    /// One of the clocks ran out; the message names it.
    Timeout,
    /// The caller's [`Interrupt`](crate::Interrupt) asked to stop.
    Interrupted,
    /// The connection broke, or the HTTP status is an error without more to say.
    Http,
    /// There is a server, but not of VGI.
    NotVgi,
    /// The reply is malformed or impossible.
    Protocol,
    /// The server speaks a version that this client does not.
    Version,
    /// The server wants other credentials.
    Unauthorized,
    /// There is no such catalog, schema or function.
    NotFound,
    /// The server is not the one that the statement was planned with.
    Changed,
    /// The server's code reports an error.
    Remote,
    /// A reply or request passes a limit.
    Limit,
    /// The client itself is in no state to do it.
    Internal,
}

/// The step of a call that an error or a log line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names are the steps of a call")]
pub enum Phase {
    Connect,
    Attach,
    Transaction,
    Discover,
    Bind,
    Init,
    Process,
    Combine,
    Finalize,
    Destructor,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connect",
            Self::Attach => "attach",
            Self::Transaction => "transaction",
            Self::Discover => "lookup",
            Self::Bind => "bind",
            Self::Init => "init",
            Self::Process => "process",
            Self::Combine => "combine",
            Self::Finalize => "finalize",
            Self::Destructor => "destructor",
        })
    }
}

/// What went wrong, before it is known what it was for.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) kind: ErrorKind,
    pub(crate) message: String,
    pub(crate) status: Option<u16>,
    pub(crate) remote: Option<Box<RemoteError>>,
    /// Whether no byte of the request was sent, and trying again may help.
    pub(crate) unsent: bool,
}

impl Fault {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), status: None, remote: None, unsent: false }
    }

    pub(crate) fn remote(error: impl Into<Box<RemoteError>>) -> Self {
        Self { remote: Some(error.into()), ..Self::new(ErrorKind::Remote, "") }
    }

    pub(crate) fn with_status(self, status: http::StatusCode) -> Self {
        Self { status: Some(status.as_u16()), ..self }
    }
}

impl From<WireError> for Fault {
    fn from(error: WireError) -> Self {
        let kind = match &error {
            WireError::UnknownVersion { .. } => ErrorKind::Version,
            WireError::TooLarge(_) => ErrorKind::Limit,
            WireError::Encode(_) => ErrorKind::Internal,
            _ => ErrorKind::Protocol,
        };
        Self::new(kind, error.to_string())
    }
}

/// What a request is for: turns a [`Fault`] into an [`Error`].
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    pub(crate) phase: Phase,
    pub(crate) function: Option<Arc<str>>,
    pub(crate) url: Arc<str>,
}

impl Scope {
    pub(crate) fn new(phase: Phase, url: impl Into<Arc<str>>) -> Self {
        Self { phase, function: None, url: url.into() }
    }

    pub(crate) fn for_function(self, function: impl Into<Arc<str>>) -> Self {
        Self { function: Some(function.into()), ..self }
    }

    pub(crate) fn error(&self, fault: impl Into<Fault>) -> Error {
        let function = self.function.as_deref().map(str::to_owned);
        Error(Box::new(Inner { fault: fault.into(), phase: self.phase, function, url: Some(self.url.to_string()) }))
    }
}

/// Why a call failed.
///
/// ```text
/// process of 'sum_all_columns' failed at http://127.0.0.1:9000: ValueError: no numeric column (server a1b2, request 17)
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(Box<Inner>);

#[derive(Clone, Debug)]
struct Inner {
    fault: Fault,
    phase: Phase,
    function: Option<String>,
    url: Option<String>,
}

impl Error {
    /// An error that concerns no server yet.
    pub(crate) fn local(phase: Phase, fault: Fault) -> Self {
        Self(Box::new(Inner { fault, phase, function: None, url: None }))
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.fault.kind
    }

    /// What was being done.
    pub fn phase(&self) -> Phase {
        self.0.phase
    }

    /// The function that it was done for.
    pub fn function(&self) -> Option<&str> {
        self.0.function.as_deref()
    }

    /// Base URL of the server. It never holds credentials.
    pub fn url(&self) -> Option<&str> {
        self.0.url.as_deref()
    }

    /// HTTP status of the reply, when there was one.
    pub fn status(&self) -> Option<u16> {
        self.0.fault.status
    }

    /// What the server's code reported.
    pub fn remote(&self) -> Option<&RemoteError> {
        self.0.fault.remote.as_deref()
    }

    /// The cause alone: without phase, function and URL.
    pub fn message(&self) -> String {
        match self.remote() {
            Some(remote) => remote.to_string(),
            None => self.0.fault.message.clone(),
        }
    }

    /// Whether the server has lost or changed what was agreed with it, as after a restart:
    /// [`Attachment::renewed`](crate::Attachment::renewed) helps.
    pub fn is_outdated(&self) -> bool {
        self.remote().is_some_and(|remote| {
            refuses_version(remote)
                || remote.kind.as_deref() == Some("protocol_not_supported")
                || matches!(
                    remote.exception_type.as_deref(),
                    Some("OpaqueDataNotRecognizedError" | "OpaqueDataRejectedError")
                )
        })
    }

    /// Names the function that the failed step was for.
    #[must_use]
    pub fn with_function(mut self, function: impl Into<String>) -> Self {
        self.0.function = Some(function.into());
        self
    }
}

impl fmt::Display for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fault, phase, function, url } = self;
        match (function, url) {
            (Some(function), Some(url)) => write!(f, "{phase} of '{function}' failed at {url}: ")?,
            (None, Some(url)) => write!(f, "{phase} failed at {url}: ")?,
            (Some(function), None) => write!(f, "{phase} of '{function}' failed: ")?,
            (None, None) => {}
        }
        let Some(remote) = &fault.remote else { return f.write_str(&fault.message) };
        write!(f, "{remote}")?;
        match (&remote.server_id, &remote.request_id) {
            (Some(server), Some(request)) => write!(f, " (server {server}, request {request})"),
            (Some(server), None) => write!(f, " (server {server})"),
            (None, Some(request)) => write!(f, " (request {request})"),
            (None, None) => Ok(()),
        }
    }
}

/// The causes of an error in one line, without the repetitions that wrapping makes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        if !parts.iter().any(|part| part.contains(&text)) {
            parts.push(text);
        }
        next = error.source();
    }
    parts.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_phase_function_url_and_the_servers_words() {
        let remote = RemoteError {
            exception_type: Some("ValueError".to_owned()),
            message: "no".to_owned(),
            server_id: Some("s1".to_owned()),
            ..RemoteError::default()
        };
        let scope = Scope::new(Phase::Process, "http://h:1").for_function("f");
        assert_eq!(
            scope.error(Fault::remote(remote)).to_string(),
            "process of 'f' failed at http://h:1: ValueError: no (server s1)"
        );
        let plain = Scope::new(Phase::Attach, "http://h:1").error(Fault::new(ErrorKind::Http, "gone"));
        assert_eq!(plain.to_string(), "attach failed at http://h:1: gone");
        assert_eq!(plain.with_function("g").to_string(), "attach of 'g' failed at http://h:1: gone");
    }
}
