//! The footer itself: eight fields of 32 bytes, then room for a signature.

use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

const FIELD_SIZE: usize = 32;
const FIELDS: usize = 8;
const SIGNATURE_SIZE: usize = 256;

/// Bytes of the whole footer.
pub const FOOTER_SIZE: usize = FIELDS * FIELD_SIZE + SIGNATURE_SIZE;

/// DuckDB reads a file whose eighth field is not this as "not a DuckDB extension".
const MAGIC: &str = "4";

/// The extension is C++ inside, so DuckDB must have exactly the version that it was built for.
const ABI_TYPE: &str = "CPP";

/// What the footer says about an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Footer {
    /// How the extension talks to DuckDB: `CPP`, `C_STRUCT` …
    pub abi_type: String,
    /// The extension's own version, as `duckdb_extensions()` shows it.
    pub extension_version: String,
    /// The DuckDB release that the extension fits, `v2.0.0`.
    pub duckdb_version: String,
    /// DuckDB's name of the platform, `linux_amd64`.
    pub platform: String,
}

/// Why a footer could not be written or read.
#[derive(Debug, thiserror::Error)]
pub enum FooterError {
    /// A field does not fit into its 32 bytes.
    #[error("the {name} {value:?} is longer than {FIELD_SIZE} bytes")]
    FieldTooLong {
        /// Which field.
        name: &'static str,
        /// What was to be written.
        value: String,
    },
    /// A field is empty or holds a NUL, which DuckDB takes for the end.
    #[error("the {name} {value:?} is empty or contains a NUL")]
    FieldUnusable {
        /// Which field.
        name: &'static str,
        /// What was to be written.
        value: String,
    },
    /// The library has a footer already; a second one would leave the first as garbage in front.
    #[error("{} already has a footer", .0.display())]
    AlreadyThere(PathBuf),
    /// A file could not be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl Footer {
    /// The footer of a C++ extension.
    pub fn new(
        extension_version: impl Into<String>,
        duckdb_version: impl Into<String>,
        platform: impl Into<String>,
    ) -> Self {
        Self {
            abi_type: ABI_TYPE.to_owned(),
            extension_version: extension_version.into(),
            duckdb_version: duckdb_version.into(),
            platform: platform.into(),
        }
    }

    /// The bytes that go to the end of the file. The signature is zero: the file is unsigned.
    ///
    /// # Errors
    ///
    /// When a field is empty, too long or contains a NUL.
    pub fn encode(&self) -> Result<[u8; FOOTER_SIZE], FooterError> {
        // DuckDB numbers the fields from the end: the magic value comes last, three unused ones come first.
        let fields = [
            ("ABI type", self.abi_type.as_str()),
            ("extension version", self.extension_version.as_str()),
            ("DuckDB version", self.duckdb_version.as_str()),
            ("platform", self.platform.as_str()),
            ("magic value", MAGIC),
        ];
        let unused = FIELDS - fields.len();
        let mut bytes = [0; FOOTER_SIZE];
        for (slot, (name, value)) in bytes.chunks_exact_mut(FIELD_SIZE).skip(unused).zip(fields) {
            if value.is_empty() || value.contains('\0') {
                return Err(FooterError::FieldUnusable { name, value: value.to_owned() });
            }
            slot.get_mut(..value.len())
                .ok_or_else(|| FooterError::FieldTooLong { name, value: value.to_owned() })?
                .copy_from_slice(value.as_bytes());
        }
        Ok(bytes)
    }

    /// Reads a footer; `None` when the bytes are not one.
    #[must_use]
    pub fn decode(bytes: &[u8; FOOTER_SIZE]) -> Option<Self> {
        let mut fields = bytes.chunks_exact(FIELD_SIZE).take(FIELDS).rev().map(|field| {
            let end = field.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            field.get(..end).map(|text| String::from_utf8_lossy(text).into_owned())
        });
        if fields.next()?? != MAGIC {
            return None;
        }
        let (platform, duckdb_version, extension_version, abi_type) =
            (fields.next()??, fields.next()??, fields.next()??, fields.next()??);
        Some(Self { abi_type, extension_version, duckdb_version, platform })
    }
}

/// DuckDB's name for a platform, from the names that Rust has for it.
///
/// DuckDB calls every 64-bit processor that is not ARM `amd64`; a build for anything else than these two is not offered.
#[must_use]
pub fn platform(os: &str, arch: &str, env: &str) -> Option<String> {
    let os = match os {
        "linux" => "linux",
        "macos" => "osx",
        "windows" => "windows",
        _ => return None,
    };
    let arch = match arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        _ => return None,
    };
    let suffix = match (os, env) {
        ("linux", "musl") => "_musl",
        ("windows", "gnu") => "_mingw",
        _ => "",
    };
    Some(format!("{os}_{arch}{suffix}"))
}

/// The footer at the end of a file, if it has one.
///
/// # Errors
///
/// When the file cannot be read.
pub fn read(path: &Path) -> Result<Option<Footer>, FooterError> {
    let failed = |source| FooterError::Io { path: path.to_owned(), source };
    let mut file = fs::File::open(path).map_err(failed)?;
    let size = i64::try_from(FOOTER_SIZE).unwrap_or(i64::MAX);
    if file.metadata().map_err(failed)?.len() < size.unsigned_abs() {
        return Ok(None);
    }
    file.seek(SeekFrom::End(-size)).map_err(failed)?;
    let mut bytes = [0; FOOTER_SIZE];
    file.read_exact(&mut bytes).map_err(failed)?;
    Ok(Footer::decode(&bytes))
}

