//! Attaching once, attaching anew, and names that do not exist.

use std::sync::{Arc, Mutex};

use vgi_transport::{
    ErrorKind, Execution, InitOptions, Location, NeverInterrupted, Options, Phase, attach, drain_background,
};

use crate::support::server::{Answer, Server};
use crate::support::vgi::{self, Vgi};
use crate::support::{BACKGROUND, attached, bind, chunk, eventually};

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

/// A server that a test changes while it runs.
fn changing(vgi: Vgi) -> (Arc<Vgi>, Server) {
    let vgi = Arc::new(vgi);
    let serving = Arc::clone(&vgi);
    (vgi, Server::start(move |request| serving.answer(request)))
}

#[test]
fn a_restarted_server_is_attached_anew_once() {
    let (vgi, server) = changing(Vgi::current());
    let attachment = attached(&server, &Options::default()).unwrap();
    *vgi.epoch.lock().unwrap() += 1;
    assert!(bind(&attachment).unwrap_err().is_outdated());
    let bound = attachment.renewing(&NeverInterrupted, bind).unwrap();
    assert_eq!(bound.attachment.opaque_data(), "epoch 2");
    assert_eq!(server.count("catalog_attach"), 2);
    assert_eq!(server.count("bind"), 3);
    // the stale attachment finds the new session in the cache
    attachment.renewing(&NeverInterrupted, bind).unwrap();
    assert_eq!(server.count("catalog_attach"), 2);
    // the server was not told of the end of an attachment that it does not know
    drop((attachment, bound));
    assert!(drain_background(BACKGROUND));
    assert_eq!(server.count("catalog_detach"), 0);
}

#[test]
fn a_server_that_speaks_another_version_after_a_restart_is_spoken_to_in_that() {
    let deployed = Arc::new(Mutex::new(Arc::new(Vgi::current())));
    let serving = Arc::clone(&deployed);
    let server = Server::start(move |request| {
        let vgi = Arc::clone(&serving.lock().unwrap());
        vgi.answer(request)
    });
    let attachment = attached(&server, &Options::default()).unwrap();
    let bound = Arc::new(bind(&attachment).unwrap());
    for version in ["2.0.0", "2.2.0"] {
        *deployed.lock().unwrap() = Arc::new(Vgi::new(Some("vgi.v2"), Some(version)));
        // what was bound before is bound again
        Execution::start(Arc::clone(&bound), InitOptions::default(), &NeverInterrupted).unwrap();
        let now = attachment.renewing(&NeverInterrupted, bind).unwrap();
        assert_eq!(now.attachment.dialect().version.as_deref(), Some(version));
    }
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
    let attachment = attached(&server, &Options::default()).unwrap();
    let error = attachment.renewing(&NeverInterrupted, bind).unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::Remote, Phase::Bind));
    assert_eq!(server.count("bind"), 2);
}

#[test]
fn what_was_bound_before_a_restart_is_bound_again_when_it_is_executed() {
    let (vgi, server) = changing(Vgi::current());
    let attachment = attached(&server, &Options::default()).unwrap();
    assert_eq!(attachment.functions(None, "echo", &NeverInterrupted).unwrap().len(), 1);
    let bound = Arc::new(bind(&attachment).unwrap());
    *vgi.epoch.lock().unwrap() += 1;
    for _ in 0..3 {
        let execution = Execution::start(Arc::clone(&bound), InitOptions::default(), &NeverInterrupted).unwrap();
        let ids = execution.process(chunk(&[1, 2]), None).unwrap().wait(&NeverInterrupted).unwrap();
        assert_eq!(execution.combine(vec![ids.state_id], &NeverInterrupted).unwrap().len(), 1);
    }
    // the later executions began with the new bind
    assert_eq!((server.count("catalog_attach"), server.count("bind"), server.count("init")), (2, 2, 4));
}

