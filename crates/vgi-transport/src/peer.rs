//! A server as one attachment speaks to it: base URL, credentials, limits, and what its headers announce.

use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use vgi_wire::generation::Dialect;
use vgi_wire::ipc::Segments;
use vgi_wire::methods::Method;
use vgi_wire::reply::{self, Failure, LogRecord, UnaryReply};

use crate::capabilities::Capabilities;
use crate::client::ClientKey;
use crate::clocks::Clocks;
use crate::compression::{self, Compression, Experience};
use crate::cookies::Cookies;
use crate::encoding;
use crate::error::{Error, ErrorKind, Fault, Phase, Scope};
use crate::exchange::{Reply, Request};
use crate::flight::Flight;
use crate::interrupt::Interrupt;
use crate::location::Location;
use crate::options::{EventSink, Exchange, Options};
use crate::retry::{Repeat, Retries};
use crate::runtime::lock;
use crate::verdict;

/// Announces the client's bound of replies.
const MAX_RESPONSE: &str = "vgi-accept-max-response-bytes";

/// Tells a server that replies of a stream may have any number of batches. An extension of `vgi-worker`: the protocol wants clients to
/// read them, but some refuse, so servers of its second generation send one at a time.
const SEVERAL_BATCHES: &str = "vgi-accept-several-batches";

/// The bound as the protocol can express it.
fn announced_limit(max: u64) -> u64 {
    max.clamp(1 << 16, (1 << 53) - 1)
}

#[derive(Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) base: Location,
    pub(crate) options: Options,
    headers: HeaderMap,
    authorization: Option<HeaderValue>,
    capabilities: Arc<Mutex<Capabilities>>,
    experience: Arc<Mutex<Experience>>,
    cookies: Arc<Mutex<Cookies>>,
    /// The base URL, as errors name it.
    url: Arc<str>,
}

impl Peer {
    pub(crate) fn new(base: Location, options: &Options) -> Result<Self, Fault> {
        Ok(Self {
            url: base.as_str().into(),
            headers: options.header_map()?,
            authorization: options.authorization()?,
            options: options.clone(),
            capabilities: Arc::default(),
            experience: Arc::default(),
            cookies: Arc::default(),
            base,
        })
    }

    /// The same server under another base, or with the knowledge of another peer.
    pub(crate) fn at(&self, base: Location) -> Self {
        Self { url: base.as_str().into(), base, ..self.clone() }
    }

    /// The same server, with another listener.
    pub(crate) fn with_events(&self, events: Arc<dyn EventSink>) -> Self {
        Self { options: Options { events: Some(events), ..self.options.clone() }, ..self.clone() }
    }

    /// The same server for a caller with other options.
    pub(crate) fn with_options(&self, options: &Options) -> Self {
        Self { options: options.clone(), ..self.clone() }
    }

    pub(crate) fn scope(&self, phase: Phase) -> Scope {
        Scope::new(phase, Arc::clone(&self.url))
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        lock(&self.capabilities).clone()
    }

    fn request(&self, path: &str, body: Option<Segments>, repeat: Repeat, authorized: bool) -> Result<Request, Fault> {
        let mut headers = self.headers.clone();
        if let Some(value) = self.authorization.clone().filter(|_| authorized) {
            headers.insert(header::AUTHORIZATION, value);
        }
        if let Some(cookies) = lock(&self.cookies).header(self.base.is_https()) {
            // a cookie of the caller stays
            headers.append(header::COOKIE, cookies);
        }
        if !self.base.is_loopback() && self.options.compression != Compression::Off {
            headers.insert(encoding::OFFER.0, HeaderValue::from_static(encoding::OFFER.1));
        }
        if lock(&self.capabilities).accepts_max_response_bytes {
            headers.insert(MAX_RESPONSE, announced_limit(self.options.max_response_bytes).into());
        }
        headers.insert(SEVERAL_BATCHES, HeaderValue::from_static("true"));
        Ok(Request {
            client: ClientKey::new(self.base.is_https(), self.base.is_loopback(), &self.options),
            url: self.base.url(path)?,
            headers,
            body,
            clocks: Clocks::from(&self.options),
            max_response_bytes: self.options.max_response_bytes,
            repeat,
            retries: Retries::from(&self.options),
            keep_body: self.options.events.as_ref().is_some_and(|events| events.wants_bodies()),
            plain: None,
            put: false,
            upload: None,
        })
    }

