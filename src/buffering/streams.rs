//! The finalize streams of an execution: which are open, and which one a source thread reads next.

use std::collections::VecDeque;

use bytes::Bytes;

/// All streams of one execution; `S` is an open one.
pub(super) struct Streams<S> {
    /// Ids in combine's order, not opened yet.
    unopened: VecDeque<Bytes>,
    open: VecDeque<S>,
    /// Open streams that source threads hold.
    taken: usize,
    /// Open streams at once.
    bound: usize,
    /// One stream after the other, in combine's order.
    ordered: bool,
}

impl<S> Default for Streams<S> {
    fn default() -> Self {
        Self { unopened: VecDeque::new(), open: VecDeque::new(), taken: 0, bound: 1, ordered: false }
    }
}

impl<S> Streams<S> {
    pub(super) fn new(ids: Vec<Bytes>, bound: usize, ordered: bool) -> Self {
        Self { unopened: ids.into(), bound: bound.max(1), ordered, ..Self::default() }
    }

    /// A stream to read a batch from; `None` when this thread is not needed any more. Opens streams ahead of their use, up to the bound,
    /// so that their first batches are on the way together. Where order does not matter, one that has a batch goes first.
    pub(super) fn take<E>(
        &mut self,
        mut open: impl FnMut(Bytes) -> Result<S, E>,
        is_ready: impl Fn(&S) -> bool,
    ) -> Result<Option<S>, E> {
        while self.open.len() + self.taken < self.bound {
            let Some(id) = self.unopened.pop_front() else { break };
            self.open.push_back(open(id)?);
        }
        let next = if self.ordered { 0 } else { self.open.iter().position(is_ready).unwrap_or(0) };
        let stream = self.open.remove(next);
        self.taken += usize::from(stream.is_some());
        Ok(stream)
    }

    /// Gives a stream back that may have more batches.
    pub(super) fn put_back(&mut self, stream: S) {
        self.taken = self.taken.saturating_sub(1);
        if self.ordered { self.open.push_front(stream) } else { self.open.push_back(stream) }
    }

    /// A taken stream has come to its end.
    pub(super) fn ended(&mut self) {
        self.taken = self.taken.saturating_sub(1);
    }

    /// How many streams can be read at once.
    pub(super) fn width(&self) -> usize {
        if self.ordered { 1 } else { (self.unopened.len() + self.open.len() + self.taken).min(self.bound) }
    }

    /// Whether nothing is left to read.
    pub(super) fn is_done(&self) -> bool {
        self.unopened.is_empty() && self.open.is_empty() && self.taken == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(count: u8, bound: usize, ordered: bool) -> Streams<Bytes> {
        Streams::new((0..count).map(|id| Bytes::from(vec![id])).collect(), bound, ordered)
    }

    fn take(streams: &mut Streams<Bytes>, ready: &[u8]) -> Option<u8> {
        let taken = streams.take(Ok::<_, ()>, |stream| ready.contains(&stream[0])).unwrap();
        taken.map(|stream| stream[0])
    }

    #[test]
    fn as_many_are_open_as_allowed() {
        let mut streams = streams(5, 3, false);
        assert_eq!(streams.width(), 3);
        assert_eq!(take(&mut streams, &[]), Some(0));
        assert_eq!((streams.open.len(), streams.unopened.len()), (2, 2));
        assert_eq!(take(&mut streams, &[]), Some(1));
        assert_eq!(take(&mut streams, &[]), Some(2));
        assert_eq!(take(&mut streams, &[]), None, "all that may be open are held by others");
        streams.ended();
        assert_eq!(take(&mut streams, &[]), Some(3));
    }

    #[test]
    fn a_stream_with_a_batch_goes_first_and_waits_its_turn_again() {
        let mut streams = streams(3, 3, false);
        assert_eq!(take(&mut streams, &[2]), Some(2));
        streams.put_back(Bytes::from_static(&[2]));
        assert_eq!(take(&mut streams, &[]), Some(0));
        streams.ended();
        assert_eq!(take(&mut streams, &[]), Some(1));
        streams.ended();
        assert_eq!(take(&mut streams, &[]), Some(2));
        streams.ended();
        assert!(streams.is_done());
    }

    #[test]
    fn order_is_kept_where_it_matters() {
        let mut streams = streams(3, 2, true);
        assert_eq!(streams.width(), 1);
        for id in 0..3 {
            assert_eq!(take(&mut streams, &[2]), Some(id));
            streams.put_back(Bytes::from(vec![id]));
            assert_eq!(take(&mut streams, &[1, 2]), Some(id));
            streams.ended();
        }
        assert!(streams.is_done());
        assert_eq!(take(&mut streams, &[]), None);
    }

    #[test]
    fn a_stream_that_cannot_be_opened_is_an_error() {
        let mut streams = streams(1, 1, false);
        assert_eq!(streams.take(|_| Err("no"), |_: &Bytes| true), Err("no"));
    }
}
