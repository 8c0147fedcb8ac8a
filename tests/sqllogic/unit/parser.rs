use std::time::Duration;

use crate::parser::{condition, parse};
use crate::script::*;

/// The text of a file of these lines.
fn text(lines: &[&str]) -> String {
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

fn records(lines: &[&str]) -> Vec<Record> {
    match parse(&text(lines)) {
        Ok(script) => script.records,
        Err(error) => panic!("{error}\n{lines:?}"),
    }
}

fn command(lines: &[&str]) -> Command {
    let [record]: [Record; 1] = records(lines).try_into().expect("one command");
    record.command
}

fn query(lines: &[&str]) -> Query {
    match command(lines) {
        Command::Query(query) => query,
        other => panic!("{other:?}"),
    }
}

fn statement(lines: &[&str]) -> Statement {
    match command(lines) {
        Command::Statement(statement) => statement,
        other => panic!("{other:?}"),
    }
}

fn error(lines: &[&str]) -> String {
    match parse(&text(lines)) {
        Ok(script) => panic!("accepted {script:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn reads_the_header() {
    let script =
        parse("# name: test/sql/a.test\n# description: what: it is\n# group: [sql]\n# threads: all\n\nrequire vgi\n");
    let header = script.expect("parsed").header;
    assert_eq!(header.name.as_deref(), Some("test/sql/a.test"));
    assert_eq!(header.description.as_deref(), Some("what: it is"));
    assert_eq!(header.group.as_deref(), Some("[sql]"));
    assert!(header.all_threads);
}

#[test]
fn the_header_ends_where_the_first_command_begins() {
    let header = parse("# name: a\n\nrequire vgi\n\n# group: [late]\n# threads: all\n").expect("parsed").header;
    assert_eq!((header.group, header.all_threads), (None, false));
    assert_eq!(parse("").expect("parsed"), Script::default());
}

#[test]
fn reads_statements() {
    let parsed = statement(&["statement ok", "SELECT 1,", "  2"]);
    assert_eq!((parsed.outcome, parsed.sql.as_str()), (Outcome::Ok, "SELECT 1,\n  2"));
    let parsed = statement(&["statement error con1", "SELECT x", "----", "Binder Error", "# second line"]);
    assert_eq!((parsed.outcome, parsed.connection.as_deref()), (Outcome::Error, Some("con1")));
    assert_eq!(parsed.expected_error, "Binder Error\n# second line");
    assert_eq!(statement(&["statement maybe", "SELECT 1"]).outcome, Outcome::Maybe);
}

#[test]
fn carriage_returns_are_no_part_of_anything() {
    let parsed = parse("statement error\r\nSELECT x\r\n----\r\nno x\r\n\r\nhalt\r\n").expect("parsed");
    let Some(Record { command: Command::Statement(parsed), .. }) = parsed.records.first() else { panic!("{parsed:?}") };
    assert_eq!((parsed.sql.as_str(), parsed.expected_error.as_str()), ("SELECT x", "no x"));
}

#[test]
fn sql_ends_at_a_comment_and_results_do_not() {
    let parsed = records(&[
        "statement ok",
        "SELECT 1",
        "# comment",
        "query T",
        "SELECT '#'",
        "----",
        "#",
        "",
        "statement ok",
        "SELECT 2",
    ]);
    let lines: Vec<usize> = parsed.iter().map(|record| record.line).collect();
    assert_eq!(lines, [1, 4, 9]);
    let Some(Record { command: Command::Query(query), .. }) = parsed.get(1) else { panic!("{parsed:?}") };
    assert_eq!(query.expected, ["#"]);
}

#[test]
fn reads_queries() {
    let parsed = query(&["query IRT rowsort label", "SELECT 1, 2.0, 'x'", "----", "1\t2.0\tx"]);
    assert_eq!((parsed.columns, parsed.sort, parsed.label.as_deref()), (3, Sort::Rows, Some("label")));
    assert_eq!(parsed.expected, ["1\t2.0\tx"]);
    assert_eq!(query(&["query I valuesort", "SELECT 1", "----"]).sort, Sort::Values);
    let parsed = query(&["query I con2", "SELECT 1", "----", "1"]);
    assert_eq!((parsed.sort, parsed.connection.as_deref()), (Sort::None, Some("con2")));
    assert_eq!(query(&["query I nosort q1", "SELECT 1"]).expected, Vec::<String>::new());
}

#[test]
fn reads_loops() {
    let parsed = command(&[
        "loop i 1 4",
        "",
        "statement ok",
        "SELECT ${i}",
        "",
        "foreach t,u a,b c,d",
        "",
        "endloop",
        "",
        "endloop",
    ]);
    let Command::Loop(outer) = parsed else { panic!("{parsed:?}") };
    assert_eq!((outer.variable.as_str(), outer.concurrent), ("i", false));
    assert_eq!(outer.values, ["1", "2", "3"]);
    let Some(Record { command: Command::Loop(inner), .. }) = outer.body.get(1) else { panic!("{outer:?}") };
    assert_eq!((inner.variable.as_str(), inner.values.len(), inner.body.len()), ("t,u", 2, 0));
}

#[test]
fn expands_collections_of_types() {
    let values = |word: &str| match command(&[&format!("foreach t {word} x"), "", "endloop"]) {
        Command::Loop(parsed) => parsed.values.len(),
        other => panic!("{other:?}"),
    };
    let counts = ["<signed>", "<unsigned>", "<integral>", "<numeric>", "<alltypes>", "varchar"].map(values);
    assert_eq!(counts, [6, 6, 11, 13, 16, 2]);
}

#[test]
fn reads_concurrent_loops() {
    let body =
        ["", "statement ok", "SELECT 1", "", "sleep 1 millisecond", "", "loop j 0 2", "", "endloop", "", "endloop"];
    for opening in ["concurrentloop i 0 2", "concurrentforeach x a b"] {
        let Command::Loop(parsed) = command(&[&[opening][..], &body].concat()) else { panic!("{opening}") };
        assert!(parsed.concurrent, "{opening}");
    }
    for unfit in [&["reconnect"][..], &["statement ok con1", "SELECT 1"], &["concurrentloop j 0 2", "", "endloop"]] {
        let message = error(&[&["concurrentloop i 0 2", ""][..], unfit, &["", "endloop"]].concat());
        assert!(message.starts_with("3: ") && message.contains("concurrent"), "{message}");
    }
}

#[test]
fn reads_conditions() {
    let parsed = records(&["loop i 0 3", "", "onlyif i=1", "skipif i<>2", "statement ok", "SELECT 1", "", "endloop"]);
    let Some(Record { command: Command::Loop(parsed), .. }) = parsed.first() else { panic!("{parsed:?}") };
    let record = parsed.body.first().expect("a statement");
    let read: Vec<_> = record.conditions.iter().map(|c| (c.comparison, c.value.as_str(), c.skip)).collect();
    assert_eq!(read, [(Comparison::Equal, "1", false), (Comparison::NotEqual, "2", true)]);
    let comparisons =
        ["i<3", "i<=3", "i>3", "i>=3"].map(|text| condition(text, false).map(|c| (c.comparison, c.value)));
    let three = |comparison| Some((comparison, "3".to_owned()));
    assert_eq!(
        comparisons,
        [
            three(Comparison::Less),
            three(Comparison::LessOrEqual),
            three(Comparison::Greater),
            three(Comparison::GreaterOrEqual)
        ]
    );
}

#[test]
fn leaves_out_what_is_not_for_duckdb() {
    let statement = ["statement ok", "SELECT 1", ""];
    assert_eq!(records(&[&["skipif duckdb"][..], &statement].concat()).len(), 0);
    assert_eq!(records(&[&["onlyif sqlite"][..], &statement].concat()).len(), 0);
    assert_eq!(records(&[&["skipif sqlite"][..], &statement].concat()).len(), 1);
    assert_eq!(records(&[&["onlyif DuckDB"][..], &statement, &statement].concat()).len(), 2);
}

#[test]
fn skips_between_skip_and_unskip() {
    let parsed = records(&[
        "statement ok",
        "SELECT 1",
        "",
        "mode skip",
        "",
        "nonsense here",
        "",
        "endloop",
        "",
        "mode skip",
        "",
        "mode unskip",
        "",
        "statement ok",
        "SELECT 2",
        "",
        "mode unskip",
        "",
        "statement ok",
        "SELECT 3",
    ]);
    assert_eq!(parsed.iter().map(|record| record.line).collect::<Vec<_>>(), [1, 19]);
    assert_eq!(command(&["mode output_result"]), Command::OutputResult(true));
}

#[test]
fn nothing_is_read_after_halt() {
    assert_eq!(records(&["statement ok", "SELECT 1", "", "halt", "", "what is this"]).len(), 1);
    assert_eq!(records(&["mode skip", "", "halt", "", "mode unskip", "", "restart"]).len(), 1);
}

#[test]
fn reads_everything_else() {
    let name = "X".to_owned();
    assert_eq!(command(&["require vgi"]), Command::Require(vec!["vgi".to_owned()]));
    assert_eq!(command(&["require-env X"]), Command::RequireEnv { name: name.clone(), value: None });
    assert_eq!(command(&["require-env X 1"]), Command::RequireEnv { name: name.clone(), value: Some("1".to_owned()) });
    assert_eq!(command(&["test-env X y"]), Command::TestEnv { name, default: "y".to_owned() });
    assert_eq!(command(&["load"]), Command::Load { path: None, read_only: false });
    let path = Some("__TEST_DIR__/a.db".to_owned());
    assert_eq!(command(&["load __TEST_DIR__/a.db"]), Command::Load { path: path.clone(), read_only: false });
    assert_eq!(command(&["load __TEST_DIR__/a.db readonly"]), Command::Load { path, read_only: true });
    assert_eq!(command(&["restart"]), Command::Restart);
    assert_eq!(command(&["reconnect"]), Command::Reconnect);
    assert_eq!(command(&["reset label q"]), Command::ResetLabel("q".to_owned()));
    assert_eq!(command(&["sleep 2 seconds"]), Command::Sleep(Duration::from_secs(2)));
    assert_eq!(command(&["sleep 3 milliseconds"]), Command::Sleep(Duration::from_millis(3)));
    assert_eq!(command(&["hash-threshold 8"]), Command::HashThreshold(8));
    let messages = vec!["no such host".to_owned(), "HTTP".to_owned()];
    assert_eq!(command(&["set ignore_error_messages no such host, HTTP"]), Command::IgnoreErrors(messages));
    assert_eq!(command(&["set always_fail_error_messages"]), Command::AlwaysFailErrors(Vec::new()));
}

#[test]
fn refuses_what_would_test_nothing() {
    let cases: &[(&[&str], &str)] = &[
        (&["statement error", "SELECT x"], "1: statement error needs the expected error"),
        (&["statement error", "SELECT x", "----"], "1: the expected error is empty"),
        (&["statement ok", "SELECT 1", "----", "x"], "1: statement ok cannot have"),
        (&["statement ok"], "1: there is no SQL"),
        (&["statement"], "1: statement takes"),
        (&["statement ok a b", "SELECT 1"], "1: statement takes at most one"),
        (&["query", "SELECT 1", "----"], "1: query takes the column types"),
        (&["query X", "SELECT 1", "----"], "1: unknown column type 'X'"),
        (&["query I", "SELECT 1"], "1: query needs ----"),
        (&["query I rowsort a b", "SELECT 1", "----"], "1: query takes types"),
        (&["", "# c", "restart", "restart"], "3: an empty line"),
        (&["loop i 0 3"], "1: this loop has no endloop"),
        (&["loop i 3 3", "", "endloop"], "1: a loop goes from"),
        (&["loop i a 3", "", "endloop"], "1: a loop goes from"),
        (&["foreach i", "", "endloop"], "1: expected: loop"),
        (&["foreach a,b x,y z", "", "endloop"], "1: \"z\" does not give 2 values"),
        (&["endloop"], "1: endloop without"),
        (&["loop i 0 1", "", "require-env X", "", "endloop"], "3: require-env cannot stand in a loop"),
        (&["loop i 0 1", "", "load", "", "endloop"], "3: unknown or malformed"),
        (&["mode unskip"], "1: mode unskip without"),
        (&["mode fast"], "1: mode \"fast\" is not supported"),
        (&["require"], "1: unknown or malformed"),
        (&["sleep 1 fortnight"], "1: cannot sleep"),
        (&["sleep x seconds"], "1: cannot sleep"),
        (&["hash-threshold many"], "1: hash-threshold takes"),
        (&["set fire"], "1: unknown or malformed"),
        (&["selct 1"], "1: unknown or malformed command \"selct 1\""),
        (&["onlyif i=1", "statement ok", "SELECT 1"], "1: a condition on a loop variable"),
        (&["skipif sqlite"], "1: no command follows"),
        (&["skipif"], "1: onlyif and skipif take one word"),
        (&["   "], "1: a line of blanks"),
    ];
    for (lines, expected) in cases {
        let message = error(lines);
        assert!(message.starts_with(expected), "{lines:?}\n  gave {message:?}\n  not  {expected:?}");
    }
}
