//! What an HTTP reply means (protocol file 01 §8.2, §11): Arrow first, whatever the status, then the status.

use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use vgi_wire::reply;

use crate::encoding;
use crate::error::{ErrorKind, Fault};
use crate::exchange::Reply;

/// Content type of every body of the protocol.
pub(crate) const ARROW: &str = "application/vnd.apache.arrow.stream";
/// How much of a foreign body goes into a message.
const QUOTE: usize = 1024;

/// The Arrow body of a reply.
pub(crate) fn arrow_body(reply: Reply, max: u64) -> Result<Bytes, Fault> {
    let Reply { url, status, headers, body, attempts, .. } = reply;
    if status.is_redirection() {
        return Err(redirected(&url, &headers).with_status(status));
    }
    let body = match encoding::decode(&headers, body, max) {
        Ok(body) => body,
        Err(fault) if status.is_success() => return Err(fault.with_status(status)),
        Err(_) => Bytes::new(),
    };
    let arrow = is_arrow(&headers);
    if arrow && status.is_success() {
        return Ok(body);
    }
    let remote = if arrow { reply::find_error(body.clone()) } else { None };
    if status == StatusCode::UNAUTHORIZED {
        let said = remote.map_or_else(|| reason(&headers, &body), |error| error.to_string());
        return Err(Fault::new(ErrorKind::Unauthorized, format!("the server refuses the credentials: {said}"))
            .with_status(status));
    }
    Err(match remote {
        Some(error) => Fault::remote(error),
        None if status.is_success() => {
            let kind = text(&headers, header::CONTENT_TYPE.as_str()).unwrap_or("no content type").escape_debug();
            Fault::new(ErrorKind::Protocol, format!("the reply is not an Arrow stream but {kind}{}", quote(&body)))
        }
        None if status == StatusCode::PAYLOAD_TOO_LARGE => {
            Fault::new(ErrorKind::Limit, format!("the request is larger than the server allows (HTTP {status})"))
        }
        None => {
            // the text of an Arrow body is no text
            let said = if arrow { String::new() } else { quote(&body) };
            Fault::new(ErrorKind::Http, format!("HTTP {status} for {}{}{said}", url.path(), after(attempts)))
        }
    }
    .with_status(status))
}

pub(crate) fn is_arrow(headers: &HeaderMap) -> bool {
    let kind = text(headers, header::CONTENT_TYPE.as_str()).and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case(ARROW))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// A redirect is not followed: it may lead to another server, which the user should name himself.
pub(crate) fn redirected(url: &reqwest::Url, headers: &HeaderMap) -> Fault {
    let target = text(headers, header::LOCATION.as_str()).and_then(|target| url.join(target).ok()).map(|mut target| {
        // what stands there may be a credential
        target.set_query(None);
        target.set_fragment(None);
        if target.set_username("").is_err() || target.set_password(None).is_err() {
            return "another place".to_owned();
        }
        target.to_string()
    });
    let target = target.unwrap_or_else(|| "another place".to_owned());
    Fault::new(
        ErrorKind::Http,
        format!("the server redirects to {target}, which is not followed; give the final URL as the location"),
    )
}

/// Why the server answers 401.
pub(crate) fn reason(headers: &HeaderMap, body: &[u8]) -> String {
    let json = serde_json::from_slice::<serde_json::Value>(body).unwrap_or_default();
    let member = |name: &str| json.get(name).and_then(serde_json::Value::as_str);
    let reason = text(headers, "vgi-auth-reason").or_else(|| member("reason"));
    let mut said = match (reason, member("detail")) {
        (Some(reason), Some(detail)) => format!("{reason}: {detail}"),
        (Some(one), None) | (None, Some(one)) => one.to_owned(),
        (None, None) => format!("HTTP 401{}", quote(body)),
    };
    if let Some(challenge) = text(headers, header::WWW_AUTHENTICATE.as_str()).and_then(metadata_url) {
        said.push_str(" (see ");
        said.push_str(challenge);
        said.push(')');
    }
    said
}

/// Where a server describes how to get a token.
fn metadata_url(challenge: &str) -> Option<&str> {
    challenge.split_once("resource_metadata=\"")?.1.split_once('"').map(|(url, _)| url)
}

/// How often a request was sent, for a message.
pub(crate) fn after(attempts: u32) -> String {
    if attempts > 1 { format!(" after {attempts} attempts") } else { String::new() }
}

/// The beginning of a body that is not of the protocol, for a message.
pub(crate) fn quote(body: &[u8]) -> String {
    let start = body.get(..QUOTE).unwrap_or(body);
    let words = String::from_utf8_lossy(start);
    let words: String = words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    if words.is_empty() { String::new() } else { format!(": {words}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(status: u16, pairs: &[(&'static str, &'static str)], body: &'static [u8]) -> Reply {
        Reply {
            url: "http://h/x/bind".parse().unwrap(),
            status: StatusCode::from_u16(status).unwrap(),
            headers: pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect(),
            body: Bytes::from_static(body),
            elapsed: std::time::Duration::ZERO,
            attempts: 1,
        }
    }

    #[test]
    fn the_status_is_named_with_the_beginning_of_the_text() {
        let fault = arrow_body(reply(502, &[("content-type", "text/html")], b"<h1>\n bad  gateway</h1>\0"), 10_000)
            .unwrap_err();
        assert_eq!(fault.message, "HTTP 502 Bad Gateway for /x/bind: <h1> bad gateway</h1>");
        let long = arrow_body(reply(500, &[], &[b'a'; 5000]), 10_000).unwrap_err();
        assert!(long.message.len() < 1200);
    }

    #[test]
    fn refusals_carry_the_reason() {
        let json = br#"{"error":"unauthorized","reason":"expired_credential","detail":"token ended"}"#;
        let fault =
            arrow_body(reply(401, &[("www-authenticate", "Bearer resource_metadata=\"http://m\"")], json), 10_000)
                .unwrap_err();
        assert_eq!(fault.kind, ErrorKind::Unauthorized);
        assert!(fault.message.ends_with("expired_credential: token ended (see http://m)"), "{}", fault.message);
        assert!(arrow_body(reply(401, &[], b"go away"), 100).unwrap_err().message.ends_with("HTTP 401: go away"));
    }

    #[test]
    fn a_redirect_names_its_target_without_credentials() {
        let fault =
            arrow_body(reply(302, &[("location", "https://u:p@other/vgi?token=s3cret#f")], b""), 100).unwrap_err();
        assert!(fault.message.contains("https://other/vgi,"), "{}", fault.message);
        let relative = arrow_body(reply(308, &[("location", "/y")], b""), 100).unwrap_err();
        assert!(relative.message.contains("http://h/y"), "{}", relative.message);
    }
}
