//! What a path means.

use vgi_wire::methods::Method;

use crate::server::fault::Fault;
use crate::server::protocol::{PROTOCOLS, Protocol, names};

const REFLECTION: &str = "vgi_rpc.Reflection.v1";

/// A call over POST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// `…/{method}`
    Unary(Method),
    /// `…/init/init`
    Open,
    /// `…/init/exchange`
    Turn,
    /// `vgi_rpc.Reflection.v1/list_protocols`
    ListProtocols,
}

/// A route of a protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) protocol: &'static Protocol,
    pub(super) route: Route,
}

impl Route {
    /// The method that the request's metadata must name; turns need none.
    pub(super) fn method(self) -> Option<&'static str> {
        match self {
            Self::Unary(method) => Some(method.name()),
            Self::Open => Some(Method::Init.name()),
            Self::ListProtocols => Some("list_protocols"),
            Self::Turn => None,
        }
    }
}

impl Place {
    /// The place of a path; `None` when the path has not the form of a call.
    pub(super) fn of(path: &str) -> Option<Result<Self, Fault>> {
        let mut parts = path.strip_prefix('/')?.split('/');
        let (protocol, method, action) = (parts.next()?, parts.next()?, parts.next());
        if parts.next().is_some() || method.is_empty() {
            return None;
        }
        if protocol == REFLECTION {
            // reflection tells of all protocols, and checks the version of none
            let [protocol, ..] = &PROTOCOLS;
            return Some(match (method, action) {
                ("list_protocols", None) => Ok(Self { protocol, route: Route::ListProtocols }),
                (name, _) => Err(unknown_method(REFLECTION, name)),
            });
        }
        let Some(protocol) = Protocol::named(protocol) else { return Some(Err(unknown_protocol(protocol))) };
        let route = match (method, action) {
            ("init", Some("init")) => Some(Route::Open),
            ("init", Some("exchange")) => Some(Route::Turn),
            (name, None) if name != "init" => Method::from_name(name).map(Route::Unary),
            _ => None,
        };
        Some(route.map(|route| Self { protocol, route }).ok_or_else(|| unknown_method(protocol.name, method)))
    }
}

fn unknown_method(protocol: &str, name: &str) -> Fault {
    let message = format!("unknown method '{name}' of protocol '{protocol}'");
    Fault::new(http::StatusCode::NOT_FOUND, "MethodNotFoundError", message)
        .kind("method_not_implemented")
        .code("UNIMPLEMENTED")
}

fn unknown_protocol(name: &str) -> Fault {
    let message = format!("this worker does not serve protocol '{name}' (it serves: {})", names());
    Fault::new(http::StatusCode::NOT_FOUND, "ProtocolNotSupportedError", message)
        .kind("protocol_not_supported")
        .code("UNIMPLEMENTED")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_routes() {
        let route = |path: &str| Place::of(path).unwrap().unwrap().route;
        assert_eq!(route("/vgi.v2/bind"), Route::Unary(Method::Bind));
        assert_eq!(route("/vgi.v2/init/init"), Route::Open);
        assert_eq!(route("/vgi.v2/init/exchange"), Route::Turn);
        assert_eq!(route("/vgi_rpc.Reflection.v1/list_protocols"), Route::ListProtocols);
        assert_eq!(Place::of("/vgi.v3/bind").unwrap().unwrap().protocol.name, "vgi.v3");
        let kind = |path: &str| Place::of(path).unwrap().unwrap_err().error.kind.unwrap();
        assert_eq!(kind("/vgi.v2/no_such_method"), "method_not_implemented");
        assert_eq!(kind("/vgi.v2/init"), "method_not_implemented");
        assert_eq!(kind("/vgi.v2/bind/init"), "method_not_implemented");
        assert_eq!(kind("/vgi.v99/bind"), "protocol_not_supported");
        assert!(Place::of("/bind").is_none() && Place::of("/").is_none() && Place::of("/a/b/c/d").is_none());
    }
}
