//! TLS: whom the client trusts, and HTTP/2.

use std::sync::Arc;

use vgi_transport::{
    Error, ErrorKind, Execution, InitOptions, Location, NeverInterrupted, Options, attach, drain_background,
};

use crate::support::tls::{Front, file};
use crate::support::vgi::Vgi;
use crate::support::{BACKGROUND, bind, chunk};

fn trusting() -> Options {
    Options { ca_cert_file: Some(file("authority.pem")), ..Options::default() }
}

fn call(url: &str, options: &Options) -> Result<usize, Error> {
    let attachment = attach(&Location::parse(url).unwrap(), "cat", options, &NeverInterrupted)?;
    let execution = Execution::start(Arc::new(bind(&attachment)?), InitOptions::default(), &NeverInterrupted)?;
    let values = vec![7; 300_000];
    let pending: Vec<_> = (0..4).map(|_| execution.process(chunk(&values), None).unwrap()).collect();
    let states = pending.into_iter().map(|pending| Ok(pending.wait(&NeverInterrupted)?.state_id));
    let mut rows = 0;
    for id in execution.combine(states.collect::<Result<_, Error>>()?, &NeverInterrupted)? {
        let mut stream = execution.open_stream(id)?;
        while let Some(batch) = stream.next(&NeverInterrupted)? {
            rows += batch.num_rows();
        }
    }
    drop(execution);
    assert!(drain_background(BACKGROUND));
    Ok(rows)
}

#[test]
fn an_unknown_authority_is_refused_at_once_and_a_named_one_trusted() {
    let server = Vgi::current().start();
    let front = Front::before(&server.url());
    let error = call(&front.url(), &Options::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect, "{error}");
    assert!(error.to_string().to_lowercase().contains("certificate"), "{error}");
    assert!(!error.to_string().contains("attempts"), "another attempt changes nothing: {error}");
    assert!(server.seen().is_empty());
    assert_eq!(call(&front.url(), &trusting()).unwrap(), 1_200_000);
    assert!(front.agreed().iter().all(|protocol| protocol == "http/1.1"), "{:?}", front.agreed());
}

#[test]
fn a_certificate_for_another_host_is_refused() {
    let server = Vgi::current().start();
    let front = Front::before(&server.url());
    let error = call(&front.wrong_url(), &trusting()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connect, "{error}");
    assert!(error.to_string().contains("not valid for name"), "{error}");
}

#[test]
fn only_the_explicit_option_switches_the_check_off_and_for_its_user_alone() {
    let server = Vgi::current().start();
    let front = Front::before(&server.url());
    for url in [front.url(), front.wrong_url()] {
        let trusting_all = Options { tls_verify: false, ..Options::default() };
        assert_eq!(call(&url, &trusting_all).unwrap(), 1_200_000);
        // neither its session nor its connections are another's
        assert_eq!(call(&url, &Options::default()).unwrap_err().kind(), ErrorKind::Connect);
    }
}

#[test]
fn a_file_without_certificates_is_named() {
    let server = Vgi::current().start();
    let front = Front::before(&server.url());
    for (name, why) in [("missing.pem", "No such file"), ("server.key", "there is none"), ("make.sh", "there is none")]
    {
        let options = Options { ca_cert_file: Some(file(name)), ..Options::default() };
        let error = call(&front.url(), &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidLocation, "{error}");
        assert!(error.to_string().contains(name) && error.to_string().contains(why), "{error}");
    }
}

#[test]
fn http2_is_spoken_when_it_is_asked_for() {
    let vgi = Vgi::current();
    let front = Front::of_http2(move |request| vgi.answer(request));
    let options = Options { http2: true, ..trusting() };
    assert_eq!(call(&front.url(), &options).unwrap(), 1_200_000);
    assert!(front.agreed().iter().all(|protocol| protocol == "h2"), "{:?}", front.agreed());
    // a server without it is spoken to as ever
    let server = Vgi::current().start();
    let old = Front::before(&server.url());
    assert_eq!(call(&old.url(), &options).unwrap(), 1_200_000);
    assert!(old.agreed().iter().all(|protocol| protocol == "http/1.1"), "{:?}", old.agreed());
}
