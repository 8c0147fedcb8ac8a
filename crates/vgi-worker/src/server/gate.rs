//! What is checked before a call is answered: that it goes where it says, and that both sides speak the same version.

use vgi_wire::meta;
use vgi_wire::server::Call;

use crate::server::fault::Fault;
use crate::server::route::Route;
use crate::server::{PROTOCOL, PROTOCOL_VERSION};

/// Refuses a call whose metadata do not fit its URL or this server.
pub(super) fn check(route: Route, call: &Call) -> Result<(), Fault> {
    if let Some(method) = route.method().filter(|method| *method != call.method) {
        let message = format!("the request names the method '{}', but its URL names '{method}'", call.method);
        return Err(Fault::bad_request("ProtocolError", message));
    }
    let framing = call.request_version.as_deref();
    if framing != Some(meta::REQUEST_VERSION_VALUE) {
        let message = format!(
            "request version {} is not supported (supported: {})",
            framing.unwrap_or("<none>"),
            meta::REQUEST_VERSION_VALUE
        );
        return Err(Fault::bad_request("VersionError", message));
    }
    if route == Route::ListProtocols {
        // a client asks it to learn the version
        return Ok(());
    }
    if let Some(other) = call.protocol.as_deref().filter(|protocol| *protocol != PROTOCOL) {
        return Err(Fault::bad_request(
            "ProtocolError",
            format!("the request names the protocol '{other}', but its URL names '{PROTOCOL}'"),
        ));
    }
    check_version(call.protocol_version.as_deref())
}

fn check_version(client: Option<&str>) -> Result<(), Fault> {
    let server = parse(PROTOCOL_VERSION);
    let version = client.and_then(parse);
    if version.is_some() && version == server {
        return Ok(());
    }
    let direction = match (version, server) {
        (Some(client), Some(server)) if client < server => "client is too old; upgrade the client",
        (Some(_), _) => "worker is too old; upgrade the worker, or use an older client",
        (None, _) => "the client declares no version of the form MAJOR.MINOR.PATCH",
    };
    let message = format!(
        "VGI client/worker protocol_version mismatch for protocol '{PROTOCOL}'.\n  Client: {}\n  Server: {PROTOCOL_VERSION}\n  Direction: {direction}.",
        client.unwrap_or("<not declared>")
    );
    Err(Fault::bad_request("ProtocolVersionError", message)
        .kind("protocol_version_mismatch")
        .code("FAILED_PRECONDITION"))
}

/// Major and minor version; the patch must be there but does not matter.
fn parse(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().ok());
    let (major, minor, _patch) = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some((major, minor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_major_and_minor_must_agree() {
        assert!(check_version(Some("2.2.0")).is_ok() && check_version(Some("2.2.7")).is_ok());
        for (version, direction) in [
            (Some("1.3.0"), "client is too old"),
            (Some("2.3.0"), "worker is too old"),
            (Some("2.2"), "declares no version"),
            (None, "declares no version"),
        ] {
            let fault = check_version(version).unwrap_err();
            assert_eq!(fault.status, 400);
            assert_eq!(fault.error.kind.as_deref(), Some("protocol_version_mismatch"));
            assert!(
                fault.error.message.contains("\n  Server: 2.2.0\n") && fault.error.message.contains(direction),
                "{}",
                fault.error.message
            );
        }
    }
}
