//! Whole replies: unary ones, openings of streams, turns.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use vgi_wire::{external, ipc, methods, reply};

fuzz_target!(|data: &[u8]| {
    let bytes = Bytes::copy_from_slice(data);
    drop(reply::find_error(bytes.clone()));
    if let Ok(unary) = reply::read_unary(bytes.clone()) {
        drop(unary.result());
        drop(methods::describe_version(&unary));
    }
    let opened = reply::read_init(bytes.clone()).ok().and_then(|opened| opened.turn);
    for turn in [opened, reply::read_turn(bytes.clone()).ok()].into_iter().flatten() {
        turn.batches.iter().for_each(vgi_fuzz::check);
    }
    if let Ok(streams) = ipc::decode_streams(bytes.clone()) {
        let objects = external::pointers(&streams).iter().map(|_| bytes.clone()).collect();
        drop(external::resolve(streams, objects));
    }
});