    /// A POST that nobody has sent yet.
    pub(crate) fn post(&self, path: &str, body: Segments, repeat: Repeat) -> Result<Request, Fault> {
        let limit = lock(&self.capabilities).max_request_bytes;
        if let Some(limit) = limit.filter(|&limit| u64::try_from(body.len()).unwrap_or(u64::MAX) > limit) {
            let message = format!("the request has {} bytes, the server allows {limit}", body.len());
            return Err(Fault::new(ErrorKind::Limit, message));
        }
        let mut request = self.request(path, Some(body), repeat, true)?;
        request.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(verdict::ARROW));
        Ok(self.compress(request))
    }

    /// Compresses a request where that pays.
    fn compress(&self, request: Request) -> Request {
        let length = request.body.as_ref().map_or(0, Segments::len);
        let experience = {
            let mut experience = lock(&self.experience);
            experience.asked();
            experience.clone()
        };
        let wanted = self.options.compression;
        let coding =
            compression::choose(wanted, self.base.is_loopback(), length, &lock(&self.capabilities), &experience);
        let Some((body, coding)) = request.body.as_ref().zip(coding) else { return request };
        let start = Instant::now();
        let packed = encoding::encode(body, coding).ok();
        let Some(packed) = packed else { return request };
        lock(&self.experience).compressed(length, packed.len(), start.elapsed());
        if packed.len() >= length {
            return request;
        }
        let mut headers = request.headers.clone();
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding.name()));
        Request { headers, body: Some(packed.into()), plain: Some(Box::new(request.clone())), ..request }
    }

    pub(crate) fn start(&self, path: &str, body: Segments, repeat: Repeat) -> Result<Flight, Fault> {
        Flight::start(self.post(path, body, repeat)?)
    }

    /// Sends a call, through an upload when the server does not take it directly.
    pub(crate) fn submit(
        &self,
        dialect: &Dialect,
        method: Method,
        body: Segments,
        repeat: Repeat,
    ) -> Result<Flight, Fault> {
        let path = dialect.path(method);
        let Some(upload) = self.upload(dialect, method, &body)? else { return self.start(&path, body, repeat) };
        let request = self.post(&path, Segments::new(), repeat)?;
        Flight::start(Request { body: None, upload: Some(upload), ..request })
    }

    /// A GET, with credentials or without.
    pub(crate) fn get(&self, path: &str, authorized: bool, interrupt: &dyn Interrupt) -> Result<Reply, Fault> {
        let reply = Flight::start(self.request(path, None, Repeat::Refused, authorized)?)?.wait(interrupt)?;
        self.learn(&reply);
        Ok(reply)
    }

    /// Waits for a reply and gives its Arrow body.
    pub(crate) fn body(&self, scope: &Scope, flight: Flight, interrupt: &dyn Interrupt) -> Result<Bytes, Error> {
        let (flight, reply) = self.answered(scope, flight, interrupt)?;
        let (url, status, received_bytes, elapsed) =
            (reply.url.clone(), reply.status.as_u16(), reply.body.len(), reply.elapsed);
        let body = verdict::arrow_body(reply, self.options.max_response_bytes);
        if let Some(events) = &self.options.events {
            let url = url.as_str();
            events.exchanged(&Exchange {
                phase: scope.phase,
                function: scope.function.as_deref().unwrap_or_default(),
                method: url.strip_prefix(self.base.as_str()).unwrap_or(url).trim_matches('/'),
                status,
                sent_bytes: flight.sent_bytes,
                request: flight.request.as_ref(),
                received_bytes,
                reply: body.as_ref().ok(),
                elapsed,
            });
        }
        body.map_err(|fault| scope.error(fault))
    }

    /// Waits for a reply. A request whose coding the server refuses is sent again as it was.
    fn answered(&self, scope: &Scope, flight: Flight, interrupt: &dyn Interrupt) -> Result<(Flight, Reply), Error> {
        let mut flight = flight;
        let mut reply = flight.wait(interrupt).map_err(|fault| scope.error(fault))?;
        self.learn(&reply);
        if let Some(plain) = flight.plain.take().filter(|_| reply.status == StatusCode::UNSUPPORTED_MEDIA_TYPE) {
            // refused before anything was read, so even a chunk may be sent again
            lock(&self.experience).refuse();
            flight = Flight::start(*plain).map_err(|fault| scope.error(fault))?;
            reply = flight.wait(interrupt).map_err(|fault| scope.error(fault))?;
            self.learn(&reply);
        }
        if reply.attempts == 1 {
            let bytes = flight.wire_bytes.saturating_add(reply.body.len());
            lock(&self.experience).exchanged(bytes, reply.elapsed);
        }
        Ok((flight, reply))
    }

    /// Keeps what the headers of a reply say of the server.
    fn learn(&self, reply: &Reply) {
        lock(&self.capabilities).update(&reply.headers);
        lock(&self.cookies).update(&reply.headers, SystemTime::now());
    }

    /// Waits for the reply of a unary call and hands its log lines on.
    pub(crate) fn reply(&self, scope: &Scope, flight: Flight, interrupt: &dyn Interrupt) -> Result<UnaryReply, Error> {
        let body = self.body(scope, flight, interrupt)?;
        let streams = self.streams(scope, body, interrupt)?;
        let reply = reply::unary(streams).map_err(|failure| self.failed(scope, failure))?;
        self.log(scope, &reply.logs);
        Ok(reply)
    }

    /// A unary call that changes nothing on the server.
    pub(crate) fn call(
        &self,
        scope: &Scope,
        path: &str,
        body: Segments,
        interrupt: &dyn Interrupt,
    ) -> Result<UnaryReply, Error> {
        let flight = self.start(path, body, Repeat::Refused).map_err(|fault| scope.error(fault))?;
        self.reply(scope, flight, interrupt)
    }

    /// The error of a reply without result; its log lines are handed on.
    pub(crate) fn failed(&self, scope: &Scope, failure: Failure) -> Error {
        match failure {
            Failure::Wire(error) => scope.error(error),
            Failure::Remote { error, logs } => {
                self.log(scope, &logs);
                scope.error(Fault::remote(error))
            }
        }
    }

    pub(crate) fn log(&self, scope: &Scope, logs: &[LogRecord]) {
        if let Some(events) = &self.options.events {
            let function = scope.function.as_deref().unwrap_or_default();
            for record in logs {
                events.log(scope.phase, function, record);
            }
        }
    }
}
