//! The faults by name, and the calls that they are switched on for.

use std::fmt;
use std::str::FromStr;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call is answered; then nobody listens any more, until [`listen_again`](super::FaultyHandle::listen_again).
    RefuseAfterwards,
    /// The connection is reset when the head of the request is there.
    ResetBeforeTheBody,
    /// The connection is reset when the server has done what was asked.
    ResetAfterTheRequest,
    /// The same within the head of the reply.
    ResetInTheHead,
    /// The same within the body of the reply.
    ResetInTheBody,
    /// The connection is closed, in order, instead of a reply.
    CloseAfterTheRequest,
    /// The body of the request is never read.
    StallBeforeReading,
    /// No reply comes.
    StallBeforeTheHead,
    /// The reply stops within its head.
    StallInTheHead,
    /// The reply stops within its body.
    StallInTheBody,
    /// The reply comes byte by byte, with so many milliseconds between two.
    Drip(u64),
    /// A redirect of this status to another origin.
    Redirect(u16),
    /// This status, with a text.
    Status(u16),
    /// 503 with `Retry-After` of so many seconds.
    RetryAfter(u64),
    /// A web page.
    Html,
    /// Something that is not HTTP.
    NoHttp,
    /// The reply without its last bytes.
    TruncatedBy(usize),
    /// The first half of the reply.
    TruncatedInTheMiddle,
    /// Bytes that mean nothing.
    Garbage,
    /// A body without bytes.
    Empty,
    /// A batch of other columns.
    WrongSchema,
    /// A batch of the right columns with types that they never have.
    WrongTypes,
    /// The length of a message is this.
    MessageLength(i32),
    /// The lengths, offsets and counts in the messages are this.
    Lengths(i64),
    /// Texts that are not UTF-8.
    InvalidUtf8,
    /// A small body that says it is a large one, coded with zstd.
    ZipBomb,
    /// The same with gzip.
    GzipBomb,
    /// A body that is not what its coding says.
    NotWhatTheCodingSays,
    /// A coding that nobody knows.
    UnknownCoding,
    /// A stream without the batch that is due.
    NoRow,
    /// Two batches where one is due.
    TwoBatches,
    /// Two streams more than are due.
    TwoStreamsMore,
    /// The reply of `init` without the stream that is its header.
    NoHeader,
    /// A turn that gives no row and the same token again.
    EndlessToken,
}

/// No fault has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no fault; there are: {list}", list = known())]
pub struct UnknownFault(String);

/// The names with an example of what stands behind the colon.
const EXAMPLES: [Fault; 34] = [
    Fault::RefuseAfterwards,
    Fault::ResetBeforeTheBody,
    Fault::ResetAfterTheRequest,
    Fault::ResetInTheHead,
    Fault::ResetInTheBody,
    Fault::CloseAfterTheRequest,
    Fault::StallBeforeReading,
    Fault::StallBeforeTheHead,
    Fault::StallInTheHead,
    Fault::StallInTheBody,
    Fault::Drip(1000),
    Fault::Redirect(301),
    Fault::Status(500),
    Fault::RetryAfter(1),
    Fault::Html,
    Fault::NoHttp,
    Fault::TruncatedBy(8),
    Fault::TruncatedInTheMiddle,
    Fault::Garbage,
    Fault::Empty,
    Fault::WrongSchema,
    Fault::WrongTypes,
    Fault::MessageLength(-1),
    Fault::Lengths(-1),
    Fault::InvalidUtf8,
    Fault::ZipBomb,
    Fault::GzipBomb,
    Fault::NotWhatTheCodingSays,
    Fault::UnknownCoding,
    Fault::NoRow,
    Fault::TwoBatches,
    Fault::TwoStreamsMore,
    Fault::NoHeader,
    Fault::EndlessToken,
];

fn known() -> String {
    EXAMPLES.map(|fault| fault.to_string()).join(", ")
}

impl Fault {
    /// Every fault, with an example of its parameter.
    #[must_use]
    pub fn all() -> [Self; 34] {
        EXAMPLES
    }

