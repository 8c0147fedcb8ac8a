//! What a function declares reaches the client, and what a catalog can do beyond calls: cardinality, transactions, the landing page.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use bytes::Bytes;
use support::{Call, Client, batch_of, http, int, remote, rows_only, run, start, text};
use vgi_wire::methods::{
    CardinalityRequest, FunctionInfo, Method, begin_body, begun, cardinality_of, contents_body, end_body, items,
};
use vgi_worker::{
    Args, BindContext, Bound, BufferingFunction, Catalog, Context, Credential, Error, FinalizeId, FunctionSpec,
    Options, Result, Stability, StateId, Tick, TransactionContext, Transactions, serve,
};

/// Every kind of argument.
#[derive(Args)]
struct ShowArgs {
    /// How many.
    #[arg(range = 1..=3)]
    count: i32,
    #[arg(doc = "Which.", default = "a", choices = ["a", "b"])]
    which: String,
    #[arg(doc = "A code.", named, pattern = "[A-Z]{2}")]
    code: Option<String>,
    #[arg(doc = "Shares.", named, default = [0.5, 1], range = 0.0..=1.0)]
    shares: Vec<f64>,
}

/// Shows its arguments and the transaction as log lines, and gives its input's schema without rows.
struct Show;

impl BufferingFunction for Show {
    type Args = ShowArgs;
    type Position = ();

    fn spec(&self) -> FunctionSpec {
        FunctionSpec::new("show", "Shows its arguments.")
            .tag("team", "data")
            .tag("tier", "<gold>")
            .stability(Stability::Volatile)
            .example("FROM c.show((FROM t), 1);", "Nothing.")
    }

    fn bind(&self, ctx: &BindContext<'_, ShowArgs>) -> Result<Bound> {
        let ShowArgs { count, which, code, shares } = ctx.args;
        ctx.log(vgi_worker::log::LogLevel::Info, format!("{count} {which} {code:?} {shares:?}"));
        Ok(Bound::new(Arc::clone(ctx.input_schema())))
    }

    fn process(&self, _: RecordBatch, ctx: &Context<'_, ShowArgs>) -> Result<StateId> {
        let told = format!("{} {:?}", ctx.attachment().map_or(0, Bytes::len), ctx.transaction().map(Bytes::len));
        ctx.log(vgi_worker::log::LogLevel::Info, told);
        Ok(StateId::of_numbers(&[]))
    }

    fn combine(&self, _: Vec<StateId>, ctx: &Context<'_, ShowArgs>) -> Result<Vec<FinalizeId>> {
        assert_eq!(ctx.projected_schema()?, *ctx.output_schema());
        Ok(Vec::new())
    }

    fn finalize(&self, _: &FinalizeId, (): (), _: &Context<'_, ShowArgs>) -> Result<Tick<()>> {
        Ok(Tick::end())
    }
}

/// Id and principal of a transaction, and what became of it.
type Entry = (Bytes, String, &'static str);

/// Keeps the transactions in the order in which they began.
#[derive(Clone, Default)]
struct Ledger(Arc<Mutex<Vec<Entry>>>);

impl Ledger {
    fn states(&self) -> Vec<&'static str> {
        self.0.lock().unwrap().iter().map(|(.., state)| *state).collect()
    }

    fn end(&self, transaction: &TransactionContext<'_>, how: &'static str) -> Result<()> {
        let mut ledger = self.0.lock().unwrap();
        match ledger.iter_mut().find(|(id, ..)| id == transaction.id()) {
            Some((_, principal, state)) if *state == "open" && principal == transaction.principal() => *state = how,
            _ => return Err(Error::Failed("there is no such transaction".to_owned())),
        }
        Ok(())
    }
}

impl Transactions for Ledger {
    fn begin(&self, transaction: &TransactionContext<'_>) -> Result<()> {
        assert!(transaction.attachment().is_some_and(|id| id.len() == 16 + transaction.principal().len()));
        self.0.lock().unwrap().push((transaction.id().clone(), transaction.principal().to_owned(), "open"));
        Ok(())
    }
    fn commit(&self, transaction: &TransactionContext<'_>) -> Result<()> {
        self.end(transaction, "committed")
    }
    fn rollback(&self, transaction: &TransactionContext<'_>) -> Result<()> {
        self.end(transaction, "rolled back")
    }
}

fn catalog() -> Catalog {
    let mut catalog = Catalog::new("example", "main");
    catalog.register("main", Show).unwrap();
    catalog
}

