//! The frame: one exchange as it is stored rather than sent, in trace files, by the replay server of the tests and in spill files.
//!
//! ```text
//! u32 little-endian header length | JSON header | Arrow IPC streams (optional)
//! ```
//!
//! The payload is kept byte by byte as it was on the wire. A frame has no length of its own: it fills its file.

use std::collections::BTreeMap;

use bytes::{Buf, Bytes};
use serde::{Deserialize, Serialize};

use crate::WireError;
use crate::ipc::{self, Segments, Stream};

/// What the exchange was. Members that a later version adds are ignored, members that are missing have their default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// Method on the wire, such as `table_buffering_process`.
    pub method: String,
    /// Step of the call, such as `process`.
    pub phase: Option<String>,
    /// What the exchange belongs to, by kind of id (`execution`, `state`, `stream`, `request`); binary ids in hexadecimal.
    pub ids: BTreeMap<String, String>,
    /// Whether it gave what was asked for.
    pub success: bool,
    /// What was said when it did not.
    pub error: Option<String>,
    /// How long it took.
    pub milliseconds: f64,
    /// Rows of the payload.
    pub rows: u64,
}

/// The header as it is written: with the flag that tells whether a payload follows.
#[derive(Serialize, Deserialize)]
struct Written<H> {
    #[serde(flatten)]
    header: H,
    batch: bool,
}

/// A stored exchange.
#[derive(Clone, Debug)]
pub struct Frame {
    /// What it was.
    pub header: Header,
    /// The bytes that travelled; empty when none did.
    pub payload: Bytes,
    /// The same, decoded.
    pub streams: Vec<Stream>,
}

const PREFIX: usize = size_of::<u32>();

/// Writes a frame. The payload is whole Arrow IPC streams, whose pieces are not copied.
///
/// # Errors
/// When the time is not a number, or the header exceeds 4 GiB.
pub fn encode(header: &Header, payload: Option<Segments>) -> Result<Segments, WireError> {
    if !header.milliseconds.is_finite() {
        return Err(WireError::Frame("its time is not a number".to_owned()));
    }
    let payload = payload.unwrap_or_default();
    let mut json = serde_json::to_vec(&Written { header, batch: !payload.is_empty() }).map_err(unreadable)?;
    // white space after JSON is JSON; it lets the buffers of the payload be used where they lie
    json.resize(json.len() + ipc::padding(PREFIX + json.len()).len(), b' ');
    let length = u32::try_from(json.len()).map_err(|_| WireError::TooLarge("a frame's header exceeds 4 GiB".into()))?;
    let mut out = Segments::from([length.to_le_bytes().as_slice(), &json].concat());
    out.extend(payload);
    Ok(out)
}

/// Reads a frame.
///
/// # Errors
/// [`WireError::Frame`] when it is shorter than its length prefix, its header ends outside of it or is not JSON of the right form, or
/// its batch flag disagrees with what follows; other kinds when what follows is not whole Arrow IPC streams.
pub fn decode(mut bytes: Bytes) -> Result<Frame, WireError> {
    let wrong = |message: &str| WireError::Frame(message.to_owned());
    let length = bytes.try_get_u32_le().map_err(|_| wrong("it is shorter than its length prefix"))?;
    let length = usize::try_from(length).map_err(unreadable)?;
    if length > bytes.len() {
        return Err(wrong("its header ends outside of it"));
    }
    let json = bytes.split_to(length);
    let Written { header, batch } = serde_json::from_slice::<Written<Header>>(&json).map_err(unreadable)?;
    match (batch, bytes.is_empty()) {
        (true, true) => Err(wrong("it announces a batch that is not there")),
        (false, false) => Err(wrong("bytes follow though it announces no batch")),
        _ => Ok(Frame { header, streams: ipc::decode_streams(bytes.clone())?, payload: bytes }),
    }
}

