//! Servers and networks that misbehave: one clear sentence each, no hang, no repetition.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use vgi_transport::{
    Error, ErrorKind, Interrupt, Location, NeverInterrupted, Options, Phase, attach, drain_background,
};

use crate::support::server::{Answer, Server};
use crate::support::vgi::{Vgi, error, error_body};
use crate::support::{BACKGROUND, attached, bind, chunk, eventually, fed, started};

/// What a bind gives when the server answers it so.
fn bind_answer(answer: impl Fn() -> Answer + Send + Sync + 'static) -> (Server, Error) {
    bind_with(Options::default(), answer)
}

fn bind_with(options: Options, answer: impl Fn() -> Answer + Send + Sync + 'static) -> (Server, Error) {
    let server = Vgi::current().start_with(move |name, _| (name == "bind").then(&answer));
    let error = bind(&attached(&server, &options).unwrap()).unwrap_err();
    assert_eq!(error.phase(), Phase::Bind);
    assert_eq!(error.function(), Some("echo"));
    assert_eq!(server.count("bind"), 1, "never repeated");
    (server, error)
}

#[test]
fn nobody_listens() {
    // a port that is taken, so that no other test gets it
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    let url = format!("http://{}", socket.local_addr().unwrap().as_socket().unwrap());
    let error = attach(&Location::parse(&url).unwrap(), "cat", &Options::default(), &NeverInterrupted).unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::Connect, Phase::Connect));
    assert!(error.to_string().starts_with(&format!("connect failed at {url}: cannot connect: ")), "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[test]
fn the_host_does_not_exist() {
    let error =
        attach(&Location::parse("http://no-such-host.invalid").unwrap(), "cat", &Options::default(), &NeverInterrupted)
            .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect, "{error}");
}

#[test]
fn an_error_batch_is_found_whatever_the_status() {
    for status in [200, 400, 404, 500, 503] {
        let (_server, error) =
            bind_answer(move || Answer::arrow(status, error_body(&error("ValueError", "no such column"))));
        assert_eq!(error.kind(), ErrorKind::Remote, "{status}");
        assert_eq!(error.remote().unwrap().exception_type.as_deref(), Some("ValueError"));
        assert!(error.to_string().contains("bind of 'echo' failed at http://127.0.0.1:"), "{error}");
        assert!(error.to_string().contains("ValueError: no such column"), "{error}");
    }
}

#[test]
fn html_is_not_arrow() {
    let (_server, error) = bind_answer(|| Answer::text(200, "text/html", "<html>\n<b>Sign in</b>"));
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(error.to_string().contains("not an Arrow stream but text/html: <html> <b>Sign in</b>"), "{error}");
}

#[test]
fn a_bare_status_is_named_with_its_text() {
    let (_server, error) = bind_answer(|| Answer::text(500, "text/plain", "worker died"));
    assert_eq!((error.kind(), error.status()), (ErrorKind::Http, Some(500)));
    assert!(error.to_string().contains("HTTP 500 Internal Server Error for /vgi.v2/bind: worker died"), "{error}");
}

