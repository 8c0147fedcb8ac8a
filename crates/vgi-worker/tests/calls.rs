//! Whole calls over HTTP.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use arrow_array::builder::{Int32Builder, ListBuilder, MapBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int64Type};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Decimal128Array, DictionaryArray, FixedSizeBinaryArray, Float64Array,
    Int64Array, IntervalMonthDayNanoArray, NullArray, RecordBatch, StringArray, StringViewArray, StructArray,
    Time64MicrosecondArray, TimestampMicrosecondArray,
};
use arrow_buffer::IntervalMonthDayNano;
use arrow_schema::{DataType, Field};
use support::{Call, Client, batch_of, int, remote, rows_only, run, start, text};
use vgi_wire::methods::{
    CatalogContents, FunctionInfo, FunctionType, Method, SchemaInfo, catalog_contents_body, contents_body, items,
    list_protocols_body, protocol_entries, schemas_body,
};
use vgi_worker::Options;

/// A batch with every kind of layout: fixed, variable, bits, dictionary, nested, views, and nulls in all of them.
fn all_layouts(words: Vec<Option<&str>>) -> RecordBatch {
    let rows = words.len();
    let mut lists = ListBuilder::new(Int32Builder::new());
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for row in 0..rows {
        lists.values().append_value(i32::try_from(row).unwrap());
        lists.values().append_null();
        lists.append(row % 2 == 0);
        maps.keys().append_value("key");
        maps.values().append_value(1);
        maps.append(row % 3 != 0).unwrap();
    }
    let dictionary: DictionaryArray<Int16Type> = words.iter().copied().collect();
    let doubles: Float64Array = (0..rows).map(|row| (row != 1).then_some(0.5)).collect();
    let inner = Arc::new(Field::new("inner", DataType::Float64, true));
    let structs = StructArray::new(vec![inner].into(), vec![Arc::new(doubles) as ArrayRef], None);
    let bools: BooleanArray = (0..rows).map(|row| (row != 2).then_some(row == 0)).collect();
    let decimals: Decimal128Array = (0..rows).map(|row| (row != 0).then_some(-12345)).collect();
    batch_of(vec![
        ("bool", Arc::new(bools) as ArrayRef),
        ("text", Arc::new(StringArray::from(words.clone()))),
        ("view", Arc::new(StringViewArray::from(words.clone()))),
        ("blob", Arc::new(words.iter().map(|word| word.map(str::as_bytes)).collect::<BinaryArray>())),
        ("enum", Arc::new(dictionary)),
        ("decimal", Arc::new(decimals.with_precision_and_scale(38, 3).unwrap())),
        ("uuid", Arc::new(FixedSizeBinaryArray::try_from_iter((0..rows).map(|_| [7_u8; 16])).unwrap())),
        ("time", Arc::new(Time64MicrosecondArray::from(vec![86_399_999_999; rows]))),
        ("zoned", Arc::new(TimestampMicrosecondArray::from(vec![-1; rows]).with_timezone("Europe/Paris"))),
        ("interval", Arc::new(IntervalMonthDayNanoArray::from(vec![IntervalMonthDayNano::new(1, -2, 3); rows]))),
        ("list", Arc::new(lists.finish())),
        ("map", Arc::new(maps.finish())),
        ("struct", Arc::new(structs)),
        ("null", Arc::new(NullArray::new(rows))),
    ])
}

#[test]
fn rows_of_every_layout_come_back_unchanged() {
    let server = start(Options::default());
    let client = Client::new(&server);
    let whole =
        all_layouts(vec![Some("naïve"), None, Some(""), Some("a much longer text than fits a view"), Some("b")]);
    // the third batch is sliced and has no row in common with a byte boundary
    let input = [all_layouts(vec![Some("x"), Some("y")]), whole.clone(), whole.slice(1, 3)];
    let output = run(&client, &Call::new("buffer_input"), &input).unwrap();
    assert_eq!(output, input);

    let stats = server.stats();
    assert_eq!((stats.process_calls, stats.combine_calls, stats.destructor_calls, stats.errors), (3, 1, 1, 0));
    assert_eq!((stats.batches_in, stats.rows_in, stats.batches_out, stats.rows_out), (3, 10, 3, 10));
    assert_eq!(stats.live_executions, 0);
}

