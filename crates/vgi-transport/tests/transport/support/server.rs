//! HTTP/1.1 on a listening socket, one thread per connection, nothing hidden.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// A request as it stood on the wire.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// Names in lower case.
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
}

pub enum Answer {
    Reply {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: Vec<u8>,
    },
    /// These bytes, then the connection is closed.
    Raw(Vec<u8>),
    /// These bytes, then nothing until the client goes away.
    Stall(Vec<u8>),
    /// These bytes, then a reset.
    Reset(Vec<u8>),
}

impl Answer {
    pub fn arrow(status: u16, body: Vec<u8>) -> Self {
        Self::Reply { status, headers: vec![("Content-Type", "application/vnd.apache.arrow.stream".to_owned())], body }
    }

    pub fn text(status: u16, kind: &str, body: &str) -> Self {
        Self::Reply { status, headers: vec![("Content-Type", kind.to_owned())], body: body.as_bytes().to_vec() }
    }

    #[must_use]
    pub fn with(self, name: &'static str, value: &str) -> Self {
        match self {
            Self::Reply { status, mut headers, body } => {
                headers.push((name, value.to_owned()));
                Self::Reply { status, headers, body }
            }
            other => other,
        }
    }
}

type Handler = dyn Fn(&Request) -> Answer + Send + Sync;

#[derive(Default)]
struct Shared {
    seen: Mutex<Vec<Request>>,
    connections: AtomicUsize,
    /// Stalled connections that the client closed.
    abandoned: AtomicUsize,
    stop: AtomicBool,
    /// End of the path whose body is not read.
    deaf: Option<&'static str>,
}

pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start(handler: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        Self::listen(Shared::default(), handler)
    }

    /// A server that never reads the body of requests to this path.
    pub fn start_deaf(path: &'static str, handler: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        Self::listen(Shared { deaf: Some(path), ..Shared::default() }, handler)
    }

    fn listen(shared: Shared, handler: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(shared);
        let handler: Arc<Handler> = Arc::new(handler);
        let accepting = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if accepting.stop.load(Ordering::Relaxed) {
                    break;
                }
                let (shared, handler) = (Arc::clone(&accepting), Arc::clone(&handler));
                shared.connections.fetch_add(1, Ordering::Relaxed);
                std::thread::spawn(move || serve(&stream.unwrap(), &shared, &*handler));
            }
        });
        Self { address, shared, acceptor: Some(acceptor) }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn seen(&self) -> Vec<Request> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// The last parts of the paths that were asked for, in order.
    pub fn calls(&self) -> Vec<String> {
        self.seen().iter().map(|request| request.path.rsplit('/').next().unwrap().to_owned()).collect()
    }

    pub fn count(&self, call: &str) -> usize {
        self.calls().iter().filter(|name| *name == call).count()
    }

    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::Relaxed)
    }

    pub fn abandoned(&self) -> usize {
        self.shared.abandoned.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        drop(TcpStream::connect(self.address));
        if let Some(acceptor) = self.acceptor.take() {
            acceptor.join().unwrap();
        }
    }
}

fn serve(stream: &TcpStream, shared: &Shared, handler: &Handler) {
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut buffer = Vec::new();
    while let Some(request) = read_request(stream, &mut buffer, shared) {
        shared.seen.lock().unwrap().push(request.clone());
        let written = match handler(&request) {
            Answer::Reply { status, headers, body } => {
                let headers: String = headers.iter().flat_map(|(name, value)| [name, ": ", value, "\r\n"]).collect();
                let head = format!("HTTP/1.1 {status} Status\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
                (&*stream).write_all(&[head.into_bytes(), body].concat())
            }
            Answer::Raw(bytes) => {
                drop((&*stream).write_all(&bytes));
                drop(stream.shutdown(Shutdown::Both));
                return;
            }
            Answer::Stall(bytes) => {
                drop((&*stream).write_all(&bytes));
                if fill(stream, &mut buffer, shared).is_none() && !shared.stop.load(Ordering::Relaxed) {
                    shared.abandoned.fetch_add(1, Ordering::Relaxed);
                }
                return;
            }
            Answer::Reset(bytes) => {
                drop((&*stream).write_all(&bytes));
                // closing with unread bytes makes the system send a reset
                return;
            }
        };
        if written.is_err() {
            return;
        }
    }
}

/// Reads more; `None` when the client has closed the connection or the server stops.
fn fill(mut stream: &TcpStream, buffer: &mut Vec<u8>, shared: &Shared) -> Option<()> {
    let mut piece = vec![0; 64 << 10];
    loop {
        if shared.stop.load(Ordering::Relaxed) {
            return None;
        }
        match stream.read(&mut piece) {
            Ok(0) => return None,
            Ok(read) => {
                buffer.extend_from_slice(&piece[..read]);
                return Some(());
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => return None,
        }
    }
}

fn read_request(stream: &TcpStream, buffer: &mut Vec<u8>, shared: &Shared) -> Option<Request> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        fill(stream, buffer, shared)?;
    };
    let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let mut start = lines.next().unwrap().split(' ');
    let (method, path) = (start.next()?.to_owned(), start.next()?.to_owned());
    while shared.deaf.is_some_and(|deaf| path.ends_with(deaf)) {
        if shared.stop.load(Ordering::Relaxed) {
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let headers: HashMap<_, _> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    while buffer.len() < end + 4 + length {
        fill(stream, buffer, shared)?;
    }
    let rest = buffer.split_off(end + 4 + length);
    let body = std::mem::replace(buffer, rest).split_off(end + 4);
    Some(Request { method, path, headers, body })
}
