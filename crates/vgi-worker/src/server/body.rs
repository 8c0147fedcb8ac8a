//! Bodies: reading them within limits, decompressing requests, compressing replies, and sending replies without joining their pieces.

use std::convert::Infallible;
use std::io::{Read, Write};

use axum::body::{Body, Bytes};
use futures_util::StreamExt;
use http::{HeaderMap, StatusCode};
use vgi_wire::ipc::Segments;

use crate::server::fault::Fault;

/// A reply of this many bytes or more is sent in pieces instead of being joined.
const JOIN_BELOW: usize = 64 * 1024;
/// Smaller replies are not worth compressing.
const COMPRESS_FROM: usize = 1024;
/// Capacity that a body's announced length may reserve before its bytes arrive.
const RESERVE: u64 = 4 << 20;

/// Reads a request's body.
pub(super) async fn read(body: Body, announced: Option<u64>, limit: u64) -> Result<Bytes, Fault> {
    if announced.is_some_and(|length| length > limit) {
        return Err(too_large(limit));
    }
    let mut pieces = body.into_data_stream();
    let mut joined = Vec::with_capacity(usize::try_from(announced.unwrap_or(0).min(RESERVE)).unwrap_or(0));
    while let Some(piece) = pieces.next().await {
        let piece = piece
            .map_err(|error| Fault::bad_request("ProtocolError", format!("the request body breaks off: {error}")))?;
        if u64::try_from(joined.len() + piece.len()).map_or(true, |length| length > limit) {
            return Err(too_large(limit));
        }
        joined.extend_from_slice(&piece);
    }
    Ok(whole(joined))
}

/// A function may keep the bytes for long, so room that was reserved in vain is given back.
fn whole(mut bytes: Vec<u8>) -> Bytes {
    bytes.shrink_to_fit();
    Bytes::from(bytes)
}

fn too_large(limit: u64) -> Fault {
    let message = format!("the request body is larger than {limit} bytes, the limit of this worker");
    Fault::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestTooLargeError", message).code("RESOURCE_EXHAUSTED")
}

/// How the request's body is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Plain,
    Zstd,
}

impl Coding {
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Fault> {
        let named = ["x-vgi-content-encoding", "content-encoding"].into_iter().find_map(|name| headers.get(name));
        match named.map(|value| value.to_str().unwrap_or_default().trim().to_ascii_lowercase()).as_deref() {
            None | Some("" | "identity") => Ok(Self::Plain),
            Some("zstd") => Ok(Self::Zstd),
            Some(other) => {
                let message = format!("the content encoding '{other}' is not supported (supported: zstd)");
                Err(Fault::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedEncodingError", message))
            }
        }
    }

    /// The body without its coding.
    pub(super) fn decode(self, body: Bytes, limit: u64) -> Result<Bytes, Fault> {
        if self == Self::Plain {
            return Ok(body);
        }
        let broken = |error: std::io::Error| {
            Fault::bad_request("ProtocolError", format!("the request body is not valid zstd: {error}"))
        };
        let decoder = zstd::Decoder::new(body.as_ref()).map_err(broken)?;
        let mut plain = Vec::new();
        decoder.take(limit.saturating_add(1)).read_to_end(&mut plain).map_err(broken)?;
        if u64::try_from(plain.len()).map_or(true, |length| length > limit) {
            return Err(too_large(limit));
        }
        Ok(whole(plain))
    }
}

/// The header that tells the reply's coding, when the client asked for zstd. The protocol's own header is for clients whose HTTP library
/// would undo the standard one; it wins when both are there.
pub(super) fn wanted_coding(headers: &HeaderMap) -> Option<&'static str> {
    let lists_zstd = |name: &str| {
        let list = headers.get(name)?.to_str().ok()?;
        let mut codings = list.split(',').map(|coding| coding.split(';').next().unwrap_or_default().trim());
        Some(codings.any(|coding| coding.eq_ignore_ascii_case("zstd")))
    };
    match (lists_zstd("x-vgi-accept-encoding"), lists_zstd("accept-encoding")) {
        (Some(wanted), _) => wanted.then_some("x-vgi-content-encoding"),
        (None, Some(true)) => Some("content-encoding"),
        _ => None,
    }
}

/// The reply compressed, unless it is small or that fails.
pub(super) fn compress(reply: &Segments) -> Option<Segments> {
    if reply.len() < COMPRESS_FROM {
        return None;
    }
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).ok()?;
    reply.iter().try_for_each(|piece| encoder.write_all(piece)).ok()?;
    Some(Segments::from(encoder.finish().ok()?))
}

/// A reply as a body.
pub(super) fn send(reply: Segments) -> Body {
    if reply.len() < JOIN_BELOW {
        return Body::from(reply.to_bytes());
    }
    Body::from_stream(futures_util::stream::iter(reply.into_iter().map(Ok::<_, Infallible>)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), http::HeaderValue::from_static(value)))
            .collect()
    }

    #[test]
    fn the_protocols_own_header_wins() {
        assert_eq!(wanted_coding(&headers(&[("accept-encoding", "gzip, zstd;q=0.5")])), Some("content-encoding"));
        let both = headers(&[("accept-encoding", "zstd"), ("x-vgi-accept-encoding", "gzip")]);
        assert_eq!(wanted_coding(&both), None);
        assert_eq!(wanted_coding(&headers(&[("x-vgi-accept-encoding", "ZSTD")])), Some("x-vgi-content-encoding"));
        assert_eq!(wanted_coding(&headers(&[])), None);
    }

    #[test]
    fn a_small_body_cannot_grow_beyond_the_limit() {
        let bomb = zstd::encode_all(&vec![0_u8; 1_000_000][..], 3).unwrap();
        assert!(bomb.len() < 1000);
        assert_eq!(Coding::Zstd.decode(Bytes::from(bomb.clone()), 1_000_000).unwrap().len(), 1_000_000);
        assert!(Coding::Zstd.decode(Bytes::from(bomb.clone()), 999_999).is_err());
        assert!(Coding::Zstd.decode(Bytes::from(bomb[..bomb.len() - 4].to_vec()), 1_000_000).is_err());
        assert!(Coding::Zstd.decode(Bytes::from_static(b"not zstd"), 1000).is_err());
    }

    #[test]
    fn unknown_codings_are_refused() {
        assert_eq!(Coding::of(&headers(&[("content-encoding", "zstd")])).unwrap(), Coding::Zstd);
        assert_eq!(Coding::of(&headers(&[])).unwrap(), Coding::Plain);
        assert!(Coding::of(&headers(&[("content-encoding", "br")])).is_err());
    }

    #[test]
    fn large_replies_are_compressed() {
        let reply = Segments::from(vec![7_u8; 5000]);
        let small = compress(&reply).unwrap().to_bytes();
        assert_eq!(zstd::decode_all(&small[..]).unwrap(), vec![7_u8; 5000]);
        assert!(compress(&Segments::from(vec![7_u8; 100])).is_none());
    }
}
