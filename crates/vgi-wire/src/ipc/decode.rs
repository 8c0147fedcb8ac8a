//! Reading of streams. Trusts no length; what it returns is valid Arrow.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::reader::{RecordBatchDecoder, read_dictionary};
use arrow_ipc::{Endianness, Message, MessageHeader};
use arrow_schema::{ArrowError, SchemaRef};
use bytes::Bytes;

use super::message::{self, CONTINUATION};
use super::{columns, validate};
use crate::WireError;

/// Metadata of a batch, in the order of the message.
pub type Metadata = Vec<(String, String)>;

/// A batch with the metadata of its message.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The rows.
    pub batch: RecordBatch,
    /// The message's `custom_metadata`.
    pub metadata: Metadata,
}

impl Batch {
    /// The value of a metadata key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

/// One IPC stream.
#[derive(Clone, Debug)]
pub struct Stream {
    /// Schema of all batches.
    pub schema: SchemaRef,
    /// The batches in order.
    pub batches: Vec<Batch>,
}

/// Reads streams that are laid end to end. A stream without end marker is an error: it is a truncated body, not an end of data.
///
/// # Errors
/// When the bytes are not valid streams.
pub fn decode_streams(body: Bytes) -> Result<Vec<Stream>, WireError> {
    let mut reader = Reader::new(body);
    let mut streams = Vec::new();
    while !reader.rest.is_empty() {
        streams.push(reader.stream()?);
    }
    Ok(streams)
}

/// Reads the first of several streams, whatever follows it.
///
/// # Errors
/// When the first bytes are not a valid stream.
pub fn decode_first_stream(body: Bytes) -> Result<Stream, WireError> {
    let mut reader = Reader::new(body);
    reader.stream()
}

/// Reads exactly one stream.
///
/// # Errors
/// When the bytes are not one valid stream.
pub fn decode_stream(body: Bytes) -> Result<Stream, WireError> {
    let mut streams = decode_streams(body)?;
    match (streams.pop(), streams.is_empty()) {
        (Some(stream), true) => Ok(stream),
        (None, _) => Err(WireError::Truncated("no Arrow stream")),
        _ => Err(WireError::protocol("several Arrow streams where one is expected")),
    }
}

/// Reads a blob that holds exactly one batch.
///
/// # Errors
/// When it is not one valid stream with one batch.
pub fn decode_batch(blob: Bytes) -> Result<RecordBatch, WireError> {
    let mut batches = decode_stream(blob)?.batches;
    match (batches.pop(), batches.is_empty()) {
        (Some(batch), true) => Ok(batch.batch),
        _ => Err(WireError::protocol("a blob must hold exactly one batch")),
    }
}

/// Reads a schema message; an end marker after it is tolerated.
///
/// # Errors
/// When the bytes are not a schema message.
pub fn decode_schema(bytes: &Bytes) -> Result<SchemaRef, WireError> {
    let mut reader = Reader::new(bytes.clone());
    let frame = reader.frame()?.ok_or(WireError::Truncated("no schema message"))?;
    frame.schema()
}

/// A message split off a body.
struct Frame {
    flatbuffer: Bytes,
    body: Bytes,
}

impl Frame {
    fn message(&self) -> Result<Message<'_>, WireError> {
        message::parse(&self.flatbuffer)
    }

    fn schema(&self) -> Result<SchemaRef, WireError> {
        let message = self.message()?;
        let schema =
            message.header_as_schema().ok_or_else(|| WireError::corrupt("a stream does not begin with its schema"))?;
        if schema.endianness() != Endianness::Little {
            return Err(WireError::corrupt("its numbers are not little-endian"));
        }
        contained(|| arrow_ipc::convert::try_fb_to_schema(schema)).map(Arc::new)
    }

    fn metadata(message: &Message<'_>) -> Metadata {
        let entries = message.custom_metadata().into_iter().flatten();
        entries
            .map(|entry| (entry.key().unwrap_or_default().to_owned(), entry.value().unwrap_or_default().to_owned()))
            .collect()
    }

    /// The body as Arrow wants it: without a copy when it lies on an 8-byte boundary, as bodies of received messages do.
    fn buffer(&self) -> Buffer {
        if self.body.as_ptr().align_offset(8) == 0 {
            Buffer::from(self.body.clone())
        } else {
            Buffer::from(self.body.as_ref())
        }
    }
}

struct Reader {
    rest: Bytes,
    /// Bytes that dictionaries which extend earlier ones may still take: each is a copy of all before it.
    extension: usize,
}

impl Reader {
    fn new(body: Bytes) -> Self {
        const AT_LEAST: usize = 1 << 20;
        Self { extension: body.len().saturating_mul(16).saturating_add(AT_LEAST), rest: body }
    }

    fn take(&mut self, len: usize, what: &'static str) -> Result<Bytes, WireError> {
        if len > self.rest.len() {
            return Err(WireError::Truncated(what));
        }
        Ok(self.rest.split_to(len))
    }

