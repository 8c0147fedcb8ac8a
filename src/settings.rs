//! The extension's settings: one table, from which they are registered, checked and documented.

use std::path::{Path, PathBuf};
use std::time::Duration;

use vgi_transport::{Compression, Options, Proxy};

use crate::bridge::ffi;
use crate::convert::exception_text;
use crate::error::{Error, ExceptionClass};

/// A setting as it is registered with DuckDB.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Name in `SET name = value`.
    pub name: &'static str,
    /// One line for `duckdb_settings()`.
    pub description: &'static str,
    /// Type, default and allowed values.
    pub kind: Kind,
}

/// What a setting holds.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// An unsigned integer.
    Number {
        /// Value until the user sets another.
        default: u64,
        /// Smallest and largest value that `SET` accepts.
        range: (u64, u64),
    },
    /// On or off.
    Switch(bool),
    /// One of some words, the first of which is the default.
    Choice(&'static [&'static str]),
    /// The path of a directory; empty for none.
    Directory,
}

impl Kind {
    /// The SQL type.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::Number { .. } => "UBIGINT",
            Self::Switch(_) => "BOOLEAN",
            Self::Choice(_) | Self::Directory => "VARCHAR",
        }
    }

    /// The default, as SQL text.
    pub fn default_text(self) -> String {
        match self {
            Self::Number { default, .. } => default.to_string(),
            Self::Switch(on) => on.to_string(),
            Self::Choice(words) => words.first().copied().unwrap_or_default().to_owned(),
            Self::Directory => String::new(),
        }
    }
}

const fn number(name: &'static str, description: &'static str, default: u64, range: (u64, u64)) -> Setting {
    Setting { name, description, kind: Kind::Number { default, range } }
}

/// How many requests one sink thread keeps in flight.
pub const INFLIGHT: Setting = number(
    "vgi_inflight",
    "Requests that one thread keeps in flight while it sends its input to a VGI server",
    4,
    (1, 64),
);

/// Size that requests grow to once many small ones were sent. What one costs beside its bytes is spread over them; above 2 MB little is
/// gained, every thread holds a window of requests, and 2 MiB is what servers take when nobody told them otherwise.
pub const BATCH_BYTES: Setting = number(
    "vgi_batch_bytes",
    "Size in bytes up to which chunks are merged into one request after a call's first requests; 0 never merges",
    1_900_000,
    (0, 1 << 30),
);

/// How many finalize streams are open at once.
pub const READ_AHEAD: Setting = number(
    "vgi_read_ahead",
    "Output streams of a VGI function that are kept open at once, each with its next batch on the way",
    8,
    (1, 64),
);

const CONNECT_TIMEOUT: Setting =
    number("vgi_connect_timeout_seconds", "Seconds that connecting to a VGI server may take", 10, (1, 86_400));

const FIRST_BYTE_TIMEOUT: Setting = number(
    "vgi_http_timeout_seconds",
    "Seconds that a VGI server may take until the first byte of its answer",
    300,
    (1, 86_400),
);

const STALL_TIMEOUT: Setting = number(
    "vgi_stall_timeout_seconds",
    "Seconds that may pass between two pieces of a request or an answer of a VGI server",
    60,
    (1, 86_400),
);

const TOTAL_TIMEOUT: Setting = number(
    "vgi_total_timeout_seconds",
    "Seconds that one exchange with a VGI server may take in all; 0 for no bound",
    0,
    (0, 604_800),
);

const MAX_RESPONSE_BYTES: Setting = number(
    "vgi_max_response_bytes",
    "Largest answer of a VGI server that is accepted, in bytes, as received and as decompressed",
    2 << 30,
    (1 << 10, 1 << 40),
);

const RETRIES: Setting = number(
    "vgi_retries",
    "How often a request to a VGI server that changes nothing there is repeated after a failure that may pass",
    3,
    (0, 20),
);

const COMPRESSION: Setting = Setting {
    name: "vgi_compression",
    description: "Whether requests to a VGI server on another machine are compressed: auto where that is faster, off, or always",
    kind: Kind::Choice(&["auto", "off", "always"]),
};

const HTTP2: Setting = Setting {
    name: "vgi_http2",
    description: "Whether HTTP/2 is spoken with a VGI server that offers it over TLS",
    kind: Kind::Switch(false),
};

const TLS_VERIFY: Setting = Setting {
    name: "vgi_tls_verify",
    description: "Whether the certificates of VGI servers are checked; off trusts anybody",
    kind: Kind::Switch(true),
};

/// Whether threads that would wait are released.
pub const RELEASE_THREADS: Setting = Setting {
    name: "vgi_release_threads",
    description: "Whether a thread that would wait for a VGI server works for other queries meanwhile",
    kind: Kind::Switch(false),
};

/// Whether calls run at all.
pub const TABLE_BUFFERING: Setting = Setting {
    name: "vgi_table_buffering",
    description: "Whether calls of buffering functions are allowed; off makes them an error",
    kind: Kind::Switch(true),
};

/// Where exchanges are recorded.
pub const TRACE_DIR: Setting = Setting {
    name: "vgi_trace_dir",
    description: "Directory into which each exchange with a VGI server is written as a frame, data included; empty for none",
    kind: Kind::Directory,
};

