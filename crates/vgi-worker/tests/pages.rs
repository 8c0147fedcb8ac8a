//! Replies of finalize streams hold as many batches as fill them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use bytes::Bytes;
use support::{ARROW, Call, Client, Execution, batch_of, http, int, start, text};
use vgi_wire::methods::{Method, turn_body};
use vgi_wire::reply::{Tokens, Turn, read_init, read_turn};
use vgi_worker::{
    BindContext, Bound, BufferingFunction, Catalog, Context, FinalizeId, FunctionSpec, Handle, Options, Result,
    StateId, Tick, serve,
};

fn input() -> RecordBatch {
    batch_of(vec![("x", int(1))])
}

/// A client that reads several batches in a reply.
fn reader(server: &Handle) -> Client {
    Client { reads_several: true, ..Client::new(server) }
}

/// The call with its one stream.
fn begun(client: &Client, call: &Call) -> (Execution, Bytes) {
    let execution = client.begin(call, &input().schema()).unwrap();
    let id = execution.process(&input(), None).unwrap().0;
    let stream = execution.combine(vec![id]).unwrap().0.remove(0);
    (execution, stream)
}

fn numbers(turns: &[Turn]) -> Vec<i64> {
    let batches = turns.iter().flat_map(|turn| &turn.batches);
    batches.flat_map(|batch| batch.columns().last().unwrap().as_primitive::<Int64Type>().values().to_vec()).collect()
}

#[test]
fn small_batches_come_together() {
    let call = Call::new("emit_parts").positional(int(1)).positional(int(1_000)).named("ticks", int(100));
    let server = start(Options::default());
    let client = reader(&server);
    let (execution, stream) = begun(&client, &call);
    let packed = execution.drain(&stream).unwrap();
    // a slow machine may need more than one reply's time
    assert!(packed.len() < 20, "{} replies", packed.len());
    assert_eq!(numbers(&packed), (0..1_000).collect::<Vec<_>>());
    assert_eq!(server.stats().batches_out, 100);

    // others get one at a time
    let (execution, stream) = begun(&Client::new(&server), &call);
    let single = execution.drain(&stream).unwrap();
    assert_eq!(single.len(), 100);
    assert_eq!(numbers(&single), numbers(&packed));

    let server = start(Options { page_bytes: 0, ..Options::default() });
    let (execution, stream) = begun(&reader(&server), &call);
    assert_eq!(execution.drain(&stream).unwrap().len(), 100);
}

#[test]
fn turns_without_rows_are_not_told_one_by_one() {
    let server = start(Options::default());
    let client = reader(&server);
    let call = Call::new("emit_parts").positional(int(1)).positional(int(1)).named("ticks", int(1_000));
    let (execution, stream) = begun(&client, &call);
    let turns = execution.drain(&stream).unwrap();
    assert!(turns.len() < 200, "{} replies", turns.len());
    assert_eq!(numbers(&turns), [0]);
}

#[test]
fn a_page_ends_where_it_is_full() {
    let server = start(Options { page_bytes: 100_000, ..Options::default() });
    let client = reader(&server);
    // 16,000 bytes a batch
    let call = Call::new("emit_parts").positional(int(1)).positional(int(40_000)).named("ticks", int(40));
    let (execution, stream) = begun(&client, &call);
    let turns = execution.drain(&stream).unwrap();
    assert!(turns.iter().all(|turn| turn.batches.len() <= 7), "{:?}", turns.iter().map(|turn| turn.batches.len()));
    assert_eq!(numbers(&turns), (0..40_000).collect::<Vec<_>>());
}

/// Gives its input's schema and four times a row, each after a while.
struct Slow;

impl BufferingFunction for Slow {
    type Args = ();
    type Position = i64;

    fn spec(&self) -> FunctionSpec {
        FunctionSpec::new("slow", "Slow rows.")
    }

