//! Streams of one row that are written again and again with little that differs.
//!
//! The arrow crate encodes the row once. To fill it in means to patch the lengths in its message header and to put the values
//! in their places, as pieces: an envelope around a payload never copies the payload.

use arrow_array::RecordBatch;
use arrow_ipc::Buffer as BufferSpan;
use arrow_schema::{DataType, Schema, SchemaRef};
use bytes::{BufMut, Bytes};

use super::Segments;
use super::encode::StreamWriter;
use super::message::{BatchHeader, END_OF_STREAM, padding};
use super::validate::buffer_count;
use crate::WireError;

/// A binary value given in pieces: it takes the place of the (empty) value of the column.
#[derive(Clone, Debug)]
pub struct Blob {
    /// Position of the column; its type is `Binary`.
    pub column: usize,
    /// The value.
    pub value: Segments,
}

/// An encoded row of which some values are filled in later.
#[derive(Clone, Debug)]
pub struct RowTemplate {
    schema: SchemaRef,
    /// The messages of the schema and of dictionaries.
    before: Bytes,
    header: BatchHeader,
    /// The row without the values; small.
    body: Bytes,
    metadata: Vec<(String, String)>,
}

impl RowTemplate {
    /// Encodes the row.
    ///
    /// # Errors
    /// When it cannot be written as IPC.
    pub fn new(row: &RecordBatch, metadata: &[(&str, &str)]) -> Result<Self, WireError> {
        let mut before = Segments::new();
        let mut batch = None;
        let mut writer = StreamWriter::new(row.schema_ref())?;
        let mut parts = writer.parts(row)?;
        while let Some(part) = parts.next_message()? {
            if let Some(header) = part.header {
                batch = Some((header, part.body.to_bytes()));
            } else {
                before.extend(part.head);
                before.extend(part.body);
            }
        }
        let (header, body) = batch.ok_or(WireError::Truncated("the encoder gave no batch"))?;
        let metadata = metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Ok(Self { schema: row.schema(), before: before.to_bytes(), header, body, metadata })
    }

    /// The stream with these blobs, and this integer, in the places of what the row has in their columns.
    ///
    /// # Errors
    /// When a column has another type, or a blob passes the 2 GiB that a binary value may have.
    pub fn fill(&self, blobs: &[Blob], integer: Option<(usize, i64)>) -> Result<Segments, WireError> {
        let mut contents = self.contents()?;
        let mut put = |index: usize, content| match contents.get_mut(index) {
            Some(place) => {
                *place = content;
                Ok(())
            }
            None => Err(WireError::corrupt("the encoder gave too few buffers")),
        };
        for blob in blobs {
            let first = first_buffer(&self.schema, blob.column, &DataType::Binary)?;
            put(first + 1, Content::Offsets(end_offset(blob.value.len())?))?;
            put(first + 2, Content::Pieces(&blob.value))?;
        }
        if let Some((column, value)) = integer {
            put(first_buffer(&self.schema, column, &DataType::Int64)? + 1, Content::Integer(value))?;
        }
        self.lay_out(&contents)
    }

    /// What the row itself has in each buffer.
    fn contents(&self) -> Result<Vec<Content<'_>>, WireError> {
        self.header.buffers.iter().map(|span| slice(&self.body, *span).map(Content::Bytes)).collect()
    }

    fn lay_out(&self, contents: &[Content<'_>]) -> Result<Segments, WireError> {
        let mut end = 0;
        let mut spans = Vec::with_capacity(contents.len());
        for content in contents {
            spans.push(BufferSpan::new(to_i64(end)?, to_i64(content.len())?));
            end += content.len() + padding(content.len()).len();
        }
        let metadata: Vec<_> = self.metadata.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let head = self.header.write(&spans, end, &metadata)?;
        let mut out = Segments::new();
        // between the pieces of two blobs, everything is one piece
        let mut own = Vec::with_capacity(self.before.len() + head.len() + self.body.len() + 64);
        own.put_slice(&self.before);
        own.put_slice(&head);
        for content in contents {
            match content {
                Content::Bytes(bytes) => own.put_slice(bytes),
                Content::Offsets(offset) => {
                    own.put_i32_le(0);
                    own.put_i32_le(*offset);
                }
                Content::Integer(value) => own.put_i64_le(*value),
                Content::Pieces(pieces) => {
                    out.push(std::mem::take(&mut own).into());
                    out.extend((*pieces).clone());
                }
            }
            own.put_slice(padding(content.len()));
        }
        own.put_slice(&END_OF_STREAM);
        out.push(own.into());
        Ok(out)
    }
}

