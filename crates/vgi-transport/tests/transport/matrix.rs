//! Every fault at every call: an error within its clock that names phase, function and server, no connection left busy, and the
//! destructor for every execution that got an id.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use vgi_transport::{Error, ErrorKind, Execution, InitOptions, Interrupt, Options, Phase};

use crate::support::fault::Fault;
use crate::support::server::{Answer, Gate, Server};
use crate::support::vgi::Vgi;
use crate::support::{attached, bind, chunk, eventually};

/// The requests of one call in their order, by the end of their paths.
const CALLS: [(&str, Phase); 13] = [
    ("health", Phase::Connect),
    ("list_protocols", Phase::Connect),
    ("catalog_attach", Phase::Attach),
    ("catalog_schema_contents_functions", Phase::Discover),
    ("bind", Phase::Bind),
    ("init", Phase::Init),
    ("table_buffering_process", Phase::Process),
    ("table_buffering_process", Phase::Process),
    ("table_buffering_combine", Phase::Combine),
    ("init", Phase::Finalize),
    ("exchange", Phase::Finalize),
    ("exchange", Phase::Finalize),
    ("table_buffering_destructor", Phase::Destructor),
];
const HEALTH: usize = 0;
const INIT: usize = 5;
const EXCHANGE: usize = 10;
/// The turn that brings nothing but the end.
const LAST_EXCHANGE: usize = 11;
const DESTRUCTOR: usize = 12;

const FAULTS: [Fault; 50] = [
    Fault::Refuse,
    Fault::ResetBeforeTheBody,
    Fault::ResetAfterTheRequest,
    Fault::ResetInTheHead,
    Fault::ResetInTheBody,
    Fault::CloseAfterTheRequest,
    Fault::StallBeforeReading,
    Fault::StallBeforeTheHead,
    Fault::StallInTheHead,
    Fault::StallInTheBody,
    Fault::DripTheHead,
    Fault::DripTheBody,
    Fault::Redirect(301),
    Fault::Redirect(302),
    Fault::Redirect(307),
    Fault::Redirect(308),
    Fault::Status(401),
    Fault::Status(413),
    Fault::Status(429),
    Fault::Status(500),
    Fault::Status(502),
    Fault::Status(504),
    Fault::RetryLater,
    Fault::Html,
    Fault::NoHttp,
    Fault::TruncatedBy(1),
    Fault::TruncatedBy(8),
    Fault::TruncatedInTheMiddle,
    Fault::Garbage,
    Fault::Empty,
    Fault::WrongSchema,
    Fault::WrongTypes,
    Fault::MessageLength(-1),
    Fault::MessageLength(i32::MIN),
    Fault::MessageLength(i32::MAX),
    Fault::MessageLength(8),
    Fault::Lengths(-1),
    Fault::Lengths(i64::MIN),
    Fault::Lengths(i64::MAX),
    Fault::Lengths(1 << 40),
    Fault::Lengths(1 << 31),
    Fault::InvalidUtf8,
    Fault::ZipBomb("gzip"),
    Fault::ZipBomb("zstd"),
    Fault::NotWhatTheCodingSays("gzip"),
    Fault::NotWhatTheCodingSays("zstd"),
    Fault::UnknownCoding,
    Fault::NoRow,
    Fault::TwoBatches,
    Fault::TwoStreamsMore,
];

/// The clock that is to ring.
const CLOCK: Duration = Duration::from_secs(1);
/// What is added by a busy machine, and the clocks that are not to ring.
const SLACK: Duration = Duration::from_secs(30);

fn options(fault: Fault) -> Options {
    static CASE: AtomicUsize = AtomicUsize::new(0);
    let case = CASE.fetch_add(1, Ordering::Relaxed);
    let waits = matches!(
        fault,
        Fault::StallBeforeReading
            | Fault::StallBeforeTheHead
            | Fault::StallInTheHead
            | Fault::StallInTheBody
            | Fault::DripTheHead
    );
    let clock = if waits { CLOCK } else { SLACK };
    Options {
        retries: 0,
        connect_timeout: clock,
        first_byte_timeout: clock,
        no_progress_timeout: clock,
        total_timeout: (fault == Fault::DripTheBody).then_some(CLOCK),
        max_response_bytes: 4 << 20,
        // the system gives a port twice, and sessions are kept: no case may find that of another
        headers: vec![("X-Case".to_owned(), case.to_string())],
        ..Options::default()
    }
}

