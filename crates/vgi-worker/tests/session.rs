//! What a client's session gives besides rows: settings, secrets and attach options, from their declaration to the function.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::{DataType, Field};
use support::{Call, Client, batch_of, int, remote, rows_only, run, start, text};
use vgi_wire::ipc;
use vgi_wire::methods::{
    CatalogInfo, FunctionInfo, InitRequest, Method, SecretLookup, contents_body, items, no_parameters_body,
};
use vgi_worker::Options;

fn secret() -> RecordBatch {
    let members = [("type", text("vgi_example")), ("token", text("s3same")), ("port", int(8080))];
    let members = members.map(|(name, value)| (Arc::new(Field::new(name, value.data_type().clone(), true)), value));
    batch_of(vec![("mine", Arc::new(StructArray::from(members.to_vec())) as ArrayRef)])
}

fn values(output: &[RecordBatch]) -> Vec<Option<String>> {
    let values = |batch: &RecordBatch| {
        batch.column(1).as_string::<i32>().iter().map(|value| value.map(str::to_owned)).collect::<Vec<_>>()
    };
    output.iter().flat_map(values).collect()
}

fn expected(values: [Option<&str>; 5]) -> Vec<Option<String>> {
    values.map(|value| value.map(str::to_owned)).to_vec()
}

#[test]
fn what_is_declared_is_listed() {
    let server = start(Options::default());
    let client = Client::new(&server);
    let body = no_parameters_body(&client.dialect, Method::CatalogCatalogs).unwrap();
    let reply = client.unary(Method::CatalogCatalogs, body).unwrap();
    let catalog = CatalogInfo::from_blob(items(&reply).unwrap().remove(0)).unwrap();
    assert_eq!(catalog.attach_options[0].name, "label");
    assert_eq!(catalog.attach_options[0].default.as_ref().unwrap().as_string::<i32>().value(0), "none");
    let attached = client.attach("example").unwrap();
    assert_eq!(attached.settings[0].name, "vgi_example_greeting");
    assert_eq!(attached.secret_types[0].name, "vgi_example");
    assert_eq!(attached.secret_types[0].parameters.field(0).name(), "token");
    let attach = &attached.attach_opaque_data;
    let path = ["main".to_owned()];
    let body = contents_body(&client.dialect, Method::SchemaFunctions, attach, &path, Some("TABLE_FUNCTION"), None);
    let reply = client.unary(Method::SchemaFunctions, body.unwrap()).unwrap();
    let functions = items(&reply).unwrap().into_iter().map(|blob| FunctionInfo::from_blob(blob).unwrap());
    let function = functions.into_iter().find(|function| function.name == "session_values").unwrap();
    assert_eq!(function.required_settings, ["vgi_example_greeting"]);
    assert_eq!(function.required_secrets[0].secret_type, "vgi_example");
    assert_eq!(function.max_workers, Some(2));
}

#[test]
fn a_function_sees_what_the_client_gives() {
    let server = start(Options::default());
    let client = Client::new(&server);
    let nothing = run(&client, &Call::new("session_values"), &[rows_only(1)]).unwrap();
    assert_eq!(values(&nothing), expected([None, Some("none"), None, None, None]));
    let options = batch_of(vec![("label", text("blue"))]);
    let call = Call {
        settings: Some(batch_of(vec![("vgi_example_greeting", text("good day"))])),
        secrets: Some(secret()),
        attachment: Some(client.attach_with("example", Some(options)).unwrap().attach_opaque_data),
        ..Call::new("session_values")
    };
    let all = run(&client, &call, &[rows_only(1)]).unwrap();
    assert_eq!(values(&all), expected([Some("good day"), Some("blue"), Some("s3same"), Some("8080"), None]));
}

#[test]
fn the_header_of_init_has_the_number_of_workers_that_is_declared() {
    let server = start(Options::default());
    let client = Client::new(&server);
    let input = rows_only(1);
    for (function, workers) in [("session_values", 2), ("buffer_input", 99_999)] {
        let execution = client.begin(&Call::new(function), &input.schema()).unwrap();
        let streams = execution.combine(vec![execution.process(&input, None).unwrap().0]).unwrap().0;
        let secondary = InitRequest { execution_id: Some(execution.id.clone()), ..execution.init.clone() };
        for request in [&execution.init, &secondary, &execution.stream_request(&streams[0])] {
            let body = client.body(Method::Init, request.to_blob(&client.dialect).unwrap());
            let reply = client.post(&client.dialect.path(Method::Init), body).body;
            // the header is the first of the two streams
            let header = ipc::decode_first_stream(reply).unwrap().batches.pop().unwrap().batch;
            assert_eq!(header.schema().field_with_name("max_workers").unwrap().data_type(), &DataType::Int64);
            assert!(!header.schema().field_with_name("max_workers").unwrap().is_nullable());
            let told = header.column_by_name("max_workers").unwrap().as_primitive::<Int64Type>().value(0);
            assert_eq!(told, workers, "{function}");
        }
        let unbounded = (workers != 99_999).then_some(workers);
        assert_eq!(client.open(&execution.init).unwrap().header.max_workers, unbounded);
        execution.destroy();
    }
}

#[test]
fn a_function_asks_for_a_secret_once() {
    let server = start(Options::default());
    let client = Client::new(&server);
    let call = Call::new("session_lookup").named("secret", text("mine"));
    let (_, reply, logs) = client.bind(&call, &rows_only(1).schema()).unwrap();
    let wanted = SecretLookup { secret_type: "vgi_example".to_owned(), scope: String::new(), name: "mine".to_owned() };
    assert_eq!((reply.secret_lookups, reply.output_schema.fields().len()), (vec![wanted], 0));
    assert_eq!(logs[0].message, "asking for a secret");
    let found = Call { secrets: Some(secret()), secrets_resolved: true, ..call.clone() };
    let rows = values(&run(&client, &found, &[rows_only(1)]).unwrap());
    assert_eq!(rows[2..4], [Some("s3same".to_owned()), Some("8080".to_owned())]);
    // one that does not answer the question cannot begin
    let error = remote(client.begin(&call, &rows_only(1).schema()).map(drop));
    let asked = "session_lookup asked for secrets when it was bound: the client must look for them and bind again";
    assert_eq!(error.message, asked);
    // a client that has none says so, and the function decides
    let missing = Call { secrets_resolved: true, ..call };
    assert_eq!(values(&run(&client, &missing, &[rows_only(1)]).unwrap())[2], None);
}

#[test]
fn options_that_are_not_declared_and_foreign_attachments_are_refused() {
    let server = start(Options::default());
    let client = Client::new(&server);
    let attach = |options| client.attach_with("example", Some(options)).map(drop);
    let error = remote(attach(batch_of(vec![("colour", text("blue"))])));
    assert_eq!(error.message, "there is no attach option 'colour' (there is: label)");
    let error = remote(attach(batch_of(vec![("label", int(1))])));
    assert_eq!(error.message, "the attach option 'label' must be VARCHAR, but is BIGINT");
    let call = |attachment: &'static [u8]| Call { attachment: Some(attachment.into()), ..Call::new("session_values") };
    for attachment in [&b"something else"[..], b"vgi-worker catalog examples\0"] {
        let error = remote(client.bind(&call(attachment), &rows_only(1).schema()).map(drop));
        assert!(error.message.contains("was not made by this worker for this client"), "{}", error.message);
    }
    // one whose options are damaged fails too, whatever it says
    assert!(client.bind(&call(b"vgi-worker catalog example\0garbage"), &rows_only(1).schema()).is_err());
}
