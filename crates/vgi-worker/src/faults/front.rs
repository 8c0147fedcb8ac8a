//! The front: it hands requests to the good server, and spoils what comes back.

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use socket2::SockRef;

use crate::catalog::Catalog;
use crate::faults::fault::{Fault, Rule, short};
use crate::faults::http::{Head, LOOK, Reader};
use crate::faults::reply::{Good, Sent};
use crate::server::{Handle, Options, Stats, serve};

/// Names the fault of one request.
const HEADER: &str = "x-vgi-fault";

/// A running server that misbehaves. It stops when this is dropped.
pub struct FaultyHandle {
    address: SocketAddr,
    front: Arc<Front>,
    thread: Option<JoinHandle<()>>,
    server: Handle,
}

struct Front {
    good: SocketAddr,
    rules: Vec<Rule>,
    counts: Mutex<HashMap<String, usize>>,
    stop: AtomicBool,
    refusing: AtomicBool,
    /// Connections that are open.
    open: AtomicUsize,
}

impl FaultyHandle {
    /// The URL that clients attach to.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where the front listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the good server behind it did: what was asked of it although the client never heard of it.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.server.stats()
    }

    /// How many connections of clients are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.front.open.load(Ordering::SeqCst)
    }

    /// Whether nobody listens, after [`Fault::RefuseAfterwards`].
    #[must_use]
    pub fn is_refusing(&self) -> bool {
        self.front.refusing.load(Ordering::SeqCst) && TcpStream::connect(self.address).is_err()
    }

    /// Ends [`Fault::RefuseAfterwards`].
    pub fn listen_again(&self) {
        self.front.refusing.store(false, Ordering::SeqCst);
        // the listener comes back within a look
        for _ in 0..100 {
            if TcpStream::connect(self.address).is_ok() {
                return;
            }
            std::thread::sleep(LOOK);
        }
    }
}

