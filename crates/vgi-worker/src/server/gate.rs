//! What is checked before a call is answered: that it goes where it says, and that both sides speak the same version.

use vgi_wire::meta;
use vgi_wire::server::Call;

use crate::server::fault::Fault;
use crate::server::protocol::{Mismatch, Protocol};
use crate::server::route::{Place, Route};

/// Refuses a call whose metadata do not fit its URL or this server.
pub(super) fn check(place: Place, call: &Call) -> Result<(), Fault> {
    if let Some(method) = place.route.method().filter(|method| *method != call.method) {
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
    if place.route == Route::ListProtocols {
        // a client asks it to learn the version
        return Ok(());
    }
    let name = place.protocol.name;
    if let Some(other) = call.protocol.as_deref().filter(|protocol| *protocol != name) {
        return Err(Fault::bad_request(
            "ProtocolError",
            format!("the request names the protocol '{other}', but its URL names '{name}'"),
        ));
    }
    check_version(place.protocol, call.protocol_version.as_deref())
}

fn check_version(protocol: &Protocol, client: Option<&str>) -> Result<(), Fault> {
    let Err(mismatch) = protocol.accepts(client) else { return Ok(()) };
    let direction = match mismatch {
        Mismatch::ClientTooOld => "client is too old; upgrade the client",
        Mismatch::ClientTooNew => "worker is too old; upgrade the worker, or use an older client",
        Mismatch::Undeclared => "the client declares no version of the form MAJOR.MINOR.PATCH",
    };
    let message = format!(
        "VGI client/worker protocol_version mismatch for protocol '{}'.\n  Client: {}\n  Server: {}\n  Direction: {direction}.",
        protocol.name,
        client.unwrap_or("<not declared>"),
        protocol.version
    );
    Err(Fault::bad_request("ProtocolVersionError", message)
        .kind("protocol_version_mismatch")
        .code("FAILED_PRECONDITION"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mismatch_tells_both_versions_and_who_is_older() {
        let v2 = Protocol::named("vgi.v2").unwrap();
        assert!(check_version(v2, Some("2.0.0")).is_ok());
        for (version, direction) in [
            (Some("1.3.0"), "client is too old"),
            (Some("2.3.0"), "worker is too old"),
            (Some("2.2"), "declares no version"),
            (None, "declares no version"),
        ] {
            let fault = check_version(v2, version).unwrap_err();
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
