//! First contact (protocol file 01 §3): is it a VGI server, under which path, which protocol and version does it speak.

use http::StatusCode;
use vgi_wire::WireError;
use vgi_wire::generation::{Dialect, GENERATIONS, UrlForm};
use vgi_wire::methods::{
    DESCRIBE_PATH, LIST_PROTOCOLS_PATH, describe_body, describe_version, list_protocols_body, protocol_entries,
};

use crate::error::{Error, ErrorKind, Fault, Phase};
use crate::exchange::Reply;
use crate::interrupt::Interrupt;
use crate::location::Location;
use crate::options::Options;
use crate::peer::Peer;
use crate::verdict;

/// Prefix under which some servers stand when nothing else is configured.
const USUAL_PREFIX: &str = "vgi";

/// Finds the server and the dialect to speak to it.
pub(crate) fn contact(
    location: &Location,
    options: &Options,
    interrupt: &dyn Interrupt,
) -> Result<(Peer, Dialect), Error> {
    let scope = crate::error::Scope::new(Phase::Connect, location.as_str());
    let typed = Peer::new(location.clone(), options).map_err(|fault| scope.error(fault))?;
    let mut candidates = vec![typed.clone()];
    if location.is_bare() {
        candidates.push(typed.at(location.below(USUAL_PREFIX)));
    }
    let mut seen = None;
    for peer in &candidates {
        match health(peer, interrupt)? {
            Health::Routed(protocol) => return Ok((peer.clone(), routed(peer, &protocol, interrupt)?)),
            Health::Flat => {
                let dialect = flat(peer, interrupt)?.map_or_else(|| select(peer, None, None), Ok)?;
                return Ok((peer.clone(), dialect));
            }
            Health::Foreign(what) => seen = seen.or(Some(what)),
        }
    }
    // a server older than the health document still answers its introspection
    for peer in &candidates {
        if let Some(dialect) = flat(peer, interrupt)? {
            return Ok((peer.clone(), dialect));
        }
    }
    let what = seen.unwrap_or_default();
    let message = format!("this is not a VGI server: its /health is {what} instead of a VGI health document");
    Err(scope.error(Fault::new(ErrorKind::NotVgi, message)))
}

enum Health {
    /// The name of the protocol.
    Routed(String),
    Flat,
    /// Not a health document, but this.
    Foreign(String),
}

fn health(peer: &Peer, interrupt: &dyn Interrupt) -> Result<Health, Error> {
    let scope = peer.scope(Phase::Connect);
    let get = |authorized| peer.get("health", authorized, interrupt).map_err(|fault| scope.error(fault));
    let mut reply = get(false)?;
    // the document is public, but a gateway before the server may not know that
    if reply.status == StatusCode::UNAUTHORIZED && peer.options.bearer_token.is_some() {
        reply = get(true)?;
    }
    read_health(&reply).map_err(|fault| scope.error(fault.with_status(reply.status)))
}

fn read_health(reply: &Reply) -> Result<Health, Fault> {
    let Reply { url, status, headers, body, attempts, .. } = reply;
    if status.is_redirection() {
        return Err(verdict::redirected(url, headers));
    }
    match *status {
        StatusCode::OK => {}
        StatusCode::UNAUTHORIZED => {
            let reason = verdict::reason(headers, body);
            return Err(Fault::new(ErrorKind::Unauthorized, format!("the server refuses the credentials: {reason}")));
        }
        status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            return Err(Fault::new(
                ErrorKind::Http,
                format!("HTTP {status} for {}{}{}", url.path(), verdict::after(*attempts), verdict::quote(body)),
            ));
        }
        status => return Ok(Health::Foreign(format!("HTTP {status}"))),
    }
    let Ok(serde_json::Value::Object(document)) = serde_json::from_slice(body) else {
        let kind =
            headers.get(http::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("something else");
        return Ok(Health::Foreign(kind.escape_debug().to_string()));
    };
    let protocol = document.get("protocol").and_then(serde_json::Value::as_str).unwrap_or_default();
    Ok(if protocol.starts_with("vgi.v") { Health::Routed(protocol.to_owned()) } else { Health::Flat })
}

fn select(peer: &Peer, protocol: Option<&str>, version: Option<&str>) -> Result<Dialect, Error> {
    Dialect::select(protocol, version).map_err(|error| peer.scope(Phase::Connect).error(error))
}

