//! Attaching once, attaching anew, and names that do not exist.

use std::sync::Arc;

use vgi_transport::{ErrorKind, Location, NeverInterrupted, Options, Phase, attach};

use crate::support::vgi::Vgi;
use crate::support::{attached, bind, server::Server};

#[test]
fn a_second_attach_costs_no_request_unless_the_credentials_differ() {
    let server = Vgi::current().start();
    let first = attached(&server, &Options::default()).unwrap();
    let requests = server.seen().len();
    let options = Options { max_response_bytes: 1 << 20, ..Options::default() };
    let second = attached(&server, &options).unwrap();
    assert_eq!(server.seen().len(), requests);
    assert_eq!(first.opaque_data(), second.opaque_data());
    assert_eq!((second.catalog(), second.default_schema()), ("cat", "main"));

    let options = Options { bearer_token: Some("t0ken".to_owned()), ..Options::default() };
    attached(&server, &options).unwrap();
    let new = server.seen().split_off(requests);
    assert_eq!(new.iter().map(|request| request.path.as_str()).collect::<Vec<_>>()[0], "/health");
    assert!(!new[0].headers.contains_key("authorization"), "the health document is public");
    assert!(new[1..].iter().all(|request| request.headers["authorization"] == "Bearer t0ken"));
}

#[test]
fn a_restarted_server_is_attached_anew_once() {
    let vgi = Arc::new(Vgi::current());
    let serving = Arc::clone(&vgi);
    let server = Server::start(move |request| serving.answer(request));
    let attachment = attached(&server, &Options::default()).unwrap();
    *vgi.epoch.lock().unwrap() += 1;
    let bound = bind(&attachment).unwrap();
    assert_eq!(bound.attachment.opaque_data(), "epoch 2");
    assert_eq!(server.count("catalog_attach"), 2);
    assert_eq!(server.count("bind"), 2);
    // the stale attachment finds the new session in the cache
    bind(&attachment).unwrap();
    assert_eq!(server.count("catalog_attach"), 2);
    assert_eq!(attachment.functions(None, "echo", &NeverInterrupted).unwrap().len(), 1);
}

#[test]
fn a_server_that_never_recognises_the_attachment_is_not_asked_for_ever() {
    let vgi = Arc::new(Vgi::current());
    let serving = Arc::clone(&vgi);
    let server = Server::start(move |request| {
        if request.path.ends_with("/bind") {
            *serving.epoch.lock().unwrap() += 1;
        }
        serving.answer(request)
    });
    let error = bind(&attached(&server, &Options::default()).unwrap()).unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::Remote, Phase::Bind));
    assert_eq!(server.count("bind"), 2);
}

#[test]
fn unknown_names_are_answered_with_the_known_ones() {
    let server = Vgi::current().start();
    let location = Location::parse(&server.url()).unwrap();
    let error = attach(&location, "cta", &Options::default(), &NeverInterrupted).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("catalog 'cta' does not exist; the server has 'cat'"), "{error}");

    let attachment = attached(&server, &Options::default()).unwrap();
    let lookup = |schema, name| attachment.functions(schema, name, &NeverInterrupted).unwrap_err();
    let schema = lookup(Some("mian"), "echo");
    assert_eq!((schema.kind(), schema.phase()), (ErrorKind::NotFound, Phase::Discover));
    assert!(
        schema.to_string().contains("schema 'mian' does not exist in catalog 'cat'; it has 'main', 'other'"),
        "{schema}"
    );
    let near = lookup(None, "ecko").to_string();
    assert!(near.contains("similar: 'echo'") && near.contains("lookup of 'ecko'"), "{near}");
    let elsewhere = lookup(None, "only_here").to_string();
    assert!(elsewhere.contains("there is one in schema 'other'"), "{elsewhere}");
}

#[test]
fn a_listing_is_fetched_once_but_a_new_function_is_found() {
    let server = Vgi::current().start();
    let attachment = attached(&server, &Options::default()).unwrap();
    for _ in 0..3 {
        assert_eq!(attachment.functions(Some("main"), "echo", &NeverInterrupted).unwrap()[0].schema_path, ["main"]);
    }
    assert_eq!(server.count("catalog_schema_contents_functions"), 1);
    attachment.functions(Some("main"), "nothing", &NeverInterrupted).unwrap_err();
    assert!(server.count("catalog_schema_contents_functions") > 1);
}

#[test]
fn one_attachment_serves_many_threads() {
    let server = Vgi::current().start();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| bind(&attached(&server, &Options::default()).unwrap()).unwrap());
        }
    });
    assert_eq!(server.count("bind"), 8);
}
