//! `vgi-footer LIBRARY EXTENSION [--manifest Cargo.toml] [--platform NAME] [--replace]`

#![forbid(unsafe_code)]

use std::path::PathBuf;
use std::process::ExitCode;

use vgi_footer::{DuckdbVersion, Footer, append, platform};

const USAGE: &str = "\
usage: vgi-footer LIBRARY EXTENSION [--manifest PATH] [--platform NAME] [--replace]

Writes LIBRARY with DuckDB's metadata footer behind it to EXTENSION.
  --manifest PATH   the Cargo.toml whose libduckdb-sys tells the DuckDB version (default: Cargo.toml)
  --platform NAME   DuckDB's name of the platform (default: the one this tool was compiled for)
  --replace         exchange the footer that LIBRARY already has";

struct Arguments {
    library: PathBuf,
    extension: PathBuf,
    manifest: PathBuf,
    platform: Option<String>,
    replace: bool,
}

fn main() -> ExitCode {
    let Some(arguments) = parse(std::env::args().skip(1)) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match run(&arguments) {
        Ok(footer) => {
            println!(
                "{}: vgi {} for DuckDB {} on {}",
                arguments.extension.display(),
                footer.extension_version,
                footer.duckdb_version,
                footer.platform
            );
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("vgi-footer: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(mut words: impl Iterator<Item = String>) -> Option<Arguments> {
    let (mut files, mut manifest, mut platform, mut replace) = (Vec::new(), PathBuf::from("Cargo.toml"), None, false);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--manifest" => manifest = PathBuf::from(words.next()?),
            "--platform" => platform = Some(words.next()?),
            "--replace" => replace = true,
            flag if flag.starts_with('-') => return None,
            _ => files.push(PathBuf::from(word)),
        }
    }
    let mut files = files.into_iter();
    match (files.next(), files.next(), files.next()) {
        (Some(library), Some(extension), None) => Some(Arguments { library, extension, manifest, platform, replace }),
        _ => None,
    }
}

fn run(arguments: &Arguments) -> Result<Footer, Box<dyn std::error::Error>> {
    let manifest = std::fs::read_to_string(&arguments.manifest)
        .map_err(|error| format!("{}: {error}", arguments.manifest.display()))?;
    let duckdb = DuckdbVersion::from_manifest(&manifest)?;
    let platform = match &arguments.platform {
        Some(name) => name.clone(),
        None => native_platform().ok_or("DuckDB has no name for this platform; give --platform")?,
    };
    // every member of the workspace has the version of the workspace, and so of the extension
    let footer = Footer::new(env!("CARGO_PKG_VERSION"), duckdb.to_string(), platform);
    append(&arguments.library, &arguments.extension, &footer, arguments.replace)?;
    Ok(footer)
}

fn native_platform() -> Option<String> {
    let env = if cfg!(target_env = "musl") {
        "musl"
    } else if cfg!(target_env = "gnu") {
        "gnu"
    } else {
        ""
    };
    platform(std::env::consts::OS, std::env::consts::ARCH, env)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Option<Arguments> {
        parse(words.iter().map(ToString::to_string))
    }

    #[test]
    fn takes_two_files_and_options() {
        let arguments = parsed(&["a.so", "--platform", "linux_arm64", "b.x", "--replace"]).expect("usable");
        assert_eq!((arguments.library, arguments.extension), (PathBuf::from("a.so"), PathBuf::from("b.x")));
        assert_eq!(arguments.platform.as_deref(), Some("linux_arm64"));
        assert!(arguments.replace);
    }

    #[test]
    fn refuses_what_it_does_not_know() {
        for words in [&["a.so"][..], &["a", "b", "c"], &["a", "b", "--force"], &["a", "b", "--manifest"], &[]] {
            assert!(parsed(words).is_none(), "{words:?}");
        }
    }

    #[test]
    fn knows_the_platform_it_runs_on() {
        assert!(native_platform().is_some());
    }
}
