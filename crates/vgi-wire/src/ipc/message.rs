//! The encapsulated message: continuation mark, length, flatbuffer, body.

use arrow_ipc::{
    Buffer, FieldNode, KeyValue, KeyValueBuilder, Message, MessageBuilder, MessageHeader, MetadataVersion,
    RecordBatchBuilder,
};
use bytes::Bytes;
use flatbuffers::{FlatBufferBuilder, ForwardsUOffset, Vector, VerifierOptions, WIPOffset};

use crate::WireError;

/// Starts every message.
pub(super) const CONTINUATION: [u8; 4] = [0xff; 4];
/// Ends a stream.
pub(super) const END_OF_STREAM: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];
/// Every buffer and body starts at a multiple of this.
pub(super) const ALIGNMENT: usize = 8;

/// Zero bytes that `len` lacks to the next multiple of [`ALIGNMENT`].
pub(crate) fn padding(len: usize) -> &'static [u8] {
    const ZEROS: [u8; ALIGNMENT] = [0; ALIGNMENT];
    let missing = len.wrapping_neg() % ALIGNMENT;
    ZEROS.get(..missing).unwrap_or_default()
}

/// Parses and verifies the flatbuffer of a message. Parts of it may be shared, but not so that its contents are many times its size:
/// they are copied out of it.
pub(super) fn parse(flatbuffer: &[u8]) -> Result<Message<'_>, WireError> {
    let max_apparent_size = flatbuffer.len().saturating_mul(16);
    let options = VerifierOptions { max_apparent_size, ..VerifierOptions::default() };
    arrow_ipc::root_as_message_with_opts(&options, flatbuffer).map_err(WireError::corrupt)
}

/// What a record batch message says about its body.
#[derive(Clone, Debug)]
pub(super) struct BatchHeader {
    pub(super) rows: i64,
    pub(super) nodes: Vec<FieldNode>,
    pub(super) buffers: Vec<Buffer>,
    pub(super) variadic_counts: Vec<i64>,
}

impl BatchHeader {
    /// Copies the header out of a record batch message.
    pub(super) fn read(message: &Message<'_>) -> Result<Self, WireError> {
        let batch = message.header_as_record_batch().ok_or_else(|| WireError::corrupt("not a record batch message"))?;
        Ok(Self {
            rows: batch.length(),
            nodes: batch.nodes().map(|nodes| nodes.iter().copied().collect()).unwrap_or_default(),
            buffers: batch.buffers().map(|buffers| buffers.iter().copied().collect()).unwrap_or_default(),
            variadic_counts: batch.variadicBufferCounts().map(|counts| counts.iter().collect()).unwrap_or_default(),
        })
    }

    /// The encapsulated message without its body, for a body in which the buffers lie so.
    pub(super) fn write(
        &self,
        buffers: &[Buffer],
        body_len: usize,
        metadata: &[(&str, &str)],
    ) -> Result<Bytes, WireError> {
        let mut builder = FlatBufferBuilder::new();
        let nodes = builder.create_vector(&self.nodes);
        let buffers = builder.create_vector(buffers);
        let counts = (!self.variadic_counts.is_empty()).then(|| builder.create_vector(&self.variadic_counts));
        let custom_metadata = (!metadata.is_empty()).then(|| write_metadata(&mut builder, metadata));
        let mut batch = RecordBatchBuilder::new(&mut builder);
        batch.add_length(self.rows);
        batch.add_nodes(nodes);
        batch.add_buffers(buffers);
        if let Some(counts) = counts {
            batch.add_variadicBufferCounts(counts);
        }
        let header = batch.finish().as_union_value();
        let mut message = MessageBuilder::new(&mut builder);
        message.add_version(MetadataVersion::V5);
        message.add_header_type(MessageHeader::RecordBatch);
        message.add_header(header);
        message.add_bodyLength(i64::try_from(body_len).map_err(WireError::corrupt)?);
        if let Some(custom_metadata) = custom_metadata {
            message.add_custom_metadata(custom_metadata);
        }
        let root = message.finish();
        builder.finish(root, None);
        encapsulate(builder.finished_data())
    }
}

type MetadataVector<'a> = Vector<'a, ForwardsUOffset<KeyValue<'a>>>;

fn write_metadata<'a>(builder: &mut FlatBufferBuilder<'a>, metadata: &[(&str, &str)]) -> WIPOffset<MetadataVector<'a>> {
    let entries: Vec<_> = metadata
        .iter()
        .map(|(key, value)| {
            let key = builder.create_string(key);
            let value = builder.create_string(value);
            let mut entry = KeyValueBuilder::new(builder);
            entry.add_key(key);
            entry.add_value(value);
            entry.finish()
        })
        .collect();
    builder.create_vector(&entries)
}

/// Frames a flatbuffer: mark, padded length, bytes, padding.
pub(super) fn encapsulate(flatbuffer: &[u8]) -> Result<Bytes, WireError> {
    let pad = padding(flatbuffer.len());
    let length = i32::try_from(flatbuffer.len() + pad.len())
        .map_err(|_| WireError::TooLarge("a message header exceeds 2 GiB".into()))?;
    let mut out = Vec::with_capacity(8 + flatbuffer.len() + pad.len());
    out.extend_from_slice(&CONTINUATION);
    out.extend_from_slice(&length.to_le_bytes());
    out.extend_from_slice(flatbuffer);
    out.extend_from_slice(pad);
    Ok(Bytes::from(out))
}