/// Ends what would hang.
struct Patience(Instant);

impl Interrupt for Patience {
    fn interrupted(&self) -> bool {
        self.0.elapsed() > SLACK
    }
}

fn whole_call(server: &Server, options: &Options) -> Result<(), Error> {
    let patience = Patience(Instant::now());
    let attachment = attached(server, options)?;
    attachment.functions(None, "echo", &patience)?;
    let bound = bind(&attachment)?;
    let execution = Execution::start(Arc::new(bound), InitOptions::default(), &patience)?;
    let mut states = Vec::new();
    for values in [[1, 2, 3], [4, 5, 6]] {
        states.push(execution.process(chunk(&values), None)?.wait(&patience)?.state_id);
    }
    for id in execution.combine(states, &patience)? {
        let mut stream = execution.open_stream(id)?;
        while stream.next(&patience)?.is_some() {}
    }
    Ok(())
}

/// A server that is good until the given request.
fn spoiled(fault: Fault, call: usize, elsewhere: String) -> Server {
    let vgi = Vgi::current();
    let (name, _) = CALLS[call];
    if fault == Fault::Refuse {
        return Server::start_mortal(call, move |request| vgi.answer(request));
    }
    let answered = Arc::new(AtomicUsize::new(0));
    let at_the_door = Arc::clone(&answered);
    let due = move |answered: usize, path: &str| answered >= call && path.ends_with(name);
    Server::start_gated(
        move |path| if due(at_the_door.load(Ordering::SeqCst), path) { fault.gate() } else { Gate::Read },
        move |request| {
            let position = answered.fetch_add(1, Ordering::SeqCst);
            let good = vgi.answer(request);
            if due(position, &request.path) { fault.answer(good, &elsewhere) } else { good }
        },
    )
}

/// Kinds and a text, one of which the error must have.
fn expected(fault: Fault, call: usize) -> (&'static [ErrorKind], &'static str) {
    use ErrorKind as K;
    match fault {
        Fault::Refuse => (&[K::Connect], "cannot connect: "),
        Fault::ResetBeforeTheBody | Fault::ResetAfterTheRequest | Fault::ResetInTheHead => {
            (&[K::Http], "the connection broke before a reply came")
        }
        Fault::CloseAfterTheRequest | Fault::NoHttp => (&[K::Http], "the connection broke before a reply came"),
        Fault::ResetInTheBody => (&[K::Http], "the connection broke after "),
        Fault::StallBeforeReading | Fault::StallBeforeTheHead | Fault::StallInTheHead | Fault::DripTheHead => {
            (&[K::Timeout], "no reply within 1s (first-byte timeout)")
        }
        Fault::StallInTheBody => (&[K::Timeout], "the reply stood still for 1s (no-progress timeout)"),
        Fault::DripTheBody => (&[K::Timeout], "not finished within 1s (total timeout)"),
        Fault::Redirect(_) => (&[K::Http], "which is not followed"),
        Fault::Status(401) => (&[K::Unauthorized], "the server refuses the credentials: HTTP 401: the reason"),
        Fault::Status(413) if call == HEALTH => (&[K::NotVgi], "HTTP 413"),
        Fault::Status(413) => (&[K::Limit], "larger than the server allows"),
        Fault::Status(429) => (&[K::Http], "HTTP 429 Too Many Requests for /"),
        Fault::Status(500) => (&[K::Http], "HTTP 500 Internal Server Error for /"),
        Fault::Status(502) => (&[K::Http], "HTTP 502 Bad Gateway for /"),
        Fault::Status(_) => (&[K::Http], "HTTP 504 Gateway Timeout for /"),
        Fault::RetryLater => (&[K::Http], "HTTP 503 Service Unavailable for /"),
        Fault::Html if call == HEALTH => (&[K::NotVgi], "its /health is text/html"),
        Fault::Html => (&[K::Protocol], "the reply is not an Arrow stream but text/html: <html><b>Sign in"),
        Fault::ZipBomb(_) => (&[K::Limit], "the reply is larger than the 4194304 bytes that are allowed"),
        Fault::NotWhatTheCodingSays(_) => (&[K::Protocol], "the reply is not valid "),
        Fault::UnknownCoding => (&[K::Protocol], "unknown content coding 'br'"),
        _ => (&[K::Protocol], ""),
    }
}

