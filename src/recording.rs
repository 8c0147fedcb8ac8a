//! Records of exchanges: `SET vgi_trace_dir = '…'` writes each one as two frames, the request and its reply.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use vgi_transport::Exchange;
use vgi_wire::frame::{self, Header};
use vgi_wire::ipc::Segments;

/// Numbers the exchanges of a process, which may write into one directory from many queries.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Writes `PROCESS-NUMBER-method.request.frame` and `….reply.frame` into a directory.
pub fn record(directory: &Path, exchange: &Exchange<'_>) -> io::Result<()> {
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let method = exchange.method.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "-");
    let name = |part: &str| directory.join(format!("{}-{number:06}-{method}.{part}.frame", std::process::id()));
    let mut header = Header {
        method: exchange.method.to_owned(),
        phase: Some(exchange.phase.to_string()),
        success: exchange.reply.is_some(),
        error: exchange.reply.is_none().then(|| format!("HTTP {} without Arrow", exchange.status)),
        milliseconds: exchange.elapsed.as_secs_f64() * 1000.0,
        ..Header::default()
    };
    header.ids.insert("status".to_owned(), exchange.status.to_string());
    if !exchange.function.is_empty() {
        header.ids.insert("function".to_owned(), exchange.function.to_owned());
    }
    write(&name("request"), &header, exchange.request.cloned())?;
    write(&name("reply"), &header, exchange.reply.cloned().map(Segments::from))
}

fn write(path: &Path, header: &Header, payload: Option<Segments>) -> io::Result<()> {
    let frame = frame::encode(header, payload).map_err(io::Error::other)?;
    let mut file = File::create_new(path)?;
    for piece in frame.iter() {
        file.write_all(piece)?;
    }
    Ok(())
}
