//! What a path means.

use vgi_wire::methods::Method;

use crate::server::PROTOCOL;
use crate::server::fault::Fault;

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

    /// The route of a path; `None` when the path has not the form of a call.
    pub(super) fn of(path: &str) -> Option<Result<Self, Fault>> {
        let mut parts = path.strip_prefix('/')?.split('/');
        let (protocol, method, action) = (parts.next()?, parts.next()?, parts.next());
        if parts.next().is_some() || method.is_empty() {
            return None;
        }
        Some(match (protocol, method, action) {
            (REFLECTION, "list_protocols", None) => Ok(Self::ListProtocols),
            (PROTOCOL, "init", Some("init")) => Ok(Self::Open),
            (PROTOCOL, "init", Some("exchange")) => Ok(Self::Turn),
            (PROTOCOL, name, None) if name != "init" => {
                Method::from_name(name).map(Self::Unary).ok_or_else(|| unknown_method(name))
            }
            (PROTOCOL | REFLECTION, name, _) => Err(unknown_method(name)),
            (other, _, _) => Err(unknown_protocol(other)),
        })
    }
}

fn unknown_method(name: &str) -> Fault {
    let message = format!("unknown method '{name}' of protocol '{PROTOCOL}'");
    Fault::new(http::StatusCode::NOT_FOUND, "MethodNotFoundError", message)
        .kind("method_not_implemented")
        .code("UNIMPLEMENTED")
}

fn unknown_protocol(name: &str) -> Fault {
    let message = format!("this worker does not serve protocol '{name}' (it serves: {PROTOCOL})");
    Fault::new(http::StatusCode::NOT_FOUND, "ProtocolNotSupportedError", message)
        .kind("protocol_not_supported")
        .code("UNIMPLEMENTED")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_routes() {
        let route = |path: &str| Route::of(path).unwrap().unwrap();
        assert_eq!(route("/vgi.v2/bind"), Route::Unary(Method::Bind));
        assert_eq!(route("/vgi.v2/init/init"), Route::Open);
        assert_eq!(route("/vgi.v2/init/exchange"), Route::Turn);
        assert_eq!(route("/vgi_rpc.Reflection.v1/list_protocols"), Route::ListProtocols);
        let kind = |path: &str| Route::of(path).unwrap().unwrap_err().error.kind.unwrap();
        assert_eq!(kind("/vgi.v2/no_such_method"), "method_not_implemented");
        assert_eq!(kind("/vgi.v2/init"), "method_not_implemented");
        assert_eq!(kind("/vgi.v2/bind/init"), "method_not_implemented");
        assert_eq!(kind("/vgi.v99/bind"), "protocol_not_supported");
        assert!(Route::of("/bind").is_none() && Route::of("/").is_none() && Route::of("/a/b/c/d").is_none());
    }
}