#[test]
fn the_whole_declaration_is_listed() {
    let server = serve(catalog(), Options::default()).unwrap();
    let client = Client::new(&server);
    let attached = client.attach("example").unwrap();
    assert!(!attached.supports_transactions);
    let path = ["main".to_owned()];
    let body = contents_body(
        &client.dialect,
        Method::SchemaFunctions,
        &attached.attach_opaque_data,
        &path,
        Some("TABLE_FUNCTION"),
        None,
    );
    let reply = client.unary(Method::SchemaFunctions, body.unwrap()).unwrap();
    let show = FunctionInfo::from_blob(items(&reply).unwrap().remove(0)).unwrap();
    assert_eq!(show.stability, Some(Stability::Volatile));
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(show.tags, [pair("team", "data"), pair("tier", "<gold>")]);
    let told = |field: usize, key: &str| show.arguments.field(field).metadata().get(key).map(String::as_str);
    assert_eq!((told(1, "vgi_range"), told(1, "vgi_doc")), (Some("[1, 3]"), Some("How many.")));
    assert_eq!((told(2, "vgi_choices"), told(2, "vgi_default")), (Some(r#"["a","b"]"#), Some(r#""a""#)));
    assert_eq!((told(3, "vgi_pattern"), told(3, "vgi_default")), (Some("[A-Z]{2}"), None));
    assert_eq!((told(4, "vgi_range"), told(4, "vgi_default")), (Some("[0, 1]"), Some("[0.5,1]")));
    let defaults = show.parameter_defaults.unwrap();
    assert_eq!(defaults.column_by_name("which").unwrap().as_string::<i32>().value(0), "a");
    assert_eq!(defaults.num_columns(), 3);
}

#[test]
fn arguments_are_checked_before_bind() {
    let server = serve(catalog(), Options::default()).unwrap();
    let client = Client::new(&server);
    let schema = rows_only(0).schema();
    let (_, _, logs) = client.bind(&Call::new("show").positional(int(2)), &schema).unwrap();
    assert_eq!(logs[0].message, "2 a None [0.5, 1.0]");
    let call = Call::new("show").positional(int(3)).positional(text("b")).named("code", text("DE"));
    let (_, _, logs) = client.bind(&call, &schema).unwrap();
    assert_eq!(logs[0].message, "3 b Some(\"DE\") [0.5, 1.0]");
    for (call, message) in [
        (Call::new("show").positional(int(4)), "show: argument 'count' must be from 1 to 3, not 4"),
        (
            Call::new("show").positional(int(1 << 40)),
            "show: argument 'count' must be INTEGER, but the value given is BIGINT",
        ),
        (
            Call::new("show").positional(int(1)).positional(text("c")),
            "show: argument 'which' must be one of 'a', 'b', not 'c'",
        ),
        (
            Call::new("show").positional(int(1)).named("code", text("de")),
            "show: argument 'code' must match the pattern [A-Z]{2}, not 'de'",
        ),
    ] {
        let error = remote(client.bind(&call, &schema));
        assert_eq!((error.message.as_str(), error.exception_type.as_deref()), (message, Some("ArgumentError")));
    }
}

#[test]
fn the_size_of_a_result_is_told_where_it_is_known() {
    let server = start(Options::default());
    let client = Client::new(&server);
    let schema = batch_of(vec![("n", int(1))]).schema();
    let cardinality = |call: &Call| {
        let (bind_call, ..) = client.bind(call, &schema).unwrap();
        let body = client.body(Method::Cardinality, CardinalityRequest { bind_call }.to_blob().unwrap());
        cardinality_of(&client.unary(Method::Cardinality, body).unwrap()).unwrap()
    };
    assert_eq!(cardinality(&Call::new("sum_all_columns")), (Some(1), Some(1)));
    assert_eq!(cardinality(&Call::new("top_k").positional(int(7))), (None, Some(7)));
    assert_eq!(cardinality(&Call::new("buffer_input")), (None, None));
}

#[test]
fn transactions_begin_are_seen_and_end() {
    let ledger = Ledger::default();
    let mut catalog = catalog();
    catalog.with_transactions(ledger.clone());
    let server = serve(catalog, Options::default()).unwrap();
    let client = Client::new(&server);
    let attached = client.attach("example").unwrap();
    assert!(attached.supports_transactions);
    let attach = attached.attach_opaque_data;
    let begin = || {
        let reply = client.unary(Method::TransactionBegin, begin_body(&client.dialect, &attach).unwrap()).unwrap();
        begun(&reply).unwrap().unwrap()
    };
    let end = |method, id: &Bytes| client.unary(method, end_body(&client.dialect, method, &attach, id).unwrap());
    let (one, two) = (begin(), begin());
    assert_ne!(one, two);
    end(Method::TransactionCommit, &one).unwrap();
    end(Method::TransactionRollback, &two).unwrap();
    assert_eq!(ledger.states(), ["committed", "rolled back"]);
    assert_eq!(remote(end(Method::TransactionCommit, &two)).message, "there is no such transaction");
    // a client does not see the ids, and cannot use one that it guesses
    let id = ledger.0.lock().unwrap()[0].0.clone();
    for guessed in [id, Bytes::from_static(b"guessed"), Bytes::new()] {
        let error = remote(end(Method::TransactionCommit, &guessed));
        assert_eq!(error.exception_type.as_deref(), Some("TransactionNotRecognizedError"));
    }
    // a catalog without them says so
    let without = start(Options::default());
    let client = Client::new(&without);
    let attach = client.attach("example").unwrap().attach_opaque_data;
    let error = remote(client.unary(Method::TransactionBegin, begin_body(&client.dialect, &attach).unwrap()));
    assert_eq!(error.message, "the catalog has no transactions");
}

#[test]
fn transactions_and_attachments_are_their_principals_own() {
    let ledger = Ledger::default();
    let mut catalog = catalog();
    catalog.with_transactions(ledger.clone());
    let credential = |name: &str| Credential { principal: name.to_owned(), token: format!("{name}'s token") };
    let credentials = vec![credential("ann"), credential("bob")];
    let server = serve(catalog, Options { credentials, ..Options::default() }).unwrap();
    let client = |name: &str| Client { token: Some(format!("{name}'s token")), ..Client::new(&server) };
    let (ann, bob) = (client("ann"), client("bob"));
    let attach = |client: &Client| client.attach("example").unwrap().attach_opaque_data;
    let (of_ann, of_bob) = (attach(&ann), attach(&bob));
    let reply = ann.unary(Method::TransactionBegin, begin_body(&ann.dialect, &of_ann).unwrap()).unwrap();
    let transaction = begun(&reply).unwrap().unwrap();
    let end = |client: &Client, method, attach: &Bytes| {
        client.unary(method, end_body(&client.dialect, method, attach, &transaction).unwrap()).map(drop)
    };
    let begin = |client: &Client, attach: &Bytes, transaction: Option<&Bytes>| {
        let call = Call {
            attachment: Some(attach.clone()),
            transaction: transaction.cloned(),
            ..Call::new("show").positional(int(1))
        };
        client.begin(&call, &rows_only(1).schema())
    };
    let kind = |result| remote::<()>(result).exception_type.unwrap();
    for method in [Method::TransactionCommit, Method::TransactionRollback] {
        assert_eq!(kind(end(&bob, method, &of_bob)), "TransactionNotRecognizedError");
        assert_eq!(kind(end(&bob, method, &of_ann)), "TransactionNotRecognizedError");
    }
    assert_eq!(kind(begin(&bob, &of_bob, Some(&transaction)).map(drop)), "TransactionNotRecognizedError");
    assert_eq!(kind(begin(&bob, &of_ann, None).map(drop)), "OpaqueDataNotRecognizedError");
    assert_eq!(ledger.states(), ["open"]);

    let execution = begin(&ann, &of_ann, Some(&transaction)).unwrap();
    assert_eq!(execution.process(&rows_only(1), None).unwrap().1[0].message, "19 Some(16)");
    execution.destroy();
    end(&ann, Method::TransactionCommit, &of_ann).unwrap();
    assert_eq!(ledger.states(), ["committed"]);
}

#[test]
fn a_function_is_told_its_attachment() {
    let server = serve(catalog(), Options::default()).unwrap();
    let client = Client::new(&server);
    let execution = client.begin(&Call::new("show").positional(int(1)), &rows_only(1).schema()).unwrap();
    let (id, logs) = execution.process(&rows_only(1), None).unwrap();
    assert_eq!(logs[0].message, "16 None");
    assert!(execution.combine(vec![id]).unwrap().0.is_empty());
    let attach = || client.attach("example").unwrap().attach_opaque_data;
    assert_ne!(attach(), attach());
    assert!(run(&client, &Call::new("show").positional(int(1)), &[rows_only(1)]).unwrap().is_empty());
}

#[test]
fn the_landing_page_shows_what_there_is_to_those_who_are_let_in() {
    let server = serve(catalog(), Options::default()).unwrap();
    let page = http(server.address(), "GET", "/", &[], b"");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none'"));
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    for part in
        ["<h3 id=\"show\">", "FROM c.show((FROM t), 1);", "tier: &lt;gold&gt;", "[1, 3]", "[A-Z]{2}", "How many."]
    {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(http(server.address(), "HEAD", "/", &[], b"").body.is_empty());
    let credentials = vec![Credential { principal: "ann".to_owned(), token: "s3same".to_owned() }];
    let closed = serve(catalog(), Options { credentials, ..Options::default() }).unwrap();
    assert_eq!(http(closed.address(), "GET", "/", &[], b"").status, 401);
    assert_eq!(http(closed.address(), "GET", "/", &[("authorization", "Bearer s3same")], b"").status, 200);
}
