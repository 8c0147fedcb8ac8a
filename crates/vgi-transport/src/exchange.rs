//! One HTTP exchange: a request out, a whole reply back. Runs on the network threads, so it only moves bytes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use reqwest::{Body, Client, Response, Url};
use vgi_wire::ipc::Segments;

use crate::body::{Outgoing, Progress, Stage};
use crate::client::ClientKey;
use crate::clocks::Clocks;
use crate::error::{ErrorKind, Fault, chain};
use crate::retry::{Attempts, Repeat, Retries};
use crate::upload::{Upload, upload};
use crate::verdict;

/// A request that is ready to go.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) client: ClientKey,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    /// A POST or PUT when there is one, a GET otherwise.
    pub(crate) body: Option<Segments>,
    pub(crate) clocks: Clocks,
    pub(crate) max_response_bytes: u64,
    pub(crate) repeat: Repeat,
    pub(crate) retries: Retries,
    /// Whether the body is kept until the reply is there.
    pub(crate) keep_body: bool,
    /// The same request without compression.
    pub(crate) plain: Option<Box<Self>>,
    /// A PUT, where there is a body.
    pub(crate) put: bool,
    /// To be done first; the body is then made of it.
    pub(crate) upload: Option<Upload>,
}

/// A reply as it came.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) url: Url,
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// From the hand-over to the network threads to the last byte.
    pub(crate) elapsed: Duration,
    /// How often the request was sent.
    pub(crate) attempts: u32,
}

/// Sends and receives, again where that is allowed.
pub(crate) async fn exchange(client: Client, request: Request) -> Result<Reply, Fault> {
    let clocks = request.clocks;
    let whole = async {
        let mut request = request;
        if let Some(first) = request.upload.take() {
            request.body = Some(Box::pin(upload(client.clone(), first)).await?);
        }
        persist(client, request).await
    };
    clocks.whole(whole).await
}

/// Sends until there is an outcome that stands.
pub(crate) async fn persist(client: Client, mut request: Request) -> Result<Reply, Fault> {
    let start = Instant::now();
    let whole = request.body.take();
    if let Some(body) = &whole {
        // the length is known, so the body is not chunked
        request.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    }
    let mut attempts = Attempts::new(request.retries, request.repeat);
    let mut outgoing = whole.clone().map(Outgoing::new);
    // only what may be sent twice is kept while it is sent: pieces are let go as the connection takes them
    let kept = whole.filter(|_| request.repeat != Repeat::Unsent);
    loop {
        let mut outcome = attempt(&client, &request, outgoing.as_ref()).await;
        let Some(pause) = attempts.pause(&outcome) else {
            match &mut outcome {
                Ok(reply) => (reply.elapsed, reply.attempts) = (start.elapsed(), attempts.made),
                Err(fault) if fault.unsent => fault.message.push_str(&verdict::after(attempts.made)),
                Err(_) => {}
            }
            return outcome;
        };
        tracing::debug!(path = request.url.path(), ?pause, "a request is repeated");
        tokio::time::sleep(pause).await;
        outgoing = kept.clone().map(Outgoing::new).or(outgoing);
    }
}

async fn attempt(client: &Client, request: &Request, body: Option<&Outgoing>) -> Result<Reply, Fault> {
    let Request { url, headers, clocks, max_response_bytes, .. } = request;
    let (url, headers) = (url.clone(), headers.clone());
    let progress = Progress::new(if body.is_some() { Stage::Waiting } else { Stage::Sent });
    let method = if request.put { Method::PUT } else { Method::POST };
    let builder = match body {
        None => client.get(url.clone()),
        Some(body) => client.request(method, url.clone()).body(Body::wrap_stream(body.pieces(Arc::clone(&progress)))),
    };
    let response =
        clocks.head(&progress, builder.headers(headers).send()).await?.map_err(|error| send_fault(error, clocks))?;
    let (status, headers) = (response.status(), response.headers().clone());
    let body = collect(response, clocks, *max_response_bytes).await?;
    Ok(Reply { url, status, headers, body, elapsed: Duration::ZERO, attempts: 1 })
}

fn send_fault(error: reqwest::Error, clocks: &Clocks) -> Fault {
    let error = error.without_url();
    match (error.is_connect(), error.is_timeout()) {
        (true, true) => clocks.no_connection(),
        (true, false) => Fault {
            unsent: !is_tls(&error),
            ..Fault::new(ErrorKind::Connect, format!("cannot connect: {}", causes(&error)))
        },
        (false, _) => {
            Fault::new(ErrorKind::Http, format!("the connection broke before a reply came: {}", causes(&error)))
        }
    }
}

/// Whether the two sides do not agree on TLS, which another attempt does not change.
fn is_tls(error: &reqwest::Error) -> bool {
    let mut next = std::error::Error::source(error);
    while let Some(error) = next {
        if error.is::<rustls::Error>() {
            return true;
        }
        // the source of an error of I/O is that of what it wraps, which would be passed over
        let wrapped = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = wrapped.map_or_else(|| error.source(), |wrapped| Some(wrapped));
    }
    false
}

/// The causes below the wrappings of the HTTP libraries, which say nothing.
fn causes(error: &reqwest::Error) -> String {
    let source = std::error::Error::source(error);
    let below = source
        .and_then(|source| if source.to_string().starts_with("client error") { source.source() } else { Some(source) });
    below.or(source).map_or_else(|| error.to_string(), chain)
}

