//! Where a server is.

use std::net::IpAddr;

use reqwest::Url;

use crate::error::{Error, ErrorKind, Fault, Phase};

/// The base URL of a server: scheme, host and an optional path prefix, without a slash at the end.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    text: String,
    https: bool,
    loopback: bool,
    bare: bool,
}

impl Location {
    /// Reads a base URL as a user types it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidLocation`] with a sentence that says what is wrong. It does not repeat credentials.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::read(text)
            .map_err(|message| Error::local(Phase::Connect, Fault::new(ErrorKind::InvalidLocation, message)))
    }

    fn read(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let lower = text.to_ascii_lowercase();
        if !lower.starts_with("http://") && !lower.starts_with("https://") {
            let shown = if text.contains('@') { String::new() } else { format!(" '{text}'") };
            return Err(format!(
                "the location{shown} must start with http:// or https://, as in http://127.0.0.1:9000"
            ));
        }
        if text.contains(|c: char| c.is_control() || c.is_whitespace()) {
            return Err("the location must not contain white space or control characters".to_owned());
        }
        let url = Url::parse(text).map_err(|error| format!("the location is not a URL: {error}"))?;
        if !url.username().is_empty() || url.password().is_some() || text.contains('@') {
            return Err("the location must not contain a user name or password; give a bearer token instead".to_owned());
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err("the location must be a base URL, without '?' and '#'".to_owned());
        }
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or("the location names no host")?;
        Ok(Self {
            https: url.scheme() == "https",
            loopback: is_loopback(host),
            bare: url.path().trim_end_matches('/').is_empty(),
            text: url.as_str().trim_end_matches('/').to_owned(),
        })
    }

    /// The URL.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub(crate) fn is_https(&self) -> bool {
        self.https
    }

    /// Whether the server is on this machine: then no proxy is asked and nothing is compressed.
    pub(crate) fn is_loopback(&self) -> bool {
        self.loopback
    }

    /// Whether there is no path.
    pub(crate) fn is_bare(&self) -> bool {
        self.bare
    }

    /// The location one path segment below.
    pub(crate) fn below(&self, segment: &str) -> Self {
        Self { text: format!("{}/{segment}", self.text), bare: false, ..*self }
    }

    pub(crate) fn url(&self, path: &str) -> Result<Url, Fault> {
        let url = format!("{}/{path}", self.text);
        // the protocol's name comes from the server
        Url::parse(&url).map_err(|error| Fault::new(ErrorKind::Protocol, format!("'{path}' makes no URL: {error}")))
    }
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

pub(crate) fn is_loopback(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_lose_their_last_slash_and_keep_their_prefix() {
        for (typed, read) in [
            ("http://h:9000", "http://h:9000"),
            (" HTTP://H:9000/ ", "http://h:9000"),
            ("https://h/a/b/", "https://h/a/b"),
            ("http://[::1]:80/vgi", "http://[::1]/vgi"),
        ] {
            assert_eq!(Location::parse(typed).unwrap().as_str(), read);
        }
        assert!(Location::parse("http://h/").unwrap().is_bare());
        assert!(!Location::parse("http://h/vgi").unwrap().is_bare());
        assert_eq!(
            Location::parse("http://h").unwrap().below("vgi").url("bind").unwrap().as_str(),
            "http://h/vgi/bind"
        );
    }

    #[test]
    fn loopback_is_recognised() {
        for (url, loopback) in [
            ("http://127.0.0.9", true),
            ("http://[::1]:1", true),
            ("http://localhost", true),
            ("http://10.0.0.1", false),
        ] {
            assert_eq!(Location::parse(url).unwrap().is_loopback(), loopback, "{url}");
        }
    }

    #[test]
    fn other_texts_are_refused_without_repeating_credentials() {
        for text in [
            "",
            "localhost:9000",
            "ftp://h",
            "http:h",
            "http://",
            "http://h:99999",
            "http://h?a=b",
            "http://h#x",
            "http://h h",
        ] {
            let error = Location::parse(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidLocation, "{text}");
        }
        for text in ["http://u:s3cret@h", "u:s3cret@h", "http://h:x@s3cret", "http://h/?token=s3cret"] {
            let message = Location::parse(text).unwrap_err().to_string();
            assert!(!message.contains("s3cret"), "{message}");
        }
    }
}
