//! Stored exchanges.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use vgi_wire::frame;

fuzz_target!(|data: &[u8]| {
    let Ok(read) = frame::decode(Bytes::copy_from_slice(data)) else { return };
    read.streams.iter().flat_map(|stream| &stream.batches).for_each(|batch| vgi_fuzz::check(&batch.batch));
    let payload = (!read.payload.is_empty()).then(|| read.payload.clone().into());
    let written = frame::encode(&read.header, payload).expect("a frame that was read");
    assert_eq!(frame::decode(written.to_bytes()).expect("it is read again").payload, read.payload);
});
