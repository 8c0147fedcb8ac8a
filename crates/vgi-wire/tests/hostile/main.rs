//! Messages that lie: about lengths, counts, offsets, indexes and depths. Each is answered with an error or with valid Arrow, without a
//! panic (caught ones included) and without more memory than its bytes justify.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod bomb;
mod every_byte;
mod samples;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once};

use arrow_array::{
    Array, ArrayRef, BinaryViewArray, DictionaryArray, Int32Array, LargeBinaryArray, ListArray, RecordBatch,
    StringArray, StructArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use peak_alloc::PeakAlloc;
use vgi_wire::filter;
use vgi_wire::ipc;
use vgi_wire::record::Record;
use vgi_wire::{reply, server};

use bomb::{END, Parts, Stream, encapsulated, shared_metadata};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

static PANICS: AtomicUsize = AtomicUsize::new(0);

/// The memory is counted for the process, so one test runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.fetch_add(1, Ordering::Relaxed);
            usual(info);
        }));
    });
    TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Decodes a body in every way; gives the batches where it is one stream.
fn decode(name: &str, body: Vec<u8>) -> Option<Vec<RecordBatch>> {
    let body = Bytes::from(body);
    let panics = PANICS.load(Ordering::Relaxed);
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let stream = ipc::decode_stream(body.clone()).ok();
    let used = MEMORY.peak_usage().saturating_sub(before);
    assert_eq!(PANICS.load(Ordering::Relaxed), panics, "{name}: the decoder panicked");
    assert!(used <= 40 * body.len() + 64 * 1024, "{name}: {} bytes took {used} bytes of memory", body.len());
    let batches = stream.map(|stream| stream.batches.into_iter().map(|batch| batch.batch).collect::<Vec<_>>());
    reply::read_unary(body.clone()).map(|reply| reply.result()).ok();
    reply::read_init(body.clone()).ok();
    reply::read_turn(body.clone()).ok();
    server::decode_call(body.clone()).ok();
    server::decode_turn(body.clone()).ok();
    if let Some(batch) = batches.iter().flatten().next() {
        filter::decode(body.clone(), &batch.schema()).ok();
    }
    assert_eq!(PANICS.load(Ordering::Relaxed), panics, "{name}: a reader panicked");
    batches
}

/// What was accepted is valid, however it is looked at.
fn check(name: &str, batches: Option<Vec<RecordBatch>>) -> bool {
    let accepted = batches.is_some();
    for batch in batches.into_iter().flatten() {
        for column in batch.columns() {
            assert_eq!(column.len(), batch.num_rows(), "{name}");
            column.to_data().validate_full().unwrap_or_else(|error| panic!("{name}: {error}"));
            if batch.num_rows() < 1000 {
                let text = format!("{column:?}");
                assert!(!text.is_empty());
            }
        }
    }
    accepted
}

fn lies(truth: i64) -> Vec<i64> {
    let mut lies =
        vec![0, 1, 3, 4, 5, 6, 7, 8, 16, 1 << 20, 1 << 31, 1 << 33, 1 << 61, i64::MAX, i64::MAX - 7, -1, -8, i64::MIN];
    lies.extend([truth.wrapping_sub(1), truth.wrapping_add(1), truth.wrapping_mul(8), i64::from(i32::MAX)]);
    lies.retain(|lie| *lie != truth);
    lies
}

