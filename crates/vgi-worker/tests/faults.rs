//! The server that misbehaves: each fault is what its name says, and hits the calls that it shall.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use support::{ARROW, Call, Client, batch_of, int};
use vgi_wire::generation::Dialect;
use vgi_wire::methods::{AttachRequest, Method};
use vgi_wire::reply::{Tokens, read_init, read_unary};
use vgi_worker::faults::{Fault, FaultyHandle, Rule, serve_with_faults};
use vgi_worker::{Options, functions};

fn start(rules: &[&str]) -> (FaultyHandle, Client) {
    let rules: Vec<Rule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    let server = serve_with_faults(functions::example_catalog(true).unwrap(), Options::default(), rules).unwrap();
    let dialect = Dialect::select(Some("vgi.v2"), Some("2.2.0")).unwrap();
    let client = Client { address: server.address(), dialect, token: None, reads_several: false };
    (server, client)
}

fn input() -> RecordBatch {
    batch_of(vec![("n", int(1))])
}

/// What a client gets for an attach with this fault: the bytes, and how the connection ended.
fn attach_with(client: &Client, fault: Fault, patience: Duration) -> (Vec<u8>, Result<(), ErrorKind>) {
    let request = AttachRequest { name: "example".to_owned(), ..AttachRequest::default() };
    let body = client.body(Method::CatalogAttach, request.to_blob(&client.dialect).unwrap()).to_bytes();
    let mut connection = TcpStream::connect(client.address).unwrap();
    connection.set_read_timeout(Some(patience)).unwrap();
    let head = format!(
        "POST /{} HTTP/1.1\r\nhost: worker\r\ncontent-type: {ARROW}\r\nx-vgi-fault: {fault}\r\ncontent-length: {}\r\n\r\n",
        client.dialect.path(Method::CatalogAttach),
        body.len()
    );
    connection.write_all(head.as_bytes()).unwrap();
    connection.write_all(&body).ok();
    let (mut got, mut piece) = (Vec::new(), [0; 4096]);
    let begun = Instant::now();
    loop {
        if begun.elapsed() > patience {
            return (got, Err(ErrorKind::TimedOut));
        }
        match connection.read(&mut piece) {
            Ok(0) => return (got, Ok(())),
            Ok(count) => got.extend_from_slice(&piece[..count]),
            Err(error) => return (got, Err(error.kind())),
        }
        if let Some((head, body)) = split(&got)
            && length(&head).is_some_and(|length| body.len() >= length)
        {
            return (got, Ok(()));
        }
    }
}

fn split(got: &[u8]) -> Option<(String, Vec<u8>)> {
    let end = got.windows(4).position(|window| window == b"\r\n\r\n")?;
    Some((String::from_utf8(got[..end].to_vec()).unwrap().to_ascii_lowercase(), got[end + 4..].to_vec()))
}

fn length(head: &str) -> Option<usize> {
    head.lines().find_map(|line| line.strip_prefix("content-length: "))?.parse().ok()
}

const PATIENCE: Duration = Duration::from_millis(300);

#[test]
fn connections_end_as_their_fault_says() {
    let (server, client) = start(&[]);
    let waits = |kind: ErrorKind| matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut);
    for fault in [Fault::ResetBeforeTheBody, Fault::ResetAfterTheRequest, Fault::ResetInTheHead, Fault::ResetInTheBody]
    {
        let (got, end) = attach_with(&client, fault, Duration::from_secs(5));
        assert_eq!(end, Err(ErrorKind::ConnectionReset), "{fault}");
        let begun = matches!(fault, Fault::ResetInTheHead | Fault::ResetInTheBody);
        assert_eq!(!got.is_empty(), begun, "{fault}");
        assert_eq!(split(&got).is_some(), fault == Fault::ResetInTheBody, "{fault}");
    }
    assert_eq!(attach_with(&client, Fault::CloseAfterTheRequest, Duration::from_secs(5)), (Vec::new(), Ok(())));
    for fault in [Fault::StallBeforeReading, Fault::StallBeforeTheHead, Fault::StallInTheHead, Fault::StallInTheBody] {
        let (got, end) = attach_with(&client, fault, PATIENCE);
        assert!(end.is_err_and(waits), "{fault}");
        assert_eq!(split(&got).is_some(), fault == Fault::StallInTheBody, "{fault}");
    }
    let (got, end) = attach_with(&client, Fault::Drip(50), PATIENCE);
    assert!(end.is_err() && got.len() < 100, "{} bytes in no time", got.len());
    // stalled connections go with their clients
    let begun = Instant::now();
    while server.connections() > 2 && begun.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(server.connections() <= 2, "{} connections", server.connections());
}

