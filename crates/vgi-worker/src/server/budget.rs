//! What reply the client is ready to read: how large, and of how many batches.

use http::{HeaderMap, StatusCode};

use crate::server::fault::Fault;

const HEADER: &str = "vgi-accept-max-response-bytes";
/// Not of the protocol: its clients may take a second batch in a reply of a stream for an error, so who reads several says so.
const SEVERAL: &str = "vgi-accept-several-batches";
const SMALLEST: u64 = 65_536;
/// The largest integer that every JSON implementation carries exactly.
const LARGEST: u64 = (1 << 53) - 1;

/// The limit that a request states; `None` is none.
pub(super) fn of(headers: &HeaderMap) -> Result<Option<u64>, Fault> {
    let Some(value) = headers.get(HEADER) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    let limit = text.parse().ok().filter(|limit| plain && (SMALLEST..=LARGEST).contains(limit));
    let refused = || {
        let message = format!(
            "VGI-Accept-Max-Response-Bytes must be a decimal number from {SMALLEST} to {LARGEST}, not '{text}'"
        );
        Fault::bad_request("ProtocolError", message)
    };
    limit.ok_or_else(refused).map(Some)
}

/// Whether the client reads any number of batches in a reply.
pub(super) fn reads_several(headers: &HeaderMap) -> bool {
    headers.get(SEVERAL).is_some_and(|value| value == "true")
}

/// The smaller of two limits.
pub(super) fn tighter(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    one.into_iter().chain(other).min()
}

/// Refuses a reply of this length, before compression, that is above the limit.
pub(super) fn check(limit: Option<u64>, length: usize) -> Result<(), Fault> {
    match limit {
        Some(limit) if u64::try_from(length).map_or(true, |length| length > limit) => {
            let message = format!("the reply has {length} bytes, more than the {limit} that the client accepts");
            Err(Fault::new(StatusCode::OK, "ResponseTooLargeError", message).code("RESOURCE_EXHAUSTED"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_plain_numbers_in_range_are_limits() {
        let limit = |text: &'static str| {
            of(&HeaderMap::from_iter([(http::HeaderName::from_static(HEADER), HeaderValue::from_static(text))]))
        };
        assert_eq!(of(&HeaderMap::new()).unwrap(), None);
        assert_eq!(limit("65536").unwrap(), Some(65_536));
        assert_eq!(limit("9007199254740991").unwrap(), Some(LARGEST));
        for bad in ["65535", "9007199254740992", "0100000", "+100000", "100000 ", "1e6", ""] {
            assert_eq!(limit(bad).unwrap_err().status, 400, "{bad}");
        }
    }

    #[test]
    fn the_tighter_limit_counts() {
        assert_eq!(tighter(Some(3), Some(2)), Some(2));
        assert_eq!(tighter(None, Some(2)), Some(2));
        assert_eq!(tighter(None, None), None);
        assert!(check(Some(10), 10).is_ok() && check(None, usize::MAX).is_ok());
        assert!(check(Some(10), 11).is_err());
    }
}