/// Every number of every message of a stream, one after the other, is replaced by every lie.
fn each_lie(stream: &Stream, mut lie: impl FnMut(String, Vec<u8>)) {
    for (index, part) in stream.parts.iter().enumerate() {
        let mut with = |what: String, change: &dyn Fn(&mut Parts)| {
            let mut part = part.clone();
            change(&mut part);
            let mut parts = stream.parts.clone();
            parts[index] = part;
            lie(format!("message {index}: {what}"), Stream { schema: stream.schema.clone(), parts }.write());
        };
        for value in lies(part.rows) {
            with(format!("rows {value}"), &|part| part.rows = value);
        }
        for node in 0..part.nodes.len() {
            for value in lies(part.nodes[node].0) {
                with(format!("node {node} of length {value}"), &|part| part.nodes[node].0 = value);
                with(format!("rows and node {node} of length {value}"), &|part| {
                    part.rows = value;
                    part.nodes[node].0 = value;
                });
                with(format!("all nodes of length {value}"), &|part| {
                    part.rows = value;
                    part.nodes.iter_mut().for_each(|node| node.0 = value);
                });
                with(format!("node {node} of {value} nulls"), &|part| part.nodes[node] = (value, value));
            }
            for value in lies(part.nodes[node].1) {
                with(format!("node {node} with {value} nulls"), &|part| part.nodes[node].1 = value);
            }
            with(format!("without node {node}"), &|part| _ = part.nodes.remove(node));
        }
        for buffer in 0..part.buffers.len() {
            for value in lies(part.buffers[buffer].0) {
                with(format!("buffer {buffer} at {value}"), &|part| part.buffers[buffer].0 = value);
            }
            for value in lies(part.buffers[buffer].1) {
                with(format!("buffer {buffer} of length {value}"), &|part| part.buffers[buffer].1 = value);
            }
            with(format!("without buffer {buffer}"), &|part| _ = part.buffers.remove(buffer));
        }
        for count in 0..part.variadic.len() {
            for value in lies(part.variadic[count]) {
                with(format!("variadic count {value}"), &|part| part.variadic[count] = value);
            }
        }
        with("no variadic counts".to_owned(), &|part| part.variadic.clear());
        if let Some((id, _)) = part.dictionary {
            with("another dictionary".to_owned(), &|part| part.dictionary = Some((id + 1, false)));
            with("a delta".to_owned(), &|part| part.dictionary = Some((id, true)));
        }
    }
}

#[test]
fn numbers_of_messages() {
    let _alone = alone();
    let (mut tried, mut accepted) = (0, 0);
    for (name, batch) in samples::every_type() {
        let stream = Stream::of(&batch);
        let whole = decode(name, stream.write()).unwrap_or_else(|| panic!("{name} is not read"));
        assert_eq!(whole, std::slice::from_ref(&batch), "{name}");
        each_lie(&stream, |lie, body| {
            let name = format!("{name}, {lie}");
            tried += 1;
            accepted += usize::from(check(&name, decode(&name, body)));
        });
    }
    eprintln!("{tried} lies, {accepted} harmless");
    assert!(tried > 5000 && accepted * 2 < tried);
}

#[test]
fn messages_that_do_not_belong_together() {
    let _alone = alone();
    let streams: Vec<_> = samples::every_type().into_iter().map(|(name, batch)| (name, Stream::of(&batch))).collect();
    for (schema_name, one) in &streams {
        for (parts_name, other) in &streams {
            let body = Stream { schema: one.schema.clone(), parts: other.parts.clone() }.write();
            let name = format!("{parts_name} under the schema of {schema_name}");
            check(&name, decode(&name, body));
        }
    }
}

#[test]
fn a_value_that_all_metadata_share() {
    let _alone = alone();
    assert!(decode("few metadata", shared_metadata(2, 100)).is_some());
    // a megabyte that would become 30, 2 GB and 40 GB
    for count in [15, 1000, 20_000] {
        assert!(decode("shared metadata", shared_metadata(count, 1_000_000)).is_none());
    }
}

#[test]
fn lengths_of_headers() {
    let _alone = alone();
    for length in [1_u32, 7, 8, 0x7fff_ffff, 0x8000_0000, 0xffff_fff8, 0xffff_ffff] {
        for rest in [0, 8, 4096] {
            let body = [&[0xff; 4][..], &length.to_le_bytes(), &vec![0; rest], &END].concat();
            assert!(decode(&format!("a header of {length} bytes"), body).is_none());
        }
    }
}

#[test]
fn flatbuffers_that_point_to_themselves() {
    let _alone = alone();
    let (_, batch) = samples::every_type().into_iter().find(|(name, _)| *name == "list of structs").unwrap();
    let schema = Stream::of(&batch).schema;
    let flatbuffer = &schema[8..];
    // every offset of a schema's flatbuffer, redirected
    for at in (0..flatbuffer.len() - 4).step_by(2) {
        for value in [0_u32, 4, 8, 0xffff_fffc, 0x7fff_ffff, 0xffff_ffff] {
            let mut changed = flatbuffer.to_vec();
            changed[at..at + 4].copy_from_slice(&value.to_le_bytes());
            let body = [encapsulated(&changed, &[]), END.to_vec()].concat();
            let name = format!("a schema with {value:x} at {at}");
            check(&name, decode(&name, body.clone()));
            ipc::decode_schema(&Bytes::from(body)).ok();
        }
    }
}

/// A schema of one column that is nested so deep, and no batch.
fn nested(levels: usize) -> Vec<u8> {
    let mut data_type = DataType::Int32;
    for _ in 0..levels {
        data_type = DataType::List(Arc::new(Field::new("item", data_type, true)));
    }
    let schema = Schema::new(vec![Field::new("c", data_type, true)]);
    [ipc::encode_schema(&schema).unwrap().to_vec(), END.to_vec()].concat()
}

