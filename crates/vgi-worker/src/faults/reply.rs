//! What is sent in place of a good reply.

use std::time::Duration;

use crate::faults::fault::Fault;
use crate::faults::http::Head;
use crate::faults::spoil;

/// The bytes that a client gets, and how.
#[derive(Debug)]
pub(super) enum Sent {
    /// All of them; the connection goes on.
    Whole(Vec<u8>),
    /// These, then the connection is closed.
    Closed(Vec<u8>),
    /// These, then the connection is reset.
    Reset(Vec<u8>),
    /// These, then nothing until the client goes away.
    Stalled(Vec<u8>),
    /// One after the other.
    Dripping(Vec<u8>, Duration),
    /// All of them, then the connection is closed and nobody listens any more.
    Last(Vec<u8>),
}

/// A good reply, as the server gave it.
pub(super) struct Good<'a> {
    pub(super) head: Head,
    pub(super) body: Vec<u8>,
    /// The body of the request that it answers.
    pub(super) asked: &'a [u8],
}

impl Good<'_> {
    /// The reply, spoiled.
    pub(super) fn spoiled(self, fault: Fault) -> Sent {
        let Self { head, body, asked } = self;
        let whole = message(head.clone(), body.clone());
        let head_end = whole.len() - body.len();
        let until = |end: usize| whole.get(..end).unwrap_or_default().to_vec();
        let with = |body: Vec<u8>| Sent::Whole(message(head.clone(), body));
        match fault {
            Fault::RefuseAfterwards => Sent::Last(message(head.with("Connection", "close"), body)),
            Fault::ResetBeforeTheBody | Fault::ResetAfterTheRequest => Sent::Reset(Vec::new()),
            Fault::ResetInTheHead => Sent::Reset(until(head_end / 2)),
            Fault::ResetInTheBody => Sent::Reset(until(head_end + body.len() / 2)),
            Fault::CloseAfterTheRequest => Sent::Closed(Vec::new()),
            Fault::StallBeforeReading | Fault::StallBeforeTheHead => Sent::Stalled(Vec::new()),
            Fault::StallInTheHead => Sent::Stalled(until(head_end / 2)),
            Fault::StallInTheBody => Sent::Stalled(until(head_end + body.len() / 2)),
            Fault::Drip(pause) => Sent::Dripping(whole, Duration::from_millis(pause)),
            Fault::Redirect(status) => {
                Sent::Whole(text(status, "text/html", "moved", &[("Location", "http://elsewhere.invalid/")]))
            }
            Fault::Status(status) => Sent::Whole(text(status, "text/plain", "the reason", &[])),
            Fault::RetryAfter(seconds) => {
                let seconds = seconds.to_string();
                Sent::Whole(text(503, "text/plain", "the reason", &[("Retry-After", seconds.as_str())]))
            }
            Fault::Html => Sent::Whole(text(200, "text/html", "<html><b>Sign in</b></html>", &[])),
            Fault::NoHttp => Sent::Closed(b"\x16\x03\x01 this is not HTTP\r\n\r\n".to_vec()),
            Fault::TruncatedBy(count) => {
                with(body.get(..body.len().saturating_sub(count)).unwrap_or_default().to_vec())
            }
            Fault::TruncatedInTheMiddle => with(body.get(..body.len() / 2).unwrap_or_default().to_vec()),
            Fault::Garbage => with(body.iter().map(|byte| byte ^ 0x5a).collect()),
            Fault::Empty => with(Vec::new()),
            Fault::WrongSchema => with(spoil::other_columns()),
            Fault::WrongTypes => with(spoil::other_types()),
            Fault::MessageLength(length) => with(spoil::message_length(body, length)),
            Fault::Lengths(value) => with(spoil::lengths(body, value)),
            Fault::InvalidUtf8 => with(spoil::invalid_utf8(body)),
            Fault::ZipBomb => Sent::Whole(message(head.with("Content-Encoding", "zstd"), spoil::zstd_bomb())),
            Fault::GzipBomb => Sent::Whole(message(head.with("Content-Encoding", "gzip"), spoil::gzip_bomb())),
            Fault::NotWhatTheCodingSays => Sent::Whole(message(head.with("X-VGI-Content-Encoding", "zstd"), body)),
            Fault::UnknownCoding => Sent::Whole(message(head.with("Content-Encoding", "br"), body)),
            Fault::NoRow => with(spoil::no_row()),
            Fault::TwoBatches => with(spoil::two_batches(body)),
            Fault::TwoStreamsMore => with([body.clone(), body.clone(), body].concat()),
            Fault::NoHeader => with(spoil::without_first_stream(body)),
            Fault::EndlessToken => with(spoil::same_token(body, asked)),
        }
    }

    pub(super) fn unspoiled(self) -> Sent {
        Sent::Whole(message(self.head, self.body))
    }
}

fn message(head: Head, body: Vec<u8>) -> Vec<u8> {
    let length = body.len().to_string();
    [head.without(&["content-length"]).with("Content-Length", &length).bytes(), body].concat()
}

fn text(status: u16, kind: &str, body: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let head = Head { first: format!("HTTP/1.1 {status} Status"), headers: Vec::new() }.with("Content-Type", kind);
    let head = headers.iter().fold(head, |head, (name, value)| head.with(name, value));
    message(head, body.as_bytes().to_vec())
}
