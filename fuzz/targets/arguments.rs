//! Values of arguments, and their declarations.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use vgi_wire::{arguments, ipc};

fuzz_target!(|data: &[u8]| {
    let bytes = Bytes::copy_from_slice(data);
    if let Ok(schema) = ipc::decode_schema(&bytes) {
        drop(arguments::declared(&schema));
    }
    if let Ok(batch) = ipc::decode_batch(bytes) {
        drop(arguments::decode_values(&batch));
    }
});
