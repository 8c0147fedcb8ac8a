//! A body as a list of pieces.

use bytes::{Bytes, BytesMut};

/// Bytes in several pieces that are sent one after the other and never joined on the way.
#[derive(Clone, Debug, Default)]
pub struct Segments {
    pieces: Vec<Bytes>,
    len: usize,
}

impl Segments {
    /// No bytes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a piece at the end.
    pub fn push(&mut self, piece: Bytes) {
        if !piece.is_empty() {
            self.len += piece.len();
            self.pieces.push(piece);
        }
    }

    /// Adds all pieces of another body at the end.
    pub fn extend(&mut self, other: Self) {
        self.len += other.len;
        self.pieces.extend(other.pieces);
    }

    /// Length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes in one piece; copies when there are several.
    pub fn to_bytes(&self) -> Bytes {
        match self.pieces.as_slice() {
            [] => Bytes::new(),
            [one] => one.clone(),
            many => {
                let mut joined = BytesMut::with_capacity(self.len);
                for piece in many {
                    joined.extend_from_slice(piece);
                }
                joined.freeze()
            }
        }
    }

    /// The pieces in order.
    pub fn iter(&self) -> impl Iterator<Item = &Bytes> {
        self.pieces.iter()
    }
}

impl IntoIterator for Segments {
    type Item = Bytes;
    type IntoIter = std::vec::IntoIter<Bytes>;

    fn into_iter(self) -> Self::IntoIter {
        self.pieces.into_iter()
    }
}

impl From<Bytes> for Segments {
    fn from(piece: Bytes) -> Self {
        let mut segments = Self::new();
        segments.push(piece);
        segments
    }
}

impl From<Vec<u8>> for Segments {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from(Bytes::from(bytes))
    }
}
