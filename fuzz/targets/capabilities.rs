//! The headers in which a server says what it can.
#![no_main]

use http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "a part of the transport, without all that it is built on")]
#[path = "../../crates/vgi-transport/src/capabilities.rs"]
mod capabilities;

fuzz_target!(|data: &[u8]| {
    let mut headers = HeaderMap::new();
    for line in data.split(|byte| *byte == b'\n').take(64) {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
        let name = HeaderName::from_bytes(&line[..colon]);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(&line[colon + 1..])) {
            headers.append(name, value);
        }
    }
    capabilities::Capabilities::default().update(&headers);
});
