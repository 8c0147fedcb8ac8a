//! The HTTP side: methods, headers, statuses.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use http::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use serde_json::json;

use crate::log::Logger;
use crate::server::answer::Answer;
use crate::server::body::{self, Coding, Wanted};
use crate::server::fault::Fault;
use crate::server::protocol::PROTOCOLS;
use crate::server::route::Place;
use crate::server::{Exchange, Server, Stats, auth, budget, hexadecimal, landing, metrics};

const ARROW: &str = "application/vnd.apache.arrow.stream";
/// Prometheus's text format.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Answers any request.
pub(super) async fn handle(State(server): State<Arc<Server>>, request: Request<Body>) -> Response<Body> {
    let request_id = request_id(request.headers());
    let mut response = match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD | &Method::OPTIONS, "/health") => health(&server),
        _ => match auth::principal(&server.options.credentials, request.headers()).map(str::to_owned) {
            Ok(principal) => answer(&server, request, &request_id, &principal).await,
            Err(refusal) => auth::refuse(refusal),
        },
    };
    stamp(&server, response.headers_mut(), &request_id);
    response
}

/// Answers a request that was let in.
async fn answer(server: &Arc<Server>, request: Request<Body>, request_id: &str, principal: &str) -> Response<Body> {
    match (request.method(), request.uri().path()) {
        (&Method::GET | &Method::HEAD, "/") => landing_page(server, request.headers()),
        (&Method::GET, "/stats") => match stats(server).await {
            Ok(stats) => json_response(StatusCode::OK, &json!(stats)),
            Err(response) => response,
        },
        (&Method::GET, "/metrics") => match stats(server).await {
            Ok(stats) => text_response(METRICS, metrics::text(&stats)),
            Err(response) => response,
        },
        (&Method::POST, _) => {
            let response = post(server, request, request_id, principal).await;
            // before the client hears of it, and may ask another process
            server.tell_counters();
            response
        }
        _ => {
            let mut response =
                json_response(StatusCode::METHOD_NOT_ALLOWED, &json!({"title": "405 Method Not Allowed"}));
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            response
        }
    }
}

/// The counters; on a thread that may block, because the storage is asked too.
async fn stats(server: &Arc<Server>) -> Result<Stats, Response<Body>> {
    let server = Arc::clone(server);
    let counted = tokio::task::spawn_blocking(move || server.stats()).await.map_err(io::Error::other).flatten();
    counted.map_err(|error| {
        let document = json!({"title": "500", "detail": format!("the counters cannot be read: {error}")});
        json_response(StatusCode::INTERNAL_SERVER_ERROR, &document)
    })
}

/// What every reply says about this server.
fn stamp(server: &Server, headers: &mut HeaderMap, request_id: &str) {
    headers.insert("vgi-supported-encodings", HeaderValue::from_static("zstd, gzip"));
    headers.insert("vgi-accept-max-response-bytes-support", HeaderValue::from_static("true"));
    headers.insert("vgi-externalization-enabled", HeaderValue::from_static("false"));
    if let Some(limit) = server.options.max_request_bytes {
        headers.insert("vgi-max-request-bytes", HeaderValue::from(limit));
    }
    if let Ok(id) = HeaderValue::from_str(request_id) {
        headers.insert("x-request-id", id);
    }
}

/// The client's own id for the request, if it is plain text of a reasonable length, or a new one.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get("x-request-id").and_then(|id| id.to_str().ok());
    given.filter(|id| (1..=128).contains(&id.len())).map_or_else(|| hexadecimal(8), str::to_owned)
}

fn health(server: &Server) -> Response<Body> {
    let [protocol, ..] = &PROTOCOLS;
    let stopping = server.drain.is_stopping();
    let (code, status) = if stopping { (StatusCode::SERVICE_UNAVAILABLE, "stopping") } else { (StatusCode::OK, "ok") };
    let document = json!({"status": status, "server_id": server.id, "protocol": protocol.name});
    let mut response = json_response(code, &document);
    let caching = HeaderValue::from_static(if stopping { "no-store" } else { "public, max-age=300" });
    response.headers_mut().insert(CACHE_CONTROL, caching);
    response
}

fn landing_page(server: &Server, headers: &HeaderMap) -> Response<Body> {
    let mut response = text_response("text/html; charset=utf-8", landing::page(&server.catalog, headers));
    let headers = response.headers_mut();
    headers.insert("content-security-policy", HeaderValue::from_static(landing::POLICY));
    headers.insert("x-content-type-options", HeaderValue::from_static("nosniff"));
    response
}