#[test]
fn what_has_changed_with_the_restart_is_an_error() {
    let (vgi, server) = changing(Vgi::current());
    let attachment = attached(&server, &Options::default()).unwrap();
    attachment.functions(None, "echo", &NeverInterrupted).unwrap();
    let bound = Arc::new(bind(&attachment).unwrap());
    *vgi.epoch.lock().unwrap() += 1;
    *vgi.ordered.lock().unwrap() = true;
    let error = Execution::start(bound, InitOptions::default(), &NeverInterrupted).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Changed);
    assert!(error.to_string().contains("the function has changed at the server"), "{error}");
    assert_eq!(server.count("table_buffering_process"), 0);
}

#[test]
fn what_people_read_may_change_with_the_restart() {
    let (vgi, server) = changing(Vgi::current());
    let attachment = attached(&server, &Options::default()).unwrap();
    attachment.functions(None, "echo", &NeverInterrupted).unwrap();
    let bound = Arc::new(bind(&attachment).unwrap());
    *vgi.epoch.lock().unwrap() += 1;
    "Better.".clone_into(&mut vgi.remark.lock().unwrap());
    Execution::start(bound, InitOptions::default(), &NeverInterrupted).unwrap();
}

#[test]
fn a_catalog_that_may_change_is_asked_whether_it_has() {
    let mut vgi = Vgi::current();
    vgi.attached.catalog_version_frozen = false;
    let (vgi, server) = changing(vgi);
    let attachment = attached(&server, &Options::default()).unwrap();
    let ordered = || attachment.functions(None, "echo", &NeverInterrupted).unwrap()[0].sink_order_dependent;
    assert!(!ordered());
    let stamp = attachment.listing_stamp();
    attachment.check_version(false, &NeverInterrupted).unwrap();
    assert_eq!(attachment.listing_stamp(), stamp);
    *vgi.version.lock().unwrap() += 1;
    *vgi.ordered.lock().unwrap() = true;
    assert!(!ordered(), "nobody has asked");
    attachment.check_version(false, &NeverInterrupted).unwrap();
    assert_ne!(attachment.listing_stamp(), stamp);
    assert!(ordered());
    assert_eq!(server.count("catalog_version"), 2);
}

#[test]
fn a_catalog_that_will_not_change_is_not_asked() {
    let (vgi, server) = changing(Vgi::current());
    let attachment = attached(&server, &Options::default()).unwrap();
    attachment.check_version(false, &NeverInterrupted).unwrap();
    assert_eq!(server.count("catalog_version"), 0);
    attachment.check_version(true, &NeverInterrupted).unwrap();
    *vgi.epoch.lock().unwrap() += 1;
    assert!(attachment.check_version(true, &NeverInterrupted).unwrap_err().is_outdated());
}

#[test]
fn a_server_without_versions_is_asked_once() {
    let server = Vgi::current().start_with(|name, _| {
        (name == "catalog_version")
            .then(|| Answer::arrow(200, vgi::error_body(&vgi::error("AttributeError", "no such method"))))
    });
    let attachment = attached(&server, &Options::default()).unwrap();
    for _ in 0..3 {
        attachment.check_version(true, &NeverInterrupted).unwrap();
    }
    assert_eq!(server.count("catalog_version"), 1);
}

#[test]
fn the_last_to_leave_tells_the_server() {
    let server = Vgi::current().start();
    let (first, second) =
        (attached(&server, &Options::default()).unwrap(), attached(&server, &Options::default()).unwrap());
    first.hold();
    second.hold();
    let execution =
        Execution::start(Arc::new(bind(&first).unwrap()), InitOptions::default(), &NeverInterrupted).unwrap();
    first.leave();
    assert!(drain_background(BACKGROUND));
    assert_eq!(server.count("catalog_detach"), 0, "another one holds the attachment");
    second.leave();
    assert!(drain_background(BACKGROUND));
    assert_eq!(server.count("catalog_detach"), 0, "an execution is not destroyed yet");
    drop(execution);
    eventually("the detach", || server.count("catalog_detach") == 1);
    let calls = server.calls();
    let at = |name: &str| calls.iter().position(|call| call.contains(name)).unwrap();
    assert!(at("table_buffering_destructor") < at("catalog_detach"));
    // who comes later attaches anew
    bind(&attached(&server, &Options::default()).unwrap()).unwrap();
    assert_eq!(server.count("catalog_attach"), 2);
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