    /// The next message, or `None` at the end marker.
    fn frame(&mut self) -> Result<Option<Frame>, WireError> {
        const MISSING: &str = "it ends without the stream's end marker";
        if self.take(4, MISSING)? != CONTINUATION[..] {
            return Err(WireError::corrupt("no message where one should begin"));
        }
        let length = self.take(4, MISSING)?;
        let length = <[u8; 4]>::try_from(length.as_ref()).map(i32::from_le_bytes).map_err(WireError::corrupt)?;
        let length = usize::try_from(length).map_err(|_| WireError::corrupt("a message of negative length"))?;
        if length == 0 {
            return Ok(None);
        }
        let flatbuffer = self.take(length, "it ends inside a message header")?;
        let body_len = message::parse(&flatbuffer)?.bodyLength();
        let body_len =
            usize::try_from(body_len).map_err(|_| WireError::corrupt("a message body of negative length"))?;
        let body = self.take(body_len, "it ends inside a message body")?;
        Ok(Some(Frame { flatbuffer, body }))
    }

    fn stream(&mut self) -> Result<Stream, WireError> {
        let schema = self.frame()?.ok_or_else(|| WireError::corrupt("a stream without schema"))?.schema()?;
        let mut dictionaries = HashMap::new();
        let mut batches = Vec::new();
        while let Some(frame) = self.frame()? {
            let message = frame.message()?;
            match message.header_type() {
                MessageHeader::DictionaryBatch => {
                    read_dictionary_frame(&frame, &message, &schema, &mut dictionaries, &mut self.extension)?;
                }
                MessageHeader::RecordBatch => {
                    let batch = read_batch_frame(&frame, &message, &schema, &dictionaries)?;
                    batches.push(Batch { batch, metadata: Frame::metadata(&message) });
                }
                other => return Err(WireError::corrupt(format!("an unexpected message of kind {other:?}"))),
            }
        }
        Ok(Stream { schema, batches })
    }
}

fn read_batch_frame(
    frame: &Frame,
    message: &Message<'_>,
    schema: &SchemaRef,
    dictionaries: &HashMap<i64, ArrayRef>,
) -> Result<RecordBatch, WireError> {
    let batch = message.header_as_record_batch().ok_or_else(|| WireError::corrupt("a batch message without batch"))?;
    let body = frame.buffer();
    let version = message.version();
    validate::check(batch, version, schema, &body)?;
    contained(|| {
        if columns::are_known(schema) {
            return columns::read(batch, schema, &body);
        }
        RecordBatchDecoder::try_new(&body, batch, Arc::clone(schema), dictionaries, &version)?.read_record_batch()
    })
}

fn read_dictionary_frame(
    frame: &Frame,
    message: &Message<'_>,
    schema: &SchemaRef,
    dictionaries: &mut HashMap<i64, ArrayRef>,
    extension: &mut usize,
) -> Result<(), WireError> {
    let dictionary = message
        .header_as_dictionary_batch()
        .ok_or_else(|| WireError::corrupt("a dictionary message without dictionary"))?;
    let data = dictionary.data().ok_or_else(|| WireError::corrupt("a dictionary without values"))?;
    let values = dictionary_schema(schema, dictionary.id())?;
    let body = frame.buffer();
    let version = message.version();
    validate::check(data, version, &values, &body)?;
    if let Some(extended) = dictionaries.get(&dictionary.id()).filter(|_| dictionary.isDelta()) {
        let copied = extended.to_data().get_slice_memory_size().map_err(WireError::corrupt)?.saturating_add(body.len());
        *extension = extension
            .checked_sub(copied)
            .ok_or_else(|| WireError::TooLarge("dictionaries that are extended too often".to_owned()))?;
    }
    contained(|| read_dictionary(&body, dictionary, schema, dictionaries, &version))
}

/// The one-column schema of a dictionary's values.
fn dictionary_schema(schema: &SchemaRef, id: i64) -> Result<arrow_schema::Schema, WireError> {
    #[expect(deprecated, reason = "the id of a field is known to the decoder by no other way")]
    let fields = schema.fields_with_dict_id(id);
    match fields.first().map(|field| field.data_type()) {
        Some(arrow_schema::DataType::Dictionary(_, values)) => {
            Ok(arrow_schema::Schema::new(vec![arrow_schema::Field::new("", values.as_ref().clone(), true)]))
        }
        _ => Err(WireError::corrupt("a dictionary that no column uses")),
    }
}

