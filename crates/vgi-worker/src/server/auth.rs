//! Who asks: bearer tokens, and the principals that they stand for.

use std::fmt;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Response};
use serde_json::json;
use subtle::{Choice, ConditionallySelectable, ConstantTimeEq};

use axum::body::Body;

/// The principal of a server that asks for no token.
const ANYBODY: &str = "";

/// One client that may use the server.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// Whom the token stands for. Attachments, transactions, executions and streams of one principal are closed to all others.
    pub principal: String,
    /// The token.
    pub token: String,
}

/// The token is no text for logs.
impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential").field("principal", &self.principal).finish_non_exhaustive()
    }
}

/// Why a request is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Missing,
    Invalid,
}

/// The principal of a request. How long this takes tells nothing about how much of a token was right.
pub(super) fn principal<'a>(credentials: &'a [Credential], headers: &HeaderMap) -> Result<&'a str, Refusal> {
    if credentials.is_empty() {
        return Ok(ANYBODY);
    }
    let given = headers.get(AUTHORIZATION).ok_or(Refusal::Missing)?;
    let given = given.to_str().map_err(|_| Refusal::Invalid)?;
    let (scheme, token) = given.split_once(' ').ok_or(Refusal::Invalid)?;
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Refusal::Invalid);
    }
    let mut found = u32::MAX;
    for (place, credential) in (0_u32..).zip(credentials) {
        let same: Choice = credential.token.as_bytes().ct_eq(token.trim().as_bytes());
        found.conditional_assign(&place, same);
    }
    let place = usize::try_from(found).map_err(|_| Refusal::Invalid)?;
    credentials.get(place).map(|credential| credential.principal.as_str()).ok_or(Refusal::Invalid)
}

/// The reply to a request that is not let in, in the protocol's standard form.
pub(super) fn refuse(refusal: Refusal) -> Response<Body> {
    let (reason, detail) = match refusal {
        Refusal::Missing => ("missing_token", "this worker asks for a bearer token"),
        Refusal::Invalid => ("invalid_token", "the bearer token is not one of this worker's"),
    };
    let body = json!({"error": "unauthorized", "reason": reason, "detail": detail});
    let mut response = super::http_service::json_response(http::StatusCode::UNAUTHORIZED, &body);
    let headers = response.headers_mut();
    headers.insert("vgi-auth-reason", HeaderValue::from_static(reason));
    headers.insert(http::header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    headers.insert(http::header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_token_of_the_list_is_let_in() {
        let credential = |principal: &str, token: &str| Credential { principal: principal.into(), token: token.into() };
        let credentials = [credential("ann", "secret-a"), credential("bob", "secret-b")];
        let ask = |value: &str| {
            let headers = HeaderMap::from_iter([(AUTHORIZATION, HeaderValue::from_str(value).unwrap())]);
            principal(&credentials, &headers).map(str::to_owned)
        };
        assert_eq!(ask("Bearer secret-a").unwrap(), "ann");
        assert_eq!(ask("bearer secret-b").unwrap(), "bob");
        for wrong in ["Bearer secret-c", "Bearer secret-", "Bearer secret-aa", "Bearer ", "Bearer", "Basic secret-a"] {
            assert_eq!(ask(wrong), Err(Refusal::Invalid), "{wrong}");
        }
        assert_eq!(principal(&credentials, &HeaderMap::new()), Err(Refusal::Missing));
        assert_eq!(principal(&[], &HeaderMap::new()), Ok(""));
        assert!(!format!("{credentials:?}").contains("secret"));
    }
}