async fn collect(mut response: Response, clocks: &Clocks, max: u64) -> Result<Bytes, Fault> {
    let announced = response.content_length();
    if announced.is_some_and(|length| length > max) {
        return Err(too_large(max));
    }
    let announced = announced.and_then(|length| usize::try_from(length).ok());
    let mut body = Collector { announced, whole: Bytes::new(), joined: Vec::new() };
    loop {
        let chunk = clocks.piece(response.chunk()).await?.map_err(|error| {
            let (got, cause) = (body.len(), causes(&error.without_url()));
            let of = announced.map(|length| format!(" of {length}")).unwrap_or_default();
            Fault::new(ErrorKind::Http, format!("the connection broke after {got}{of} bytes of the reply: {cause}"))
        })?;
        let Some(chunk) = chunk else { break };
        if u64::try_from(body.len().saturating_add(chunk.len())).unwrap_or(u64::MAX) > max {
            return Err(too_large(max));
        }
        body.push(chunk)?;
    }
    match announced {
        Some(length) if length != body.len() => Err(Fault::new(
            ErrorKind::Http,
            format!("the reply has {} bytes where {length} were announced", body.len()),
        )),
        _ => Ok(body.finish()),
    }
}

pub(crate) fn too_large(max: u64) -> Fault {
    Fault::new(ErrorKind::Limit, format!("the reply is larger than the {max} bytes that are allowed"))
}

/// Joins the chunks of a reply in one allocation that grows with what has arrived, not with what was announced.
struct Collector {
    announced: Option<usize>,
    /// A body that came in one chunk, which is kept as it is.
    whole: Bytes,
    joined: Vec<u8>,
}

/// What is reserved before anything has arrived.
const FIRST_STEP: usize = 1 << 20;

impl Collector {
    fn len(&self) -> usize {
        self.whole.len() + self.joined.len()
    }

    fn push(&mut self, chunk: Bytes) -> Result<(), Fault> {
        if self.len() == 0 {
            self.whole = chunk;
            return Ok(());
        }
        let first = std::mem::take(&mut self.whole);
        self.append(first)?;
        self.append(chunk)
    }

    fn append(&mut self, chunk: Bytes) -> Result<(), Fault> {
        let room = self.joined.capacity() - self.joined.len();
        if room < chunk.len() {
            let missing = self.announced.map_or(usize::MAX, |length| length.saturating_sub(self.joined.len()));
            let step = missing.min(self.joined.len().max(FIRST_STEP)).max(chunk.len());
            // doubling what is there keeps the copying linear
            if self.joined.try_reserve_exact(step).is_err() {
                let message = format!("there is no memory for the reply after {} bytes", self.joined.len());
                return Err(Fault::new(ErrorKind::Limit, message));
            }
        }
        self.joined.extend_from_slice(&chunk);
        Ok(())
    }

    fn finish(self) -> Bytes {
        if self.joined.is_empty() { self.whole } else { self.joined.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_chunk_is_kept_and_several_are_joined() {
        let chunk = Bytes::from(vec![1u8; 100]);
        let mut one = Collector { announced: Some(100), whole: Bytes::new(), joined: Vec::new() };
        one.push(chunk.clone()).unwrap();
        assert_eq!(one.finish().as_ptr(), chunk.as_ptr());

        let mut many = Collector { announced: Some(usize::MAX), whole: Bytes::new(), joined: Vec::new() };
        for _ in 0..50_000 {
            many.push(chunk.clone()).unwrap();
            assert!(many.joined.capacity() <= 2 * many.len() + FIRST_STEP);
        }
        assert_eq!(many.finish().len(), 5_000_000);
    }

    /// Takes a request of any length, then answers with so many zeros.
    fn sink(listener: &std::net::TcpListener, answer: usize) -> usize {
        use std::io::{Read, Write};

        let (mut stream, _) = listener.accept().unwrap();
        let mut piece = vec![0; 1 << 20];
        let mut head = Vec::new();
        let body = loop {
            let read = stream.read(&mut piece).unwrap();
            head.extend_from_slice(&piece[..read]);
            if let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
        };
        let text = String::from_utf8_lossy(&head[..body]).to_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        let length: usize = length.trim().parse().unwrap();
        let mut got = head.len() - body;
        while got < length {
            got += stream.read(&mut piece).unwrap();
        }
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {answer}\r\n\r\n").unwrap();
        let zeros = vec![0; 1 << 20];
        for _ in 0..answer / zeros.len() {
            stream.write_all(&zeros).unwrap();
        }
        got
    }

    #[test]
    #[ignore = "moves 5 GiB; run with --release"]
    fn bodies_above_two_gibibytes_pass_in_both_directions() {
        const LENGTH: usize = (2 << 30) + (300 << 20);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || sink(&listener, LENGTH));
        // the pieces share one allocation
        let piece = Bytes::from(vec![1; 4 << 20]);
        let mut body = Segments::new();
        (0..LENGTH / piece.len()).for_each(|_| body.push(piece.clone()));
        assert_eq!(body.len(), LENGTH);
        let options = crate::Options { max_response_bytes: 3 << 30, ..crate::Options::default() };
        let request = Request {
            client: ClientKey::new(false, true, &options),
            url: url.parse().unwrap(),
            headers: HeaderMap::new(),
            body: Some(body),
            clocks: Clocks::from(&options),
            max_response_bytes: options.max_response_bytes,
            repeat: Repeat::Unsent,
            retries: Retries::from(&options),
            keep_body: false,
            plain: None,
            put: false,
            upload: None,
        };
        let reply = crate::flight::Flight::start(request).unwrap().wait(&crate::NeverInterrupted).unwrap();
        assert_eq!((server.join().unwrap(), reply.body.len()), (LENGTH, LENGTH));
    }
}
