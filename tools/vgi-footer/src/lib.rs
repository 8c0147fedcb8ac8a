//! The metadata footer that DuckDB's `LOAD` reads from the last 512 bytes of an extension file.
//!
//! DuckDB refuses a library without it, and one whose footer names another DuckDB version or platform, before it maps any
//! code. That check is what turns "built for another DuckDB" from a crash into a sentence, so what stands in the footer
//! must be derived from what was really built: the version from the `libduckdb-sys` that is linked ([`DuckdbVersion`]),
//! the platform from the compilation target ([`platform`]).

#![forbid(unsafe_code)]

mod footer;
mod version;

pub use footer::{FOOTER_SIZE, Footer, FooterError, append, platform, read};
pub use version::{DuckdbVersion, VersionError};