#[test]
fn depths() {
    let _alone = alone();
    assert!(decode("20 levels", nested(20)).is_some());
    for levels in [65, 100, 300] {
        assert!(decode("too many levels", nested(levels)).is_none());
    }
}

/// A one-row batch.
fn row(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

fn one_list(values: ArrayRef, length: usize) -> ArrayRef {
    let item = Arc::new(Field::new("item", values.data_type().clone(), true));
    Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([length]), values, None))
}

#[test]
fn values_that_are_repeated() {
    let _alone = alone();
    let long = "x".repeat(100_000);
    let keys = || Int32Array::from(vec![0; 50_000]);
    let texts = DictionaryArray::new(keys(), Arc::new(StringArray::from(vec![long.as_str()])));
    let blobs = DictionaryArray::new(keys(), Arc::new(LargeBinaryArray::from(vec![long.as_bytes()])));
    let views = BinaryViewArray::from(vec![long.as_bytes()]);
    let views = BinaryViewArray::new(vec![views.views()[0]; 50_000].into(), views.data_buffers().to_vec(), None);
    let batch = row(vec![
        ("texts", one_list(Arc::new(texts), 50_000)),
        ("blobs", one_list(Arc::new(blobs), 50_000)),
        ("views", one_list(Arc::new(views), 50_000)),
    ]);
    MEMORY.reset_peak_usage();
    let before = MEMORY.current_usage();
    let record = Record::first(&batch).unwrap();
    assert!(record.texts("texts").is_empty(), "5 GB of text");
    for name in ["blobs", "views"] {
        let blobs = record.blobs(name).unwrap();
        assert_eq!((blobs.len(), blobs[49_999].len()), (50_000, 100_000));
    }
    assert!(MEMORY.peak_usage() - before < 50_000_000);
}

#[test]
fn elements_without_bytes() {
    let _alone = alone();
    let empties = Arc::new(StructArray::new_empty_fields(3, None));
    let mut stream = Stream::of(&row(vec![("examples", one_list(empties, 3))]));
    assert!(decode("three empty examples", stream.write()).is_some());
    let part = &mut stream.parts[0];
    part.nodes[1].0 = i32::MAX.into();
    let offsets = usize::try_from(part.buffers[1].0).unwrap();
    part.body[offsets + 4..offsets + 8].copy_from_slice(&i32::MAX.to_le_bytes());
    assert!(decode("two billion empty examples", stream.write()).is_none());
}

#[test]
fn dictionaries_that_grow() {
    let _alone = alone();
    let (_, batch) = samples::every_type().into_iter().find(|(name, _)| *name == "dictionary").unwrap();
    let stream = Stream::of(&batch);
    let [dictionary, rows] = stream.parts.as_slice() else { panic!("a dictionary and a batch") };
    let mut delta = dictionary.clone();
    delta.dictionary = delta.dictionary.map(|(id, _)| (id, true));
    let grown = |times: usize| {
        let mut parts = vec![dictionary.clone()];
        // every batch keeps its own copy of the dictionary
        (0..times).for_each(|_| parts.extend([delta.clone(), rows.clone()]));
        Stream { schema: stream.schema.clone(), parts }.write()
    };
    assert!(check("a grown dictionary", decode("a grown dictionary", grown(20))));
    assert!(decode("an overgrown dictionary", grown(4000)).is_none());
}

#[test]
fn numbers_of_the_other_end() {
    let _alone = alone();
    let mut builder = flatbuffers::FlatBufferBuilder::new();
    let fields = builder.create_vector::<flatbuffers::WIPOffset<arrow_ipc::Field<'_>>>(&[]);
    let mut schema = arrow_ipc::SchemaBuilder::new(&mut builder);
    schema.add_endianness(arrow_ipc::Endianness::Big);
    schema.add_fields(fields);
    let schema = schema.finish().as_union_value();
    let mut message = arrow_ipc::MessageBuilder::new(&mut builder);
    message.add_version(arrow_ipc::MetadataVersion::V5);
    message.add_header_type(arrow_ipc::MessageHeader::Schema);
    message.add_header(schema);
    let root = message.finish();
    builder.finish(root, None);
    let body = [encapsulated(builder.finished_data(), &[]), END.to_vec()].concat();
    assert!(ipc::decode_stream(body.into()).unwrap_err().to_string().contains("little-endian"));
}