    fn name(self) -> &'static str {
        match self {
            Self::RefuseAfterwards => "refuse-afterwards",
            Self::ResetBeforeTheBody => "reset-before-the-body",
            Self::ResetAfterTheRequest => "reset-after-the-request",
            Self::ResetInTheHead => "reset-in-the-head",
            Self::ResetInTheBody => "reset-in-the-body",
            Self::CloseAfterTheRequest => "close-after-the-request",
            Self::StallBeforeReading => "stall-before-reading",
            Self::StallBeforeTheHead => "stall-before-the-head",
            Self::StallInTheHead => "stall-in-the-head",
            Self::StallInTheBody => "stall-in-the-body",
            Self::Drip(_) => "drip",
            Self::Redirect(_) => "redirect",
            Self::Status(_) => "status",
            Self::RetryAfter(_) => "retry-after",
            Self::Html => "html",
            Self::NoHttp => "no-http",
            Self::TruncatedBy(_) => "truncated-by",
            Self::TruncatedInTheMiddle => "truncated-in-the-middle",
            Self::Garbage => "garbage",
            Self::Empty => "empty",
            Self::WrongSchema => "wrong-schema",
            Self::WrongTypes => "wrong-types",
            Self::MessageLength(_) => "message-length",
            Self::Lengths(_) => "lengths",
            Self::InvalidUtf8 => "invalid-utf8",
            Self::ZipBomb => "zip-bomb",
            Self::GzipBomb => "gzip-bomb",
            Self::NotWhatTheCodingSays => "not-what-the-coding-says",
            Self::UnknownCoding => "unknown-coding",
            Self::NoRow => "no-row",
            Self::TwoBatches => "two-batches",
            Self::TwoStreamsMore => "two-streams-more",
            Self::NoHeader => "no-header",
            Self::EndlessToken => "endless-token",
        }
    }

    fn parameter(self) -> Option<i64> {
        match self {
            Self::Redirect(status) | Self::Status(status) => Some(status.into()),
            Self::Drip(value) | Self::RetryAfter(value) => i64::try_from(value).ok(),
            Self::TruncatedBy(count) => i64::try_from(count).ok(),
            Self::MessageLength(length) => Some(length.into()),
            Self::Lengths(value) => Some(value),
            _ => None,
        }
    }

    fn with(self, parameter: Option<&str>) -> Option<Self> {
        let Some(text) = parameter else { return Some(self) };
        match self {
            Self::Drip(_) => text.parse().ok().map(Self::Drip),
            Self::Redirect(_) => text.parse().ok().map(Self::Redirect),
            Self::Status(_) => text.parse().ok().map(Self::Status),
            Self::RetryAfter(_) => text.parse().ok().map(Self::RetryAfter),
            Self::TruncatedBy(_) => text.parse().ok().map(Self::TruncatedBy),
            Self::MessageLength(_) => text.parse().ok().map(Self::MessageLength),
            Self::Lengths(_) => text.parse().ok().map(Self::Lengths),
            _ => None,
        }
    }
}

/// `name`, or `name:parameter`.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.parameter() {
            Some(parameter) => write!(f, "{}:{parameter}", self.name()),
            None => f.write_str(self.name()),
        }
    }
}

/// The parameter may be left out.
impl FromStr for Fault {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        let (name, parameter) =
            text.trim().split_once(':').map_or((text.trim(), None), |(name, parameter)| (name, Some(parameter)));
        let fault = EXAMPLES.into_iter().find(|fault| fault.name() == name);
        fault.and_then(|fault| fault.with(parameter)).ok_or_else(|| UnknownFault(text.to_owned()))
    }
}

/// Which calls go wrong, and how: `call=fault`, or `call#number=fault` for one of them alone, the first being 1.
///
/// A call has the name of its method, where `table_buffering_` and `catalog_` may be left out; a turn of a stream is `turn`, and `*` is
/// every call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub(super) call: String,
    pub(super) number: Option<usize>,
    pub(super) fault: Fault,
}

impl Rule {
    pub(super) fn concerns(&self, call: &str, number: usize) -> bool {
        (self.call == "*" || self.call == call) && self.number.is_none_or(|wanted| wanted == number)
    }
}

impl FromStr for Rule {
    type Err = UnknownFault;

    fn from_str(text: &str) -> Result<Self, UnknownFault> {
        let unknown = || UnknownFault(text.to_owned());
        let (call, fault) = text.split_once('=').ok_or_else(unknown)?;
        let (call, number) = match call.split_once('#') {
            Some((call, number)) => (call, Some(number.parse().map_err(|_| unknown())?)),
            None => (call, None),
        };
        Ok(Self { call: short(call.trim()).to_owned(), number, fault: fault.parse()? })
    }
}

/// The name of a method as rules have it.
pub(super) fn short(method: &str) -> &str {
    let buffering = method.strip_prefix("table_buffering_");
    buffering.or_else(|| method.strip_prefix("catalog_")).unwrap_or(method)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_and_rules_are_read_as_they_are_written() {
        for fault in Fault::all() {
            assert_eq!(fault.to_string().parse(), Ok(fault));
        }
        assert_eq!("status".parse(), Ok(Fault::Status(500)));
        assert_eq!("lengths:4611686018427387904".parse(), Ok(Fault::Lengths(1 << 62)));
        for bad in ["", "rest", "status:x", "status:70000", "html:1"] {
            assert!(bad.parse::<Fault>().unwrap_err().to_string().contains("there are: refuse-afterwards, "), "{bad}");
        }
        let rule: Rule = "table_buffering_process#2=html".parse().unwrap();
        assert_eq!(rule, Rule { call: "process".to_owned(), number: Some(2), fault: Fault::Html });
        assert!(rule.concerns("process", 2) && !rule.concerns("process", 1) && !rule.concerns("bind", 2));
        assert!("*=html".parse::<Rule>().unwrap().concerns("anything", 9));
        assert!("process".parse::<Rule>().is_err() && "a#b=html".parse::<Rule>().is_err());
    }
}