    fn bind(&self, ctx: &BindContext<'_, ()>) -> Result<Bound> {
        Ok(Bound::new(Arc::clone(ctx.input_schema())))
    }

    fn process(&self, _: RecordBatch, _: &Context<'_, ()>) -> Result<StateId> {
        Ok(StateId::of_numbers(&[]))
    }

    fn combine(&self, _: Vec<StateId>, _: &Context<'_, ()>) -> Result<Vec<FinalizeId>> {
        Ok(vec![FinalizeId::of_numbers(&[])])
    }

    fn finalize(&self, _: &FinalizeId, position: i64, _: &Context<'_, ()>) -> Result<Tick<i64>> {
        std::thread::sleep(Duration::from_millis(60));
        let batch = batch_of(vec![("x", int(position))]);
        Ok(if position < 3 { Tick::more(batch, position + 1) } else { Tick::last(batch) })
    }
}

#[test]
fn rows_do_not_wait_for_a_slow_function() {
    let mut catalog = Catalog::new("example", "main");
    catalog.register("main", Slow).unwrap();
    let server = serve(catalog, Options::default()).unwrap();
    let client = reader(&server);
    let (execution, stream) = begun(&client, &Call::new("slow"));
    let turns = execution.drain(&stream).unwrap();
    assert_eq!((turns.len(), numbers(&turns)), (4, vec![0, 1, 2, 3]));
}

#[test]
fn an_error_comes_after_the_rows_before_it() {
    let server = start(Options::default());
    let client = reader(&server);
    let (execution, stream) = begun(&client, &Call::new("fail_in").positional(text("finalize")));
    let turns = execution.drain(&stream).unwrap();
    assert_eq!((turns.len(), numbers(&turns).len()), (1, 3));
    assert!(turns[0].error.as_ref().unwrap().message.contains("boom in finalize"));
}

#[test]
fn log_lines_stand_with_the_reply_that_brings_the_rows() {
    let server = start(Options::default());
    let client = reader(&server);
    let (execution, stream) = begun(&client, &Call::new("log_in_phases"));
    let turns = execution.drain(&stream).unwrap();
    assert_eq!((turns.len(), turns[0].logs.len()), (1, 5));
}

/// A batch that fits alone must not fail because others stand before it.
#[test]
fn a_page_respects_the_limit_of_the_client() {
    let server = start(Options::default());
    let client = reader(&server);
    // 64,000 bytes a batch
    let call = Call::new("emit_parts").positional(int(1)).positional(int(40_000)).named("ticks", int(10));
    let (execution, stream) = begun(&client, &call);
    let request = execution.stream_request(&stream).to_blob(&client.dialect).unwrap();
    let mut body = client.body(Method::Init, request).to_bytes();
    let mut path = format!("/{}", client.dialect.path(Method::Init));
    let (mut turns, mut call_token) = (Vec::new(), None);
    loop {
        let headers = [
            ("content-type", ARROW),
            ("vgi-accept-max-response-bytes", "200000"),
            ("vgi-accept-several-batches", "true"),
        ];
        let reply = http(server.address(), "POST", &path, &headers, &body);
        let length = reply.body.len();
        assert!(length <= 200_000, "{length}");
        let turn = if turns.is_empty() {
            read_init(reply.body).unwrap().turn.unwrap()
        } else {
            read_turn(reply.body).unwrap()
        };
        assert!(turn.error.is_none(), "{:?}", turn.error);
        call_token = call_token.or_else(|| turn.call.clone());
        let cursor = turn.cursor.clone();
        turns.push(turn);
        let Some(cursor) = cursor else { break };
        body = turn_body(&Tokens { cursor, call: call_token.clone() }).unwrap().to_bytes();
        path = format!("/{}", client.dialect.exchange_path());
    }
    assert_eq!(turns.len(), 5, "two batches fit");
    assert_eq!(numbers(&turns), (0..40_000).collect::<Vec<_>>());
}
