//! Writing of streams.
//!
//! The arrow crate encodes arrays into buffers without copying them; this module puts the metadata into the message headers, and lets
//! a binary column be given as [`Segments`], so that an envelope around a payload never copies the payload.

use arrow_array::RecordBatch;
use arrow_ipc::writer::{IpcWriteOptions, StreamEncoder};
use arrow_ipc::{Buffer as BufferSpan, MessageHeader, MetadataVersion};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;

use super::Segments;
use super::message::{self, ALIGNMENT, BatchHeader, CONTINUATION, END_OF_STREAM, padding};
use super::validate::buffer_count;
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
        let pieces = self.encoder.encode(batch).map_err(WireError::Encode)?;
        let mut parts = Pieces::new(pieces.into_iter().map(to_bytes).collect());
        while let Some(part) = parts.next_message()? {
            match part.header {
                Some(header) if !metadata.is_empty() => self.out.push(header.write(part.body.len(), metadata)?),
                _ => self.out.extend(part.head),
            }
            self.out.extend(part.body);
        }
        Ok(())
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

/// A binary value given in pieces: it takes the place of the (empty) value of the column.
pub struct Blob {
    /// Position of the column; its type is `Binary`.
    pub column: usize,
    /// The value.
    pub value: Segments,
}

/// A stream of one batch with one row in which some binary columns hold [`Blob`]s. The blobs' pieces go into the body as they are.
///
/// # Errors
/// When the row cannot be written, or a blob passes the 2 GiB that a binary value may have.
pub fn encode_row(row: &RecordBatch, blobs: Vec<Blob>, metadata: &[(&str, &str)]) -> Result<Segments, WireError> {
    if blobs.is_empty() {
        return encode_stream(row, metadata);
    }
    let mut writer = StreamWriter::new(row.schema_ref())?;
    let pieces = writer.encoder.encode(row).map_err(WireError::Encode)?;
    let mut parts = Pieces::new(pieces.into_iter().map(to_bytes).collect());
    while let Some(part) = parts.next_message()? {
        match part.header {
            None => {
                writer.out.extend(part.head);
                writer.out.extend(part.body);
            }
            Some(header) => {
                let (head, body) = with_blobs(row.schema_ref(), header, &part.body.to_bytes(), &blobs, metadata)?;
                writer.out.push(head);
                writer.out.extend(body);
            }
        }
    }
    writer.finish()
}

/// Rebuilds a record batch message with the blobs in place of empty values. `body` is small: it holds everything but the blobs.
fn with_blobs(
    schema: &Schema,
    mut header: BatchHeader,
    body: &Bytes,
    blobs: &[Blob],
    metadata: &[(&str, &str)],
) -> Result<(Bytes, Segments), WireError> {
    let places: Vec<_> = blobs
        .iter()
        .map(|blob| Ok((first_buffer(schema, blob.column)?, &blob.value)))
        .collect::<Result<_, WireError>>()?;
    let mut out = Segments::new();
    for (index, span) in header.buffers.iter_mut().enumerate() {
        let value = if let Some((_, blob)) = places.iter().find(|(first, _)| first + 1 == index) {
            Segments::from(offsets(blob.len())?)
        } else if let Some((_, blob)) = places.iter().find(|(first, _)| first + 2 == index) {
            (*blob).clone()
        } else {
            Segments::from(slice(body, *span)?)
        };
        *span = BufferSpan::new(to_i64(out.len())?, to_i64(value.len())?);
        let pad = padding(value.len());
        out.extend(value);
        out.push(Bytes::from_static(pad));
    }
    Ok((header.write(out.len(), metadata)?, out))
}

/// The offsets buffer of a binary array of one value.
fn offsets(len: usize) -> Result<Vec<u8>, WireError> {
    let end = i32::try_from(len).map_err(|_| {
        WireError::TooLarge(format!("a value of {len} bytes exceeds the 2 GiB that one request can carry"))
    })?;
    Ok([0_i32.to_le_bytes(), end.to_le_bytes()].concat())
}

fn to_i64(value: usize) -> Result<i64, WireError> {
    i64::try_from(value).map_err(WireError::corrupt)
}

fn slice(body: &Bytes, span: BufferSpan) -> Result<Bytes, WireError> {
    let start = usize::try_from(span.offset()).map_err(WireError::corrupt)?;
    let len = usize::try_from(span.length()).map_err(WireError::corrupt)?;
    match start.checked_add(len) {
        Some(end) if end <= body.len() => Ok(body.slice(start..end)),
        _ => Err(WireError::corrupt("a buffer outside its body")),
    }
}

/// Index of the validity buffer of a top-level binary column.
fn first_buffer(schema: &Schema, column: usize) -> Result<usize, WireError> {
    let field: Option<&Field> = schema.fields().get(column).map(AsRef::as_ref);
    if field.is_none_or(|field| *field.data_type() != DataType::Binary) {
        return Err(WireError::protocol("a blob needs a column of type binary"));
    }
    schema.fields().iter().take(column).map(|field| buffer_count(field.data_type())).sum()
}

/// One message as the encoder gave it: the framed header and the body.
struct Part {
    /// Present for record batches.
    header: Option<BatchHeader>,
    head: Segments,
    body: Segments,
}

/// Groups the encoder's pieces into messages again.
struct Pieces {
    pieces: std::collections::VecDeque<Bytes>,
}

impl Pieces {
    fn new(pieces: std::collections::VecDeque<Bytes>) -> Self {
        Self { pieces }
    }

    fn next_message(&mut self) -> Result<Option<Part>, WireError> {
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
