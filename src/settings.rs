//! The extension's settings: one table, from which they are registered, checked and documented.

use crate::error::{Error, ExceptionClass};

/// A setting as it is registered with DuckDB. All settings are unsigned integers.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Name in `SET name = value`.
    pub name: &'static str,
    /// One line for `duckdb_settings()`.
    pub description: &'static str,
    /// Value until the user sets another.
    pub default: u64,
    /// Smallest and largest value that `SET` accepts.
    pub range: (u64, u64),
}

/// How many requests one sink thread keeps in flight.
pub const INFLIGHT: Setting = Setting {
    name: "vgi_inflight",
    description: "Requests that one thread keeps in flight while it sends its input to a VGI server",
    default: 4,
    range: (1, 64),
};

/// Size that requests grow to once a thread has sent many small ones.
pub const BATCH_BYTES: Setting = Setting {
    name: "vgi_batch_bytes",
    description: "Size in bytes up to which chunks are merged into one request after a thread's first requests; 0 never merges",
    // untuned Python servers spool bodies above 512 KiB to a file
    default: 480 * 1024,
    range: (0, 1 << 30),
};

/// How long a request may go unanswered.
pub const TIMEOUT_SECONDS: Setting = Setting {
    name: "vgi_http_timeout_seconds",
    description: "Seconds that a VGI server may take until the first byte of its answer",
    default: 300,
    range: (1, 86_400),
};

/// Every setting, in the order of registration.
pub const ALL: [Setting; 3] = [INFLIGHT, BATCH_BYTES, TIMEOUT_SECONDS];

/// Refuses a value outside the setting's range, by the setting's name.
pub fn check(name: &str, value: u64) -> Result<(), Error> {
    match ALL.iter().find(|setting| setting.name == name) {
        Some(setting) if value < setting.range.0 || value > setting.range.1 => Err(Error::new(
            ExceptionClass::InvalidInput,
            format!("{name} must be between {} and {}, not {value}", setting.range.0, setting.range.1),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_out_of_range_is_refused_by_name() {
        let error = check("vgi_inflight", 0).unwrap_err();
        assert_eq!(error.to_string(), "vgi_inflight must be between 1 and 64, not 0");
        assert!(check("vgi_inflight", 64).is_ok());
        assert!(check("vgi_batch_bytes", 0).is_ok());
    }

    #[test]
    fn defaults_are_in_range() {
        for setting in ALL {
            assert!(check(setting.name, setting.default).is_ok(), "{}", setting.name);
        }
    }
}