impl Drop for FaultyHandle {
    fn drop(&mut self) {
        self.front.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Serves a catalog with faults, on threads of its own, until the handle is dropped. The front listens on the address of the options, the
/// good server on another port of loopback.
///
/// # Errors
/// When an address cannot be listened on, or the server cannot be started.
pub fn serve_with_faults(catalog: Catalog, options: Options, rules: Vec<Rule>) -> io::Result<FaultyHandle> {
    let listener = TcpListener::bind((options.host, options.port))?;
    let address = listener.local_addr()?;
    let server = serve(catalog, Options { host: [127, 0, 0, 1].into(), port: 0, ..options })?;
    let front = Arc::new(Front {
        good: server.address(),
        rules,
        counts: Mutex::default(),
        stop: AtomicBool::new(false),
        refusing: AtomicBool::new(false),
        open: AtomicUsize::new(0),
    });
    let accepting = Arc::clone(&front);
    let thread = std::thread::Builder::new()
        .name("vgi-worker-faults".to_owned())
        .spawn(move || accept(listener, address, &accepting))?;
    Ok(FaultyHandle { address, front, thread: Some(thread), server })
}

/// Accepts connections, unless nobody shall listen.
fn accept(listener: TcpListener, address: SocketAddr, front: &Arc<Front>) {
    let mut listening = Some(listener);
    while !front.stop.load(Ordering::SeqCst) {
        if front.refusing.load(Ordering::SeqCst) {
            listening = None;
        } else if listening.is_none() {
            listening = TcpListener::bind(address).ok();
        }
        let accepted = listening.as_ref().and_then(|listener| {
            listener.set_nonblocking(true).ok()?;
            listener.accept().ok()
        });
        let Some((stream, _)) = accepted else {
            std::thread::sleep(Duration::from_millis(2));
            continue;
        };
        let front = Arc::clone(front);
        front.open.fetch_add(1, Ordering::SeqCst);
        std::thread::spawn(move || {
            stream.set_nonblocking(false).ok();
            stream.set_nodelay(true).ok();
            front.serve(&stream);
            front.open.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// Makes the system send a reset instead of an orderly end.
fn reset(stream: &TcpStream) {
    SockRef::from(stream).set_linger(Some(Duration::ZERO)).ok();
}

impl Front {
    /// Answers the requests of one connection.
    fn serve(&self, stream: &TcpStream) {
        let mut reader = Reader::new(stream, &self.stop);
        while let Some(head) = reader.head() {
            let fault = self.fault_of(&head);
            match fault {
                Some(Fault::ResetBeforeTheBody) => return reset(stream),
                Some(Fault::StallBeforeReading) => return self.wait_without_reading(stream),
                _ => {}
            }
            let last = head.get("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
            let Some(body) = reader.body(&head) else { return };
            let Some(sent) = self.forward(head, &body, fault) else { return };
            if !self.send(&mut reader, sent) || last {
                return;
            }
        }
    }

    /// What shall go wrong with this request: what it says itself, or else the first rule about it.
    fn fault_of(&self, head: &Head) -> Option<Fault> {
        let path = head.path();
        let call = match path.rsplit('/').next().unwrap_or_default() {
            "exchange" => "turn",
            last => short(last),
        };
        let number = {
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            let count = counts.entry(call.to_owned()).or_default();
            *count += 1;
            *count
        };
        let asked = head.get(HEADER).and_then(|fault| fault.parse().ok());
        asked.or_else(|| self.rules.iter().find(|rule| rule.concerns(call, number)).map(|rule| rule.fault))
    }

    /// The reply of the good server, spoiled. Where bytes are spoiled they come uncompressed.
    fn forward(&self, head: Head, body: &[u8], fault: Option<Fault>) -> Option<Sent> {
        let head = head.without(&[HEADER, "connection", "content-length"]);
        let head = if fault.is_some() { head.without(&["accept-encoding", "x-vgi-accept-encoding"]) } else { head };
        let head = head.with("Content-Length", &body.len().to_string()).with("Connection", "close");
        let good = TcpStream::connect(self.good).ok()?;
        (&good).write_all(&[&head.bytes(), body].concat()).ok()?;
        let mut reader = Reader::new(&good, &self.stop);
        let head = reader.head()?;
        let answered = reader.body(&head)?;
        let good = Good { head: head.without(&["connection"]), body: answered, asked: body };
        Some(match fault {
            Some(fault) => good.spoiled(fault),
            None => good.unspoiled(),
        })
    }

    /// Sends a reply; false when the connection is done.
    fn send(&self, reader: &mut Reader<'_>, sent: Sent) -> bool {
        let mut stream = reader.stream;
        match sent {
            Sent::Whole(bytes) => stream.write_all(&bytes).is_ok(),
            Sent::Closed(bytes) => {
                stream.write_all(&bytes).ok();
                stream.shutdown(Shutdown::Both).ok();
                false
            }
            Sent::Reset(bytes) => {
                stream.write_all(&bytes).ok();
                if !bytes.is_empty() {
                    // a reset overtakes what has not been read
                    std::thread::sleep(Duration::from_millis(50));
                }
                reset(stream);
                false
            }
            Sent::Stalled(bytes) => {
                stream.write_all(&bytes).ok();
                while reader.fill().is_some() {}
                false
            }
            Sent::Dripping(bytes, pause) => bytes.iter().all(|byte| {
                self.pause(pause);
                !self.stop.load(Ordering::SeqCst) && stream.write_all(&[*byte]).is_ok()
            }),
            Sent::Last(bytes) => {
                self.refusing.store(true, Ordering::SeqCst);
                // until the listener is gone
                std::thread::sleep(2 * LOOK);
                stream.write_all(&bytes).ok();
                stream.shutdown(Shutdown::Both).ok();
                false
            }
        }
    }

    fn pause(&self, mut rest: Duration) {
        while !rest.is_zero() && !self.stop.load(Ordering::SeqCst) {
            let slice = rest.min(LOOK);
            std::thread::sleep(slice);
            rest -= slice;
        }
    }

    /// Leaves what the client sends where it is, so that its writes stop. That the client has gone shows in an error of the socket, or
    /// not at all; so this ends after a minute.
    fn wait_without_reading(&self, stream: &TcpStream) {
        for _ in 0..3000 {
            if self.stop.load(Ordering::SeqCst) || stream.take_error().is_ok_and(|error| error.is_some()) {
                return;
            }
            std::thread::sleep(LOOK);
        }
    }
}