fn unreadable(error: impl std::fmt::Display) -> WireError {
    WireError::Frame(format!("its header cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{Int64Array, RecordBatch};

    use super::*;

    fn header() -> Header {
        Header {
            method: "table_buffering_process".to_owned(),
            phase: Some("process".to_owned()),
            ids: [("execution", "0a0b"), ("state", "ff")].map(|(kind, id)| (kind.to_owned(), id.to_owned())).into(),
            success: true,
            error: None,
            milliseconds: 1.25,
            rows: 3,
        }
    }

    fn batch() -> RecordBatch {
        let values = Arc::new(Int64Array::from(vec![1, 2, 3]));
        RecordBatch::try_from_iter([("v", values as _)]).unwrap()
    }

    fn with_payload() -> Bytes {
        encode(&header(), Some(ipc::encode_stream(&batch(), &[]).unwrap())).unwrap().to_bytes()
    }

    fn raw(json: &str, rest: &[u8]) -> Bytes {
        let length = u32::try_from(json.len()).unwrap().to_le_bytes();
        Bytes::from([&length, json.as_bytes(), rest].concat())
    }

    fn refusal(bytes: Bytes) -> String {
        match decode(bytes).unwrap_err() {
            WireError::Frame(message) => message,
            other => panic!("another kind: {other}"),
        }
    }

    #[test]
    fn a_frame_comes_back() {
        let frame = decode(with_payload()).unwrap();
        assert_eq!((&frame.header, &frame.streams[0].batches[0].batch), (&header(), &batch()));
        assert_eq!(frame.payload, ipc::encode_stream(&batch(), &[]).unwrap().to_bytes());
        let failed = Header { success: false, error: Some("no\n\"more\"".to_owned()), rows: 0, ..header() };
        let frame = decode(encode(&failed, None).unwrap().to_bytes()).unwrap();
        assert_eq!((frame.header, frame.payload.len(), frame.streams.len()), (failed, 0, 0));
    }

    #[test]
    fn the_payload_is_aligned_and_not_copied() {
        let payload = ipc::encode_stream(&batch(), &[]).unwrap();
        let first = payload.iter().next().unwrap().as_ptr();
        let frame = encode(&header(), Some(payload)).unwrap();
        let pieces: Vec<_> = frame.iter().collect();
        assert_eq!((pieces[0].len() % 8, pieces[1].as_ptr()), (0, first));
    }

    #[test]
    fn several_streams_are_one_payload() {
        let mut payload = ipc::encode_stream(&batch(), &[]).unwrap();
        payload.extend(ipc::encode_stream(&batch(), &[]).unwrap());
        assert_eq!(decode(encode(&header(), Some(payload)).unwrap().to_bytes()).unwrap().streams.len(), 2);
    }

    #[test]
    fn what_is_not_a_frame_is_refused() {
        for len in 0..PREFIX {
            assert!(refusal(with_payload().slice(..len)).contains("shorter than its length prefix"));
        }
        assert!(refusal(with_payload().slice(..20)).contains("outside"));
        assert!(refusal(Bytes::from_static(&[0xff; 4])).contains("outside"));
        assert!(refusal(raw("batch", b"")).contains("cannot be read"));
        assert!(refusal(raw("[1]", b"")).contains("cannot be read"));
        assert!(refusal(raw(r#"{"method":"bind"}"#, b"")).contains("batch"), "the flag must be there");
        assert!(refusal(raw(r#"{"method":7,"batch":false}"#, b"")).contains("cannot be read"));
        assert!(refusal(raw("", b"")).contains("cannot be read"));
        assert!(refusal(raw(r#"{"batch":true}"#, b"")).contains("not there"));
        assert!(refusal(raw(r#"{"batch":false}"#, b"x")).contains("announces no batch"));
        assert!(decode(raw(r#"{"batch":true}"#, b"no stream at all")).is_err());
        let whole = with_payload();
        assert!(decode(whole.slice(..whole.len() - 8)).is_err(), "a payload without its end marker");
        assert!(encode(&Header { milliseconds: f64::NAN, ..header() }, None).is_err());
    }

    #[test]
    fn a_later_version_may_add_members() {
        let frame = decode(raw(r#"{"method":"bind","batch":false,"colour":"red"}"#, b"")).unwrap();
        assert_eq!(frame.header, Header { method: "bind".to_owned(), ..Header::default() });
    }
}
