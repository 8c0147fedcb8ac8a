//! What each generation of servers is sent, column by column (protocol file 02 §4, §5 and §9).

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema};
use bytes::Bytes;
use vgi_wire::generation::{Dialect, GENERATIONS};
use vgi_wire::ipc::{self, Segments};
use vgi_wire::methods::{
    AttachRequest, BindRequest, CombineRequest, ExecutionRef, InitRequest, Method, Phase, ProcessRequest,
    contents_body, no_parameters_body, request_body, schemas_body,
};
use vgi_wire::server::decode_call;
use vgi_wire::{WireError, arguments};

/// One kind of server.
struct Server {
    protocol: Option<&'static str>,
    version: Option<&'static str>,
    path: &'static str,
    attach: &'static [&'static str],
    bind_tail: &'static [&'static str],
    init: &'static [&'static str],
    /// The owning schema in the requests of a running execution.
    buffering_tail: &'static [&'static str],
    listing: &'static str,
    function_type: &'static str,
}

const FLAT_ATTACH: &[&str] =
    &["name: Utf8!", "options: Binary!", "data_version_spec: Utf8", "implementation_version: Utf8"];
const ROUTED_ATTACH: &[&str] = &[
    "name: Utf8!",
    "options: Binary",
    "data_version_spec: Utf8",
    "implementation_version: Utf8",
    "client_capabilities: Binary",
];
const BIND_HEAD: &[&str] = &[
    "function_name: Utf8!",
    "arguments: Binary!",
    "function_type: Dictionary(Int16, Utf8)!",
    "input_schema: Binary",
    "settings: Binary",
    "secrets: Binary",
    "attach_opaque_data: Binary",
    "transaction_opaque_data: Binary",
    "resolved_secrets_provided: Boolean!",
    "at_unit: Utf8",
    "at_value: Utf8",
];
const ROUTED_BIND_TAIL: &[&str] = &[
    r#"copy_from: Struct("format": non-null Utf8, "file_path": non-null Utf8, "expected_schema": non-null Binary)"#,
    r#"copy_to: Struct("format": non-null Utf8, "file_path": non-null Utf8)"#,
    "schema_path: List(Utf8)",
    "argument_names: List(Utf8)",
];
const FLAT_INIT: &[&str] = &[
    "bind_call: Binary!",
    "output_schema: Binary!",
    "bind_opaque_data: Binary",
    "projection_ids: List(Int64)",
    "pushdown_filters: LargeBinary",
    "join_keys: List(LargeBinary)",
    "phase: Dictionary(Int16, Utf8)",
    "execution_id: Binary",
    "init_opaque_data: Binary",
    "order_by_column_name: Utf8",
    "order_by_direction: Dictionary(Int16, Utf8)",
    "order_by_null_order: Dictionary(Int16, Utf8)",
    "order_by_limit: Int64",
    "tablesample_percentage: Float64",
    "tablesample_seed: Int64",
    "finalize_state_id: Binary",
    "substream_id: Binary",
];
const ROUTED_INIT: &[&str] = &[
    "bind_call: Binary!",
    "output_schema: Binary!",
    "bind_opaque_data: Binary",
    "projection_ids: List(Int64)",
    "pushdown_filters: LargeBinary",
    "join_keys: List(LargeBinary)",
    "split_tokens: List(LargeBinary)",
    "row_limit: Int64",
    "phase: Dictionary(Int16, Utf8)",
    "finalize_state_id: Binary",
    "execution_id: Binary",
    "init_opaque_data: Binary",
    "substream_id: Binary",
    "order_by_column_name: Utf8",
    "order_by_direction: Dictionary(Int16, Utf8)",
    "order_by_null_order: Dictionary(Int16, Utf8)",
    "order_by_limit: Int64",
    "tablesample_percentage: Float64",
    "tablesample_seed: Int64",
];
const NAME: &[&str] = &["schema_name: Utf8"];
const PATH: &[&str] = &["schema_path: List(Utf8)"];

const fn flat(
    version: Option<&'static str>,
    bind_tail: &'static [&'static str],
    buffering_tail: &'static [&'static str],
) -> Server {
    Server {
        protocol: None,
        version,
        path: "",
        attach: FLAT_ATTACH,
        bind_tail,
        init: FLAT_INIT,
        buffering_tail,
        listing: "name: Utf8!",
        function_type: "TABLE",
    }
}