#[test]
fn rows_without_columns_are_counted() {
    let server = start(Options::default());
    let output = run(&Client::new(&server), &Call::new("buffer_input"), &[rows_only(5), rows_only(2)]).unwrap();
    // the client half drops only batches without rows
    assert_eq!(output.iter().map(RecordBatch::num_rows).collect::<Vec<_>>(), [5, 2]);
}

#[test]
fn an_empty_input_is_combined_too() {
    let server = start(Options::default());
    let client = Client::new(&server);
    let schema = batch_of(vec![("n", int(1))]).schema();
    let execution = client.begin(&Call::new("sum_all_columns"), &schema).unwrap();
    let (streams, _) = execution.combine(Vec::new()).unwrap();
    let turns = execution.drain(&streams[0]).unwrap();
    assert_eq!(turns[0].batches[0].column(0).as_primitive::<Int64Type>().value(0), 0);
}

#[test]
fn many_threads_feed_one_execution() {
    let server = start(Options::default());
    let client = Client::new(&server);
    let batch =
        |start: i64| batch_of(vec![("n", Arc::new(Int64Array::from_iter_values(start..start + 100)) as ArrayRef)]);
    let execution = client.begin(&Call::new("sum_all_columns"), &batch(0).schema()).unwrap();
    let feed = |thread: i64| {
        (0..25).map(|i| execution.process(&batch((thread * 25 + i) * 100), None).unwrap().0).collect::<Vec<_>>()
    };
    let ids: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || feed(thread))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 200);
    let (streams, _) = execution.combine(ids).unwrap();
    let turns = execution.drain(&streams[0]).unwrap();
    assert_eq!(turns[0].batches[0].column(0).as_primitive::<Int64Type>().value(0), 20_000 * 19_999 / 2);
}

#[test]
fn streams_are_independent_and_may_be_read_again() {
    let server = start(Options::default());
    let client = Client::new(&server);
    let schema = batch_of(vec![("n", int(1))]).schema();
    let call = Call::new("emit_parts").positional(int(3)).positional(int(4)).named("ticks", int(4));
    let execution = client.begin(&call, &schema).unwrap();
    let (streams, _) = execution.combine(Vec::new()).unwrap();
    let numbers = |stream: &bytes::Bytes| {
        let turns = execution.drain(stream).unwrap();
        assert_eq!(turns.len(), 4);
        turns
            .iter()
            .flat_map(|turn| turn.batches[0].column(1).as_primitive::<Int64Type>().values().to_vec())
            .collect::<Vec<_>>()
    };
    assert_eq!(streams.len(), 3);
    for stream in &streams {
        assert_eq!(numbers(stream), [0, 1, 2, 3]);
    }
    assert_eq!(numbers(&streams[1]), [0, 1, 2, 3]);
}

#[test]
fn only_the_wanted_columns_are_sent() {
    let server = start(Options::default());
    let client = Client::new(&server);
    let input = batch_of(vec![
        ("x", Arc::new(Float64Array::from(vec![1.0, 9.0])) as ArrayRef),
        ("name", Arc::new(StringArray::from(vec!["a", "b"]))),
    ]);
    let call = Call { projection: Some(vec![2, 1]), ..Call::new("kmeans").positional(int(2)) };
    let output = run(&client, &call, &[input.clone(), input.clone()]).unwrap();
    assert_eq!(output.len(), 2);
    assert_eq!(
        output[1].schema().fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>(),
        ["cluster", "name"]
    );
    assert_eq!(output[1].column(0).as_primitive::<Int64Type>().values(), &[0, 1]);
    // a function that does not honour projections sends everything
    let call = Call { projection: Some(vec![1]), ..Call::new("emit_parts").positional(int(1)).positional(int(1)) };
    let output = run(&client, &call, &[input]).unwrap();
    assert_eq!(output[0].num_columns(), 2);
}

#[test]
fn the_schema_decides_between_functions_of_one_name() {
    let server = start(Options::default());
    let client = Client::new(&server);
    let input = [batch_of(vec![("n", int(1))])];
    for (path, expected) in [(vec!["main"], "main"), (vec!["alt"], "alt"), (vec![], "main")] {
        let schema = path.into_iter().map(str::to_owned).collect();
        let output = run(&client, &Call { schema, ..Call::new("which_schema") }, &input).unwrap();
        assert_eq!(output[0].column(0).as_string::<i32>().value(0), expected);
    }
    let elsewhere = Call { schema: vec!["alt".to_owned()], ..Call::new("kmeans") };
    let error = remote(run(&client, &elsewhere, &input));
    assert_eq!(error.exception_type.as_deref(), Some("NotFoundError"));
    assert_eq!(error.message, "schema 'example.alt' has no function 'kmeans' (it is in: main)");
}

