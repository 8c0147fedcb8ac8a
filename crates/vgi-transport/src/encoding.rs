//! Content codings of replies. Decompression is work, so it is done by the thread that waits for the reply.

use std::io::Read;

use bytes::Bytes;
use http::HeaderMap;

use crate::error::{ErrorKind, Fault};
use crate::exchange::too_large;

/// What is offered to servers that are not on this machine. The protocol has its own header, which proxies do not act on.
pub(crate) const OFFER: (&str, &str) = ("x-vgi-accept-encoding", "zstd, gzip");

/// The largest window that a zstd frame may ask for, as a power of two: what level 20 uses. The default would let a few bytes reserve
/// 128 MiB.
const MAX_WINDOW_LOG: u32 = 25;

/// The body without its codings, at most `max` bytes.
pub(crate) fn decode(headers: &HeaderMap, mut body: Bytes, max: u64) -> Result<Bytes, Fault> {
    // a proxy's coding is the outer one
    for name in ["content-encoding", "x-vgi-content-encoding"] {
        let codings = headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("?"));
        let codings: Vec<_> =
            codings.flat_map(|list| list.split(',')).map(|coding| coding.trim().to_ascii_lowercase()).collect();
        for coding in codings.iter().rev() {
            body = match coding.as_str() {
                "" | "identity" => body,
                "zstd" => inflate("zstd", zstd_reader(&body), max)?,
                "gzip" | "x-gzip" => inflate("gzip", Ok(flate2::read::MultiGzDecoder::new(&*body)), max)?,
                other => {
                    return Err(Fault::new(
                        ErrorKind::Protocol,
                        format!("the reply has the unknown content coding '{}'", other.escape_debug()),
                    ));
                }
            };
        }
    }
    Ok(body)
}

fn zstd_reader(body: &Bytes) -> std::io::Result<impl Read> {
    let mut decoder = zstd::stream::read::Decoder::with_buffer(&**body)?;
    decoder.window_log_max(MAX_WINDOW_LOG)?;
    Ok(decoder)
}

fn inflate(coding: &str, reader: std::io::Result<impl Read>, max: u64) -> Result<Bytes, Fault> {
    let mut out = Vec::new();
    reader
        .and_then(|reader| reader.take(max.saturating_add(1)).read_to_end(&mut out))
        .map_err(|error| Fault::new(ErrorKind::Protocol, format!("the reply is not valid {coding}: {error}")))?;
    if u64::try_from(out.len()).unwrap_or(u64::MAX) > max {
        return Err(too_large(max));
    }
    Ok(out.into())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn gzip(data: &[u8]) -> Bytes {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap().into()
    }

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn codings_are_undone_in_either_header() {
        let data = vec![5u8; 10_000];
        let zstd = Bytes::from(zstd::encode_all(&*data, 3).unwrap());
        for (pairs, body) in [
            (vec![("content-encoding", "zstd")], zstd.clone()),
            (vec![("x-vgi-content-encoding", "ZSTD")], zstd.clone()),
            (vec![("content-encoding", "gzip")], gzip(&data)),
            (vec![("content-encoding", "identity")], data.clone().into()),
            (vec![("content-encoding", "gzip"), ("x-vgi-content-encoding", "zstd")], gzip(&zstd)),
        ] {
            assert_eq!(decode(&headers(&pairs), body, 10_000).unwrap(), data, "{pairs:?}");
        }
    }

    #[test]
    fn bombs_garbage_and_unknown_codings_are_errors() {
        let bomb = vec![0u8; 1 << 20];
        for (coding, body) in [("gzip", gzip(&bomb)), ("zstd", zstd::encode_all(&*bomb, 3).unwrap().into())] {
            let fault = decode(&headers(&[("content-encoding", coding)]), body.clone(), 1000).unwrap_err();
            assert_eq!(fault.kind, ErrorKind::Limit, "{coding}");
            let cut =
                decode(&headers(&[("content-encoding", coding)]), body.slice(..body.len() - 3), 2 << 20).unwrap_err();
            assert_eq!(cut.kind, ErrorKind::Protocol, "{coding}");
        }
        assert!(
            decode(&headers(&[("content-encoding", "br")]), Bytes::from_static(b"x"), 10)
                .unwrap_err()
                .message
                .contains("'br'")
        );
        assert!(decode(&headers(&[("content-encoding", "zstd")]), Bytes::from_static(b"x"), 10).is_err());
    }

    #[test]
    fn a_zstd_frame_cannot_ask_for_a_huge_window() {
        let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
        encoder.window_log(27).unwrap();
        encoder.include_contentsize(false).unwrap();
        encoder.write_all(&vec![1u8; 1000]).unwrap();
        let body: Bytes = encoder.finish().unwrap().into();
        assert!(decode(&headers(&[("content-encoding", "zstd")]), body, 10_000).is_err());
    }
}