fn routed(peer: &Peer, protocol: &str, interrupt: &dyn Interrupt) -> Result<Dialect, Error> {
    if !protocol.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.') {
        let error = WireError::Protocol(format!("the protocol's name '{}' is not one", protocol.escape_debug()));
        return Err(peer.scope(Phase::Connect).error(error));
    }
    let scope = peer.scope(Phase::Connect);
    let body = list_protocols_body().map_err(|error| scope.error(error))?;
    let version = match peer.call(&scope, LIST_PROTOCOLS_PATH, body, interrupt) {
        Ok(reply) => {
            let entries = protocol_entries(&reply).map_err(|error| scope.error(error))?;
            entries.into_iter().find(|entry| entry.protocol == protocol).map(|entry| entry.version)
        }
        Err(error) if says_nothing(&error) => None,
        Err(error) => return Err(error),
    };
    // without introspection the newest layout is tried; the server's refusal tells its version
    let version = version.or_else(|| newest(protocol));
    select(peer, Some(protocol), version.as_deref())
}

/// Whether a failed introspection only means that the server has none.
fn says_nothing(error: &Error) -> bool {
    error.kind() == ErrorKind::Remote
        || (error.kind() == ErrorKind::Http
            && error.status().is_some_and(|status| matches!(status, 400..=428 | 430..500)))
}

fn newest(protocol: &str) -> Option<String> {
    let rows = GENERATIONS.iter().filter(|row| row.url == UrlForm::Routed && format!("vgi.v{}", row.major) == protocol);
    rows.max_by_key(|row| row.minor).map(|row| format!("{}.{}.0", row.major, row.minor))
}

/// The dialect of a flat server, as its introspection tells; `None` when what answers is no VGI server.
fn flat(peer: &Peer, interrupt: &dyn Interrupt) -> Result<Option<Dialect>, Error> {
    let scope = peer.scope(Phase::Connect);
    let body = describe_body().map_err(|error| scope.error(error))?;
    match peer.call(&scope, DESCRIBE_PATH, body, interrupt) {
        Ok(reply) => select(peer, None, describe_version(&reply).as_deref()).map(Some),
        Err(error) if error.remote().is_some_and(|remote| remote.kind.as_deref() == Some("protocol_not_supported")) => {
            // a routed server takes the first part of a wrong prefix for a protocol
            let message = "there is a VGI server at this host, but not under this path; give its base URL";
            Err(scope.error(Fault::new(ErrorKind::NotVgi, message)))
        }
        // introspection may be switched off; that the refusal is Arrow says enough
        Err(error) if error.kind() == ErrorKind::Remote => select(peer, None, None).map(Some),
        Err(error) if error.status().is_some() && error.kind() != ErrorKind::Unauthorized => Ok(None),
        Err(error) => Err(error),
    }
}

/// The version that a server names when it refuses ours.
pub(crate) fn servers_version(error: &Error) -> Option<String> {
    let remote = error.remote().filter(|remote| refuses_version(remote))?;
    let version = remote.message.lines().find_map(|line| line.trim().strip_prefix("Server:"))?.trim();
    (!version.is_empty()).then(|| version.to_owned())
}

pub(crate) fn refuses_version(remote: &vgi_wire::RemoteError) -> bool {
    remote.kind.as_deref() == Some("protocol_version_mismatch")
        || remote.exception_type.as_deref() == Some("ProtocolVersionError")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_layout_of_a_protocol_is_known() {
        assert_eq!(newest("vgi.v2").as_deref(), Some("2.2.0"));
        assert_eq!(newest("vgi.v3").as_deref(), Some("3.0.0"));
        assert_eq!(newest("vgi.v9"), None);
    }

    #[test]
    fn a_refusal_tells_the_servers_version() {
        let remote = vgi_wire::RemoteError {
            kind: Some("protocol_version_mismatch".to_owned()),
            message:
                "mismatch for protocol 'vgi.v2'.\n  Client: 1.3.0\n  Server: 2.2.0\n  Direction: client is too old"
                    .to_owned(),
            ..vgi_wire::RemoteError::default()
        };
        let scope = crate::error::Scope::new(Phase::Attach, "http://h");
        assert_eq!(servers_version(&scope.error(Fault::remote(remote.clone()))).as_deref(), Some("2.2.0"));
        let other = vgi_wire::RemoteError { kind: None, ..remote };
        assert_eq!(servers_version(&scope.error(Fault::remote(other))), None);
    }
}
