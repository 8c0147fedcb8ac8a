//! What a caller may set.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use vgi_wire::ipc::Segments;
use vgi_wire::reply::LogRecord;

use crate::compression::Compression;
use crate::error::{ErrorKind, Fault, Phase};

/// Receives what a server's code logs. Called on the thread that waits for the reply.
pub trait EventSink: Send + Sync {
    /// A log line; `function` is empty before a function is known.
    fn log(&self, phase: Phase, function: &str, record: &LogRecord);

    /// A request that was answered.
    fn exchanged(&self, exchange: &Exchange<'_>) {
        let _ = exchange;
    }

    /// Whether [`exchanged`](Self::exchanged) wants to see the request's body, which must be kept for it until the reply is there.
    fn wants_bodies(&self) -> bool {
        false
    }
}

/// One answered request.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a> {
    /// The step that it belongs to.
    pub phase: Phase,
    /// Empty before a function is known.
    pub function: &'a str,
    /// The last part of the URL's path: the protocol's name of the method.
    pub method: &'a str,
    /// HTTP status.
    pub status: u16,
    /// Bytes of the request's body, before compression.
    pub sent_bytes: usize,
    /// The request's body, for those who [want it](EventSink::wants_bodies).
    pub request: Option<&'a Segments>,
    /// Bytes of the reply's body, as received.
    pub received_bytes: usize,
    /// The reply's body, decompressed, when it is Arrow.
    pub reply: Option<&'a Bytes>,
    /// From the hand-over to the network threads to the last byte of the reply.
    pub elapsed: Duration,
}

/// An HTTP proxy.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Proxy {
    /// `host:port`, or a URL.
    pub address: String,
    /// For a proxy that asks.
    pub username: Option<String>,
    /// For a proxy that asks.
    pub password: Option<String>,
}

impl Proxy {
    pub(crate) fn url(&self) -> Option<reqwest::Url> {
        let address = self.address.trim();
        let url = if address.contains("://") { address.to_owned() } else { format!("http://{address}") };
        let url = reqwest::Url::parse(&url).ok()?;
        (matches!(url.scheme(), "http" | "https") && url.has_host()).then_some(url)
    }

    pub(crate) fn is_https(&self) -> bool {
        self.url().is_some_and(|url| url.scheme() == "https")
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // an address may hold a password as well
        let host = self.url().and_then(|url| url.host_str().map(str::to_owned));
        f.debug_struct("Proxy").field("host", &host).finish_non_exhaustive()
    }
}

