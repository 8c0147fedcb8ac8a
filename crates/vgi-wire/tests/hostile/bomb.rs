//! Streams whose messages are taken apart, changed and put together again.

use arrow_array::RecordBatch;
use arrow_ipc::{
    Buffer, DictionaryBatchBuilder, FieldNode, KeyValueBuilder, Message, MessageBuilder, MessageHeader,
    MetadataVersion, RecordBatchBuilder,
};
use flatbuffers::{FlatBufferBuilder, UnionWIPOffset, WIPOffset};
use vgi_wire::ipc;

/// What a batch or dictionary message holds.
#[derive(Clone)]
pub(crate) struct Parts {
    pub(crate) rows: i64,
    pub(crate) nodes: Vec<(i64, i64)>,
    pub(crate) buffers: Vec<(i64, i64)>,
    pub(crate) variadic: Vec<i64>,
    pub(crate) dictionary: Option<(i64, bool)>,
    pub(crate) body: Vec<u8>,
}

impl Parts {
    fn read(message: &Message<'_>, body: &[u8]) -> Option<Self> {
        let (batch, dictionary) = match message.header_type() {
            MessageHeader::RecordBatch => (message.header_as_record_batch()?, None),
            MessageHeader::DictionaryBatch => {
                let dictionary = message.header_as_dictionary_batch()?;
                (dictionary.data()?, Some((dictionary.id(), dictionary.isDelta())))
            }
            _ => return None,
        };
        Some(Self {
            rows: batch.length(),
            nodes: batch.nodes()?.iter().map(|node| (node.length(), node.null_count())).collect(),
            buffers: batch.buffers()?.iter().map(|buffer| (buffer.offset(), buffer.length())).collect(),
            variadic: batch.variadicBufferCounts().map(|counts| counts.iter().collect()).unwrap_or_default(),
            dictionary,
            body: body.to_vec(),
        })
    }

    /// The message and its body.
    pub(crate) fn write(&self) -> Vec<u8> {
        let mut builder = FlatBufferBuilder::new();
        let nodes: Vec<_> = self.nodes.iter().map(|&(length, nulls)| FieldNode::new(length, nulls)).collect();
        let buffers: Vec<_> = self.buffers.iter().map(|&(offset, length)| Buffer::new(offset, length)).collect();
        let nodes = builder.create_vector(&nodes);
        let buffers = builder.create_vector(&buffers);
        let variadic = (!self.variadic.is_empty()).then(|| builder.create_vector(&self.variadic));
        let mut batch = RecordBatchBuilder::new(&mut builder);
        batch.add_length(self.rows);
        batch.add_nodes(nodes);
        batch.add_buffers(buffers);
        if let Some(variadic) = variadic {
            batch.add_variadicBufferCounts(variadic);
        }
        let batch = batch.finish();
        let (kind, header) = match self.dictionary {
            None => (MessageHeader::RecordBatch, batch.as_union_value()),
            Some((id, delta)) => {
                let mut dictionary = DictionaryBatchBuilder::new(&mut builder);
                dictionary.add_id(id);
                dictionary.add_data(batch);
                dictionary.add_isDelta(delta);
                (MessageHeader::DictionaryBatch, dictionary.finish().as_union_value())
            }
        };
        message(builder, kind, header, &self.body, None)
    }
}

type Metadata<'a> = WIPOffset<flatbuffers::Vector<'a, flatbuffers::ForwardsUOffset<arrow_ipc::KeyValue<'a>>>>;

fn message<'a>(
    mut builder: FlatBufferBuilder<'a>,
    kind: MessageHeader,
    header: WIPOffset<UnionWIPOffset>,
    body: &[u8],
    metadata: Option<Metadata<'a>>,
) -> Vec<u8> {
    let mut message = MessageBuilder::new(&mut builder);
    message.add_version(MetadataVersion::V5);
    message.add_header_type(kind);
    message.add_header(header);
    message.add_bodyLength(i64::try_from(body.len()).unwrap());
    if let Some(metadata) = metadata {
        message.add_custom_metadata(metadata);
    }
    let root = message.finish();
    builder.finish(root, None);
    encapsulated(builder.finished_data(), body)
}

/// A flatbuffer and a body as a message.
pub(crate) fn encapsulated(flatbuffer: &[u8], body: &[u8]) -> Vec<u8> {
    let padded = flatbuffer.len().next_multiple_of(8);
    let mut out = [&[0xff; 4][..], &u32::try_from(padded).unwrap().to_le_bytes(), flatbuffer].concat();
    out.resize(8 + padded, 0);
    out.extend_from_slice(body);
    out
}

/// The end marker.
pub(crate) const END: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// A stream as a schema message and changeable ones.
pub(crate) struct Stream {
    pub(crate) schema: Vec<u8>,
    pub(crate) parts: Vec<Parts>,
}

impl Stream {
    pub(crate) fn of(batch: &RecordBatch) -> Self {
        let bytes = ipc::encode_stream(batch, &[]).unwrap().to_bytes();
        let (mut at, mut schema, mut parts) = (0, Vec::new(), Vec::new());
        while bytes[at..at + 8] != END {
            let length = usize::try_from(u32::from_le_bytes(bytes[at + 4..at + 8].try_into().unwrap())).unwrap();
            let message = arrow_ipc::root_as_message(&bytes[at + 8..at + 8 + length]).unwrap();
            let body_start = at + 8 + length;
            let end = body_start + usize::try_from(message.bodyLength()).unwrap();
            match Parts::read(&message, &bytes[body_start..end]) {
                Some(part) => parts.push(part),
                None => schema = bytes[at..end].to_vec(),
            }
            at = end;
        }
        Self { schema, parts }
    }

    pub(crate) fn write(&self) -> Vec<u8> {
        let messages: Vec<_> = self.parts.iter().map(Parts::write).collect();
        [self.schema.clone(), messages.concat(), END.to_vec()].concat()
    }
}

/// A stream of an empty batch whose metadata are `count` entries that all point to one value of `length` bytes.
pub(crate) fn shared_metadata(count: usize, length: usize) -> Vec<u8> {
    let empty = RecordBatch::new_empty(arrow_schema::Schema::empty().into());
    let schema = Stream::of(&empty).schema;
    let mut builder = FlatBufferBuilder::new();
    let text = builder.create_string(&"x".repeat(length));
    let entries: Vec<_> = (0..count)
        .map(|_| {
            let mut entry = KeyValueBuilder::new(&mut builder);
            entry.add_key(text);
            entry.add_value(text);
            entry.finish()
        })
        .collect();
    let metadata = builder.create_vector(&entries);
    let nodes = builder.create_vector::<FieldNode>(&[]);
    let buffers = builder.create_vector::<Buffer>(&[]);
    let mut batch = RecordBatchBuilder::new(&mut builder);
    batch.add_nodes(nodes);
    batch.add_buffers(buffers);
    let header = batch.finish().as_union_value();
    let message = message(builder, MessageHeader::RecordBatch, header, &[], Some(metadata));
    [schema, message, END.to_vec()].concat()
}
