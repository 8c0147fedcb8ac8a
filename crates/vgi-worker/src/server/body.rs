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

/// How a body is coded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Plain,
    Zstd,
    Gzip,
}

impl Coding {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Plain => "identity",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
        }
    }

    /// The coding of a request.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Fault> {
        let named = ["x-vgi-content-encoding", "content-encoding"].into_iter().find_map(|name| headers.get(name));
        match named.map(|value| value.to_str().unwrap_or_default().trim().to_ascii_lowercase()).as_deref() {
            None | Some("" | "identity") => Ok(Self::Plain),
            Some("zstd") => Ok(Self::Zstd),
            Some("gzip") => Ok(Self::Gzip),
            Some(other) => {
                let message = format!("the content encoding '{other}' is not supported (supported: zstd, gzip)");
                Err(Fault::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedEncodingError", message))
            }
        }
    }

    /// The body without its coding.
    pub(super) fn decode(self, body: Bytes, limit: u64) -> Result<Bytes, Fault> {
        let broken = |error: std::io::Error| {
            Fault::bad_request("ProtocolError", format!("the request body is not valid {}: {error}", self.name()))
        };
        let coded = body.as_ref();
        let decoder: Box<dyn Read + '_> = match self {
            Self::Plain => return Ok(body),
            Self::Zstd => Box::new(zstd::Decoder::new(coded).map_err(broken)?),
            Self::Gzip => Box::new(flate2::read::MultiGzDecoder::new(coded)),
        };
        let mut plain = Vec::new();
        decoder.take(limit.saturating_add(1)).read_to_end(&mut plain).map_err(broken)?;
        if u64::try_from(plain.len()).map_or(true, |length| length > limit) {
            return Err(too_large(limit));
        }
        Ok(whole(plain))
    }

    /// A reply in this coding, unless it is small or that fails.
    pub(super) fn encode(self, reply: &Segments) -> Option<Segments> {
        if reply.len() < COMPRESS_FROM {
            return None;
        }
        let coded = match self {
            Self::Plain => return None,
            Self::Zstd => {
                let mut encoder = zstd::Encoder::new(Vec::new(), 1).ok()?;
                reply.iter().try_for_each(|piece| encoder.write_all(piece)).ok()?;
                encoder.finish().ok()?
            }
            Self::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                reply.iter().try_for_each(|piece| encoder.write_all(piece)).ok()?;
                encoder.finish().ok()?
            }
        };
        Some(Segments::from(coded))
    }
}

/// How a client wants its reply coded, and the header that tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub(super) header: &'static str,
    pub(super) coding: Coding,
}

/// What the client asked for; zstd when it takes both. The protocol's own header is for clients whose HTTP library would undo the
/// standard one; it wins when both are there.
pub(super) fn wanted_coding(headers: &HeaderMap) -> Option<Wanted> {
    let listed = |name: &str, header: &'static str| {
        let list = headers.get(name)?.to_str().ok()?;
        let takes = |coding: Coding| {
            list.split(',').any(|entry| {
                let mut parts = entry.split(';').map(str::trim);
                let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(coding.name()));
                let refused = |part: &str| {
                    let quality = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
                    quality.and_then(|quality| quality.parse::<f32>().ok()).is_some_and(|quality| quality <= 0.0)
                };
                named && !parts.any(refused)
            })
        };
        Some(
            [Coding::Zstd, Coding::Gzip]
                .into_iter()
                .find(|coding| takes(*coding))
                .map(|coding| Wanted { header, coding }),
        )
    };
    let own = listed("x-vgi-accept-encoding", "x-vgi-content-encoding");
    own.or_else(|| listed("accept-encoding", "content-encoding")).flatten()
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
        let wanted = |pairs: &[(&'static str, &'static str)]| {
            wanted_coding(&headers(pairs)).map(|wanted| (wanted.header, wanted.coding))
        };
        assert_eq!(wanted(&[("accept-encoding", "gzip, zstd;q=0.5")]), Some(("content-encoding", Coding::Zstd)));
        assert_eq!(wanted(&[("accept-encoding", "gzip, zstd;q=0")]), Some(("content-encoding", Coding::Gzip)));
        assert_eq!(wanted(&[("accept-encoding", "br, gzip;q=0.000")]), None);
        let both = [("accept-encoding", "zstd"), ("x-vgi-accept-encoding", "gzip")];
        assert_eq!(wanted(&both), Some(("x-vgi-content-encoding", Coding::Gzip)));
        assert_eq!(wanted(&[("accept-encoding", "zstd"), ("x-vgi-accept-encoding", "identity")]), None);
        assert_eq!(wanted(&[("x-vgi-accept-encoding", "ZSTD")]), Some(("x-vgi-content-encoding", Coding::Zstd)));
        assert_eq!(wanted(&[]), None);
    }

    #[test]
    fn gzip_is_held_to_the_same_limits() {
        let bomb = Coding::Gzip.encode(&Segments::from(vec![0_u8; 1_000_000])).unwrap().to_bytes();
        assert!(bomb.len() < 10_000);
        assert_eq!(Coding::Gzip.decode(bomb.clone(), 1_000_000).unwrap().len(), 1_000_000);
        assert!(Coding::Gzip.decode(bomb.clone(), 999_999).is_err());
        assert!(Coding::Gzip.decode(bomb.slice(..bomb.len() - 4), 1_000_000).is_err());
        assert!(Coding::Gzip.decode(Bytes::from_static(b"not gzip"), 1000).is_err());
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
        let small = Coding::Zstd.encode(&reply).unwrap().to_bytes();
        assert_eq!(zstd::decode_all(&small[..]).unwrap(), vec![7_u8; 5000]);
        assert!(Coding::Zstd.encode(&Segments::from(vec![7_u8; 100])).is_none());
    }
}
