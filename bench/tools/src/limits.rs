//! The limits of the machine: nothing that moves the bytes can be faster.

use std::hint::black_box;
use std::io::{Error, Read, Result, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Instant;

const BLOCK: usize = 1 << 20;

/// The seconds that one thread needs to copy `bytes`. Memory is touched before, so that page faults are not counted.
pub(crate) fn memcpy(bytes: usize) -> f64 {
    let source = vec![1_u8; bytes];
    let mut sink = vec![2_u8; bytes];
    let start = Instant::now();
    sink.copy_from_slice(black_box(&source));
    black_box(&sink);
    start.elapsed().as_secs_f64()
}

/// The seconds until a reader thread per connection has `bytes` in all, written in blocks of 1 MiB.
pub(crate) fn tcp(bytes: usize, connections: usize) -> Result<f64> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let share = bytes / connections.max(1);
    let mut pairs = Vec::new();
    for _ in 0..connections {
        let client = TcpStream::connect(address)?;
        client.set_nodelay(true)?;
        pairs.push((client, listener.accept()?.0));
    }
    let start = Instant::now();
    let threads: Vec<_> = pairs
        .into_iter()
        .flat_map(|(client, server)| [thread::spawn(move || write(client, share)), thread::spawn(move || read(server))])
        .collect();
    for thread in threads {
        thread.join().map_err(|_| Error::other("a thread ended early"))??;
    }
    Ok(start.elapsed().as_secs_f64())
}

fn write(mut stream: TcpStream, bytes: usize) -> Result<()> {
    let block = vec![1_u8; BLOCK];
    let mut left = bytes;
    while let Some(part) = block.get(..left.min(BLOCK)).filter(|part| !part.is_empty()) {
        stream.write_all(part)?;
        left -= part.len();
    }
    Ok(())
}

fn read(mut stream: TcpStream) -> Result<()> {
    let mut block = vec![0_u8; BLOCK];
    while stream.read(&mut block)? > 0 {}
    Ok(())
}