/// Clocks, limits and credentials of one attachment.
#[derive(Clone)]
pub struct Options {
    /// To resolve, connect and agree on TLS: 10 seconds.
    pub connect_timeout: Duration,
    /// From the last byte of the request to the first of the reply: the time that the server may compute. Turns of a stream
    /// that bring no rows share it: 300 seconds.
    pub first_byte_timeout: Duration,
    /// Between two pieces of a body, either way: 60 seconds.
    pub no_progress_timeout: Duration,
    /// For a whole request: none, since a slow transfer that moves is not an error.
    pub total_timeout: Option<Duration>,
    /// How often a request is repeated that may be: after a refused connection, and where the call changes nothing on the server also
    /// after HTTP 429, 502, 503 and 504. 3; 0 for never.
    pub retries: u32,
    /// For the pauses between the attempts of one request together; `Retry-After` beyond it is not waited for. 30 seconds.
    pub retry_budget: Duration,
    /// Whether requests are compressed: [`Compression::Auto`].
    pub compression: Compression,
    /// The proxy for servers that are not on this machine; `None` for that of the environment, if any. `NO_PROXY` holds for both. None.
    pub proxy: Option<Proxy>,
    /// Whether HTTP/2 is spoken where a server offers it over TLS: no.
    pub http2: bool,
    /// Certificates, in PEM form, that are trusted beside those of the system: none.
    pub ca_cert_file: Option<PathBuf>,
    /// Whether certificates are checked at all: yes.
    pub tls_verify: bool,
    /// Bytes of one reply, as received and as decoded: 2 GiB.
    pub max_response_bytes: u64,
    /// Sent as `Authorization: Bearer …`.
    pub bearer_token: Option<String>,
    /// Sent with every request.
    pub headers: Vec<(String, String)>,
    /// Receives log lines.
    pub events: Option<Arc<dyn EventSink>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            first_byte_timeout: Duration::from_secs(300),
            no_progress_timeout: Duration::from_secs(60),
            total_timeout: None,
            retries: 3,
            retry_budget: Duration::from_secs(30),
            compression: Compression::Auto,
            proxy: None,
            http2: false,
            ca_cert_file: None,
            tls_verify: true,
            max_response_bytes: 2 << 30,
            bearer_token: None,
            headers: Vec::new(),
            events: None,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // values of headers are credentials as often as not
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("Options")
            .field("connect_timeout", &self.connect_timeout)
            .field("first_byte_timeout", &self.first_byte_timeout)
            .field("no_progress_timeout", &self.no_progress_timeout)
            .field("total_timeout", &self.total_timeout)
            .field("retries", &self.retries)
            .field("retry_budget", &self.retry_budget)
            .field("compression", &self.compression)
            .field("proxy", &self.proxy)
            .field("http2", &self.http2)
            .field("ca_cert_file", &self.ca_cert_file)
            .field("tls_verify", &self.tls_verify)
            .field("max_response_bytes", &self.max_response_bytes)
            .field("bearer_token", &self.bearer_token.as_ref().map(|_| "…"))
            .field("headers", &names)
            .finish_non_exhaustive()
    }
}

/// Headers that describe the request itself; a caller's value would break it.
const RESERVED: [HeaderName; 6] = [
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::HOST,
];

impl Options {
    /// The caller's headers, without the bearer token.
    pub(crate) fn header_map(&self) -> Result<HeaderMap, Fault> {
        let mut map = HeaderMap::new();
        for (name, value) in &self.headers {
            let refused = |why: &str| {
                Fault::new(ErrorKind::InvalidLocation, format!("the header '{}' {why}", name.escape_debug()))
            };
            let key =
                HeaderName::try_from(name.as_str()).map_err(|_| refused("has a name that HTTP does not allow"))?;
            if RESERVED.contains(&key) {
                return Err(refused("is set by the client and cannot be given"));
            }
            map.append(key, sensitive(value).ok_or_else(|| refused("has a value that HTTP does not allow"))?);
        }
        Ok(map)
    }

    /// The value of `Authorization`.
    pub(crate) fn authorization(&self) -> Result<Option<HeaderValue>, Fault> {
        let Some(token) = &self.bearer_token else { return Ok(None) };
        let value = sensitive(&format!("Bearer {token}"));
        value.map(Some).ok_or_else(|| {
            Fault::new(ErrorKind::InvalidLocation, "the bearer token has characters that HTTP does not allow")
        })
    }
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_show() {
        let options = Options {
            bearer_token: Some("s3cret".to_owned()),
            headers: vec![("X-Key".to_owned(), "s3cret".to_owned())],
            proxy: Some(Proxy {
                address: "http://s3cret:s3cret@h:1".to_owned(),
                username: Some("s3cret".to_owned()),
                password: Some("s3cret".to_owned()),
            }),
            ..Options::default()
        };
        assert!(!format!("{options:?}").contains("s3cret"));
        assert!(!format!("{:?} {:?}", options.header_map(), options.authorization()).contains("s3cret"));
    }

    #[test]
    fn unusable_headers_are_refused_by_name() {
        for (name, value) in [("Content-Length", "3"), ("a b", "c"), ("X-A", "b\nc")] {
            let options = Options { headers: vec![(name.to_owned(), value.to_owned())], ..Options::default() };
            let fault = options.header_map().unwrap_err();
            assert!(fault.message.contains(&*name.escape_debug().to_string()), "{}", fault.message);
        }
    }
}