/// What goes into a buffer of the batch.
enum Content<'a> {
    Bytes(&'a [u8]),
    Pieces(&'a Segments),
    /// The offsets of a binary column of one value that ends here.
    Offsets(i32),
    Integer(i64),
}

impl Content<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Pieces(pieces) => pieces.len(),
            Self::Offsets(_) => 2 * size_of::<i32>(),
            Self::Integer(_) => size_of::<i64>(),
        }
    }
}

fn end_offset(len: usize) -> Result<i32, WireError> {
    i32::try_from(len).map_err(|_| {
        WireError::TooLarge(format!("a value of {len} bytes exceeds the 2 GiB that one request can carry"))
    })
}

fn to_i64(value: usize) -> Result<i64, WireError> {
    i64::try_from(value).map_err(WireError::corrupt)
}

fn slice(body: &Bytes, span: BufferSpan) -> Result<&[u8], WireError> {
    let start = usize::try_from(span.offset()).map_err(WireError::corrupt)?;
    let len = usize::try_from(span.length()).map_err(WireError::corrupt)?;
    let end = start.checked_add(len);
    end.and_then(|end| body.get(start..end)).ok_or_else(|| WireError::corrupt("a buffer outside its body"))
}

/// Index of the validity buffer of a top-level column.
fn first_buffer(schema: &Schema, column: usize, data_type: &DataType) -> Result<usize, WireError> {
    let fields = schema.fields();
    if fields.get(column).is_none_or(|field| field.data_type() != data_type) {
        return Err(WireError::protocol(format!("a value to fill in needs a column of type {data_type}")));
    }
    fields.iter().take(column).map(|field| buffer_count(field.data_type())).sum()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, BinaryArray, Int64Array, StringArray};

    use super::*;
    use crate::ipc::decode_stream;

    fn row(blob: &[u8], number: Option<i64>) -> RecordBatch {
        let columns: [(&str, ArrayRef); 4] = [
            ("name", Arc::new(StringArray::from(vec!["f"]))),
            ("blob", Arc::new(BinaryArray::from(vec![blob]))),
            ("number", Arc::new(Int64Array::from(vec![number]))),
            ("last", Arc::new(StringArray::from(vec![None::<&str>]))),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    #[test]
    fn filled_in_it_is_the_row_with_those_values() {
        let template = RowTemplate::new(&row(b"", Some(0)), &[("key", "value")]).unwrap();
        for len in [0, 1, 7, 8, 9, 1000] {
            let payload = vec![0xab; len];
            let mut value = Segments::from(payload[..len / 2].to_vec());
            value.extend(payload[len / 2..].to_vec().into());
            let number = i64::try_from(len).unwrap();
            let filled = template.fill(&[Blob { column: 1, value }], Some((2, number))).unwrap();
            let stream = decode_stream(filled.to_bytes()).unwrap();
            assert_eq!(stream.batches[0].batch, row(&payload, Some(number)));
            assert_eq!(stream.batches[0].get("key"), Some("value"));
        }
        assert_eq!(
            decode_stream(template.fill(&[], None).unwrap().to_bytes()).unwrap().batches[0].batch,
            row(b"", Some(0))
        );
    }

    #[test]
    fn a_value_needs_a_column_of_its_type() {
        let template = RowTemplate::new(&row(b"", None), &[]).unwrap();
        for column in [0, 2, 9] {
            assert!(template.fill(&[Blob { column, value: Segments::new() }], None).is_err());
        }
        assert!(template.fill(&[], Some((1, 1))).is_err());
    }
}
