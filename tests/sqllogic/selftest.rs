//! Tests of the harness itself: that it runs what it should, and above all that it fails where it must.
//!
//! `unit` tests the modules one by one; what stands here runs whole scripts against DuckDB, without the extension.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests may stop at the first surprise, as tests do")]

mod checks;
mod compare;
mod database;
mod parser;
mod printer;
mod runner;
mod script;
mod unit;
mod variables;

use std::path::Path;
use std::time::{Duration, Instant};

use runner::{Setup, Verdict};

fn run_for(limit: Duration, text: &str) -> Result<Verdict, String> {
    let script = parser::parse(text).map_err(|error| error.to_string())?;
    let setup = Setup {
        name: "self.test",
        threads: 2,
        extension: Path::new("/nonexistent/vgi.duckdb_extension"),
        environment: &|name| match name {
            "GIVEN" => Ok(Some("a value".to_owned())),
            "BROKEN" => Err("the server does not start".to_owned()),
            _ => Ok(None),
        },
        limit,
    };
    runner::run(&script, &setup).map_err(|failure| failure.to_string())
}

fn run(text: &str) -> Result<Verdict, String> {
    run_for(Duration::from_secs(60), text)
}

fn passes(text: &str) {
    assert_eq!(run(text), Ok(Verdict::Passed), "{text}");
}

/// Runs a script that must fail; every one of the pieces must be in the message.
fn fails(text: &str, pieces: &[&str]) {
    let message = run(text).expect_err(text);
    for piece in pieces {
        assert!(message.contains(piece), "{piece:?} is not in\n{message}");
    }
}

#[test]
fn the_manifest_names_the_duckdb_that_is_linked() {
    let version = vgi_footer::DuckdbVersion::from_manifest(include_str!("../../Cargo.toml")).expect("a version");
    assert_eq!(version.to_string(), database::library_version());
}

#[test]
fn a_right_result_passes_and_a_wrong_one_fails() {
    passes("query IT\nSELECT 1, 'x'\n----\n1\tx\n");
    fails(
        "\nquery IT rowsort\nSELECT * FROM (VALUES (1, 'a'), (2, 'b'))\n----\n1\ta\n2\tc\n",
        &["self.test:2", "VALUES (1, 'a')", "row 2, column 2 (col1): expected \"c\", got \"b\"", "    2\tb"],
    );
    fails("query I\nSELECT 1\n----\n1\n2\n", &["self.test:1", "2 rows are expected, the result has 1"]);
    fails("query I\nSELECT 1\n----\n", &["0 rows are expected"]);
    fails("query I\nSELECT 1, 2\n----\n1\t2\n", &["1 columns are expected, the result has 2"]);
    fails("query I\nSELECT 1 WHERE false\n----\nNULL\n", &["1 rows are expected, the result has 0", "(no rows)"]);
}

#[test]
fn an_error_passes_only_where_it_is_expected() {
    passes("statement error\nSELECT nothing\n----\nwas not found because\n");
    passes("statement error\nSELECT nothing\n----\n<REGEX>:Binder Error.*nothing.*\n");
    passes("statement maybe\nSELECT nothing\n\nstatement maybe\nSELECT 1\n");
    fails("statement ok\nSELECT nothing\n", &["self.test:1", "unexpected error", "Binder Error"]);
    fails("query I\nSELECT nothing\n----\n1\n", &["unexpected error", "Binder Error"]);
    fails(
        "statement error\nSELECT nothing\n----\nCatalog Error\n",
        &["another error is expected", "    Catalog Error", "Binder Error"],
    );
    fails("statement error\nSELECT nothing\n----\n<REGEX>:Catalog.*\n", &["another error is expected"]);
    fails("statement error\nSELECT nothing\n----\n<!REGEX>:Binder.*\n", &["another error is expected"]);
    fails("statement error\nSELECT 1\n----\nBinder Error\n", &["an error is expected, but it succeeded", "Binder"]);
}

#[test]
fn some_errors_are_never_expected() {
    let text = "set always_fail_error_messages nothing\n\nstatement error\nSELECT nothing\n----\nBinder Error\n";
    fails(text, &["this error is never expected"]);
    passes("set always_fail_error_messages INTERNAL\n\nstatement error\nSELECT nothing\n----\nBinder Error\n");
}

#[test]
fn a_script_that_runs_nothing_fails() {
    fails("", &["tests nothing"]);
    fails("mode skip\n\nquery I\nSELECT 1\n----\n2\n\nmode unskip\n", &["tests nothing"]);
}