/// Writes `library` with the footer behind it to `extension`; `replace` exchanges a footer that `library` already has.
///
/// The file appears under its name at once and whole: a process that has the old one mapped keeps it, and nobody loads half a file.
///
/// # Errors
///
/// When a field is unusable, when there is a footer already and it is not to be replaced, or when a file cannot be read or written.
pub fn append(library: &Path, extension: &Path, footer: &Footer, replace: bool) -> Result<(), FooterError> {
    let encoded = footer.encode()?;
    let mut bytes = fs::read(library).map_err(|source| FooterError::Io { path: library.to_owned(), source })?;
    if let Some((rest, last)) = bytes.split_last_chunk::<FOOTER_SIZE>()
        && Footer::decode(last).is_some()
    {
        if !replace {
            return Err(FooterError::AlreadyThere(library.to_owned()));
        }
        bytes.truncate(rest.len());
    }
    bytes.extend_from_slice(&encoded);
    let partial = extension.with_extension("partial");
    fs::write(&partial, &bytes).map_err(|source| FooterError::Io { path: partial.clone(), source })?;
    fs::rename(&partial, extension).map_err(|source| FooterError::Io { path: extension.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Footer {
        Footer::new("0.1.0", "v2.0.0", "linux_amd64")
    }

    /// The layout, spelled out byte by byte: DuckDB reverses the eight fields and expects magic, platform, DuckDB version,
    /// extension version, ABI type (`ParseExtensionMetaData` in its `extension_load.cpp`).
    #[test]
    fn lays_the_fields_out_as_duckdb_reads_them() {
        let bytes = sample().encode().expect("fields fit");
        let expected = ["", "", "", "CPP", "0.1.0", "v2.0.0", "linux_amd64", "4"];
        for (index, text) in expected.iter().enumerate() {
            let mut field = [0_u8; 32];
            field[..text.len()].copy_from_slice(text.as_bytes());
            assert_eq!(bytes[index * 32..(index + 1) * 32], field, "field {index}");
        }
        assert_eq!(bytes[256..], [0; 256]);
    }

    #[test]
    fn reads_back_what_it_wrote() {
        let bytes = sample().encode().expect("fields fit");
        assert_eq!(Footer::decode(&bytes), Some(sample()));
        assert_eq!(Footer::decode(&[0; FOOTER_SIZE]), None);
        assert_eq!(Footer::decode(&[b'4'; FOOTER_SIZE]), None);
    }

    #[test]
    fn a_field_of_32_bytes_fits_and_one_more_does_not() {
        let mut footer = sample();
        footer.extension_version = "x".repeat(32);
        let bytes = footer.encode().expect("32 bytes fit");
        assert_eq!(Footer::decode(&bytes), Some(footer.clone()));
        footer.extension_version.push('x');
        let error = footer.encode().expect_err("33 bytes do not fit");
        assert!(matches!(error, FooterError::FieldTooLong { name: "extension version", .. }), "{error}");
    }

    #[test]
    fn refuses_empty_fields_and_nuls() {
        for value in ["", "v2\0"] {
            let footer = Footer::new("0.1.0", value, "linux_amd64");
            let error = footer.encode().expect_err("unusable");
            assert!(matches!(error, FooterError::FieldUnusable { name: "DuckDB version", .. }), "{error}");
        }
    }

    #[test]
    fn names_platforms_as_duckdb_does() {
        let named = |os, arch, env| platform(os, arch, env).unwrap_or_default();
        assert_eq!(named("linux", "x86_64", "gnu"), "linux_amd64");
        assert_eq!(named("linux", "aarch64", "gnu"), "linux_arm64");
        assert_eq!(named("linux", "x86_64", "musl"), "linux_amd64_musl");
        assert_eq!(named("macos", "aarch64", ""), "osx_arm64");
        assert_eq!(named("windows", "x86_64", "msvc"), "windows_amd64");
        assert_eq!(named("windows", "x86_64", "gnu"), "windows_amd64_mingw");
        assert_eq!(platform("linux", "riscv64", "gnu"), None);
        assert_eq!(platform("netbsd", "x86_64", ""), None);
    }

    #[test]
    fn appends_once_and_replaces_when_told() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let (library, extension) = (dir.path().join("lib.so"), dir.path().join("vgi.duckdb_extension"));
        fs::write(&library, b"code").expect("written");
        append(&library, &extension, &sample(), false).expect("appended");
        assert_eq!(fs::metadata(&extension).expect("there").len(), 4 + 512);
        assert_eq!(read(&extension).expect("readable"), Some(sample()));
        assert_eq!(read(&library).expect("readable"), None);

        let newer = Footer::new("0.2.0", "v2.0.1", "linux_amd64");
        let error = append(&extension, &extension, &newer, false).expect_err("has one");
        assert!(matches!(error, FooterError::AlreadyThere(_)), "{error}");
        append(&extension, &extension, &newer, true).expect("replaced");
        assert_eq!(fs::read(&extension).expect("there")[..4], *b"code");
        assert_eq!(fs::metadata(&extension).expect("there").len(), 4 + 512);
        assert_eq!(read(&extension).expect("readable"), Some(newer));
    }

    #[test]
    fn names_the_file_that_is_missing() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let missing = dir.path().join("nothing.so");
        let error = append(&missing, &dir.path().join("x"), &sample(), false).expect_err("missing");
        assert!(error.to_string().contains("nothing.so"), "{error}");
    }
}
