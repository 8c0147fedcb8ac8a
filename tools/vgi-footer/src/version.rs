//! Which DuckDB a `libduckdb-sys` stands for.

use std::fmt;
use std::str::FromStr;

/// A DuckDB release, written as DuckDB writes it: `v2.0.0`.
///
/// The only place in the project that names the release is the requirement on `libduckdb-sys` in the root `Cargo.toml`.
/// That crate has versions `1.N.P` where `N` is `major * 10000 + minor * 100 + patch` of the DuckDB inside and `P` counts
/// the crate's own releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DuckdbVersion {
    major: u32,
    minor: u32,
    patch: u32,
}

/// Why no DuckDB version could be derived.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// The manifest has no requirement on `libduckdb-sys` of the form `version = "=1.N.P"`.
    #[error("the manifest has no line `libduckdb-sys = {{ version = \"=1.N.P\", … }}`")]
    NoRequirement,
    /// The requirement is not an exact version of the known scheme.
    #[error("{0:?} is not an exact version `=1.N.P` of libduckdb-sys with N from 10000")]
    UnknownScheme(String),
}

impl DuckdbVersion {
    /// Reads the exact requirement on `libduckdb-sys` from the text of the workspace's `Cargo.toml`.
    ///
    /// # Errors
    ///
    /// When there is no such line, or it does not pin one version.
    pub fn from_manifest(manifest: &str) -> Result<Self, VersionError> {
        manifest
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix("libduckdb-sys")?.trim_start().strip_prefix('='))
            .find_map(|value| {
                let (_, after) = value.split_once("version")?;
                let (_, quoted) = after.split_once('"')?;
                quoted.split_once('"').map(|(version, _)| version)
            })
            .ok_or(VersionError::NoRequirement)?
            .parse()
    }
}

impl FromStr for DuckdbVersion {
    type Err = VersionError;

    fn from_str(requirement: &str) -> Result<Self, VersionError> {
        let unknown = || VersionError::UnknownScheme(requirement.to_owned());
        let exact = requirement.trim().strip_prefix('=').ok_or_else(unknown)?;
        let mut parts = exact.trim().split('.').map(str::parse::<u32>);
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(Ok(1)), Some(Ok(encoded)), Some(Ok(_)), None) if encoded >= 10_000 => {
                Ok(Self { major: encoded / 10_000, minor: encoded / 100 % 100, patch: encoded % 100 })
            }
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for DuckdbVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(requirement: &str) -> String {
        requirement.parse::<DuckdbVersion>().map_or_else(|error| error.to_string(), |version| version.to_string())
    }

    #[test]
    fn decodes_the_scheme_of_the_crate() {
        assert_eq!(shown("=1.20000.1"), "v2.0.0");
        assert_eq!(shown("=1.10505.0"), "v1.5.5");
        assert_eq!(shown("=1.21203.7"), "v2.12.3");
    }

    #[test]
    fn refuses_what_does_not_pin_one_version() {
        for requirement in ["1.20000.1", "=1.20000", "=2.0.0", "=1.5.0", "=1.20000.1.0", "=1.x.1", "", "="] {
            assert_eq!(
                requirement.parse::<DuckdbVersion>(),
                Err(VersionError::UnknownScheme(requirement.to_owned())),
                "{requirement:?}"
            );
        }
    }

    #[test]
    fn finds_the_requirement_in_a_manifest() {
        let manifest = "[workspace.dependencies]\n# libduckdb-sys = { version = \"=1.10505.0\" }\nlibduckdb-sys-extra = \"3\"\n\
                        libduckdb-sys = { version = \"=1.20001.4\", features = [\"bundled\"] }\n\n[dependencies]\nlibduckdb-sys.workspace = true\n";
        assert_eq!(DuckdbVersion::from_manifest(manifest).map(|version| version.to_string()), Ok("v2.0.1".to_owned()));
        assert_eq!(
            DuckdbVersion::from_manifest("[dependencies]\nlibduckdb-sys.workspace = true\n"),
            Err(VersionError::NoRequirement)
        );
    }

    #[test]
    fn the_projects_own_manifest_pins_a_version() {
        let manifest = include_str!("../../../Cargo.toml");
        assert!(DuckdbVersion::from_manifest(manifest).is_ok());
    }
}
