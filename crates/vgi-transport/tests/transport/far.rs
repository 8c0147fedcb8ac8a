//! Servers that are not on this machine: compression and proxies. The double is the proxy and the server behind it in one, so a name that
//! exists nowhere leads to it.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use vgi_transport::{
    Attachment, Compression, Error, ErrorKind, Execution, InitOptions, Location, NeverInterrupted, Options, Proxy,
    attach, drain_background,
};

use crate::support::server::{Answer, Request, Server};
use crate::support::vgi::Vgi;
use crate::support::{attached, bind, chunk};

const FAR: &str = "http://vgi.test/base";

fn through(server: &Server, compression: Compression) -> Options {
    let address = server.url().replace("http://", "");
    Options { proxy: Some(Proxy { address, ..Proxy::default() }), compression, ..Options::default() }
}

fn far(options: &Options, name: &str) -> Result<Arc<Attachment>, Error> {
    attach(&Location::parse(&format!("{FAR}/{name}")).unwrap(), "cat", options, &NeverInterrupted)
}

/// The request without its coding and prefix, as the server behind sees it.
fn inner(request: &Request) -> Request {
    let body = match request.headers.get("content-encoding").map(String::as_str) {
        Some("zstd") => zstd::decode_all(&*request.body).unwrap(),
        Some("gzip") => {
            let mut body = Vec::new();
            std::io::copy(&mut flate2::read::GzDecoder::new(&*request.body), &mut body).unwrap();
            body
        }
        Some(other) => panic!("{other}"),
        None => request.body.clone(),
    };
    let path = request.path.splitn(4, '/').nth(3).map_or_else(|| request.path.clone(), |path| format!("/{path}"));
    Request { path, body, ..request.clone() }
}

/// A server that announces codings.
fn coding_server(header: &'static str, value: &'static str) -> Server {
    let vgi = Vgi::current();
    Server::start(move |request| vgi.answer(&inner(request)).with(header, value))
}

/// Sends some chunks; gives the codings of the requests that are larger than 1 KiB.
fn codings(server: &Server, options: &Options, name: &str) -> Vec<Option<String>> {
    let bound = bind(&far(options, name).unwrap()).unwrap();
    let execution = Execution::start(Arc::new(bound), InitOptions::default(), &NeverInterrupted).unwrap();
    let mut states = Vec::new();
    for values in [vec![1], vec![7; 20_000], (0..20_000).collect(), vec![8; 20_000]] {
        states.push(execution.process(chunk(&values), None).unwrap().wait(&NeverInterrupted).unwrap().state_id);
    }
    execution.combine(states, &NeverInterrupted).unwrap();
    drop(execution);
    assert!(drain_background(Duration::from_secs(10)));
    let seen = server.seen();
    let chunks = seen.iter().filter(|request| request.path.ends_with("process"));
    chunks.map(|request| request.headers.get("content-encoding").cloned()).collect()
}

#[test]
fn requests_are_written_in_a_coding_that_the_server_announces() {
    let zstd = || Some("zstd".to_owned());
    for (position, (header, value, expected)) in [
        ("VGI-Supported-Encodings", "zstd, gzip", zstd()),
        ("VGI-Supported-Encodings", "gzip", Some("gzip".to_owned())),
        ("VGI-Supported-Encodings", "", None),
        ("VGI-Externalization-Enabled", "false", zstd()),
        ("X-Other", "1", None),
    ]
    .into_iter()
    .enumerate()
    {
        let server = coding_server(header, value);
        let found = codings(&server, &through(&server, Compression::Always), &format!("announced{position}"));
        assert_eq!(found[1..], [expected.clone(), expected.clone(), expected], "{header}: {value}");
        // the small one has more than 1 KiB of names around it
        let off = codings(&server, &through(&server, Compression::Off), &format!("off{position}"));
        assert_eq!(off[off.len() - 4..], [None, None, None, None]);
    }
}

#[test]
fn nothing_is_compressed_on_this_machine() {
    let vgi = Vgi::current();
    let server = Server::start(move |request| vgi.answer(request).with("VGI-Supported-Encodings", "zstd"));
    let options = through(&server, Compression::Always);
    let execution = Execution::start(
        Arc::new(bind(&attached(&server, &options).unwrap()).unwrap()),
        InitOptions::default(),
        &NeverInterrupted,
    )
    .unwrap();
    execution.process(chunk(&vec![1; 20_000]), None).unwrap().wait(&NeverInterrupted).unwrap();
    drop(execution);
    for request in server.seen() {
        assert!(!request.headers.contains_key("content-encoding"));
        assert!(!request.headers.contains_key("x-vgi-accept-encoding"));
        assert!(request.target.starts_with('/'), "nor is it proxied: {}", request.target);
    }
}

#[test]
fn a_slow_link_is_found_out() {
    let vgi = Vgi::current();
    let server = Server::start(move |request| {
        if request.path.ends_with("process") {
            std::thread::sleep(Duration::from_millis(80));
        }
        vgi.answer(&inner(request)).with("VGI-Supported-Encodings", "zstd")
    });
    let found = codings(&server, &through(&server, Compression::Auto), "slow");
    assert_eq!(found, [None, None, None, Some("zstd".to_owned())], "two exchanges measure 2 MB/s");
}