const fn routed(protocol: &'static str, version: &'static str, path: &'static str) -> Server {
    Server {
        protocol: Some(protocol),
        version: Some(version),
        path,
        attach: ROUTED_ATTACH,
        bind_tail: ROUTED_BIND_TAIL,
        init: ROUTED_INIT,
        buffering_tail: PATH,
        listing: "path: List(Utf8)!",
        function_type: "TABLE_BUFFERING",
    }
}

const SERVERS: &[Server] = &[
    flat(None, &[], &[]),
    flat(Some("1.0.0"), &[], &[]),
    flat(Some("1.1.4"), NAME, &[]),
    flat(Some("1.2.0"), NAME, NAME),
    flat(Some("1.3.0"), NAME, NAME),
    routed("vgi.v2", "2.0.0", "vgi.v2/"),
    routed("vgi.v2", "2.1.0", "vgi.v2/"),
    routed("vgi.v2", "2.2.7", "vgi.v2/"),
    routed("vgi.v3", "3.0.0", "vgi.v3/"),
];

fn columns(schema: &Schema) -> Vec<String> {
    let column = |field: &Field| {
        format!("{}: {}{}", field.name(), field.data_type(), if field.is_nullable() { "" } else { "!" })
    };
    schema.fields().iter().map(|field| column(field)).collect()
}

/// The columns of the record in a request, and what else the request says.
fn inner(dialect: &Dialect, method: Method, record: Segments) -> Vec<String> {
    let call = decode_call(request_body(dialect, method, record).unwrap().to_bytes()).unwrap();
    assert_eq!(columns(call.params.schema_ref()), ["request: Binary!"]);
    assert_eq!((call.method.as_str(), call.request_version.as_deref()), (method.name(), Some("1")));
    assert_eq!((&call.protocol, &call.protocol_version), (&dialect.protocol, &dialect.version));
    columns(ipc::decode_batch(call.request_blob().unwrap()).unwrap().schema_ref())
}

fn execution() -> ExecutionRef {
    ExecutionRef {
        function_name: "f".to_owned(),
        execution_id: Bytes::from_static(b"id"),
        attach_opaque_data: None,
        transaction_id: None,
        schema_path: vec!["main".to_owned()],
    }
}

fn bind() -> BindRequest {
    BindRequest {
        function_name: "f".to_owned(),
        schema_path: vec!["main".to_owned()],
        arguments: arguments::encode_values(Vec::new(), Vec::new()).unwrap(),
        input_schema: Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)])),
        settings: None,
        secrets: None,
        attach_opaque_data: None,
        transaction_opaque_data: None,
        resolved_secrets_provided: false,
    }
}

fn init(bind_call: Bytes) -> InitRequest {
    InitRequest {
        bind_call,
        output_schema: Bytes::from_static(b"schema"),
        bind_opaque_data: None,
        projection_ids: Some(vec![1]),
        pushdown_filters: Some(Bytes::from_static(b"filters")),
        phase: Phase::TableBufferingFinalize,
        execution_id: Some(Bytes::from_static(b"id")),
        finalize_state_id: Some(Bytes::from_static(b"state")),
        init_opaque_data: None,
    }
}

#[test]
fn every_generation_has_a_row_here() {
    let versions = SERVERS.iter().filter_map(|server| server.version);
    let versions: Vec<_> = versions.map(|version| version.rsplit_once('.').unwrap().0.to_owned()).collect();
    let known: Vec<_> =
        GENERATIONS.iter().map(|generation| format!("{}.{}", generation.major, generation.minor)).collect();
    assert_eq!(versions, known);
}

#[test]
fn requests_have_the_columns_of_their_generation() {
    for server in SERVERS {
        let dialect = Dialect::select(server.protocol, server.version).unwrap();
        let attach = AttachRequest { name: "c".to_owned(), ..AttachRequest::default() };
        assert_eq!(inner(&dialect, Method::CatalogAttach, attach.to_blob(&dialect).unwrap()), server.attach);

        let bind_call = bind().to_blob(&dialect).unwrap();
        let record = ipc::decode_batch(bind_call.to_bytes()).unwrap();
        let record = vgi_wire::record::Record::first(&record).unwrap();
        assert_eq!(record.text("function_type").unwrap(), server.function_type);
        assert_eq!(inner(&dialect, Method::Bind, bind_call.clone()), [BIND_HEAD, server.bind_tail].concat());

        let init = init(bind_call.to_bytes());
        assert_eq!(inner(&dialect, Method::Init, init.to_blob(&dialect).unwrap()), server.init);
        let read = InitRequest::from_blob(init.to_blob(&dialect).unwrap().to_bytes()).unwrap();
        assert_eq!((read.pushdown_filters, read.projection_ids), (init.pushdown_filters, init.projection_ids));
        assert_eq!((read.finalize_state_id, read.execution_id), (init.finalize_state_id, init.execution_id));
    }
}