fn text_response(content_type: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

pub(super) fn json_response(status: StatusCode, value: &serde_json::Value) -> Response<Body> {
    let mut response = Response::new(Body::from(value.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

async fn post(server: &Arc<Server>, request: Request<Body>, request_id: &str, principal: &str) -> Response<Body> {
    let logger = Logger::default();
    let refuse = |fault: Fault| {
        let exchange = Exchange { server, request_id, principal, logger: &logger, budget: None, reads_several: false };
        server.counters.errors.add(1);
        arrow_response(exchange.refuse(fault), None)
    };
    let Some(place) = Place::of(request.uri().path()) else {
        return json_response(StatusCode::NOT_FOUND, &json!({"title": "404 Not Found"}));
    };
    // before the body is read, so that refusing costs nothing
    let Ok(permit) = Arc::clone(&server.calls).try_acquire_owned() else {
        return refuse(overloaded());
    };
    let (head, body) = request.into_parts();
    let limit = server.options.body_limit();
    let read = async {
        let place = place?;
        check_type(&head.headers)?;
        let coding = Coding::of(&head.headers)?;
        let announced = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let budget = budget::of(&head.headers)?;
        Ok((place, coding, budget, body::read(body, announced, limit).await?))
    };
    let (place, coding, budget, bytes) = match read.await {
        Ok(read) => read,
        Err(fault) => return refuse(fault),
    };
    let wanted = body::wanted_coding(&head.headers);
    let reads_several = budget::reads_several(&head.headers);
    let task = {
        let (server, logger) = (Arc::clone(server), logger.clone());
        let (request_id, principal) = (request_id.to_owned(), principal.to_owned());
        move || {
            // a call that nobody waits for any more still computes
            let _permit = permit;
            let (request_id, principal) = (&request_id, &principal);
            let exchange = Exchange { server: &server, request_id, principal, logger: &logger, budget, reads_several };
            let mut answer = match coding.decode(bytes, limit) {
                Ok(plain) => exchange.answer(place, plain),
                Err(fault) => exchange.refuse(fault),
            };
            let compressed = wanted.and_then(|wanted| Some((wanted, wanted.coding.encode(&answer.body)?)));
            let applied = compressed.map(|(wanted, body)| {
                answer.body = body;
                wanted
            });
            (answer, applied)
        }
    };
    let answered = tokio::task::spawn_blocking(task);
    let answered = match server.options.call_timeout {
        None => answered.await,
        Some(limit) => match tokio::time::timeout(limit, answered).await {
            Ok(answered) => answered,
            Err(_) => return refuse(too_slow(limit)),
        },
    };
    match answered {
        Ok((answer, applied)) => arrow_response(answer, applied),
        Err(error) => refuse(
            Fault::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", format!("the worker failed: {error}"))
                .code("INTERNAL"),
        ),
    }
}

fn overloaded() -> Fault {
    let message = "this worker answers as many calls as it may at the same time; try again later";
    Fault::new(StatusCode::SERVICE_UNAVAILABLE, "OverloadedError", message).code("RESOURCE_EXHAUSTED")
}

fn too_slow(limit: Duration) -> Fault {
    let message = format!("the call took longer than {} s, the limit of this worker", limit.as_secs_f64());
    Fault::new(StatusCode::OK, "CallTimeoutError", message).code("DEADLINE_EXCEEDED")
}

fn check_type(headers: &HeaderMap) -> Result<(), Fault> {
    let given = headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default());
    if given.is_some_and(|given| given.eq_ignore_ascii_case(ARROW)) {
        return Ok(());
    }
    let message = format!("the content type must be {ARROW}, not '{}'", given.unwrap_or_default());
    Err(Fault::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaTypeError", message).code("INVALID_ARGUMENT"))
}

fn arrow_response(answer: Answer, applied: Option<Wanted>) -> Response<Body> {
    let length = answer.body.len();
    let mut response = Response::new(body::send(answer.body));
    *response.status_mut() = answer.status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(ARROW));
    headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
    if let Some(Wanted { header, coding }) = applied {
        headers.insert(HeaderName::from_static(header), HeaderValue::from_static(coding.name()));
    }
    if answer.failed {
        headers.insert("x-vgi-rpc-error", HeaderValue::from_static("true"));
    }
    if answer.status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    if answer.status == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        headers.insert(ACCEPT, HeaderValue::from_static(ARROW));
    }
    response
}
