//! What a catalog has: at once where the server can, schema by schema elsewhere.

use vgi_transport::{FunctionKind, NeverInterrupted, Options};

use crate::support::attached;
use crate::support::server::Answer;
use crate::support::vgi::{self, Vgi};

fn main() -> Vec<String> {
    vec!["main".to_owned()]
}

fn at_once() -> Vgi {
    let mut vgi = Vgi::current();
    vgi.attached.supports_catalog_contents = true;
    vgi
}

#[test]
fn everything_comes_at_once_and_is_kept() {
    let server = at_once().start();
    let attachment = attached(&server, &Options::default()).unwrap();
    let requests = server.seen().len();
    for _ in 0..2 {
        assert_eq!(attachment.schemas(&NeverInterrupted).unwrap().len(), 2);
        assert_eq!(attachment.functions(Some("other"), "only_here", &NeverInterrupted).unwrap().len(), 1);
        let listed = |kind| attachment.list_functions(&main(), kind, &NeverInterrupted).unwrap().functions.len();
        assert_eq!(FunctionKind::ALL.map(listed), [2, 0, 0]);
        assert!(attachment.list_views(&main(), &NeverInterrupted).unwrap().is_empty());
        assert!(attachment.list_macros(&main(), &NeverInterrupted).unwrap().is_empty());
        assert!(attachment.list_tables(&main(), &NeverInterrupted).unwrap().is_empty());
        assert!(attachment.list_indexes(&main(), &NeverInterrupted).unwrap().is_empty());
    }
    assert_eq!(server.seen().len(), requests + 1);
    let error = attachment.functions(Some("mian"), "echo", &NeverInterrupted).unwrap_err().to_string();
    assert!(error.contains("schema 'mian' does not exist in catalog 'cat'; it has 'main', 'other'"), "{error}");
}

#[test]
fn what_was_forgotten_is_fetched_again_only_when_it_has_changed() {
    let vgi = std::sync::Arc::new(at_once());
    let serving = std::sync::Arc::clone(&vgi);
    let server = crate::support::server::Server::start(move |request| serving.answer(request));
    let attachment = attached(&server, &Options::default()).unwrap();
    let ordered = || attachment.functions(None, "echo", &NeverInterrupted).unwrap()[0].sink_order_dependent;
    attachment.schemas(&NeverInterrupted).unwrap();
    // the server would say so if it were asked for more than whether something has changed
    *vgi.ordered.lock().unwrap() = true;
    attachment.forget_listings();
    attachment.schemas(&NeverInterrupted).unwrap();
    assert!(!ordered());
    *vgi.version.lock().unwrap() += 1;
    attachment.forget_listings();
    attachment.schemas(&NeverInterrupted).unwrap();
    assert!(ordered());
    assert_eq!(server.count("catalog_contents"), 3);
}

#[test]
fn a_server_that_fails_at_it_is_listed_schema_by_schema() {
    let broken: [fn() -> Answer; 3] = [
        || Answer::arrow(200, vgi::error_body(&vgi::error("RuntimeError", "no"))).with("X-VGI-RPC-Error", "true"),
        || Answer::arrow(200, b"not Arrow".to_vec()),
        || Answer::text(404, "text/plain", "Not Found"),
    ];
    for answer in broken {
        let server = at_once().start_with(move |name, _| (name == "catalog_contents").then(answer));
        let attachment = attached(&server, &Options::default()).unwrap();
        for _ in 0..2 {
            assert_eq!(attachment.schemas(&NeverInterrupted).unwrap().len(), 2);
            assert_eq!(attachment.functions(None, "echo", &NeverInterrupted).unwrap().len(), 1);
        }
        assert_eq!(server.count("catalog_contents"), 1);
        assert_eq!(server.count("catalog_schema_contents_functions"), 1);
    }
}

#[test]
fn a_server_that_has_lost_the_attachment_is_not_taken_for_one_that_cannot() {
    let vgi = std::sync::Arc::new(at_once());
    let serving = std::sync::Arc::clone(&vgi);
    let server = crate::support::server::Server::start(move |request| serving.answer(request));
    let attachment = attached(&server, &Options::default()).unwrap();
    *vgi.epoch.lock().unwrap() += 1;
    assert!(attachment.schemas(&NeverInterrupted).unwrap_err().is_outdated());
    let schemas = attachment.renewing(&NeverInterrupted, |attachment| attachment.schemas(&NeverInterrupted));
    assert_eq!(schemas.unwrap().len(), 2);
    assert_eq!(server.count("catalog_contents"), 3);
}
