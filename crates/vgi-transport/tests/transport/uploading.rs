//! Requests that are larger than the server takes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use arrow_array::{ArrayRef, RecordBatch, StringArray};
use vgi_transport::{Error, ErrorKind, NeverInterrupted, Options, Phase, drain_background};
use vgi_wire::{ipc, meta};

use crate::support::server::{Answer, Request, Server};
use crate::support::vgi::Vgi;
use crate::support::{chunk, started};

/// A server that takes 20000 bytes directly; `put` answers uploads.
fn storing(max_upload: &'static str, put: impl Fn(&Request) -> u16 + Send + Sync + 'static) -> Server {
    let vgi = Vgi::current();
    let stored: Mutex<HashMap<String, Vec<u8>>> = Mutex::default();
    let base = Arc::new(OnceLock::<String>::new());
    let url = Arc::clone(&base);
    let server = Server::start(move |request| {
        let url = url.get().cloned().unwrap_or_default();
        if request.path == "/__upload_url__/init" {
            return Answer::arrow(
                200,
                places(&format!("{url}/put?signature=s3cret"), &format!("{url}/get?signature=s3cret")),
            );
        }
        if request.method == "PUT" {
            let status = put(request);
            stored.lock().unwrap().insert("/get?signature=s3cret".to_owned(), request.body.clone());
            return Answer::text(status, "text/plain", "");
        }
        let request = resolved(request, &url, &stored.lock().unwrap());
        vgi.answer(&request)
            .with("VGI-Max-Request-Bytes", "20000")
            .with("VGI-Upload-URL-Support", "true")
            .with("VGI-Max-Upload-Bytes", max_upload)
    });
    base.set(server.url()).unwrap();
    server
}

fn places(upload: &str, download: &str) -> Vec<u8> {
    let column = |text: &str| Arc::new(StringArray::from(vec![text.to_owned()])) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("upload_url", column(upload)), ("download_url", column(download))]);
    ipc::encode_stream(&batch.unwrap(), &[]).unwrap().to_bytes().to_vec()
}

/// The request with what its pointer points to; its routing must be the same.
fn resolved(request: &Request, url: &str, stored: &HashMap<String, Vec<u8>>) -> Request {
    let Ok(stream) = ipc::decode_stream(request.body.clone().into()) else { return request.clone() };
    let Some(location) = stream.batches[0].get(meta::LOCATION) else { return request.clone() };
    assert_eq!(stream.batches[0].batch.num_rows(), 0);
    let body = stored[location.strip_prefix(url).unwrap()].clone();
    let whole = ipc::decode_stream(body.clone().into()).unwrap();
    assert_eq!(stream.schema, whole.schema);
    assert_eq!(stream.batches[0].get(meta::METHOD), whole.batches[0].get(meta::METHOD));
    assert_eq!(stream.batches[0].get(meta::PROTOCOL_VERSION), whole.batches[0].get(meta::PROTOCOL_VERSION));
    Request { body, ..request.clone() }
}

fn send(server: &Server, values: &[i64]) -> Result<(), Error> {
    let options = Options { bearer_token: Some("t0ken".to_owned()), retries: 0, ..Options::default() };
    let execution = started(server, &options);
    let state = execution.process(chunk(values), None).and_then(|pending| pending.wait(&NeverInterrupted));
    let outcome = state.and_then(|state| execution.combine(vec![state.state_id], &NeverInterrupted).map(drop));
    drop(execution);
    assert!(drain_background(Duration::from_secs(10)));
    outcome
}

#[test]
fn a_large_request_is_uploaded_without_the_calls_credentials() {
    let server = storing("1000000", |_| 200);
    send(&server, &vec![7; 10_000]).unwrap();
    let seen = server.seen();
    let put = seen.iter().find(|request| request.method == "PUT").unwrap();
    assert!(put.body.len() > 80_000);
    assert!(!put.headers.contains_key("authorization"));
    let process = seen.iter().find(|request| request.path.ends_with("process")).unwrap();
    assert!(process.body.len() < 20000);
    assert!(process.headers.contains_key("authorization"));
    assert_eq!(server.count("table_buffering_process"), 1);
}

#[test]
fn a_small_request_goes_directly() {
    let server = storing("1000000", |_| 200);
    send(&server, &[1]).unwrap();
    assert!(server.seen().iter().all(|request| request.method != "PUT" && !request.path.starts_with("/__upload")));
}

#[test]
fn what_is_too_large_even_for_an_upload_says_so() {
    let server = storing("30000", |_| 200);
    let error = send(&server, &vec![7; 10_000]).unwrap_err();
    assert_eq!((error.kind(), error.phase()), (ErrorKind::Limit, Phase::Process), "{error}");
    assert!(error.to_string().ends_with("the server allows 30000 even for uploads"), "{error}");
}

#[test]
fn a_failed_upload_is_an_error_that_hides_the_signature() {
    let server = storing("1000000", |_| 403);
    let error = send(&server, &vec![7; 10_000]).unwrap_err();
    assert_eq!((error.kind(), error.status(), error.phase()), (ErrorKind::Http, Some(403), Phase::Process), "{error}");
    assert!(error.to_string().contains("cannot be uploaded to http://127.0.0.1/put: HTTP 403"), "{error}");
    assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
    assert_eq!(server.count("table_buffering_process"), 0);
    assert_eq!(server.count("table_buffering_destructor"), 1);
}
