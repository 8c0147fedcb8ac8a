//! Clocks and interrupts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use vgi_transport::{ErrorKind, NeverInterrupted, Options, Phase, drain_background};

use crate::support::server::{Answer, Server};
use crate::support::vgi::Vgi;
use crate::support::{attached, bind, chunk, eventually, started};

const STALLED_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.apache.arrow.stream\r\nContent-Length: 1000\r\n\r\n12345";

fn stalls(call: &'static str, bytes: &'static [u8]) -> Server {
    Vgi::current().start_with(move |name, _| (name == call).then(|| Answer::Stall(bytes.to_vec())))
}

#[test]
fn an_interrupt_ends_a_wait_at_once_and_closes_the_socket() {
    for bytes in [b"".as_slice(), STALLED_HEAD] {
        let server = stalls("table_buffering_process", bytes);
        let execution = started(&server, &Options::default());
        let pending = execution.process(chunk(&[1]), None).unwrap();
        let flag = Arc::new(AtomicBool::new(false));
        let raised = Arc::clone(&flag);
        let user = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            raised.store(true, Ordering::Relaxed);
            Instant::now()
        });
        let error = pending.wait(&*flag).unwrap_err();
        let returned = Instant::now();
        assert!(returned - user.join().unwrap() < Duration::from_millis(150));
        assert_eq!((error.kind(), error.phase()), (ErrorKind::Interrupted, Phase::Process));
        eventually("the socket is closed", || server.abandoned() == 1);
        drop(execution);
        eventually("the destructor", || server.count("table_buffering_destructor") == 1);
    }
}

#[test]
fn a_dropped_request_closes_its_socket() {
    let server = stalls("table_buffering_process", b"");
    let execution = started(&server, &Options::default());
    let pending = execution.process(chunk(&[1]), None).unwrap();
    eventually("the request", || server.count("table_buffering_process") == 1);
    assert!(!pending.is_finished());
    drop(pending);
    eventually("the socket is closed", || server.abandoned() == 1);
}

#[test]
fn each_clock_names_itself() {
    let fast = Duration::from_millis(150);
    let cases: [(&'static [u8], Options, &str); 3] = [
        (b"", Options { first_byte_timeout: fast, ..Options::default() }, "first-byte timeout"),
        (STALLED_HEAD, Options { no_progress_timeout: fast, ..Options::default() }, "no-progress timeout"),
        (STALLED_HEAD, Options { total_timeout: Some(fast), ..Options::default() }, "total timeout"),
    ];
    for (bytes, options, name) in cases {
        let server = stalls("bind", bytes);
        let attachment = attached(&server, &options).unwrap();
        let start = Instant::now();
        let error = bind(&attachment).unwrap_err();
        assert_eq!((error.kind(), error.phase()), (ErrorKind::Timeout, Phase::Bind), "{error}");
        assert!(error.to_string().contains(name) && error.to_string().contains("150ms"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(5), "{name}");
        eventually("the socket is closed", || server.abandoned() == 1);
    }
}

#[test]
fn an_upload_that_nobody_takes_runs_out_of_its_clock() {
    let vgi = Vgi::current();
    let server = Server::start_deaf("table_buffering_process", move |request| vgi.answer(request));
    let options = Options { no_progress_timeout: Duration::from_millis(300), ..Options::default() };
    let execution = started(&server, &options);
    // more than the buffers of the sockets take
    let values = vec![7; 4 << 20];
    let error = execution.process(chunk(&values), None).unwrap().wait(&NeverInterrupted).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(error.to_string().contains("the upload stood still for 300ms (no-progress timeout)"), "{error}");
}

#[test]
fn an_upload_that_moves_does_not_run_out_of_it() {
    let server = Vgi::current().start_with(|name, _| {
        if name == "table_buffering_process" {
            std::thread::sleep(Duration::from_millis(400));
        }
        None
    });
    let options = Options { no_progress_timeout: Duration::from_millis(200), ..Options::default() };
    let execution = started(&server, &options);
    let values = vec![7; 4 << 20];
    execution.process(chunk(&values), None).unwrap().wait(&NeverInterrupted).unwrap();
}

#[test]
fn a_destructor_that_nobody_answers_is_given_up() {
    let server = stalls("table_buffering_destructor", b"");
    let start = Instant::now();
    drop(started(&server, &Options::default()));
    assert!(start.elapsed() < Duration::from_secs(2), "dropping does not block");
    eventually("the destructor", || server.count("table_buffering_destructor") == 1);
    assert!(!drain_background(Duration::from_millis(50)), "it is still waited for");
    assert!(drain_background(Duration::from_secs(20)));
    eventually("the socket is closed", || server.abandoned() == 1);
}

#[test]
fn many_requests_are_in_flight_at_once() {
    let server = Vgi::current().start_with(|name, _| {
        if name == "table_buffering_process" {
            std::thread::sleep(Duration::from_millis(150));
        }
        None
    });
    let execution = started(&server, &Options::default());
    let start = Instant::now();
    let pending: Vec<_> = (0..16).map(|value| execution.process(chunk(&[value]), None).unwrap()).collect();
    for pending in pending {
        pending.wait(&NeverInterrupted).unwrap();
    }
    assert!(start.elapsed() < Duration::from_millis(16 * 150 / 2), "{:?}", start.elapsed());
}

/// A listener whose queue is full: the system answers no further connection.
#[cfg(target_os = "linux")]
#[test]
fn the_connect_clock_names_itself() {
    use socket2::{Domain, Socket, Type};

    let listener = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    listener.bind(&std::net::SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    listener.listen(1).unwrap();
    let address = listener.local_addr().unwrap().as_socket().unwrap();
    let queued: Vec<_> = (0..16)
        .map_while(|_| std::net::TcpStream::connect_timeout(&address, Duration::from_millis(100)).ok())
        .collect();
    assert!(queued.len() < 16, "the queue is full");
    let options = Options { connect_timeout: Duration::from_millis(300), ..Options::default() };
    let location = vgi_transport::Location::parse(&format!("http://{address}")).unwrap();
    let start = Instant::now();
    let error = vgi_transport::attach(&location, "cat", &options, &NeverInterrupted).unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::Timeout, Phase::Connect), "{error}");
    assert!(error.to_string().ends_with("no connection within 300ms (connect timeout)"), "{error}");
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn a_slow_reply_that_moves_is_not_an_error() {
    assert_eq!(Options::default().total_timeout, None);
    let vgi = Vgi::current();
    let server = Server::start(move |request| {
        let whole = vgi.answer(request).wire();
        if !request.path.ends_with("/bind") {
            return Answer::Pieces(whole, vgi_wire::ipc::Segments::new());
        }
        let (start, rest) = whole.split_at(whole.len() - 40);
        Answer::Drip(start.to_vec(), rest.to_vec(), Duration::from_millis(50))
    });
    let clock = Duration::from_millis(1500);
    let options = Options { no_progress_timeout: clock, first_byte_timeout: clock, ..Options::default() };
    let attachment = attached(&server, &options).unwrap();
    let start = Instant::now();
    bind(&attachment).unwrap();
    assert!(start.elapsed() > clock, "longer than each clock");
}