/// Every setting, in the order of registration.
pub const ALL: [Setting; 15] = [
    INFLIGHT,
    BATCH_BYTES,
    READ_AHEAD,
    RELEASE_THREADS,
    CONNECT_TIMEOUT,
    FIRST_BYTE_TIMEOUT,
    STALL_TIMEOUT,
    TOTAL_TIMEOUT,
    MAX_RESPONSE_BYTES,
    RETRIES,
    COMPRESSION,
    HTTP2,
    TLS_VERIFY,
    TABLE_BUFFERING,
    TRACE_DIR,
];

/// Refuses a value that the setting does not allow, by the setting's name.
pub fn check(name: &str, value: &str) -> Result<(), Error> {
    let refuse = |text: String| Err(Error::new(ExceptionClass::InvalidInput, format!("{name} {text}")));
    match ALL.iter().find(|setting| setting.name == name).map(|setting| setting.kind) {
        Some(Kind::Number { range: (least, most), .. }) => match value.parse::<u64>() {
            Ok(number) if number >= least && number <= most => Ok(()),
            _ => refuse(format!(
                "must be between {least} and {most}, not {}",
                if value.is_empty() { "NULL" } else { value }
            )),
        },
        Some(Kind::Choice(words)) if !words.contains(&value) => {
            refuse(format!("must be one of {}, not '{value}'", words.join(", ")))
        }
        Some(Kind::Directory) if !value.is_empty() && !Path::new(value).is_dir() => {
            refuse(format!("must be an existing directory, and '{value}' is none"))
        }
        _ => Ok(()),
    }
}

/// A setting's value in this query; switches are 0 or 1.
pub fn number_of(context: &ffi::ClientContext, setting: Setting) -> Result<u64, Error> {
    ffi::setting_u64(context, setting.name).map_err(|error| unreadable(&error))
}

/// A setting's value as a size or count.
pub fn size_of(context: &ffi::ClientContext, setting: Setting) -> Result<usize, Error> {
    Ok(usize::try_from(number_of(context, setting)?).unwrap_or(usize::MAX))
}

/// A setting's text in this query.
pub fn text_of(context: &ffi::ClientContext, setting: Setting) -> Result<String, Error> {
    ffi::setting_text(context, setting.name).map_err(|error| unreadable(&error))
}

fn unreadable(error: &cxx::Exception) -> Error {
    Error::new(ExceptionClass::InvalidInput, exception_text(error))
}

/// Clocks and limits of this query's requests.
pub fn transport_options(context: &ffi::ClientContext) -> Result<Options, Error> {
    let seconds = |setting| number_of(context, setting).map(Duration::from_secs);
    Ok(Options {
        connect_timeout: seconds(CONNECT_TIMEOUT)?,
        first_byte_timeout: seconds(FIRST_BYTE_TIMEOUT)?,
        no_progress_timeout: seconds(STALL_TIMEOUT)?,
        total_timeout: Some(seconds(TOTAL_TIMEOUT)?).filter(|total| !total.is_zero()),
        max_response_bytes: number_of(context, MAX_RESPONSE_BYTES)?,
        retries: u32::try_from(number_of(context, RETRIES)?).unwrap_or(u32::MAX),
        compression: match text_of(context, COMPRESSION)?.as_str() {
            "off" => Compression::Off,
            "always" => Compression::Always,
            _ => Compression::Auto,
        },
        http2: number_of(context, HTTP2)? != 0,
        tls_verify: number_of(context, TLS_VERIFY)? != 0,
        proxy: proxy(context)?,
        ca_cert_file: foreign_text(context, "ca_cert_file")?.map(PathBuf::from),
        ..Options::default()
    })
}

/// The proxy of DuckDB's own settings.
fn proxy(context: &ffi::ClientContext) -> Result<Option<Proxy>, Error> {
    let Some(address) = foreign_text(context, "http_proxy")? else { return Ok(None) };
    let username = foreign_text(context, "http_proxy_username")?;
    let password = foreign_text(context, "http_proxy_password")?;
    Ok(Some(Proxy { address, username, password }))
}

/// A setting of DuckDB or of another extension, which need not exist.
fn foreign_text(context: &ffi::ClientContext, name: &str) -> Result<Option<String>, Error> {
    let value = ffi::setting_value(context, name).map_err(|error| unreadable(&error))?;
    Ok(value.as_ref().map(ffi::value_text).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_out_of_range_is_refused_by_name() {
        let error = check("vgi_inflight", "0").unwrap_err();
        assert_eq!(error.to_string(), "vgi_inflight must be between 1 and 64, not 0");
        assert_eq!(
            check("vgi_inflight", "").unwrap_err().to_string(),
            "vgi_inflight must be between 1 and 64, not NULL"
        );
        assert!(check("vgi_inflight", "64").is_ok());
        assert!(check("vgi_batch_bytes", "0").is_ok());
        assert!(check("vgi_trace_dir", "/no/such/directory").is_err());
    }

    #[test]
    fn defaults_are_allowed() {
        for setting in ALL {
            assert!(check(setting.name, &setting.kind.default_text()).is_ok(), "{}", setting.name);
        }
    }
}
