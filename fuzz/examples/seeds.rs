//! Makes the seeds of every target's corpus from the recorded exchanges in `crates/vgi-wire/tests/data`.

use std::fs;
use std::path::Path;

use arrow_array::RecordBatch;
use bytes::Bytes;
use vgi_wire::filter;
use vgi_wire::frame::{self, Header};
use vgi_wire::ipc;
use vgi_wire::record::Record;
use vgi_wire::reply::read_unary;
use vgi_wire::server::decode_call;

type Failure = Box<dyn std::error::Error>;

/// Larger seeds only slow the fuzzer down.
const LARGEST: usize = 16 * 1024;

fn save(target: &str, name: &str, bytes: &[u8]) -> Result<(), Failure> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder)?;
    if bytes.len() <= LARGEST {
        fs::write(folder.join(name), bytes)?;
    }
    Ok(())
}

/// Bytes with the selector that [`vgi_fuzz::select`] takes off.
fn selected(bytes: &[u8], selector: u8) -> Vec<u8> {
    [bytes, &[selector]].concat()
}

fn reply(name: &str, method: &str, body: &Bytes) -> Result<(), Failure> {
    save("reply", name, body)?;
    let Some((_, selector)) = vgi_fuzz::responses::SELECTORS.iter().find(|(known, _)| *known == method) else {
        return Ok(());
    };
    let Some(batch) = read_unary(body.clone()).ok().and_then(|reply| reply.batch) else { return Ok(()) };
    let record = Record::first(&batch)?.bytes("result")?;
    for (index, item) in items(&record).into_iter().enumerate().take(4) {
        save("responses", &format!("{name}-{index}"), &selected(&item, selector + 3))?;
        let arguments =
            ipc::decode_batch(item).ok().and_then(|item| Record::first(&item).ok()?.optional_bytes("arguments"));
        if let Some(arguments) = arguments {
            save("arguments", &format!("{name}-{index}"), &arguments)?;
        }
    }
    save("responses", name, &selected(&record, *selector))
}

fn items(record: &Bytes) -> Vec<Bytes> {
    let batch: Option<RecordBatch> = ipc::decode_batch(record.clone()).ok();
    batch.and_then(|batch| Record::first(&batch).ok()?.blobs("items").ok()).unwrap_or_default()
}

fn request(name: &str, body: &Bytes) -> Result<(), Failure> {
    save("requests", name, &selected(body, 0))?;
    let Ok(call) = decode_call(body.clone()) else { return Ok(()) };
    let selector = vgi_fuzz::requests::SELECTORS.iter().find(|(method, _)| *method == call.method);
    let (Some((_, selector)), Ok(record)) = (selector, call.request_blob()) else { return Ok(()) };
    save("requests", &format!("{name}-record"), &selected(&record, *selector))?;
    if call.method == "bind" {
        let record = ipc::decode_batch(record)?;
        save("arguments", name, &Record::first(&record)?.bytes("arguments")?)?;
    }
    Ok(())
}

fn main() -> Result<(), Failure> {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/vgi-wire/tests/data");
    for folder in fs::read_dir(data)? {
        let folder = folder?.path();
        if !folder.is_dir() {
            continue;
        }
        for file in fs::read_dir(&folder)? {
            let file = file?.path();
            let Some(stem) = file.file_stem().and_then(|stem| stem.to_str()) else { continue };
            if file.extension().is_none_or(|extension| extension != "bin") {
                continue;
            }
            let name = format!("{}-{stem}", folder.file_name().unwrap_or_default().display());
            let body = Bytes::from(fs::read(&file)?);
            save("ipc", &name, &body)?;
            let method = stem.split_once('-').map_or("", |(_, method)| method);
            match method.rsplit_once('.') {
                Some((method, "resp")) => reply(&name, method, &body)?,
                _ => request(&name, &body)?,
            }
            let header = Header { method: stem.to_owned(), success: true, ..Header::default() };
            save("frame", &name, &frame::encode(&header, Some(body.into()))?.to_bytes())?;
        }
    }
    let blob = filter::encode(&vgi_fuzz::filters::all())?;
    save("filter", "all", &blob)?;
    let batch = ipc::decode_batch(blob)?;
    save("filter", "document", Record::first(&batch)?.text("filter_spec")?.as_bytes())?;
    save(
        "frame",
        "failed",
        &frame::encode(&Header { error: Some("no".to_owned()), ..Header::default() }, None)?.to_bytes(),
    )?;
    let headers =
        "VGI-Supported-Encodings: zstd, gzip\nVGI-Max-Request-Bytes: 1000\nVGI-Externalization-Enabled: true\n";
    save("capabilities", "all", headers.as_bytes())
}