/// Runs the arrow crate's decoder. Its own checks end in errors; should one of them be an assertion after all, the bytes of a stranger
/// must not take the process down with it.
fn contained<T>(decode: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, WireError> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(result) => result.map_err(WireError::corrupt),
        Err(_) => Err(WireError::corrupt("the decoder gave up on it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::builder::{BooleanBuilder, FixedSizeBinaryBuilder, ListBuilder, StringBuilder};
    use arrow_array::types::Int32Type;
    use arrow_array::{
        BinaryArray, Decimal128Array, Float64Array, Int64Array, LargeBinaryArray, LargeListArray, LargeStringArray,
        ListArray, StringArray, StructArray, TimestampMicrosecondArray, UInt8Array,
    };

    fn rows() -> Vec<ArrayRef> {
        let mut fixed = FixedSizeBinaryBuilder::new(3);
        let mut bits = BooleanBuilder::new();
        let mut texts = ListBuilder::new(StringBuilder::new());
        for row in 0..10 {
            match row % 4 {
                0 => fixed.append_null(),
                _ => fixed.append_value([row, 1, 2]).unwrap(),
            }
            bits.append_option((row % 3 > 0).then_some(row % 2 == 0));
            texts.append_option((row % 5 > 0).then(|| (0..row % 3).map(|text| (text > 0).then_some("täxt"))));
        }
        let numbers = || (0..10).map(|row| (row % 3 > 0).then_some(i64::from(row)));
        let text = || (0..10).map(|row| (row % 4 > 0).then(|| "é".repeat(row)));
        let list = || (0..10).map(|row| (row % 4 > 0).then(|| (0..row).map(|value| (value % 2 > 0).then_some(value))));
        let integers: ArrayRef = Arc::new(numbers().collect::<Int64Array>());
        let strings: ArrayRef = Arc::new(text().collect::<StringArray>());
        vec![
            Arc::new(StructArray::try_from(vec![("n", Arc::clone(&integers)), ("s", Arc::clone(&strings))]).unwrap()),
            integers,
            strings,
            Arc::new(text().collect::<LargeStringArray>()),
            Arc::new(text().collect::<BinaryArray>()),
            Arc::new(text().collect::<LargeBinaryArray>()),
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(list())),
            Arc::new(LargeListArray::from_iter_primitive::<Int32Type, _, _>(list())),
            Arc::new(texts.finish()),
            Arc::new(fixed.finish()),
            Arc::new(bits.finish()),
            Arc::new(UInt8Array::from_iter_values(0..10)),
            Arc::new(Float64Array::from_iter_values((0..10).map(f64::from))),
            Arc::new(numbers().map(|value| value.map(i128::from)).collect::<Decimal128Array>()),
            Arc::new(numbers().collect::<TimestampMicrosecondArray>().with_timezone("UTC")),
        ]
    }

    /// What the columns of a stream's batches are by both ways, if the stream can be split at all.
    fn by_both_ways(stream: Bytes) -> Option<Vec<[Result<RecordBatch, WireError>; 2]>> {
        let mut reader = Reader::new(stream);
        let schema = reader.frame().ok()??.schema().ok()?;
        let mut batches = Vec::new();
        while let Some(frame) = reader.frame().ok()? {
            let message = frame.message().ok()?;
            let (batch, version) = (message.header_as_record_batch()?, message.version());
            let body = frame.buffer();
            validate::check(batch, version, &schema, &body).ok()?;
            if columns::are_known(&schema) {
                batches.push([
                    contained(|| columns::read(batch, &schema, &body)),
                    contained(|| {
                        RecordBatchDecoder::try_new(&body, batch, Arc::clone(&schema), &HashMap::new(), &version)?
                            .read_record_batch()
                    }),
                ]);
            }
        }
        Some(batches)
    }

    #[test]
    fn columns_are_what_the_arrow_crate_makes_of_them() {
        let columns = rows();
        let all = RecordBatch::try_from_iter(columns.iter().map(|column| ("c", Arc::clone(column)))).unwrap();
        for batch in [all.clone(), all.slice(3, 5), all.slice(0, 0), all.slice(9, 1)] {
            let stream = super::super::encode_stream(&batch, &[]).unwrap().to_bytes();
            let both = by_both_ways(stream).unwrap().pop().unwrap().map(Result::unwrap);
            assert_eq!(both, [batch.clone(), batch]);
        }
    }

    #[test]
    fn what_the_arrow_crate_refuses_is_refused() {
        let (mut compared, mut refused) = (0, 0);
        for column in rows() {
            let batch = RecordBatch::try_from_iter([("c", column)]).unwrap();
            let stream = super::super::encode_stream(&batch, &[]).unwrap().to_bytes();
            for place in 0..stream.len() {
                for flip in [1, 0x80, 0xff] {
                    let mut changed = stream.to_vec();
                    changed[place] ^= flip;
                    for [own, arrow] in by_both_ways(changed.into()).unwrap_or_default() {
                        match (own, arrow) {
                            // a changed number may be one that is unequal to itself
                            (Ok(own), Ok(arrow)) => assert_eq!(format!("{own:?}"), format!("{arrow:?}")),
                            (Err(_), Err(_)) => refused += 1,
                            (own, arrow) => panic!("byte {place} of {batch:?}: {own:?}, {arrow:?}"),
                        }
                        compared += 1;
                    }
                }
            }
        }
        assert!(compared > 5_000 && refused > 1_000, "{compared} {refused}");
    }
}