#[test]
fn requests_of_an_execution_end_with_its_schema() {
    let handles = ["attach_opaque_data: Binary", "transaction_id: Binary"];
    let with = |own: &[&'static str], last: &[&'static str], tail: &[&'static str]| {
        [&["function_name: Utf8!", "execution_id: Binary!"], own, &handles, last, tail].concat()
    };
    for server in SERVERS {
        let dialect = Dialect::select(server.protocol, server.version).unwrap();
        let tail = server.buffering_tail;
        let input_batch = Segments::from(Bytes::from_static(b"batch"));
        let process = ProcessRequest { execution: execution(), input_batch, batch_index: Some(1) };
        let process = process.into_blob(&dialect).unwrap();
        let expected = with(&["input_batch: Binary!"], &["batch_index: Int64"], tail);
        assert_eq!(inner(&dialect, Method::Process, process), expected);
        let combine = CombineRequest { execution: execution(), state_ids: vec![Bytes::from_static(b"s")] };
        let expected = with(&["state_ids: List(Binary)!"], &[], tail);
        assert_eq!(inner(&dialect, Method::Combine, combine.to_blob(&dialect).unwrap()), expected);
        let destructor = execution().to_blob(&dialect).unwrap();
        assert_eq!(inner(&dialect, Method::Destructor, destructor), with(&[], &[], tail));
    }
}

#[test]
fn listings_and_paths() {
    let attach = Bytes::from_static(b"attached");
    for server in SERVERS {
        let dialect = Dialect::select(server.protocol, server.version).unwrap();
        let outer = |body: Segments| columns(decode_call(body.to_bytes()).unwrap().params.schema_ref());
        let handle = "transaction_opaque_data: Binary";
        let functions = contents_body(
            &dialect,
            Method::SchemaFunctions,
            &attach,
            &["main".to_owned()],
            Some("TABLE_FUNCTION"),
            None,
        )
        .unwrap();
        let kind = "type: Dictionary(Int16, Utf8)!";
        assert_eq!(outer(functions), ["attach_opaque_data: Binary!", server.listing, kind, handle]);
        assert_eq!(outer(schemas_body(&dialect, &attach, None).unwrap()), ["attach_opaque_data: Binary!", handle]);
        assert!(outer(no_parameters_body(&dialect, Method::CatalogCatalogs).unwrap()).is_empty());
        assert_eq!(dialect.path(Method::Bind), format!("{}bind", server.path));
        assert_eq!(dialect.path(Method::Init), format!("{}init/init", server.path));
        assert_eq!(dialect.exchange_path(), format!("{}init/exchange", server.path));
        assert_eq!(dialect.path(Method::Process), format!("{}table_buffering_process", server.path));
    }
}

#[test]
fn what_has_no_row_is_refused_with_both_versions() {
    let refused = [
        (Some("vgi.v2"), Some("2.3.0")),
        (Some("vgi.v2"), Some("3.0.0")),
        (Some("vgi.v3"), Some("2.2.0")),
        (Some("vgi.v3"), Some("3.1.0")),
        (Some("vgi.v4"), Some("4.0.0")),
        (Some("vgi.v2"), Some("1.3.0")),
        (None, Some("1.4.0")),
        (None, Some("0.9.0")),
        (None, Some("2.0.0")),
        (None, Some("")),
        (None, Some("99999999999999999999.0.0")),
        (Some("vgi.v2"), None),
    ];
    for (protocol, version) in refused {
        let error = Dialect::select(protocol, version).unwrap_err();
        assert!(matches!(error, WireError::UnknownVersion { .. }));
        let message = error.to_string();
        assert!(message.contains(version.unwrap_or("undeclared")), "{message}");
        assert!(message.contains("1.0, 1.1, 1.2, 1.3, 2.0, 2.1, 2.2, 3.0"), "{message}");
        assert!(message.contains(protocol.unwrap_or("vgi")), "{message}");
    }
}
