//! Bodies that are wrong in one way each. Where a body has nothing to spoil it stays as it is.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use vgi_wire::ipc;
use vgi_wire::reply::Tokens;
use vgi_wire::server::{ReplyWriter, decode_turn};

/// Larger than what tests allow, small enough to be made in no time.
const BOMB: usize = 64 << 20;
/// Before every message.
const MARK: [u8; 4] = [0xff; 4];
/// The end of a stream.
const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

fn stream(batch: &RecordBatch) -> Vec<u8> {
    ipc::encode_stream(batch, &[]).map(|blob| blob.to_bytes().to_vec()).unwrap_or_default()
}

pub(super) fn other_columns() -> Vec<u8> {
    let column: ArrayRef = Arc::new(StringArray::from(vec!["x"]));
    RecordBatch::try_from_iter([("b", column)]).map(|batch| stream(&batch)).unwrap_or_default()
}

/// The names that replies have, with a type that none of them has.
pub(super) fn other_types() -> Vec<u8> {
    let column = |name: &'static str| (name, Arc::new(Int32Array::from(vec![1])) as ArrayRef);
    let columns = ["a", "result", "execution_id"].map(column);
    RecordBatch::try_from_iter(columns).map(|batch| stream(&batch)).unwrap_or_default()
}

pub(super) fn no_row() -> Vec<u8> {
    let schema = Schema::new(vec![Field::new("result", DataType::Binary, true)]);
    stream(&RecordBatch::new_empty(Arc::new(schema)))
}

/// Where the messages of a body begin, and the length of each flatbuffer.
fn messages(body: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(word) = body.get(at..at + 8).and_then(|word| <[u8; 8]>::try_from(word).ok()) {
        let [_, _, _, _, length @ ..] = word;
        let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
        if word.starts_with(&MARK) && length > 0 && at.saturating_add(8).saturating_add(length) <= body.len() {
            found.push((at, length));
            at += 8 + length;
        } else {
            at += 8;
        }
    }
    found
}

pub(super) fn message_length(mut body: Vec<u8>, length: i32) -> Vec<u8> {
    let place = messages(&body).get(1).map(|(at, _)| at + 4..at + 8);
    if let Some(word) = place.and_then(|place| body.get_mut(place)) {
        word.copy_from_slice(&length.to_le_bytes());
    }
    body
}

/// Overwrites all that may be a length in the flatbuffers after the first.
pub(super) fn lengths(mut body: Vec<u8>, value: i64) -> Vec<u8> {
    let limit = i64::try_from(body.len()).unwrap_or(i64::MAX);
    for (at, length) in messages(&body).into_iter().skip(1) {
        let (words, _) = body.get_mut(at + 8..at + 8 + length).unwrap_or_default().as_chunks_mut::<8>();
        for word in words.iter_mut().filter(|word| (1..=limit).contains(&i64::from_le_bytes(**word))) {
            *word = value.to_le_bytes();
        }
    }
    body
}

/// Spoils the names of the columns that all replies have.
pub(super) fn invalid_utf8(mut body: Vec<u8>) -> Vec<u8> {
    for name in [b"result".as_slice(), b"execution_id"] {
        let places: Vec<_> =
            body.windows(name.len()).enumerate().filter(|(_, window)| *window == name).map(|(at, _)| at).collect();
        for at in places {
            body.get_mut(at).into_iter().for_each(|byte| *byte = 0xff);
        }
    }
    body
}

pub(super) fn zstd_bomb() -> Vec<u8> {
    zstd::encode_all(vec![0; BOMB].as_slice(), 1).unwrap_or_default()
}

pub(super) fn gzip_bomb() -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&vec![0; BOMB]).ok();
    encoder.finish().unwrap_or_default()
}

/// Where the stream that begins here ends.
fn end_of_stream(body: &[u8], start: usize) -> Option<usize> {
    (start..body.len()).step_by(8).find(|at| body.get(*at..).is_some_and(|rest| rest.starts_with(&END)))
}

/// The messages after the first, twice.
pub(super) fn two_batches(body: Vec<u8>) -> Vec<u8> {
    let second = messages(&body).get(1).map(|(at, _)| *at);
    let parts = second.and_then(|second| Some((body.get(..end_of_stream(&body, second)?)?, body.get(second..)?)));
    match parts {
        Some((all, again)) => [all, again].concat(),
        None => body,
    }
}

pub(super) fn without_first_stream(body: Vec<u8>) -> Vec<u8> {
    let rest = end_of_stream(&body, 0).and_then(|end| body.get(end + END.len()..));
    rest.map_or_else(Vec::new, <[u8]>::to_vec)
}

/// A turn without rows, whose token is that of the turn that was asked for.
pub(super) fn same_token(body: Vec<u8>, asked: &[u8]) -> Vec<u8> {
    let made = || {
        let (tokens, _) = decode_turn(Bytes::copy_from_slice(asked)).ok()?;
        let schema = ipc::decode_streams(Bytes::from(body.clone())).ok()?.pop()?.schema;
        let mut writer = ReplyWriter::new(schema, "faults", None).ok()?;
        writer.token(&Tokens { cursor: tokens.cursor, call: None }).ok()?;
        Some(writer.finish().ok()?.to_bytes().to_vec())
    };
    made().unwrap_or(body)
}
