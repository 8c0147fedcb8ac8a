//! Every recorded exchange with a server that others wrote, decoded and compared with the text that the recorder (pyarrow) made of it;
//! requests are read and written again.
//!
//! The recordings in `tests/data` run always. `VGI_CAPTURES` may name a directory with more, one folder for each server.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod python;
mod render;
mod replies;
mod requests;

use std::path::{Path, PathBuf};

use bytes::Bytes;
use vgi_wire::ipc;

/// A recorded body.
struct Recording {
    /// `server/001-method.req`
    name: String,
    body: Bytes,
    /// The text beside it, without the lines of headers.
    text: Vec<String>,
}

fn folders(root: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<_> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    folders
}

fn recordings() -> Vec<Recording> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let more = std::env::var_os("VGI_CAPTURES").map(PathBuf::from);
    let folders = [Some(own), more].into_iter().flatten().flat_map(|root| folders(&root));
    let mut out = Vec::new();
    for folder in folders {
        let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "bin"));
        files.sort();
        for file in files {
            let text = std::fs::read_to_string(file.with_extension("txt")).unwrap();
            let name = format!("{}/{}", folder.file_name().unwrap().display(), file.file_stem().unwrap().display());
            let text = text.lines().filter(|line| !line.starts_with("# ")).map(str::to_owned).collect();
            out.push(Recording { name, body: Bytes::from(std::fs::read(&file).unwrap()), text });
        }
    }
    out
}

#[test]
fn every_body_decodes_to_the_text_beside_it() {
    let mut compared = 0;
    for Recording { name, body, text } in recordings() {
        if !render::is_ipc(&body) {
            assert!(body.is_empty() || ipc::decode_streams(body).is_err(), "{name} is not Arrow");
            continue;
        }
        let mut lines = Vec::new();
        render::streams(&body, "", &mut lines);
        let (ours, theirs) = (render::normal(lines), render::normal(text));
        for (line, (ours, theirs)) in ours.iter().zip(&theirs).enumerate() {
            assert_eq!(ours, theirs, "{name}, line {line}");
        }
        assert_eq!(ours.len(), theirs.len(), "{name}");
        compared += 1;
    }
    assert!(compared > 30, "only {compared} recordings were found");
    eprintln!("{compared} bodies");
}

/// The text of a body without what only depends on how its bytes are laid out.
fn text(body: &Bytes) -> Vec<String> {
    let mut lines = Vec::new();
    render::streams(body, "", &mut lines);
    if lines.first().is_some_and(|line| line.ends_with("schema of 0 field(s)")) {
        // servers do not look at the rows of a request without columns; clients send none or one
        lines.retain(|line| !line.starts_with("   -- batch 1: "));
    }
    render::normal(lines).iter().map(|line| without_sizes(line)).collect()
}

fn without_sizes(line: &str) -> String {
    for mark in ["<IPC blob, ", ", stream is bytes ", " at byte "] {
        if let Some((head, tail)) = line.split_once(mark) {
            let tail = tail.split_once(": ").map_or("", |(_, tail)| tail);
            return format!("{head}{mark}{tail}");
        }
    }
    line.to_owned()
}

#[test]
fn every_request_is_written_as_servers_accepted_it() {
    let (mut same, mut equal, mut fewer, mut other) = (0, 0, 0, std::collections::BTreeMap::<String, usize>::new());
    for Recording { name, body, .. } in recordings() {
        if name.strip_suffix(".req").is_none() || !render::is_ipc(&body) {
            continue;
        }
        let Some(ours) = requests::rewritten(&body) else {
            let method = name.split_once('-').map_or("", |(_, method)| method);
            *other.entry(method.to_owned()).or_default() += 1;
            continue;
        };
        let ours = ours.to_bytes();
        if ours == body {
            same += 1;
            continue;
        }
        if name.starts_with("rust1-legacy/") {
            // recorded with other columns: that server ignores those that it does not know, and does without most; it takes the
            // options as null and either type of a buffering function
            let (differing, theirs) = (["schema of", "options", "function_type = "], text(&body));
            let column = |line: &str| line.split_once(" = ").or(line.split_once(": ")).map(|(name, _)| name.to_owned());
            let known = |line: &String| theirs.iter().any(|other| column(other) == column(line));
            let missing: Vec<_> = text(&ours)
                .into_iter()
                .filter(|line| {
                    !theirs.contains(line) && known(line) && !differing.iter().any(|text| line.contains(text))
                })
                .collect();
            assert!(missing.is_empty(), "{name}: {missing:#?}");
            fewer += 1;
            continue;
        }
        for (line, (ours, theirs)) in text(&ours).iter().zip(&text(&body)).enumerate() {
            assert_eq!(ours, theirs, "{name}, line {line}");
        }
        assert_eq!(text(&ours).len(), text(&body).len(), "{name}");
        equal += 1;
    }
    eprintln!(
        "{same} requests are the same bytes, {equal} are equal after decoding, {fewer} are equal in common columns; not ours: {other:?}"
    );
}

#[test]
fn every_reply_is_read_by_its_method() {
    let mut checked = 0;
    for Recording { name, body, text } in recordings() {
        let Some(exchange) = name.strip_suffix(".resp").filter(|_| render::is_ipc(&body)) else { continue };
        let method = exchange.split_once('/').and_then(|(_, exchange)| exchange.split_once('-')).unwrap().1;
        for part in replies::parts(method, &body) {
            assert!(text.iter().any(|line| line.contains(&part)), "{name}: {part}");
            checked += 1;
        }
    }
    eprintln!("{checked} parts of replies");
}