#[test]
fn refused_credentials() {
    let (_server, error) = bind_answer(|| Answer::text(401, "application/json", r#"{"reason":"expired_credential"}"#));
    assert_eq!((error.kind(), error.status()), (ErrorKind::Unauthorized, Some(401)));
    assert!(error.to_string().contains("expired_credential"), "{error}");
}

#[test]
fn a_redirect_is_not_followed() {
    let other = Server::start(|_| Answer::Raw(Vec::new()));
    let target = other.url();
    let (_server, error) = bind_answer(move || Answer::text(307, "text/plain", "").with("Location", &target));
    assert_eq!(error.kind(), ErrorKind::Http);
    assert!(error.to_string().contains(&other.url()), "{error}");
    assert_eq!(other.connections(), 0);
}

#[test]
fn a_truncated_stream_is_an_error() {
    let vgi = Vgi::current();
    let server = Server::start(move |request| match vgi.answer(request) {
        Answer::Reply { status, headers, mut body } if request.path.ends_with("/bind") => {
            body.truncate(body.len() - 8);
            Answer::Reply { status, headers, body }
        }
        other => other,
    });
    let error = bind(&attached(&server, &Options::default()).unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Protocol);
    assert!(error.to_string().contains("truncated"), "{error}");
}

#[test]
fn a_short_body_is_an_error() {
    let (_server, error) = bind_answer(|| {
        Answer::Raw(b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.apache.arrow.stream\r\nContent-Length: 100\r\n\r\n1234567".to_vec())
    });
    assert_eq!(error.kind(), ErrorKind::Http);
    assert!(error.to_string().contains("after 7 of 100 bytes"), "{error}");
}

#[test]
fn a_length_that_lies_reserves_nothing() {
    let (_server, error) =
        bind_answer(|| Answer::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2000000000\r\n\r\n1234567".to_vec()));
    assert!(error.to_string().contains("after 7 of 2000000000 bytes"), "{error}");
    let (_server, error) =
        bind_answer(|| Answer::Stall(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999\r\n\r\n".to_vec()));
    assert_eq!(error.kind(), ErrorKind::Limit);
    let (_server, error) = bind_answer(|| Answer::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n".to_vec()));
    assert_eq!(error.kind(), ErrorKind::Http);
}

#[test]
fn a_connection_that_breaks_is_an_error_and_the_request_is_not_repeated() {
    for answer in [
        || Answer::Raw(Vec::new()),
        || Answer::Reset(Vec::new()),
        || Answer::Raw(b"garbage\r\n\r\n".to_vec()),
        || Answer::Reset(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n1234".to_vec()),
    ] {
        let (_server, error) = bind_answer(answer);
        assert_eq!(error.kind(), ErrorKind::Http, "{error}");
        assert!(error.to_string().contains("the connection broke"), "{error}");
    }
}

#[test]
fn a_process_call_is_never_repeated_even_on_a_used_connection() {
    let server =
        Vgi::current().start_with(|name, _| (name == "table_buffering_process").then(|| Answer::Raw(Vec::new())));
    let execution = started(&server, &Options::default());
    assert_eq!(server.connections(), 1, "the connection is kept and used again");
    let error = execution.process(chunk(&[1]), None).unwrap().wait(&NeverInterrupted).unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::Http, Phase::Process));
    drop(execution);
    assert!(drain_background(BACKGROUND));
    assert_eq!(server.count("table_buffering_process"), 1);
    assert_eq!(server.count("table_buffering_destructor"), 1);
}

#[test]
fn a_connection_that_the_server_closed_while_idle_is_replaced() {
    let vgi = Vgi::current();
    let server = Server::start(move |request| match vgi.answer(request) {
        Answer::Reply { body, .. } if request.path.ends_with("/catalog_attach") => {
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.apache.arrow.stream\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            Answer::Raw([head.into_bytes(), body].concat())
        }
        other => other,
    });
    let attachment = attached(&server, &Options::default()).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    bind(&attachment).unwrap();
    assert_eq!(server.connections(), 2);
}

#[test]
fn replies_have_a_limit_as_received_and_as_decoded() {
    let options = Options { max_response_bytes: 100_000, ..Options::default() };
    let (_server, error) = bind_with(options.clone(), || Answer::arrow(200, vec![0; 100_001]));
    assert_eq!(error.kind(), ErrorKind::Limit);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&vec![0; 50 << 20]).unwrap();
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 100_000);
    let (_server, error) =
        bind_with(options, move || Answer::arrow(200, bomb.clone()).with("Content-Encoding", "gzip"));
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.to_string().contains("100000 bytes"), "{error}");
    let chunked = || {
        Answer::Raw(
            [
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n30000\r\n".to_vec(),
                vec![0; 0x30000],
                b"\r\n0\r\n\r\n".to_vec(),
            ]
            .concat(),
        )
    };
    let (_server, error) = bind_with(Options { max_response_bytes: 100_001, ..Options::default() }, chunked);
    assert_eq!(error.kind(), ErrorKind::Limit);
}

#[test]
fn compressed_replies_are_read() {
    let vgi = Vgi::current();
    let server = Server::start(move |request| match vgi.answer(request) {
        Answer::Reply { status, mut headers, body } if request.method == "POST" => {
            headers.push(("X-VGI-Content-Encoding", "zstd".to_owned()));
            Answer::Reply { status, headers, body: zstd::encode_all(&*body, 3).unwrap() }
        }
        other => other,
    });
    bind(&attached(&server, &Options::default()).unwrap()).unwrap();
}

#[test]
fn random_bodies_are_errors() {
    let mut state = 88_172_645_463_325_252_u64;
    for round in 0..50 {
        let body: Vec<u8> = (0..round * 7)
            .map(|_| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                state.to_le_bytes()[0]
            })
            .collect();
        let (_server, error) = bind_answer(move || Answer::arrow(200, body.clone()));
        assert_eq!(error.kind(), ErrorKind::Protocol, "{error}");
    }
}

/// A stream whose turns have a token and no rows; `cursor` gives the token of each.
fn endless(options: Options, cursor: impl Fn(usize) -> String + Send + Sync + 'static) -> (Server, Option<Error>) {
    let turns = AtomicUsize::new(0);
    let server = Vgi::current().start_with(move |name, request| {
        if name != "exchange" || request.body.windows(14).any(|window| window == b"vgi_rpc.cancel") {
            return None;
        }
        let mut writer = vgi_wire::server::ReplyWriter::new(crate::support::schema(), "s", None).unwrap();
        let cursor = cursor(turns.fetch_add(1, Ordering::Relaxed));
        writer.token(&vgi_wire::reply::Tokens { cursor, call: None }).unwrap();
        Some(Answer::arrow(200, writer.finish().unwrap().to_bytes().to_vec()))
    });
    let (execution, streams) = fed(&server, &options, &[&[1], &[2]]);
    let mut stream = execution.open_stream(streams[0].clone()).unwrap();
    let start = Instant::now();
    let patience = || start.elapsed() > Duration::from_millis(700);
    let error = loop {
        match stream.next(&Until(&patience)) {
            Ok(Some(_)) => {}
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    drop((stream, execution));
    eventually("the destructor", || server.count("table_buffering_destructor") == 1);
    (server, error)
}

struct Until<'a>(&'a dyn Fn() -> bool);

impl Interrupt for Until<'_> {
    fn interrupted(&self) -> bool {
        (self.0)()
    }
}

#[test]
fn a_token_that_never_ends_runs_out_of_the_clock_or_is_interrupted() {
    let options = Options { first_byte_timeout: Duration::from_millis(300), ..Options::default() };
    let (server, error) = endless(options, |turn| format!("execution 1#{}", turn + 10));
    let error = error.unwrap();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::Timeout, Phase::Finalize), "{error}");
    assert!(error.to_string().contains("only turns without rows for 300ms (first-byte timeout)"), "{error}");
    assert!(server.count("exchange") > 3);
    let (_server, error) = endless(Options::default(), |turn| format!("execution 1#{}", turn + 10));
    assert_eq!(error.unwrap().kind(), ErrorKind::Interrupted);
}

