//! What a server says of itself in the headers of every reply.

use http::HeaderMap;

/// A snapshot of a server's capability headers; `None` where it announces nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a header of its own")]
pub struct Capabilities {
    /// Whether the server has announced anything.
    pub announced: bool,
    /// Largest request body.
    pub max_request_bytes: Option<u64>,
    /// The server's own bound of its replies.
    pub max_response_bytes: Option<u64>,
    /// Codecs that requests may be compressed with; empty for none.
    pub supported_encodings: Option<Vec<String>>,
    /// Whether large batches may be stored elsewhere.
    pub externalization: bool,
    /// Whether the client may announce its own bound of replies.
    pub accepts_max_response_bytes: bool,
    /// Whether large requests may be uploaded elsewhere.
    pub upload_urls: bool,
    /// Largest upload.
    pub max_upload_bytes: Option<u64>,
}

impl Capabilities {
    /// Replaces the snapshot when the reply carries one; a proxy's own replies do not.
    pub(crate) fn update(&mut self, headers: &HeaderMap) {
        let announced =
            headers.keys().any(|name| name.as_str().starts_with("vgi-") && name.as_str() != "vgi-auth-reason");
        if announced {
            *self = Self::read(headers);
        }
    }

    fn read(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
        let number = |name: &str| text(name).and_then(|value| value.parse().ok());
        let flag = |name: &str| text(name).is_some_and(|value| value.eq_ignore_ascii_case("true"));
        let codecs = |list: &str| {
            list.split(',').map(|codec| codec.trim().to_ascii_lowercase()).filter(|codec| !codec.is_empty()).collect()
        };
        Self {
            announced: true,
            max_request_bytes: number("vgi-max-request-bytes"),
            max_response_bytes: number("vgi-max-response-bytes"),
            supported_encodings: text("vgi-supported-encodings").map(codecs),
            externalization: flag("vgi-externalization-enabled"),
            accepts_max_response_bytes: flag("vgi-accept-max-response-bytes-support"),
            upload_urls: flag("vgi-upload-url-support"),
            max_upload_bytes: number("vgi-max-upload-bytes"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_and_foreign_replies_change_nothing() {
        let mut headers = HeaderMap::new();
        headers.insert("VGI-Supported-Encodings", "zstd, GZIP".parse().unwrap());
        headers.insert("VGI-Max-Request-Bytes", "1000".parse().unwrap());
        headers.insert("VGI-Max-Response-Bytes", "-1".parse().unwrap());
        let mut capabilities = Capabilities::default();
        capabilities.update(&headers);
        assert_eq!(capabilities.supported_encodings, Some(vec!["zstd".to_owned(), "gzip".to_owned()]));
        assert_eq!((capabilities.max_request_bytes, capabilities.max_response_bytes), (Some(1000), None));
        let before = capabilities.clone();
        capabilities.update(&HeaderMap::new());
        assert_eq!(capabilities, before);
    }
}