#[test]
fn the_catalog_is_listed() {
    let server = start(Options::default());
    let client = Client::new(&server);
    let protocols = client.post("vgi_rpc.Reflection.v1/list_protocols", list_protocols_body().unwrap());
    let protocols = protocol_entries(&vgi_wire::reply::read_unary(protocols.body).unwrap()).unwrap();
    let protocols: Vec<_> = protocols.iter().map(|entry| (entry.protocol.as_str(), entry.version.as_str())).collect();
    assert_eq!(protocols, [("vgi.v2", "2.2.0"), ("vgi.v3", "3.0.0")]);

    let attached = client.attach("example").unwrap();
    assert_eq!(attached.default_schema, "main");
    let attach = attached.attach_opaque_data;
    let schemas = client.unary(Method::CatalogSchemas, schemas_body(&client.dialect, &attach, None).unwrap()).unwrap();
    let schemas: Vec<_> =
        items(&schemas).unwrap().into_iter().map(|blob| SchemaInfo::from_blob(blob).unwrap().path).collect();
    let paths: [&[&str]; 4] = [&["alt"], &["geo"], &["geo", "points"], &["main"]];
    assert_eq!(schemas, paths);

    let list = |kind: &str| {
        let body =
            contents_body(&client.dialect, Method::SchemaFunctions, &attach, &["main".to_owned()], Some(kind), None)
                .unwrap();
        let reply = client.unary(Method::SchemaFunctions, body).unwrap();
        items(&reply).unwrap().into_iter().map(|blob| FunctionInfo::from_blob(blob).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(
        list("SCALAR_FUNCTION").iter().map(|function| function.name.as_str()).collect::<Vec<_>>(),
        ["listed_scalar"]
    );
    let functions = list("TABLE_FUNCTION");
    let info = |name: &str| functions.iter().find(|function| function.name == name).unwrap();
    assert!(
        info("ordered_buffer_input").sink_order_dependent
            && info("batch_index_buffer_input").requires_input_batch_index
    );
    assert!(info("sort_rows").source_order_dependent && !info("buffer_input").source_order_dependent);
    let declared = info("kmeans").declared_arguments();
    assert_eq!(
        declared.iter().map(|argument| (argument.name.as_str(), argument.optional)).collect::<Vec<_>>(),
        [("k", false), ("iterations", true), ("seed", true)]
    );
    assert!(functions.iter().all(|function| !function.description.is_empty() && !function.examples.is_empty()));

    // all at once
    let contents = |etag| {
        let body = catalog_contents_body(&client.dialect, &attach, etag).unwrap();
        CatalogContents::from_reply(&client.unary(Method::CatalogContents, body).unwrap()).unwrap()
    };
    let everything = contents(None);
    assert_eq!(
        everything.schemas.iter().map(|schema| &schema.path).collect::<Vec<_>>(),
        schemas.iter().collect::<Vec<_>>()
    );
    let table = [FunctionType::Table, FunctionType::TableBuffering];
    let of_main =
        |function: &&FunctionInfo| function.schema_path == ["main"] && table.contains(&function.function_type);
    assert_eq!(everything.functions.iter().filter(of_main).count(), functions.len());
    assert_eq!((everything.views.len(), everything.macros.len(), everything.unreadable), (2, 3, 0));
    assert!(contents(everything.etag.as_deref()).not_modified);
}

#[test]
fn a_function_that_computes_does_not_block_the_server() {
    let server = start(Options::default());
    let client = Client::new(&server);
    let input = batch_of(vec![("n", int(1))]);
    let call = Call::new("hang_in").positional(text("process")).positional(Arc::new(Float64Array::from(vec![1.0])));
    let execution = client.begin(&call, &input.schema()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| execution.process(&input, None).unwrap());
        }
        std::thread::sleep(Duration::from_millis(300));
        let begun = std::time::Instant::now();
        assert_eq!(support::http(server.address(), "GET", "/health", &[], b"").status, 200);
        assert!(begun.elapsed() < Duration::from_millis(500), "{:?}", begun.elapsed());
        assert_eq!(server.stats().process_concurrency, 12);
    });
}
