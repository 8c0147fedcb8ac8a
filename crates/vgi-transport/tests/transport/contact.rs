//! First contact: which servers are recognised, and what is said of the others.

use vgi_transport::{ErrorKind, Options, Phase};
use vgi_wire::meta;

use crate::support::server::{Answer, Server};
use crate::support::vgi::{Vgi, error, error_body};
use crate::support::{attached, bind};

#[test]
fn a_flat_server_without_version_is_spoken_to_in_the_oldest_layout() {
    let server = Vgi::new(None, None).start();
    let attachment = attached(&server, &Options::default()).unwrap();
    assert_eq!((attachment.dialect().generation.major, attachment.dialect().generation.minor), (1, 0));
    bind(&attachment).unwrap();
    assert!(server.seen().iter().any(|request| request.path == "/bind"));
}

#[test]
fn a_flat_server_declares_its_version_in_its_introspection() {
    let server = Vgi::new(None, Some("1.3.0")).start_with(|name, _| {
        (name == "__describe__").then(|| {
            let batch = crate::support::batch(&[1]);
            let body = vgi_wire::ipc::encode_stream(&batch, &[(meta::PROTOCOL_VERSION, "1.3.0")]).unwrap();
            Answer::arrow(200, body.to_bytes().to_vec())
        })
    });
    let attachment = attached(&server, &Options::default()).unwrap();
    assert_eq!(attachment.dialect().version.as_deref(), Some("1.3.0"));
}

#[test]
fn without_introspection_the_refusal_tells_the_version() {
    let server = Vgi::new(Some("vgi.v2"), Some("2.0.1"))
        .start_with(|name, _| (name == "list_protocols").then(|| Answer::text(404, "text/plain", "Not Found")));
    let attachment = attached(&server, &Options::default()).unwrap();
    assert_eq!(attachment.dialect().version.as_deref(), Some("2.0.1"));
    assert_eq!(server.count("catalog_attach"), 2);
}

#[test]
fn a_bare_origin_is_also_tried_under_the_usual_prefix() {
    let vgi = Vgi::current();
    let server = Server::start(move |request| match request.path.strip_prefix("/vgi") {
        Some(path) if path.starts_with('/') => {
            vgi.answer(&crate::support::server::Request { path: path.to_owned(), ..request.clone() })
        }
        _ => Answer::text(404, "text/plain", "Not Found"),
    });
    let attachment = attached(&server, &Options::default()).unwrap();
    bind(&attachment).unwrap();
    assert!(server.seen().iter().any(|request| request.path == "/vgi/vgi.v2/bind"));
    assert_eq!(attachment.location().as_str(), server.url(), "as it was given");
}

#[test]
fn another_web_server_is_named_as_such() {
    let html = "<html>hello</html>";
    for (status, body) in [(200, html), (404, html), (200, r#"{"status":"ok"}"#), (200, "[1]"), (404, "")] {
        let server = Server::start(move |_| Answer::text(status, "text/html", body));
        let error = attached(&server, &Options::default()).unwrap_err();
        assert_eq!((error.kind(), error.phase()), (ErrorKind::NotVgi, Phase::Connect), "{error}");
        assert!(error.to_string().contains("not a VGI server"), "{error}");
        assert!(server.seen().len() <= 4);
    }
}

#[test]
fn a_wrong_path_of_a_vgi_server_is_named_as_such() {
    let refusal = vgi_wire::RemoteError {
        kind: Some("protocol_not_supported".to_owned()),
        ..error("ProtocolNotSupportedError", "no")
    };
    let server = Server::start(move |request| {
        if request.method == "GET" {
            Answer::text(404, "text/plain", "")
        } else {
            Answer::arrow(404, error_body(&refusal))
        }
    });
    let error = attached(&server, &Options::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotVgi);
    assert!(error.to_string().contains("not under this path"), "{error}");
}

#[test]
fn an_unknown_version_is_refused_with_both() {
    let health = r#"{"status":"ok","protocol":"vgi.v9"}"#;
    let server = Server::start(move |request| {
        if request.path == "/health" {
            Answer::text(200, "application/json", health)
        } else {
            Answer::text(404, "text/plain", "")
        }
    });
    let error = attached(&server, &Options::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Version);
    assert!(error.to_string().contains("vgi.v9") && error.to_string().contains("2.2"), "{error}");
}

#[test]
fn a_name_of_a_protocol_cannot_change_the_path() {
    let health = r#"{"status":"ok","protocol":"vgi.v2/../../admin"}"#;
    let server = Server::start(move |_| Answer::text(200, "application/json", health));
    assert_eq!(attached(&server, &Options::default()).unwrap_err().kind(), ErrorKind::Protocol);
    assert_eq!(server.seen().len(), 1);
}

#[test]
fn capabilities_come_from_the_headers_and_limit_requests() {
    let vgi = Vgi::current();
    let server = Server::start(move |request| {
        vgi.answer(request).with("VGI-Max-Request-Bytes", "20000").with("VGI-Supported-Encodings", "zstd")
    });
    let execution = crate::support::started(&server, &Options::default());
    let values: Vec<i64> = (0..10_000).collect();
    let error = execution.process(crate::support::chunk(&values), None).unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::Limit, Phase::Process));
    assert!(error.to_string().contains("the server allows 20000"), "{error}");
    assert_eq!(server.count("table_buffering_process"), 0);
    let capabilities = attached(&server, &Options::default()).unwrap().capabilities();
    assert_eq!(capabilities.supported_encodings, Some(vec!["zstd".to_owned()]));
}
