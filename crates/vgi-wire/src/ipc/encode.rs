//! Writing of streams.
//!
//! The arrow crate encodes arrays into buffers without copying them; this module puts the metadata into the message headers.

use std::collections::VecDeque;

use arrow_array::RecordBatch;
use arrow_ipc::writer::{IpcWriteOptions, StreamEncoder};
use arrow_ipc::{MessageHeader, MetadataVersion};
use arrow_schema::Schema;
use bytes::Bytes;

use super::message::{self, ALIGNMENT, BatchHeader, CONTINUATION, END_OF_STREAM};
use super::{Blob, RowTemplate, Segments};
use crate::WireError;

/// Writes one IPC stream: schema, batches, end marker.
pub struct StreamWriter {
    encoder: StreamEncoder,
    out: Segments,
}

impl StreamWriter {
    /// A stream of batches with this schema.
    ///
    /// # Errors
    /// When the schema cannot be written as IPC.
    pub fn new(schema: &Schema) -> Result<Self, WireError> {
        let options = IpcWriteOptions::try_new(ALIGNMENT, false, MetadataVersion::V5).map_err(WireError::Encode)?;
        let encoder = StreamEncoder::try_new_with_options(schema, options).map_err(WireError::Encode)?;
        Ok(Self { encoder, out: Segments::new() })
    }

    /// Adds a batch (and the dictionaries that it needs). Its buffers become pieces of the body without being copied.
    ///
    /// # Errors
    /// When an array cannot be written as IPC.
    pub fn write(&mut self, batch: &RecordBatch, metadata: &[(&str, &str)]) -> Result<(), WireError> {
        let mut parts = self.parts(batch)?;
        while let Some(part) = parts.next_message()? {
            match part.header {
                Some(header) if !metadata.is_empty() => {
                    self.out.push(header.write(&header.buffers, part.body.len(), metadata)?);
                }
                _ => self.out.extend(part.head),
            }
            self.out.extend(part.body);
        }
        Ok(())
    }

    /// Bytes so far.
    pub(crate) fn len(&self) -> usize {
        self.out.len()
    }

    /// The messages that a batch becomes.
    pub(super) fn parts(&mut self, batch: &RecordBatch) -> Result<Pieces, WireError> {
        let pieces = self.encoder.encode(batch).map_err(WireError::Encode)?;
        Ok(Pieces { pieces: pieces.into_iter().map(to_bytes).collect() })
    }

    /// Ends the stream and gives its bytes.
    ///
    /// # Errors
    /// When no batch was written and the schema cannot be written.
    pub fn finish(mut self) -> Result<Segments, WireError> {
        for piece in self.encoder.finish().map_err(WireError::Encode)? {
            self.out.push(to_bytes(piece));
        }
        Ok(self.out)
    }
}

fn to_bytes(buffer: arrow_buffer::Buffer) -> Bytes {
    Bytes::from_owner(buffer)
}

/// A stream of one batch.
///
/// # Errors
/// When the batch cannot be written as IPC.
pub fn encode_stream(batch: &RecordBatch, metadata: &[(&str, &str)]) -> Result<Segments, WireError> {
    let mut writer = StreamWriter::new(batch.schema_ref())?;
    writer.write(batch, metadata)?;
    writer.finish()
}

/// Only the schema message, without end marker: how records carry a schema.
///
/// # Errors
/// When the schema cannot be written as IPC.
pub fn encode_schema(schema: &Schema) -> Result<Bytes, WireError> {
    let body = StreamWriter::new(schema)?.finish()?.to_bytes();
    let len = body.len().checked_sub(END_OF_STREAM.len()).ok_or(WireError::Truncated("a schema without end marker"))?;
    Ok(body.slice(..len))
}

/// A stream of one batch with one row in which some binary columns hold [`Blob`]s. The blobs' pieces go into the body as they are.
///
/// # Errors
/// When the row cannot be written, or a blob passes the 2 GiB that a binary value may have.
pub fn encode_row(row: &RecordBatch, blobs: Vec<Blob>, metadata: &[(&str, &str)]) -> Result<Segments, WireError> {
    if blobs.is_empty() {
        return encode_stream(row, metadata);
    }
    RowTemplate::new(row, metadata)?.fill(&blobs, None)
}

/// One message as the encoder gave it: the framed header and the body.
pub(super) struct Part {
    /// Present for record batches.
    pub(super) header: Option<BatchHeader>,
    pub(super) head: Segments,
    pub(super) body: Segments,
}

/// Groups the encoder's pieces into messages again.
pub(super) struct Pieces {
    pieces: VecDeque<Bytes>,
}

impl Pieces {
    pub(super) fn next_message(&mut self) -> Result<Option<Part>, WireError> {
        if self.pieces.iter().all(Bytes::is_empty) {
            return Ok(None);
        }
        let prefix = self.take(8)?;
        let frame = prefix.to_bytes();
        let length = frame
            .strip_prefix(&CONTINUATION)
            .and_then(|length| <[u8; 4]>::try_from(length).ok())
            .and_then(|length| usize::try_from(u32::from_le_bytes(length)).ok())
            .ok_or_else(|| WireError::corrupt("the encoder gave a message without a mark"))?;
        let flatbuffer = self.take(length)?;
        let (header, body_len) = {
            let joined = flatbuffer.to_bytes();
            let message = message::parse(&joined)?;
            let batch = message.header_type() == MessageHeader::RecordBatch;
            (batch.then(|| BatchHeader::read(&message)).transpose()?, message.bodyLength())
        };
        let body = self.take(usize::try_from(body_len).map_err(WireError::corrupt)?)?;
        let mut head = prefix;
        head.extend(flatbuffer);
        Ok(Some(Part { header, head, body }))
    }

    /// The next `len` bytes.
    fn take(&mut self, mut len: usize) -> Result<Segments, WireError> {
        let mut out = Segments::new();
        while len > 0 {
            let mut piece = self.pieces.pop_front().ok_or(WireError::Truncated("the encoder gave too few bytes"))?;
            if piece.len() > len {
                let rest = piece.split_off(len);
                self.pieces.push_front(rest);
            }
            len -= piece.len();
            out.push(piece);
        }
        Ok(out)
    }
}
