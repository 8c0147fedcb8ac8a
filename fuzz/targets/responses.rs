//! Records inside of replies, by method.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((selector, bytes)) = vgi_fuzz::select(data) else { return };
    vgi_fuzz::responses::read(selector, &bytes);
});