#[test]
fn replies_are_spoiled_as_their_fault_says() {
    let (_server, client) = start(&[]);
    let answer = |fault: Fault| {
        let (got, end) = attach_with(&client, fault, Duration::from_secs(60));
        assert_eq!(end, Ok(()), "{fault}");
        split(&got).unwrap()
    };
    for (fault, status, header) in [
        (Fault::Redirect(301), 301, "location: http://elsewhere.invalid/"),
        (Fault::Status(413), 413, "content-type: text/plain"),
        (Fault::RetryAfter(7), 503, "retry-after: 7"),
        (Fault::Html, 200, "content-type: text/html"),
        (Fault::UnknownCoding, 200, "content-encoding: br"),
        (Fault::NotWhatTheCodingSays, 200, "x-vgi-content-encoding: zstd"),
    ] {
        let (head, _) = answer(fault);
        assert!(head.starts_with(&format!("http/1.1 {status} ")) && head.contains(header), "{fault}: {head}");
    }
    for (fault, decoder) in [(Fault::ZipBomb, "zstd"), (Fault::GzipBomb, "gzip")] {
        let (head, body) = answer(fault);
        assert!(head.contains(&format!("content-encoding: {decoder}")) && body.len() < 1 << 20, "{fault}");
    }
    assert_eq!(zstd::decode_all(&answer(Fault::ZipBomb).1[..]).unwrap().len(), 64 << 20);
    for fault in [
        Fault::TruncatedBy(8),
        Fault::TruncatedInTheMiddle,
        Fault::Garbage,
        Fault::Empty,
        Fault::WrongSchema,
        Fault::WrongTypes,
        Fault::MessageLength(-1),
        Fault::MessageLength(i32::MAX),
        Fault::Lengths(-1),
        Fault::Lengths(1 << 62),
        Fault::InvalidUtf8,
        Fault::NoRow,
        Fault::TwoBatches,
        Fault::TwoStreamsMore,
    ] {
        let (head, body) = answer(fault);
        assert!(head.starts_with("http/1.1 200 "), "{fault}: {head}");
        let read = read_unary(body.into()).map(|reply| vgi_wire::methods::AttachReply::from_reply(&reply));
        assert!(!matches!(read, Ok(Ok(_))), "{fault} is read as if nothing were wrong");
    }
    assert!(client.attach("example").is_ok(), "without a fault all is well");
}

#[test]
fn a_rule_hits_its_call_alone() {
    let (server, client) = start(&["process#2=status:500", "combine=close-after-the-request"]);
    let execution = client.begin(&Call::new("buffer_input"), &input().schema()).unwrap();
    let (first, _) = execution.process(&input(), None).unwrap();
    assert!(execution.process(&input(), None).is_err());
    let (third, _) = execution.process(&input(), None).unwrap();
    assert_ne!(first, third);
    assert_eq!(server.stats().process_calls, 3, "the spoiled call was made all the same");
    let combine = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| execution.combine(vec![first])));
    assert!(combine.is_err(), "no reply at all");
    assert_eq!(server.stats().combine_calls, 1);
    execution.destroy();
    assert_eq!(server.stats().live_executions, 0);
}

#[test]
fn a_stream_without_header_and_a_token_without_end() {
    let (_server, client) = start(&["init#2=no-header", "turn=endless-token"]);
    let call = Call::new("emit_parts").positional(int(1)).positional(int(4));
    let execution = client.begin(&call, &input().schema()).unwrap();
    let (streams, _) = execution.combine(Vec::new()).unwrap();
    let request = execution.stream_request(&streams[0]);
    let body = client.body(Method::Init, request.to_blob(&client.dialect).unwrap());
    assert!(read_init(client.post(&client.dialect.path(Method::Init), body).body).is_err());
    let first = execution.open_stream(&streams[0]).unwrap();
    let tokens = Tokens { cursor: first.cursor.unwrap(), call: first.call };
    for _ in 0..3 {
        let turn = client.turn(&tokens).unwrap();
        assert_eq!(
            (turn.batches.iter().map(RecordBatch::num_rows).sum::<usize>(), turn.cursor),
            (0, Some(tokens.cursor.clone()))
        );
    }
}

#[test]
fn nobody_listens_until_told() {
    let (server, client) = start(&["bind=refuse-afterwards"]);
    assert!(client.bind(&Call::new("buffer_input"), &input().schema()).is_ok());
    assert!(server.is_refusing());
    server.listen_again();
    assert!(!server.is_refusing());
    assert!(client.attach("example").is_ok());
}