#[test]
fn a_token_that_stands_still_is_an_error_at_once() {
    let (server, error) = endless(Options::default(), |_| "execution 1#1".to_owned());
    let error = error.unwrap();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::Protocol, Phase::Finalize), "{error}");
    assert!(error.to_string().contains("the token of that turn"), "{error}");
    assert!(server.count("exchange") <= 3, "{:?}", server.calls());
}

/// A server that closes a connection so long after its reply to an init or a chunk, which the client does not follow up at once: a
/// request that crosses the closing on its way is another matter.
fn closing_after(pause: Duration) -> Server {
    let vgi = Vgi::current();
    Server::start(move |request| {
        let answer = vgi.answer(request);
        let closes = ["/init", "/table_buffering_process"].iter().any(|end| request.path.ends_with(end));
        if closes { Answer::Last(answer.wire(), pause) } else { answer }
    })
}

#[test]
fn a_chunk_never_meets_a_connection_that_died_while_idle() {
    for pause in [0, 20, 100].map(Duration::from_millis) {
        let server = closing_after(pause);
        let options = Options { retries: 0, ..Options::default() };
        let execution = started(&server, &options);
        for value in 0..3 {
            // longer than the server keeps a connection
            std::thread::sleep(pause + Duration::from_millis(150));
            execution.process(chunk(&[value]), None).unwrap().wait(&NeverInterrupted).unwrap();
        }
        assert_eq!(server.count("table_buffering_process"), 3, "each once");
    }
}
