//! HTTP/1.1 on a listening socket, one thread per connection, nothing hidden.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use vgi_wire::ipc::Segments;

/// A request as it stood on the wire.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// As it stood there: a path, or a URL for a proxy.
    pub target: String,
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
    /// A head, then a body that is not copied.
    Pieces(Vec<u8>, Segments),
    /// These bytes; the connection is closed when no other request comes for so long.
    Last(Vec<u8>, Duration),
    /// These bytes, then those one at a time.
    Drip(Vec<u8>, Vec<u8>, Duration),
}

/// What happens to a request whose head has been read and whose body has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    Read,
    /// The body is never read.
    Deaf,
    /// The connection is reset.
    Reset,
}

impl Answer {
    pub fn arrow(status: u16, body: Vec<u8>) -> Self {
        Self::Reply { status, headers: vec![("Content-Type", "application/vnd.apache.arrow.stream".to_owned())], body }
    }

    /// The bytes on the wire of a reply.
    pub fn wire(self) -> Vec<u8> {
        match self {
            Self::Reply { status, headers, body } => {
                let headers: String = headers.iter().flat_map(|(name, value)| [name, ": ", value, "\r\n"]).collect();
                let head = format!("HTTP/1.1 {status} Status\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
                [head.into_bytes(), body].concat()
            }
            Self::Raw(bytes) | Self::Stall(bytes) | Self::Reset(bytes) | Self::Last(bytes, _) => bytes,
            Self::Pieces(head, body) => [head, body.to_bytes().to_vec()].concat(),
            Self::Drip(start, rest, _) => [start, rest].concat(),
        }
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
type Doorman = dyn Fn(&str) -> Gate + Send + Sync;

/// Stops listening after so many requests: the last of them is answered, then its connection is closed.
const NEVER: usize = usize::MAX;

struct Shared {
    seen: Mutex<Vec<Request>>,
    connections: AtomicUsize,
    /// Connections that are open, and of those the ones that a request is being answered on.
    open: AtomicUsize,
    busy: AtomicUsize,
    /// Stalled connections that the client closed.
    abandoned: AtomicUsize,
    stop: AtomicBool,
    doorman: Box<Doorman>,
    /// After how many requests nobody listens any more.
    refuse_after: AtomicUsize,
    refusing: AtomicBool,
    /// Whether the last request before that was answered.
    gone: AtomicBool,
}

impl Shared {
    fn new(doorman: impl Fn(&str) -> Gate + Send + Sync + 'static) -> Self {
        Self {
            seen: Mutex::default(),
            connections: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            abandoned: AtomicUsize::new(0),
            stop: AtomicBool::new(false),
            doorman: Box::new(doorman),
            refuse_after: AtomicUsize::new(NEVER),
            refusing: AtomicBool::new(false),
            gone: AtomicBool::new(false),
        }
    }
}

/// Counts something while it lives.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(counter: &'a AtomicUsize) -> Self {
        counter.fetch_add(1, Ordering::SeqCst);
        Self(counter)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl Server {
    pub fn start(handler: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        Self::listen(Shared::new(|_| Gate::Read), handler)
    }

    /// A server that never reads the body of requests to this path.
    pub fn start_deaf(path: &'static str, handler: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_gated(move |asked| if asked.ends_with(path) { Gate::Deaf } else { Gate::Read }, handler)
    }

    /// A server that asks what to do with a request as soon as it knows its path.
    pub fn start_gated(
        doorman: impl Fn(&str) -> Gate + Send + Sync + 'static,
        handler: impl Fn(&Request) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::listen(Shared::new(doorman), handler)
    }

    /// A server that is gone after so many requests, until [`resume`](Self::resume).
    pub fn start_mortal(requests: usize, handler: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let shared = Shared::new(|_| Gate::Read);
        shared.refuse_after.store(requests, Ordering::SeqCst);
        let server = Self::listen(shared, handler);
        if requests == 0 {
            close(server.address, &server.shared);
            server.shared.gone.store(true, Ordering::SeqCst);
        }
        server
    }

    /// Whether nobody listens any more.
    pub fn is_gone(&self) -> bool {
        self.shared.gone.load(Ordering::SeqCst)
    }

    /// Listens again.
    pub fn resume(&self) {
        self.shared.refuse_after.store(NEVER, Ordering::SeqCst);
        self.shared.refusing.store(false, Ordering::SeqCst);
        for _ in 0..1000 {
            if TcpStream::connect(self.address).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the server does not come back");
    }

    fn listen(shared: Shared, handler: impl Fn(&Request) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(shared);
        let handler: Arc<Handler> = Arc::new(handler);
        let accepting = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || accept(listener, address, &accepting, &handler));
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

    /// Connections that a request is being answered on now.
    pub fn busy(&self) -> usize {
        self.shared.busy.load(Ordering::SeqCst)
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

fn accept(listener: TcpListener, address: SocketAddr, shared: &Arc<Shared>, handler: &Arc<Handler>) {
    let mut listener = Some(listener);
    while !shared.stop.load(Ordering::SeqCst) {
        if shared.refusing.load(Ordering::SeqCst) {
            listener = None;
            std::thread::sleep(Duration::from_millis(5));
            continue;
        }
        let Ok((stream, _)) = listener.get_or_insert_with(|| TcpListener::bind(address).unwrap()).accept() else {
            continue;
        };
        if shared.stop.load(Ordering::SeqCst) || shared.refusing.load(Ordering::SeqCst) {
            continue;
        }
        let (shared, handler) = (Arc::clone(shared), Arc::clone(handler));
        shared.connections.fetch_add(1, Ordering::Relaxed);
        std::thread::spawn(move || {
            let _open = Counted::new(&shared.open);
            serve(&stream, &shared, &*handler);
        });
    }
}

/// Stops listening.
fn close(address: SocketAddr, shared: &Shared) {
    shared.refusing.store(true, Ordering::SeqCst);
    // the first connection wakes the acceptor
    while TcpStream::connect(address).is_ok() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Makes the system send a reset instead of an orderly end.
fn reset(stream: &TcpStream) {
    socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO)).unwrap();
}

fn serve(stream: &TcpStream, shared: &Shared, handler: &Handler) {
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut buffer = Vec::new();
    while let Some(request) = read_request(stream, &mut buffer, shared) {
        let _busy = Counted::new(&shared.busy);
        let number = {
            let mut seen = shared.seen.lock().unwrap();
            seen.push(request.clone());
            seen.len()
        };
        let answer = handler(&request);
        if number == shared.refuse_after.load(Ordering::SeqCst) {
            close(stream.local_addr().unwrap(), shared);
            while shared.open.load(Ordering::SeqCst) > 1 {
                std::thread::sleep(Duration::from_millis(1));
            }
            // the client may have opened another connection in advance, and shall know that it is gone
            std::thread::sleep(Duration::from_millis(100));
            drop((&*stream).write_all(&answer.with("Connection", "close").wire()));
            shared.gone.store(true, Ordering::SeqCst);
            return;
        }
        let written = match answer {
            Answer::Reply { .. } => (&*stream).write_all(&answer.wire()),
            Answer::Raw(bytes) => {
                drop((&*stream).write_all(&bytes));
                drop(stream.shutdown(Shutdown::Both));
                return;
            }
            Answer::Stall(bytes) => {
                drop((&*stream).write_all(&bytes));
                wait_for_end(stream, &mut buffer, shared);
                return;
            }
            Answer::Reset(bytes) => {
                drop((&*stream).write_all(&bytes));
                if !bytes.is_empty() {
                    // a reset overtakes what has not been read
                    std::thread::sleep(Duration::from_millis(50));
                }
                reset(stream);
                return;
            }
            Answer::Last(bytes, pause) => {
                stream.set_read_timeout(Some(pause.max(Duration::from_millis(1)))).unwrap();
                let idle = (&*stream).write_all(&bytes).is_err() || !matches!(stream.peek(&mut [0]), Ok(1));
                stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
                if idle {
                    return;
                }
                Ok(())
            }
            Answer::Pieces(head, body) => {
                let mut pieces = std::iter::once(&*head).chain(body.iter().map(|piece| &**piece));
                pieces.try_for_each(|piece| (&*stream).write_all(piece))
            }
            Answer::Drip(start, rest, pause) => (&*stream).write_all(&start).and_then(|()| {
                rest.iter().try_for_each(|byte| {
                    std::thread::sleep(pause);
                    (&*stream).write_all(&[*byte])
                })
            }),
        };
        if written.is_err() {
            return;
        }
    }
}

fn wait_for_end(stream: &TcpStream, buffer: &mut Vec<u8>, shared: &Shared) {
    while fill(stream, buffer, shared).is_some() {}
    if !shared.stop.load(Ordering::Relaxed) {
        shared.abandoned.fetch_add(1, Ordering::Relaxed);
    }
}

/// Reads more; `None` when the client has closed the connection or the server stops.
fn fill(mut stream: &TcpStream, buffer: &mut Vec<u8>, shared: &Shared) -> Option<()> {
    let mut piece = vec![0; 64 << 10];
    loop {
        if shared.stop.load(Ordering::Relaxed) || shared.refusing.load(Ordering::SeqCst) {
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
    let (method, target) = (start.next()?.to_owned(), start.next()?.to_owned());
    // a proxy is asked for whole URLs
    let path = target.split_once("://").and_then(|(_, rest)| rest.find('/').map(|at| rest[at..].to_owned()));
    let path = path.unwrap_or_else(|| target.clone());
    match (shared.doorman)(&path) {
        Gate::Read => {}
        Gate::Deaf => {
            let _busy = cfg!(target_os = "linux").then(|| Counted::new(&shared.busy));
            // whether the other side has gone can be seen without reading
            while !shared.stop.load(Ordering::Relaxed) && !gone(stream) {
                std::thread::sleep(Duration::from_millis(10));
            }
            return None;
        }
        Gate::Reset => {
            reset(stream);
            return None;
        }
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
    Some(Request { method, path, target, headers, body })
}

/// Whether the client has closed the connection. Unread bytes hide an orderly end, so the state of the socket is asked.
fn gone(stream: &TcpStream) -> bool {
    if !cfg!(target_os = "linux") {
        return false;
    }
    let state = std::fs::read_to_string("/proc/net/tcp").unwrap_or_default();
    let port = |address: SocketAddr| format!(":{:04X}", address.port());
    let (Ok(here), Ok(there)) = (stream.local_addr(), stream.peer_addr()) else { return true };
    !state.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let ends = (fields.next(), fields.next(), fields.next());
        matches!(ends, (Some(local), Some(remote), Some("01")) if local.ends_with(&port(here)) && remote.ends_with(&port(there)))
    })
}
