//! A slow network: a relay that holds every byte back for a while in each direction, and limits how many go by in a second.

use std::io::{Read, Result, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

const BLOCK: usize = 1 << 18;
/// Blocks on the way in one direction: more than any delay times bandwidth of the benchmark.
const ON_THE_WAY: usize = 4096;

/// Relays to `port` of this machine until the process is ended.
pub(crate) fn run(port: u16, millis: u64, mbit: u32) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("PORT:{}", listener.local_addr()?.port());
    std::io::stdout().flush()?;
    let delay = Duration::from_millis(millis);
    for client in listener.incoming() {
        let client = client?;
        let server = TcpStream::connect(("127.0.0.1", port))?;
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        relay(client.try_clone()?, server.try_clone()?, delay, mbit);
        relay(server, client, delay, mbit);
    }
    Ok(())
}

fn relay(source: TcpStream, sink: TcpStream, delay: Duration, mbit: u32) {
    let (sender, receiver) = sync_channel(ON_THE_WAY);
    // A connection that fails ends; the other side sees that as it would in a network.
    thread::spawn(move || take(source, &sender, delay));
    thread::spawn(move || give(sink, &receiver, mbit));
}

fn take(mut source: TcpStream, sender: &SyncSender<(Instant, Vec<u8>)>, delay: Duration) -> Option<()> {
    let mut block = vec![0_u8; BLOCK];
    loop {
        let count = source.read(&mut block).ok().filter(|count| *count > 0)?;
        sender.send((Instant::now() + delay, block.get(..count)?.to_vec())).ok()?;
    }
}

fn give(mut sink: TcpStream, receiver: &Receiver<(Instant, Vec<u8>)>, mbit: u32) -> Option<()> {
    let mut free = Instant::now();
    while let Ok((due, bytes)) = receiver.recv() {
        thread::sleep(due.max(free).saturating_duration_since(Instant::now()));
        if mbit > 0 {
            let seconds = u32::try_from(bytes.len()).ok().map(f64::from)? * 8.0 / (f64::from(mbit) * 1e6);
            free = free.max(Instant::now()) + Duration::from_secs_f64(seconds);
        }
        sink.write_all(&bytes).ok()?;
    }
    sink.shutdown(Shutdown::Write).ok()
}