#[test]
fn what_is_missing_skips_and_says_why() {
    let skipped = |text: &str| match run(text) {
        Ok(Verdict::Skipped(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let query = "\n\nquery I\nSELECT 1\n----\n2\n";
    assert_eq!(skipped(&format!("require-env MISSING{query}")), "MISSING is not set");
    assert_eq!(skipped(&format!("require-env GIVEN other{query}")), "GIVEN is \"a value\"");
    assert_eq!(skipped(&format!("require spatial{query}")), "require spatial: the extension is not there");
    assert_eq!(skipped(&format!("require vector_size 4096{query}")), "require vector_size 4096");
    let ignored = "set ignore_error_messages was not found\n\nstatement ok\nSELECT nothing\n";
    assert_eq!(skipped(ignored), "an error contains \"was not found\"");
}

#[test]
fn a_missing_extension_and_a_broken_server_fail() {
    fails("require vgi\n\nstatement ok\nSELECT 1\n", &["self.test:1", "/nonexistent/vgi.duckdb_extension is missing"]);
    fails("require-env BROKEN\n\nstatement ok\nSELECT 1\n", &["the server does not start"]);
}

#[test]
fn variables_are_replaced_in_sql_and_results() {
    passes(
        "require-env GIVEN\n\nquery T\nSELECT '${GIVEN}'\n----\n${GIVEN}\n\nquery T\nSELECT '{GIVEN}'\n----\na value\n",
    );
    passes("test-env OTHER x\n\nquery T\nSELECT '${OTHER}'\n----\nx\n");
    passes("test-env GIVEN x\n\nquery T\nSELECT '${GIVEN}'\n----\na value\n");
    passes("require-env GIVEN\n\nquery T\nSELECT '{' || 'GIVEN}'\n----\n{GIVEN}\n");
    fails("require-env GIVEN\n\ntest-env GIVEN x\n\nstatement ok\nSELECT 1\n", &["GIVEN is defined already"]);
}

#[test]
fn every_type_is_printed_as_duckdb_prints_it() {
    passes(
        "statement ok\nCREATE TYPE mood AS ENUM ('sad', 'happy')\n\n\
         query TTTTTTT\nSELECT NULL, '', true, 'happy'::mood, 1.50::DECIMAL(5, 2), [1, NULL, 3], {'a': 1, 'b': 'x y'}\n----\n\
         NULL\t(empty)\ttrue\thappy\t1.50\t[1, NULL, 3]\t{'a': 1, 'b': x y}\n\n\
         query TTTTTT\nSELECT MAP {'k': 1}, union_value(n := 2), '101'::BIT, '\\xAA'::BLOB, INTERVAL 1 DAY, '4ac7a9e9-607c-4c8a-84f3-843f0191e3fd'::UUID\n----\n\
         {k=1}\t2\t101\t\\xAA\t1 day\t4ac7a9e9-607c-4c8a-84f3-843f0191e3fd\n\n\
         query TTTT\nSELECT DATE '2024-02-29', TIMESTAMP_NS '2024-02-29 01:02:03.123456789', TIMETZ '01:02:03+02', [1, 2]::INTEGER[2]\n----\n\
         2024-02-29\t2024-02-29 01:02:03.123456789\t01:02:03+02\t[1, 2]\n\n\
         query TT\nSELECT 170141183460469231731687303715884105727::HUGEINT, 'a' || chr(0) || 'b'\n----\n\
         170141183460469231731687303715884105727\ta\\0b\n",
    );
}

#[test]
fn results_of_many_chunks_keep_their_order() {
    passes(
        "query I\nSELECT i FROM range(5000) t(i) WHERE i % 1000 = 999 ORDER BY i DESC\n----\n4999\n3999\n2999\n1999\n999\n",
    );
    let digest = hash_of_pairs();
    passes(&format!("query II\nSELECT i, i FROM range(10000) t(i)\n----\n20000 values hashing to {digest}\n"));
    fails(
        &format!(
            "query II\nSELECT i, i FROM range(10000) t(i) ORDER BY i DESC\n----\n20000 values hashing to {digest}\n"
        ),
        &["got:", "20000 values hashing to"],
    );
}

/// What `N values hashing to` stands for, computed in another way.
fn hash_of_pairs() -> String {
    let lines: Vec<String> = (0..10_000).flat_map(|i| [i.to_string(), i.to_string()]).collect();
    let text = format!("{}\n", lines.join("\n"));
    printer::Printer::new().and_then(|printer| printer.md5(&text)).expect("a digest")
}

#[test]
fn hashes_and_labels_are_compared() {
    passes("query I\nSELECT 'abc'\n----\n1 values hashing to 0bee89b07a248e27c83fc3d5951213c1\n");
    fails("query I\nSELECT 'abd'\n----\n1 values hashing to 0bee89b07a248e27c83fc3d5951213c1\n", &["0bee89b0", "got:"]);
    let pair = |second: &str| format!("query I nosort q\nSELECT 1\n\nquery I nosort q\n{second}\n");
    passes(&pair("SELECT 2 - 1"));
    fails(&pair("SELECT 2"), &["self.test:4", "differs from the first one with the label q"]);
    passes("query I nosort q\nSELECT 1\n\nreset label q\n\nquery I nosort q\nSELECT 2\n");
    fails("query I nosort q\nSELECT 1\n----\n2\n", &["expected \"2\", got \"1\""]);
    fails("reset label q\n\nstatement ok\nSELECT 1\n", &["no query had the label q"]);
}

#[test]
fn loops_run_every_iteration() {
    passes(
        "statement ok\nCREATE TABLE t (i INTEGER, s VARCHAR)\n\nloop i 0 3\n\nforeach s a b\n\nstatement ok\n\
         INSERT INTO t VALUES (${i}, '${s}')\n\nendloop\n\nonlyif i=1\nquery I\nSELECT count(*) FROM t\n----\n4\n\n\
         endloop\n\nquery II\nSELECT count(*), count(DISTINCT s) FROM t\n----\n6\t2\n",
    );
    fails(
        "loop i 0 3\n\nquery I\nSELECT ${i} // 2\n----\n0\n\nendloop\n",
        &["self.test:3 (with i=2)", "SELECT 2 // 2", "got \"1\""],
    );
}

#[test]
fn concurrent_loops_run_every_iteration_and_report_failures() {
    passes(
        "statement ok\nCREATE TABLE t (i INTEGER)\n\nconcurrentloop i 0 8\n\nloop j 0 2\n\nstatement ok\n\
         INSERT INTO t VALUES (${i} * 2 + ${j})\n\nendloop\n\nendloop\n\nquery II\nSELECT count(*), sum(i) FROM t\n----\n16\t120\n",
    );
    // the iterations are there at the same time: one after the other would take two seconds
    let started = Instant::now();
    passes("concurrentloop i 0 10\n\nsleep 200 milliseconds\n\nendloop\n\nstatement ok\nSELECT 1\n");
    assert!(started.elapsed() < Duration::from_secs(2));
    fails(
        "concurrentforeach x 1 1 2\n\nquery I\nSELECT ${x}\n----\n1\n\nendloop\n",
        &["self.test:3 (with x=2)", "expected \"1\", got \"2\""],
    );
}

#[test]
fn databases_are_loaded_restarted_and_reconnected() {
    passes(
        "load __TEST_DIR__/a.db\n\nstatement ok\nCREATE TABLE t AS SELECT 42 AS i\n\nrestart\n\nquery I\nSELECT i FROM t\n----\n42\n\n\
         load __TEST_DIR__/a.db readonly\n\nstatement error\nINSERT INTO t VALUES (1)\n----\nread-only\n\n\
         load __TEST_DIR__/a.db\n\nstatement error\nFROM t\n----\ndoes not exist\n\n\
         load\n\nstatement ok\nCREATE TEMP TABLE s (i INTEGER)\n\nreconnect\n\nstatement error\nFROM s\n----\ndoes not exist\n",
    );
    fails("statement ok\nSELECT 1\n\nrestart\n", &["self.test:4", "cannot be restarted"]);
}

#[test]
fn named_connections_are_separate() {
    passes(
        "statement ok con1\nCREATE TEMP TABLE t (i INTEGER)\n\nstatement ok con1\nINSERT INTO t VALUES (1)\n\n\
         query I con1\nFROM t\n----\n1\n\nstatement error con2\nFROM t\n----\ndoes not exist\n",
    );
}

#[test]
fn threads_are_set() {
    passes("query I\nSELECT current_setting('threads')\n----\n2\n");
}

#[test]
fn a_query_that_does_not_end_is_interrupted() {
    let endless = "statement ok\nSELECT count(*) FROM range(1000000000) a, range(1000000000) b WHERE hash(a.range) = hash(b.range + 1)\n";
    let message = run_for(Duration::from_millis(300), endless).expect_err("interrupted");
    assert!(message.contains("self.test:1") && message.contains("interrupted after"), "{message}");
}
