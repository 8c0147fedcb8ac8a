//! Content codings. They are work, so they are done and undone by the threads that make requests and wait for replies.

use std::io::{Read, Write};

use bytes::Bytes;
use http::HeaderMap;
use vgi_wire::ipc::Segments;

use crate::compression::Coding;
use crate::error::{ErrorKind, Fault};
use crate::exchange::too_large;

/// What is offered to servers that are not on this machine. The protocol has its own header, which proxies do not act on.
pub(crate) const OFFER: (&str, &str) = ("x-vgi-accept-encoding", "zstd, gzip");

/// What is sent once is compressed fast: of zstd the next levels cost more time than they save bytes.
const LEVEL: i32 = 1;

/// The largest window that a zstd frame may ask for, as a power of two: what level 20 uses. The default would let a few bytes reserve
/// 128 MiB.
const MAX_WINDOW_LOG: u32 = 25;

/// The body of a request in a coding, at the fastest level.
pub(crate) fn encode(body: &Segments, coding: Coding) -> std::io::Result<Bytes> {
    let room = Vec::with_capacity(body.len() / 2);
    Ok(match coding {
        Coding::Zstd => {
            let mut encoder = zstd::stream::write::Encoder::new(room, LEVEL)?;
            encoder.set_pledged_src_size(u64::try_from(body.len()).ok())?;
            for piece in body.iter() {
                encoder.write_all(piece)?;
            }
            encoder.finish()?
        }
        Coding::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(room, flate2::Compression::fast());
            for piece in body.iter() {
                encoder.write_all(piece)?;
            }
            encoder.finish()?
        }
    }
    .into())
}

/// The body without its coding, at most `max` bytes. There is one coding at most: a second layer multiplies what a few bytes can become,
/// and nobody was asked for it.
pub(crate) fn decode(headers: &HeaderMap, body: Bytes, max: u64) -> Result<Bytes, Fault> {
    let Some(coding) = coding(headers)? else { return Ok(body) };
    match coding.as_str() {
        "zstd" => inflate("zstd", zstd_reader(&body), max),
        "gzip" | "x-gzip" => inflate("gzip", Ok(flate2::read::MultiGzDecoder::new(&*body)), max),
        other => {
            let message = format!("the reply has the unknown content coding '{}'", other.escape_debug());
            Err(Fault::new(ErrorKind::Protocol, message))
        }
    }
}

/// The coding that the headers name. The protocol has a header of its own beside the usual one; when both name the same they mean it once.
fn coding(headers: &HeaderMap) -> Result<Option<String>, Fault> {
    let named = |name: &str| -> Vec<String> {
        let values = headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("?").to_ascii_lowercase());
        let codings: Vec<_> =
            values.flat_map(|list| list.split(',').map(|word| word.trim().to_owned()).collect::<Vec<_>>()).collect();
        codings.into_iter().filter(|word| !word.is_empty() && word != "identity").collect()
    };
    let (usual, own) = (named("content-encoding"), named("x-vgi-content-encoding"));
    let mut codings = if usual == own || own.is_empty() { usual } else { [usual, own].concat() };
    let coding = codings.pop();
    if codings.is_empty() {
        return Ok(coding);
    }
    Err(Fault::new(ErrorKind::Protocol, "the reply is compressed more than once"))
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
            (vec![("content-encoding", "zstd"), ("x-vgi-content-encoding", "zstd")], zstd.clone()),
        ] {
            assert_eq!(decode(&headers(&pairs), body, 10_000).unwrap(), data, "{pairs:?}");
        }
    }

    #[test]
    fn one_layer_is_undone_and_no_more() {
        let twice = gzip(&gzip(b"data"));
        for pairs in [
            vec![("content-encoding", "gzip, gzip")],
            vec![("content-encoding", "gzip"), ("content-encoding", "gzip")],
            vec![("content-encoding", "gzip"), ("x-vgi-content-encoding", "zstd")],
        ] {
            let headers = pairs.iter().map(|(name, value)| {
                (name.parse::<http::HeaderName>().unwrap(), value.parse::<http::HeaderValue>().unwrap())
            });
            let mut map = HeaderMap::new();
            for (name, value) in headers {
                map.append(name, value);
            }
            let fault = decode(&map, twice.clone(), 10_000).unwrap_err();
            assert!(fault.message.contains("more than once"), "{}", fault.message);
        }
    }

    #[test]
    fn what_is_encoded_is_decoded() {
        let mut body = Segments::new();
        for piece in 0..100u8 {
            body.push(vec![piece; 1000].into());
        }
        for coding in [Coding::Zstd, Coding::Gzip] {
            let packed = encode(&body, coding).unwrap();
            assert!(packed.len() < 10_000);
            let headers = headers(&[("content-encoding", coding.name())]);
            assert_eq!(decode(&headers, packed, 100_000).unwrap(), body.to_bytes());
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
