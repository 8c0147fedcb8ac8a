//! Fetches batches that a server stored outside of its reply.

use std::fmt::Write;

use bytes::Bytes;
use http::HeaderMap;
use reqwest::Url;
use sha2::{Digest, Sha256};
use vgi_wire::external::{self, Pointer};
use vgi_wire::ipc::{self, Stream};

use crate::client::ClientKey;
use crate::clocks::Clocks;
use crate::encoding;
use crate::error::{Error, ErrorKind, Fault, Scope};
use crate::exchange::Request;
use crate::flight::Flight;
use crate::interrupt::Interrupt;
use crate::location::is_loopback;
use crate::peer::Peer;
use crate::retry::{Repeat, Retries};

impl Peer {
    /// The streams of a body, with every pointer replaced by what it points to.
    pub(crate) fn streams(&self, scope: &Scope, body: Bytes, interrupt: &dyn Interrupt) -> Result<Vec<Stream>, Error> {
        let streams = ipc::decode_streams(body).map_err(|error| scope.error(error))?;
        let pointers = external::pointers(&streams);
        if pointers.is_empty() {
            return Ok(streams);
        }
        let objects: Result<Vec<_>, _> = pointers.iter().map(|pointer| self.fetch(pointer, interrupt)).collect();
        let objects = objects.map_err(|fault| scope.error(fault))?;
        external::resolve(streams, objects).map_err(|error| scope.error(error))
    }

    /// Fetched without the call's credentials: the object may lie with somebody else.
    fn fetch(&self, pointer: &Pointer, interrupt: &dyn Interrupt) -> Result<Bytes, Fault> {
        let url = permitted(&pointer.url, self.base.is_https())?;
        let place = place(&url);
        let request = Request {
            client: ClientKey::new(url.scheme() == "https", url.host_str().is_some_and(is_loopback), &self.options),
            url,
            headers: HeaderMap::new(),
            body: None,
            clocks: Clocks::from(&self.options),
            max_response_bytes: self.options.max_response_bytes,
            keep_body: false,
            plain: None,
            put: false,
            upload: None,
            repeat: Repeat::Lost,
            retries: Retries::from(&self.options),
        };
        let reply = Flight::start(request)?.wait(interrupt)?;
        if !reply.status.is_success() {
            let message = format!("a stored batch cannot be fetched from {place}: HTTP {}", reply.status);
            return Err(Fault::new(ErrorKind::Http, message).with_status(reply.status));
        }
        let object = encoding::decode(&reply.headers, reply.body, self.options.max_response_bytes)?;
        let same =
            pointer.sha256.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(&hex(&Sha256::digest(&object))));
        if same {
            Ok(object)
        } else {
            Err(Fault::new(ErrorKind::Protocol, format!("a stored batch from {place} is not what the server stored")))
        }
    }
}

/// A server that is reached over TLS must not send the client to places without it.
pub(crate) fn permitted(url: &str, https: bool) -> Result<Url, Fault> {
    let refuse =
        || Fault::new(ErrorKind::Protocol, "the server stores batches where this client does not go".to_owned());
    let url = Url::parse(url).map_err(|_| refuse())?;
    let permitted = url.scheme() == "https" || (url.scheme() == "http" && !https);
    if permitted { Ok(url) } else { Err(refuse()) }
}

/// The URL without its query, which is often a signature.
pub(crate) fn place(url: &Url) -> String {
    format!("{}://{}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // writing to a String cannot fail
        write!(text, "{byte:02x}").ok();
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn tls_is_not_left() {
        assert!(permitted("http://elsewhere/object", true).is_err());
        assert!(permitted("https://elsewhere/object", true).is_ok());
        assert!(permitted("http://127.0.0.1:9001/object", false).is_ok());
        for odd in ["file:///etc/passwd", "object", "ftp://h/o"] {
            assert!(permitted(odd, false).is_err(), "{odd}");
        }
    }

    #[test]
    fn a_message_does_not_show_the_query() {
        let url = Url::parse("https://user:pass@store.example.org/bucket/object?signature=secret").unwrap();
        assert_eq!(place(&url), "https://store.example.org/bucket/object");
    }

    #[test]
    fn digests_are_written_in_hexadecimal() {
        assert_eq!(hex(&Sha256::digest(b"abc"))[..16], *"ba7816bf8f01cfea");
    }
}
