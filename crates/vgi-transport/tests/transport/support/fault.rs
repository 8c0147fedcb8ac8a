//! What a bad server can do instead of its answer.

use std::io::Write;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use arrow_array::{Int32Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use vgi_wire::ipc;

use super::server::{Answer, Gate};

/// Larger than any reply that the tests allow.
const BOMB: usize = 32 << 20;
/// Between two bytes.
const DRIP: Duration = Duration::from_millis(40);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Refuse,
    ResetBeforeTheBody,
    ResetAfterTheRequest,
    ResetInTheHead,
    ResetInTheBody,
    CloseAfterTheRequest,
    StallBeforeReading,
    StallBeforeTheHead,
    StallInTheHead,
    StallInTheBody,
    DripTheHead,
    DripTheBody,
    /// The status, with `Location` elsewhere.
    Redirect(u16),
    /// The status and a text.
    Status(u16),
    /// 503 with `Retry-After`.
    RetryLater,
    Html,
    NoHttp,
    /// The end of the answer is missing.
    TruncatedBy(usize),
    TruncatedInTheMiddle,
    Garbage,
    Empty,
    WrongSchema,
    WrongTypes,
    /// The length of a message.
    MessageLength(i32),
    /// What the messages say of lengths, offsets and counts.
    Lengths(i64),
    InvalidUtf8,
    ZipBomb(&'static str),
    NotWhatTheCodingSays(&'static str),
    UnknownCoding,
    NoRow,
    TwoBatches,
    TwoStreamsMore,
}

impl Fault {
    /// Does what takes longer than a clock.
    pub fn prepare() {
        LazyLock::force(&GZIP);
        LazyLock::force(&ZSTD);
    }

    pub fn gate(self) -> Gate {
        match self {
            Self::ResetBeforeTheBody => Gate::Reset,
            Self::StallBeforeReading => Gate::Deaf,
            _ => Gate::Read,
        }
    }

    /// The answer in place of a good one; `elsewhere` is another server.
    pub fn answer(self, good: Answer, elsewhere: &str) -> Answer {
        let Answer::Reply { status, headers, body } = good else { panic!("only good answers are spoiled") };
        let spoil = |body: Vec<u8>| Answer::Reply { status, headers: headers.clone(), body };
        let wire = || spoil(body.clone()).wire();
        let head = wire().len() - body.len();
        let until = |end: usize| wire()[..end].to_vec();
        match self {
            Self::Refuse | Self::ResetBeforeTheBody | Self::StallBeforeReading => spoil(body),
            Self::ResetAfterTheRequest => Answer::Reset(Vec::new()),
            Self::ResetInTheHead => Answer::Reset(until(head / 2)),
            Self::ResetInTheBody => Answer::Reset(until(head + body.len() / 2)),
            Self::CloseAfterTheRequest => Answer::Raw(Vec::new()),
            Self::StallBeforeTheHead => Answer::Stall(Vec::new()),
            Self::StallInTheHead => Answer::Stall(until(head / 2)),
            Self::StallInTheBody => Answer::Stall(until(head + body.len() / 2)),
            Self::DripTheHead => Answer::Drip(Vec::new(), wire(), DRIP),
            Self::DripTheBody => Answer::Drip(until(head), body, DRIP),
            Self::Redirect(status) => Answer::text(status, "text/html", "moved").with("Location", elsewhere),
            Self::Status(status) => Answer::text(status, "text/plain", "the reason"),
            Self::RetryLater => Answer::text(503, "text/plain", "the reason").with("Retry-After", "1"),
            Self::Html => Answer::text(200, "text/html", "<html><b>Sign in</b></html>"),
            Self::NoHttp => Answer::Raw(b"\x16\x03\x01 this is not HTTP\r\n\r\n".to_vec()),
            Self::TruncatedBy(count) => spoil(body[..body.len() - count].to_vec()),
            Self::TruncatedInTheMiddle => spoil(body[..body.len() / 2].to_vec()),
            Self::Garbage => spoil(body.iter().map(|byte| byte ^ 0x5a).collect()),
            Self::Empty => spoil(Vec::new()),
            Self::WrongSchema => spoil(texts()),
            Self::WrongTypes => spoil(integers()),
            Self::MessageLength(length) => spoil(message_length(body, length)),
            Self::Lengths(value) => spoil(lengths(body, value)),
            Self::InvalidUtf8 => spoil(invalid_utf8(body)),
            Self::ZipBomb(coding) => spoil(bomb(coding)).with("Content-Encoding", coding),
            Self::NotWhatTheCodingSays(coding) => spoil(body).with("X-VGI-Content-Encoding", coding),
            Self::UnknownCoding => spoil(body).with("Content-Encoding", "br"),
            Self::NoRow => spoil(no_row()),
            Self::TwoBatches => spoil(two_batches(body)),
            Self::TwoStreamsMore => spoil([body.clone(), body.clone(), body].concat()),
        }
    }
}

fn stream(batch: &RecordBatch) -> Vec<u8> {
    ipc::encode_stream(batch, &[]).unwrap().to_bytes().to_vec()
}

fn texts() -> Vec<u8> {
    let schema = Schema::new(vec![Field::new("b", DataType::Utf8, true)]);
    stream(&RecordBatch::try_new(Arc::new(schema), vec![Arc::new(StringArray::from(vec!["x"]))]).unwrap())
}

/// The names that replies have, with a type that none of them has.
fn integers() -> Vec<u8> {
    let fields: Vec<_> =
        ["a", "result", "execution_id"].iter().map(|name| Field::new(*name, DataType::Int32, true)).collect();
    let columns = fields.iter().map(|_| Arc::new(Int32Array::from(vec![1])) as _).collect();
    stream(&RecordBatch::try_new(Arc::new(Schema::new(fields)), columns).unwrap())
}

fn no_row() -> Vec<u8> {
    let schema = Schema::new(vec![Field::new("result", DataType::Binary, true)]);
    stream(&RecordBatch::new_empty(Arc::new(schema)))
}

/// Where the messages of a body begin, and the length of each flatbuffer.
fn messages(body: &[u8]) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(word) = body.get(at..at + 8) {
        let length = usize::try_from(u32::from_le_bytes(word[4..].try_into().unwrap())).unwrap();
        if word[..4] == [0xff; 4] && length > 0 && at + 8 + length <= body.len() {
            found.push((at, length));
            at += 8 + length;
        } else {
            at += 8;
        }
    }
    found
}

fn message_length(mut body: Vec<u8>, length: i32) -> Vec<u8> {
    let Some(&(at, _)) = messages(&body).get(1) else { return body };
    body[at + 4..at + 8].copy_from_slice(&length.to_le_bytes());
    body
}

/// Overwrites all that may be a length in the flatbuffers after the first.
fn lengths(mut body: Vec<u8>, value: i64) -> Vec<u8> {
    let limit = i64::try_from(body.len()).unwrap();
    for (at, length) in messages(&body).into_iter().skip(1) {
        for word in body[at + 8..at + 8 + length].chunks_exact_mut(8) {
            let said = i64::from_le_bytes((&*word).try_into().unwrap());
            if (1..=limit).contains(&said) {
                word.copy_from_slice(&value.to_le_bytes());
            }
        }
    }
    body
}

/// Spoils the texts that all replies have: the server's name in the metadata, or the name of the column.
fn invalid_utf8(mut body: Vec<u8>) -> Vec<u8> {
    let mut spoiled = 0;
    for text in [b"result".as_slice(), b"execution_id", b"\x01\0\0\0a\0\0\0"] {
        for at in 0..body.len().saturating_sub(text.len()) {
            if body[at..].starts_with(text) {
                let first = at + text.iter().position(u8::is_ascii_alphabetic).unwrap();
                body[first] = 0xff;
                spoiled += 1;
            }
        }
    }
    assert!(spoiled > 0, "nothing to spoil");
    body
}

static GZIP: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&vec![0; BOMB]).unwrap();
    encoder.finish().unwrap()
});
static ZSTD: LazyLock<Vec<u8>> = LazyLock::new(|| zstd::encode_all(&*vec![0; BOMB], 1).unwrap());

fn bomb(coding: &str) -> Vec<u8> {
    if coding == "gzip" { GZIP.clone() } else { ZSTD.clone() }
}

/// The messages after the first, twice.
fn two_batches(body: Vec<u8>) -> Vec<u8> {
    let Some(&(second, _)) = messages(&body).get(1) else { return body };
    let end = (second..body.len()).step_by(8).find(|&at| body[at..].starts_with(b"\xff\xff\xff\xff\0\0\0\0")).unwrap();
    [&body[..end], &body[second..]].concat()
}