/// Faults that are none at some calls.
fn harmless(fault: Fault, call: usize) -> bool {
    match fault {
        // the health document is not Arrow, and nothing is uncompressed there
        Fault::MessageLength(_) | Fault::Lengths(_) => call == HEALTH || call == LAST_EXCHANGE,
        Fault::TruncatedBy(_)
        | Fault::TruncatedInTheMiddle
        | Fault::Garbage
        | Fault::Empty
        | Fault::InvalidUtf8
        | Fault::ZipBomb(_)
        | Fault::NotWhatTheCodingSays(_)
        | Fault::UnknownCoding
        | Fault::TwoStreamsMore => call == HEALTH,
        // a turn may bring any number of batches; what they are is for those to judge who know what bind announced
        Fault::WrongSchema | Fault::WrongTypes | Fault::NoRow | Fault::TwoBatches => {
            matches!(call, HEALTH | EXCHANGE | LAST_EXCHANGE)
        }
        _ => false,
    }
}

fn check(fault: Fault, call: usize) {
    let elsewhere = Server::start(|_| Answer::text(404, "text/plain", "Not Found"));
    let server = spoiled(fault, call, format!("{}/followed", elsewhere.url()));
    let start = Instant::now();
    let outcome = whole_call(&server, &options(fault));
    let took = start.elapsed();
    assert!(took < CLOCK + SLACK, "took {took:?}");
    if fault == Fault::Refuse {
        server.resume();
    }
    if call == DESTRUCTOR {
        outcome.unwrap();
    } else {
        let error = outcome.unwrap_err();
        let (kinds, text) = expected(fault, call);
        let said = error.to_string();
        assert!(kinds.contains(&error.kind()), "{:?}: {said}", error.kind());
        assert!(said.contains(text), "{said}");
        assert_eq!(error.phase(), CALLS[call].1, "{said}");
        assert_eq!(error.function(), (call > 2).then_some("echo"), "{said}");
        assert_eq!(error.url(), Some(server.url().as_str()), "{said}");
    }
    eventually("no connection stays busy", || server.busy() == 0);
    if call > INIT {
        // what nobody can be told is lost
        if fault != Fault::Refuse && (call != DESTRUCTOR || fault.gate() == Gate::Read) {
            eventually("the destructor", || server.count("table_buffering_destructor") == 1);
        }
    } else if call == INIT && matches!(fault, Fault::TruncatedBy(_) | Fault::TwoStreamsMore) {
        eventually("the destructor of a half-read init", || server.count("table_buffering_destructor") == 1);
    } else {
        // what a spoiled init still says of an execution is freed as well
        assert!(server.count("table_buffering_destructor") <= usize::from(call == INIT));
    }
    // its port may have been that of a server before, which somebody says farewell to in the background
    assert_eq!(elsewhere.count("followed"), 0, "a redirect was followed");
}

#[test]
fn every_fault_at_every_call_is_one_clear_error() {
    let cases: Vec<_> = FAULTS
        .iter()
        .flat_map(|&fault| (0..CALLS.len()).map(move |call| (fault, call)))
        .filter(|&(fault, call)| !harmless(fault, call))
        .collect();
    Fault::prepare();
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..24 {
            scope.spawn(|| {
                while let Some(&(fault, call)) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let checked = std::panic::catch_unwind(|| check(fault, call));
                    if let Err(panic) = checked {
                        let text = panic.downcast_ref::<String>().cloned();
                        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
                        let what = format!("{fault:?} at {call} {}: {}", CALLS[call].0, text.unwrap_or_default());
                        failures.lock().unwrap().push(what);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} of {} failed:\n{}", failures.len(), cases.len(), failures.join("\n"));
    assert!(cases.len() > 500);
}
