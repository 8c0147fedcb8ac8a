//! Damaged bodies: every decoder answers with an error or a value, never with a panic, not even one that is caught.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::panic::catch_unwind;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};

use arrow_array::{Array, DictionaryArray, Int32Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray};
use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use vgi_wire::generation::Dialect;
use vgi_wire::ipc::{self, Segments, StreamWriter};
use vgi_wire::methods::{ExecutionRef, Method, ProcessRequest, request_body};
use vgi_wire::{reply, server};

fn bodies() -> Vec<(String, Vec<u8>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let folders = std::fs::read_dir(root).unwrap().map(|folder| folder.unwrap().path()).filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()));
    files
        .filter(|file| file.extension().is_some_and(|extension| extension == "bin"))
        .map(|file| (file.display().to_string(), std::fs::read(&file).unwrap()))
        .filter(|(_, body)| body.len() < 10_000)
        .collect()
}

static PANICS: AtomicUsize = AtomicUsize::new(0);

fn decode_all_ways(name: &str, body: Vec<u8>) {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            PANICS.fetch_add(1, Ordering::Relaxed);
            usual(info);
        }));
    });
    let body = Bytes::from(body);
    let result = catch_unwind(|| {
        reply::read_unary(body.clone()).map(|reply| reply.result()).ok();
        reply::read_init(body.clone()).ok();
        reply::read_turn(body.clone()).ok();
        server::decode_turn(body.clone()).ok();
        if let Ok(call) = server::decode_call(body.clone()) {
            call.request_blob().map(ipc::decode_batch).ok();
        }
    });
    assert!(result.is_ok() && PANICS.load(Ordering::Relaxed) == 0, "a decoder panicked on {name}");
}

#[test]
fn truncated_bodies() {
    for (name, body) in bodies() {
        for len in (0..body.len()).step_by(7) {
            let cut = Bytes::copy_from_slice(&body[..len]);
            assert!(len == 0 || ipc::decode_stream(cut).is_err(), "{name} cut at {len} was taken for whole");
            decode_all_ways(&format!("{name} cut at {len}"), body[..len].to_vec());
        }
    }
}

#[test]
fn flipped_bytes() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for (name, body) in bodies() {
        for _ in 0..60 {
            let mut damaged = body.clone();
            for _ in 0..=next() % 3 {
                let at = usize::try_from(next()).unwrap_or(0) % damaged.len().max(1);
                if let Some(byte) = damaged.get_mut(at) {
                    *byte = u8::try_from(next() & 0xff).unwrap();
                }
            }
            decode_all_ways(&name, damaged);
        }
    }
}

#[test]
fn a_batch_without_columns_keeps_its_rows() {
    let options = RecordBatchOptions::new().with_row_count(Some(12_345));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options).unwrap();
    let body = ipc::encode_stream(&batch, &[("key", "value")]).unwrap();
    let stream = ipc::decode_stream(body.to_bytes()).unwrap();
    assert_eq!((stream.batches[0].batch.num_rows(), stream.batches[0].get("key")), (12_345, Some("value")));
}

#[test]
fn dictionaries_are_replaced_between_batches() {
    let batch = |values: &[&str]| {
        let keys = Int32Array::from_iter_values(0..i32::try_from(values.len()).unwrap());
        let column = DictionaryArray::new(keys, Arc::new(StringArray::from(values.to_vec())));
        let field = Field::new("d", column.data_type().clone(), true);
        RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(column)]).unwrap()
    };
    let (first, second) = (batch(&["a", "b"]), batch(&["c"]));
    let mut writer = StreamWriter::new(first.schema_ref()).unwrap();
    writer.write(&first, &[]).unwrap();
    writer.write(&second, &[("n", "2")]).unwrap();
    let stream = ipc::decode_stream(writer.finish().unwrap().to_bytes()).unwrap();
    assert_eq!(stream.batches[0].batch.column(0).as_ref(), first.column(0).as_ref());
    assert_eq!(stream.batches[1].batch.column(0).as_ref(), second.column(0).as_ref());
}

#[test]
fn a_payload_is_not_copied_into_its_envelopes() {
    let values = Int64Array::from_iter_values(0..10_000);
    let pointer = values.values().as_ptr().cast::<u8>();
    let schema = Schema::new(vec![Field::new("v", DataType::Int64, true)]);
    let batch = RecordBatch::try_new(Arc::new(schema), vec![Arc::new(values)]).unwrap();
    let dialect = Dialect::select(Some("vgi.v2"), Some("2.2.0")).unwrap();
    let execution = ExecutionRef {
        function_name: "f".to_owned(),
        execution_id: Bytes::from_static(b"id"),
        attach_opaque_data: None,
        transaction_id: None,
        schema_path: vec!["main".to_owned()],
    };
    let process =
        ProcessRequest { execution, input_batch: ipc::encode_stream(&batch, &[]).unwrap(), batch_index: None };
    let body = request_body(&dialect, Method::Process, process.into_blob(&dialect).unwrap()).unwrap();
    assert!(body.iter().any(|piece| piece.as_ptr() == pointer && piece.len() == 80_000));
    let call = server::decode_call(body.to_bytes()).unwrap();
    let process = ProcessRequest::from_blob(call.request_blob().unwrap()).unwrap();
    assert_eq!(ipc::decode_batch(process.input_batch.to_bytes()).unwrap(), batch);
}

#[test]
fn a_value_above_two_gib_is_refused() {
    let piece = Bytes::from(vec![0_u8; 1 << 20]);
    let mut blob = Segments::new();
    (0..2048).for_each(|_| blob.push(piece.clone()));
    let dialect = Dialect::select(Some("vgi.v2"), Some("2.2.0")).unwrap();
    let error = request_body(&dialect, Method::Process, blob).unwrap_err();
    assert!(error.to_string().contains("2 GiB"), "{error}");
}
