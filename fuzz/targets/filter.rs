//! Filters: as bytes, and as documents in an intact batch.
#![no_main]

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use vgi_wire::{filter, ipc};

/// The document in the place of the one that a batch with two values has.
fn with_document(document: &str) -> Bytes {
    let batch = ipc::decode_batch(filter::encode(&vgi_fuzz::filters::all()).expect("a filter")).expect("a batch");
    let mut columns = batch.columns().to_vec();
    columns[0] = Arc::new(StringArray::from(vec![document])) as ArrayRef;
    let batch = RecordBatch::try_new(batch.schema(), columns).expect("the same types");
    ipc::encode_stream(&batch, &[]).expect("a stream").to_bytes()
}

fuzz_target!(|data: &[u8]| {
    let bytes = Bytes::copy_from_slice(data);
    let read = match std::str::from_utf8(data) {
        Ok(document) => filter::decode_with_join_keys(with_document(document), &[], &vgi_fuzz::output_schema()),
        Err(_) => filter::decode_with_join_keys(bytes.clone(), &[bytes], &vgi_fuzz::output_schema()),
    };
    if let Ok(predicates) = read {
        // what was read can be written, and is the same then
        let again = filter::encode(&predicates).expect("a filter that was read");
        assert_eq!(
            filter::decode(again, &vgi_fuzz::output_schema()).expect("it is read again").len(),
            predicates.len()
        );
    }
});
