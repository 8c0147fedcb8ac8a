//! Streams, schemas and batches.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use vgi_wire::ipc;

fuzz_target!(|data: &[u8]| {
    let bytes = Bytes::copy_from_slice(data);
    drop(ipc::decode_schema(&bytes));
    drop(ipc::decode_batch(bytes.clone()));
    for stream in ipc::decode_streams(bytes).unwrap_or_default() {
        stream.batches.iter().for_each(|batch| vgi_fuzz::check(&batch.batch));
    }
});
