//! Recorded exchanges with servers that others wrote: replies decode to what was seen, requests are read as a server reads them and
//! written again with the same columns and values.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::path::Path;

use arrow_array::RecordBatch;
use bytes::Bytes;
use vgi_wire::generation::Dialect;
use vgi_wire::ipc::{self, Segments};
use vgi_wire::methods::{
    AttachReply, AttachRequest, BindReply, BindRequest, CombineReply, CombineRequest, ExecutionRef, FunctionInfo,
    FunctionType, InitRequest, Method, Phase, ProcessReply, ProcessRequest, SchemaInfo, contents_body, items,
    list_protocols_body, protocol_entries, request_body, schemas_body, turn_body,
};
use vgi_wire::reply::{LogLevel, read_init, read_turn, read_unary};
use vgi_wire::server::{decode_call, decode_turn};

fn data(name: &str) -> Bytes {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    Bytes::from(std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn ts() -> Dialect {
    Dialect::select(Some("vgi.v2"), Some("2.0.0")).unwrap()
}

/// The record inside a request, and the schemas of both.
fn request(body: Bytes) -> (RecordBatch, RecordBatch) {
    let call = decode_call(body).unwrap();
    let record = ipc::decode_batch(call.request_blob().unwrap()).unwrap();
    (call.params, record)
}

/// Our request has the columns, types and nullability of the recorded one, outside and inside.
fn same_layout(ours: Segments, recorded: Bytes) {
    let (our_outer, our_inner) = request(ours.to_bytes());
    let (outer, inner) = request(recorded);
    assert_eq!(our_outer.schema(), outer.schema());
    let fields = |batch: &RecordBatch| {
        let schema = batch.schema();
        schema
            .fields()
            .iter()
            .map(|field| (field.name().clone(), field.data_type().clone(), field.is_nullable()))
            .collect::<Vec<_>>()
    };
    assert_eq!(fields(&our_inner), fields(&inner));
}

#[test]
fn first_contact() {
    let entries = protocol_entries(&read_unary(data("ts/002-list_protocols.resp.bin")).unwrap()).unwrap();
    assert!(entries.iter().any(|entry| entry.protocol == "vgi.v2" && entry.version == "2.0.0"), "{entries:?}");
    let ours = decode_call(list_protocols_body().unwrap().to_bytes()).unwrap();
    let recorded = decode_call(data("ts/002-list_protocols.req.bin")).unwrap();
    assert_eq!(
        (ours.method, ours.protocol, ours.protocol_version, ours.params.num_columns()),
        (recorded.method, recorded.protocol, recorded.protocol_version, recorded.params.num_columns())
    );
}

#[test]
fn attach() {
    let reply = AttachReply::from_reply(&read_unary(data("ts/009-catalog_attach.resp.bin")).unwrap()).unwrap();
    assert_eq!((reply.attach_opaque_data.len(), reply.default_schema.as_str()), (73, "main"));
    let recorded = data("ts/009-catalog_attach.req.bin");
    let attach = AttachRequest::from_blob(decode_call(recorded.clone()).unwrap().request_blob().unwrap()).unwrap();
    assert_eq!(attach.name, "tsbuf");
    same_layout(request_body(&ts(), Method::CatalogAttach, attach.to_blob(&ts()).unwrap()).unwrap(), recorded);
    // a flat server of the first generation
    let reply =
        AttachReply::from_reply(&read_unary(data("rust1-legacy/001-catalog_attach.resp.bin")).unwrap()).unwrap();
    assert!(!reply.attach_opaque_data.is_empty());
}

#[test]
fn listings() {
    let reply = read_unary(data("ts/015-catalog_schemas.resp.bin")).unwrap();
    let schemas: Vec<_> =
        items(&reply).unwrap().into_iter().map(|item| SchemaInfo::from_blob(item).unwrap().path).collect();
    assert!(schemas.contains(&vec!["main".to_owned()]) && schemas.contains(&vec!["alt".to_owned()]), "{schemas:?}");
    let recorded = decode_call(data("ts/015-catalog_schemas.req.bin")).unwrap();
    let attach = recorded.record().unwrap().bytes("attach_opaque_data").unwrap();
    let ours = decode_call(schemas_body(&ts(), &attach, None).unwrap().to_bytes()).unwrap();
    assert_eq!(ours.params, recorded.params);

    let v3 = Dialect::select(Some("vgi.v3"), Some("3.0.0")).unwrap();
    let recorded = decode_call(data("rust3/017-catalog_schema_contents_functions.req.bin")).unwrap();
    let record = recorded.record().unwrap();
    let attach = record.bytes("attach_opaque_data").unwrap();
    let body =
        contents_body(&v3, Method::SchemaFunctions, &attach, &record.texts("path"), Some("TABLE_FUNCTION"), None)
            .unwrap();
    let ours = decode_call(body.to_bytes()).unwrap();
    assert_eq!(ours.params.schema(), recorded.params.schema());
    assert_eq!((ours.protocol, ours.protocol_version), (recorded.protocol, recorded.protocol_version));
    let reply = read_unary(data("rust3/017-catalog_schema_contents_functions.resp.bin")).unwrap();
    let functions: Vec<_> =
        items(&reply).unwrap().into_iter().map(|item| FunctionInfo::from_blob(item).unwrap()).collect();
    let named = |name: &str| functions.iter().find(|function| function.name == name).unwrap();
    assert!(functions.iter().all(|function| function.schema_path == ["main"]));
    assert_eq!(named("echo_all_rows").function_type, FunctionType::TableBuffering);
    assert!(named("sink_order_trace").sink_order_dependent && !named("sink_order_trace").requires_input_batch_index);
    assert!(named("batch_index_trace").requires_input_batch_index);
    let parts = named("source_order_parts");
    assert!(parts.source_order_dependent);
    let arguments: Vec<_> =
        parts.declared_arguments().into_iter().map(|argument| (argument.name, argument.named)).collect();
    assert_eq!(arguments[0], ("parts".to_owned(), false));
}

#[test]
fn bind() {
    let reply = BindReply::from_reply(&read_unary(data("ts/021-bind.resp.bin")).unwrap()).unwrap();
    let names: Vec<_> = reply.output_schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!((names, reply.opaque_data.is_some(), reply.secret_lookups.len()), (vec!["a", "b", "s"], false, 0));
    for (file, dialect) in
        [("ts/021-bind", ts()), ("rust3/023-bind", Dialect::select(Some("vgi.v3"), Some("3.0.0")).unwrap())]
    {
        let recorded = data(&format!("{file}.req.bin"));
        let bind = BindRequest::from_blob(decode_call(recorded.clone()).unwrap().request_blob().unwrap()).unwrap();
        assert_eq!(
            (bind.function_name.as_str(), bind.schema_path.as_slice()),
            ("echo_all_rows", ["main".to_owned()].as_slice())
        );
        assert_eq!(bind.arguments.num_rows(), 1);
        same_layout(request_body(&dialect, Method::Bind, bind.to_blob(&dialect).unwrap()).unwrap(), recorded);
    }
}

#[test]
fn init_of_both_sides() {
    for (file, phase) in
        [("ts/022-init-init", Phase::TableBuffering), ("ts/027-init-init", Phase::TableBufferingFinalize)]
    {
        let recorded = data(&format!("{file}.req.bin"));
        let init = InitRequest::from_blob(decode_call(recorded.clone()).unwrap().request_blob().unwrap()).unwrap();
        assert_eq!((init.phase, init.execution_id.is_some()), (phase, phase == Phase::TableBufferingFinalize));
        same_layout(request_body(&ts(), Method::Init, init.to_blob(&ts()).unwrap()).unwrap(), recorded);
    }
    let reply = read_init(data("ts/027-init-init.resp.bin")).unwrap();
    assert_eq!(reply.header.execution_id[..4], [0x1d, 0x88, 0x0a, 0xac]);
    assert_eq!((reply.header.max_workers, reply.header.opaque_data), (None, None));
    let turn = reply.turn.unwrap();
    assert_eq!(turn.batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [2]);
    assert!(
        turn.cursor.unwrap().starts_with("BTeeub7uNotrFHEtWgjT")
            && turn.call.unwrap().starts_with("AjZZK5lJigtFQACj8obq")
    );
}

#[test]
fn turns() {
    let recorded = data("ts/028-init-exchange.req.bin");
    let (tokens, cancel) = decode_turn(recorded).unwrap();
    assert!(!cancel && tokens.call.is_some());
    assert_eq!(decode_turn(turn_body(&tokens).unwrap().to_bytes()).unwrap(), (tokens, false));
    let turn = read_turn(data("ts/028-init-exchange.resp.bin")).unwrap();
    assert_eq!((turn.batches.len(), turn.cursor.is_some(), turn.error.is_none()), (1, true, true));
    let end = read_turn(data("ts/030-init-exchange.resp.bin")).unwrap();
    assert_eq!((end.batches.len(), end.cursor), (0, None));
}

#[test]
fn process_combine_destructor() {
    let recorded = data("ts/023-table_buffering_process.req.bin");
    let process = ProcessRequest::from_blob(decode_call(recorded.clone()).unwrap().request_blob().unwrap()).unwrap();
    assert_eq!(
        (process.execution.function_name.as_str(), process.batch_index, process.execution.execution_id.len()),
        ("echo_all_rows", Some(0), 16)
    );
    assert_eq!(ipc::decode_batch(process.input_batch.to_bytes()).unwrap().num_rows(), 2);
    same_layout(request_body(&ts(), Method::Process, process.into_blob(&ts()).unwrap()).unwrap(), recorded);
    let reply = read_unary(data("ts/023-table_buffering_process.resp.bin")).unwrap();
    assert_eq!(ProcessReply::from_reply(&reply).unwrap().state_id.len(), 16);

    let reply = read_unary(data("ts/082-table_buffering_process.resp.bin")).unwrap();
    assert_eq!((reply.logs[0].level, reply.logs[0].message.as_str()), (LogLevel::Info, "process 2 rows"));
    assert_eq!(ProcessReply::from_reply(&reply).unwrap().state_id[..2], [0x3f, 0xef]);

    let recorded = data("ts/026-table_buffering_combine.req.bin");
    let combine = CombineRequest::from_blob(decode_call(recorded.clone()).unwrap().request_blob().unwrap()).unwrap();
    // the same id three times, and all three are there
    assert_eq!((combine.state_ids.len(), combine.state_ids[0] == combine.state_ids[2]), (3, true));
    same_layout(request_body(&ts(), Method::Combine, combine.to_blob(&ts()).unwrap()).unwrap(), recorded);
    let reply = read_unary(data("ts/026-table_buffering_combine.resp.bin")).unwrap();
    assert_eq!(CombineReply::from_reply(&reply).unwrap().finalize_state_ids.len(), 1);

    let recorded = data("ts/031-table_buffering_destructor.req.bin");
    let destructor = ExecutionRef::from_blob(decode_call(recorded.clone()).unwrap().request_blob().unwrap()).unwrap();
    same_layout(request_body(&ts(), Method::Destructor, destructor.to_blob(&ts()).unwrap()).unwrap(), recorded);
    // an acknowledgement without a row is one
    assert!(read_unary(data("ts/031-table_buffering_destructor.resp.bin")).unwrap().logs.is_empty());
}

#[test]
fn a_first_generation_server_sends_everything_at_once() {
    let reply = read_init(data("rust1-legacy/017-init.resp.bin")).unwrap();
    let turn = reply.turn.unwrap();
    assert_eq!(reply.header.max_workers, Some(1));
    assert_eq!((turn.batches.len(), turn.logs.len(), turn.cursor), (3, 4, None));
    assert_eq!(turn.logs[3].message, "finalize after=6");

    let failed = read_init(data("rust1-legacy/044-init.resp.bin")).unwrap().turn.unwrap();
    let error = failed.error.unwrap();
    assert_eq!(failed.batches.len(), 1, "rows before the error are good");
    assert_eq!(
        (error.message.as_str(), error.exception_type.as_deref()),
        ("rustbuf: boom in finalize", Some("RuntimeError"))
    );
}
