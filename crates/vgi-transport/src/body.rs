//! The body of a request: pieces that go to the socket as they are.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures_util::Stream;
use tokio::sync::Notify;
use tokio::time::Instant;
use vgi_wire::ipc::Segments;

use crate::runtime::lock;

/// Pieces below this are joined: a write for each of the many paddings and headers of a batch costs more than copying them.
const SMALL: usize = 4 << 10;
/// Pieces above this are cut, so that the clock of a slow upload sees it move.
const LARGE: usize = 256 << 10;

/// Where a request is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No connection has asked for the body yet.
    Waiting,
    /// The connection has taken a part of it.
    Moving,
    /// The connection has taken all, or there is none.
    Sent,
}

/// How far the upload is; written by the connection, read by the clocks.
#[derive(Debug)]
pub(crate) struct Progress {
    /// When the connection last took a piece, or when the request was made.
    upload: Mutex<(Stage, Instant)>,
    staged: Notify,
}

impl Progress {
    pub(crate) fn new(stage: Stage) -> Arc<Self> {
        Arc::new(Self { upload: Mutex::new((stage, Instant::now())), staged: Notify::new() })
    }

    pub(crate) fn get(&self) -> (Stage, Instant) {
        *lock(&self.upload)
    }

    fn moved(&self, stage: Stage) {
        let (before, _) = std::mem::replace(&mut *lock(&self.upload), (stage, Instant::now()));
        if before != stage {
            self.staged.notify_one();
        }
    }

    /// Returns when the stage has changed.
    pub(crate) async fn staged(&self) {
        self.staged.notified().await;
    }
}

/// The pieces that no connection has taken yet. Until one takes the first, all can be offered to another.
#[derive(Clone)]
pub(crate) struct Outgoing(Arc<Mutex<VecDeque<Bytes>>>);

impl Outgoing {
    pub(crate) fn new(body: Segments) -> Self {
        Self(Arc::new(Mutex::new(arrange(body))))
    }

    /// A stream of the pieces for one connection.
    pub(crate) fn pieces(&self, progress: Arc<Progress>) -> Pieces {
        Pieces { queue: Arc::clone(&self.0), progress }
    }
}

/// A stream of the pieces.
pub(crate) struct Pieces {
    queue: Arc<Mutex<VecDeque<Bytes>>>,
    progress: Arc<Progress>,
}

impl Stream for Pieces {
    type Item = Result<Bytes, Infallible>;

    fn poll_next(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut queue = lock(&self.queue);
        let piece = queue.pop_front();
        if piece.is_some() {
            self.progress.moved(if queue.is_empty() { Stage::Sent } else { Stage::Moving });
        }
        Poll::Ready(piece.map(Ok))
    }
}

fn arrange(body: Segments) -> VecDeque<Bytes> {
    let mut out = VecDeque::new();
    let mut small = BytesMut::new();
    for mut piece in body {
        if piece.len() < SMALL {
            small.extend_from_slice(&piece);
            if small.len() >= LARGE {
                out.push_back(small.split().freeze());
            }
            continue;
        }
        if !small.is_empty() {
            out.push_back(small.split().freeze());
        }
        while piece.len() > LARGE {
            out.push_back(piece.split_to(LARGE));
        }
        out.push_back(piece);
    }
    if !small.is_empty() {
        out.push_back(small.freeze());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_pieces_are_joined_and_large_ones_cut_without_copying() {
        let large = Bytes::from(vec![7u8; LARGE * 2 + 1]);
        let mut body = Segments::new();
        for piece in [Bytes::from_static(b"ab"), Bytes::from_static(b"cd"), large.clone(), Bytes::from_static(b"e")] {
            body.push(piece);
        }
        let whole = body.to_bytes();
        let pieces = arrange(body);
        assert_eq!(pieces.iter().map(Bytes::len).collect::<Vec<_>>(), [4, LARGE, LARGE, 1, 1]);
        assert_eq!(pieces[1].as_ptr(), large.as_ptr());
        assert_eq!(Vec::from(pieces).concat(), whole);
        assert!(arrange(Segments::new()).is_empty());
    }
}
