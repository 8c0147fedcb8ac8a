//! HTTP/1.1 as bytes: reading requests and replies whole, with nothing done behind one's back.

use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// More than any head of a client that is tested.
const HEAD_LIMIT: usize = 256 << 10;
/// Between two looks at whether the server stops.
pub(super) const LOOK: Duration = Duration::from_millis(20);

/// The first line and the headers of a message.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) first: String,
    pub(super) headers: Vec<(String, String)>,
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8(bytes.to_vec()).ok()?;
        let mut lines = text.split("\r\n");
        let first = lines.next()?.to_owned();
        let header = |line: &str| line.split_once(':').map(|(name, value)| (name.to_owned(), value.trim().to_owned()));
        Some(Self { first, headers: lines.map(header).collect::<Option<_>>()? })
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Without headers of these names.
    pub(super) fn without(mut self, names: &[&str]) -> Self {
        self.headers.retain(|(header, _)| !names.iter().any(|name| header.eq_ignore_ascii_case(name)));
        self
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        let headers: String = self.headers.iter().flat_map(|(name, value)| [name, ": ", value, "\r\n"]).collect();
        format!("{}\r\n{headers}\r\n", self.first).into_bytes()
    }

    /// The path of a request.
    pub(super) fn path(&self) -> &str {
        self.first.split(' ').nth(1).unwrap_or_default()
    }

    fn length(&self) -> usize {
        self.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0)
    }
}

/// Reads messages from a connection until it ends or the server stops.
pub(super) struct Reader<'a> {
    pub(super) stream: &'a TcpStream,
    stop: &'a AtomicBool,
    read: Vec<u8>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(stream: &'a TcpStream, stop: &'a AtomicBool) -> Self {
        stream.set_read_timeout(Some(LOOK)).ok();
        Self { stream, stop, read: Vec::new() }
    }

    /// The head of the next message.
    pub(super) fn head(&mut self) -> Option<Head> {
        loop {
            if let Some(end) = self.read.windows(4).position(|window| window == b"\r\n\r\n") {
                let rest = self.read.split_off(end + 4);
                let head = std::mem::replace(&mut self.read, rest);
                return Head::parse(head.get(..end)?);
            }
            if self.read.len() > HEAD_LIMIT {
                return None;
            }
            self.fill()?;
        }
    }

    /// The body that belongs to a head.
    pub(super) fn body(&mut self, head: &Head) -> Option<Vec<u8>> {
        // nothing that is tested, and nothing that answers, sends chunks
        if head.get("transfer-encoding").is_some() {
            return None;
        }
        while self.read.len() < head.length() {
            self.fill()?;
        }
        let rest = self.read.split_off(head.length());
        Some(std::mem::replace(&mut self.read, rest))
    }

    /// Reads more; `None` when there is no more.
    pub(super) fn fill(&mut self) -> Option<()> {
        let mut piece = vec![0; 64 << 10];
        loop {
            if self.stop.load(Ordering::SeqCst) {
                return None;
            }
            match self.stream.read(&mut piece) {
                Ok(0) => return None,
                Ok(count) => {
                    self.read.extend_from_slice(piece.get(..count)?);
                    return Some(());
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                Err(_) => return None,
            }
        }
    }
}