#[test]
fn a_coding_that_is_refused_after_all_is_given_up() {
    let vgi = Vgi::current();
    let server = Server::start(move |request| {
        if request.headers.contains_key("content-encoding") {
            return Answer::text(415, "text/plain", "no such coding");
        }
        vgi.answer(&inner(request)).with("VGI-Supported-Encodings", "zstd")
    });
    let found = codings(&server, &through(&server, Compression::Always), "refusing");
    let refused = server.seen().iter().filter(|request| request.headers.contains_key("content-encoding")).count();
    assert_eq!(refused, 1, "{found:?}");
    assert_eq!(found.iter().filter(|coding| coding.is_none()).count(), 4, "each chunk was taken once");
}

#[test]
fn compressed_replies_are_asked_for_and_capped() {
    let vgi = Vgi::current();
    let server = Server::start(move |request| {
        if request.path.ends_with("/bind") {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(&vec![0; 8 << 20]).unwrap();
            return Answer::arrow(200, encoder.finish().unwrap()).with("X-VGI-Content-Encoding", "gzip");
        }
        vgi.answer(&inner(request))
    });
    let options = Options { max_response_bytes: 1 << 20, ..through(&server, Compression::Auto) };
    let error = bind(&far(&options, "capped").unwrap()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
    assert!(server.seen().iter().all(|request| request.headers["x-vgi-accept-encoding"] == "zstd, gzip"));
}

#[test]
fn a_proxy_gets_whole_urls_and_its_own_credentials() {
    let vgi = Vgi::current();
    let server = Server::start(move |request| vgi.answer(&inner(request)));
    let mut options = through(&server, Compression::Off);
    options.proxy.as_mut().unwrap().username = Some("user".to_owned());
    options.proxy.as_mut().unwrap().password = Some("pass".to_owned());
    bind(&far(&options, "proxied").unwrap()).unwrap();
    for request in server.seen() {
        assert!(request.target.starts_with("http://vgi.test/base/proxied/"), "{}", request.target);
        assert_eq!(request.headers["proxy-authorization"], "Basic dXNlcjpwYXNz");
        assert!(!request.headers.contains_key("x-vgi-accept-encoding"));
    }
}

#[test]
fn a_proxy_that_refuses_is_an_error_without_its_password() {
    let server = Server::start(|_| Answer::text(407, "text/plain", "who are you"));
    let address = server.url().replace("http://", "http://user:s3cret@");
    let options = Options {
        proxy: Some(Proxy { address: address.clone(), ..Proxy::default() }),
        retries: 0,
        ..Options::default()
    };
    for url in ["http://vgi.test", "https://vgi.test"] {
        let error = attach(&Location::parse(url).unwrap(), "cat", &options, &NeverInterrupted).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("s3cret"), "{error}");
        assert!(error.to_string().contains(if url.starts_with("https") { "proxy" } else { "407" }), "{error}");
    }
    for address in ["", "::", "socks5://s3cret@h:1", "http://"] {
        let proxy = Some(Proxy { address: address.to_owned(), ..Proxy::default() });
        let options = Options { proxy, ..Options::default() };
        let error = attach(&Location::parse(FAR).unwrap(), "cat", &options, &NeverInterrupted).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidLocation, "{address}");
        assert!(error.to_string().contains("the proxy is not of the form host:port"), "{error}");
    }
}

#[test]
fn a_proxied_https_url_is_a_tunnel() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&seen);
    let server = Server::start(move |request| {
        record.lock().unwrap().push(format!("{} {}", request.method, request.target));
        Answer::Raw(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n".to_vec())
    });
    let options = Options { retries: 0, ..through(&server, Compression::Auto) };
    let location = Location::parse("https://vgi.test:8443").unwrap();
    let error = attach(&location, "cat", &options, &NeverInterrupted).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect, "{error}");
    assert_eq!(*seen.lock().unwrap(), ["CONNECT vgi.test:8443"]);
}

/// What the environment says is read once per process, so a process of its own asks.
#[test]
fn the_environment_names_a_proxy_and_exceptions() {
    let vgi = Vgi::current();
    let server = Server::start(move |request| vgi.answer(&inner(request)));
    for (no_proxy, reached) in [("other.test", true), ("vgi.test", false)] {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "far::attaches_as_the_environment_says", "--include-ignored", "--nocapture"])
            .env("VGI_TEST_PROXIED", if reached { "yes" } else { "no" })
            .env("HTTP_PROXY", server.url())
            .env("http_proxy", server.url())
            .env("NO_PROXY", no_proxy)
            .env("no_proxy", no_proxy)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert!(!server.seen().is_empty());
    }
}

#[test]
#[ignore = "started by the test above"]
fn attaches_as_the_environment_says() {
    let Ok(proxied) = std::env::var("VGI_TEST_PROXIED") else { return };
    let options = Options { retries: 0, ..Options::default() };
    let outcome = far(&options, "environment");
    if proxied == "yes" {
        outcome.unwrap();
    } else {
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Connect);
    }
    // a server on this machine is spoken to directly
    let near = Vgi::current().start();
    attached(&near, &options).unwrap();
    assert!(near.seen().iter().all(|request| request.target.starts_with('/')));
}
