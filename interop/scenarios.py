"""What is tried on every server. A scenario raises on failure; it names the functions of which it needs one."""

import collections
import dataclasses
import threading
import time
from collections.abc import Callable

import duckdb

from tables import MIXED, NUMBERS, TYPES
from tap import Tap
from target import Target

ECHO = ("buffer_input", "echo_all_rows")
SUM = ("sum_all_columns", "sum_numeric")
INTERRUPT_SECONDS = 5


@dataclasses.dataclass(frozen=True)
class Scenario:
    name: str
    any_of: tuple[str, ...]
    run: Callable[[Target, str], None]


SCENARIOS: list[Scenario] = []


def scenario(name: str, *any_of: str):
    """Registers a scenario; `run` gets the first of `any_of` that the server lists in its default schema."""

    def register(run):
        SCENARIOS.append(Scenario(name, any_of, run))
        return run

    return register


def rows(connection: duckdb.DuckDBPyConnection, sql: str) -> list[tuple]:
    return connection.execute(sql).fetchall()


def equal(found, expected) -> None:
    assert found == expected, f"got {str(found)[:200]}, expected {str(expected)[:200]}"


def expect_echo(target: Target, connection: duckdb.DuckDBPyConnection, function: str, source: str) -> None:
    """What comes back of the table `source` is the same multiset of rows, with the same names and types."""
    connection.execute(f"CREATE OR REPLACE TABLE back AS FROM {target.call(function, f'FROM {source}')}")
    equal(rows(connection, "DESCRIBE back"), rows(connection, f"DESCRIBE {source}"))
    for one, other in ((source, "back"), ("back", source)):
        equal(rows(connection, f"SELECT count(*) FROM (FROM {one} EXCEPT ALL FROM {other})"), [(0,)])


def echo_of(target: Target, function: str, query: str, threads: int = 2) -> None:
    connection = target.connect(threads)
    connection.execute(f"CREATE TABLE t AS {query}")
    expect_echo(target, connection, function, "t")


@scenario("listing equals the reference client's")
def listing(target: Target, _: str) -> None:
    expected = target.reference_listing()
    if expected is None:
        expected = target.declared_listing()
    found = target.listing()
    assert expected, "the reference lists nothing"
    missing, unexpected = collections.Counter(expected) - collections.Counter(found), collections.Counter(found) - collections.Counter(expected)
    assert found == expected, f"missing {sorted(missing.elements())}, unexpected {sorted(unexpected.elements())}"


@scenario("DuckDB lists every function that can be called")
def callable_functions(target: Target, _: str) -> None:
    listed = {name.rsplit(".", 1)[1].lower() for name in target.listing() if name.startswith("buffering ")}
    assert listed, "there is none"
    equal(sorted(target.callable_functions()), sorted(listed))


@scenario("echo of every type, with NULLs", *ECHO)
def every_type(target: Target, function: str) -> None:
    connection = target.connect()
    wrong = []
    for name, expression in TYPES.items():
        connection.execute(f"CREATE OR REPLACE TABLE t AS SELECT i, CASE WHEN i % 3 > 0 THEN {expression} END AS x FROM range(3000) r(i)")
        try:
            expect_echo(target, connection, function, "t")
        except (duckdb.Error, AssertionError) as error:
            wrong.append(f"{name}: {str(error).splitlines()[0]}")
    assert not wrong, "\n".join(wrong)


for count in (1, 2, 8):
    scenario(f"echo of 100,000 rows, {count} threads", *ECHO)(
        lambda target, function, threads=count: echo_of(target, function, MIXED.format(rows=100_000), threads)
    )

for count in (0, 1, 2047, 2048, 2049):
    scenario(f"echo of {count} rows", *ECHO)(lambda target, function, rows=count: echo_of(target, function, MIXED.format(rows=rows)))


@scenario("sums of 100,000 rows", *SUM)
def sums(target: Target, function: str) -> None:
    connection = target.connect()
    connection.execute(f"CREATE TABLE t AS {NUMBERS.format(rows=100_000)}")
    equal(rows(connection, f"FROM {target.call(function, 'FROM t')}"), rows(connection, "SELECT sum(i)::BIGINT, sum(h) FROM t"))


@scenario("sums of no row", *SUM)
def sums_of_nothing(target: Target, function: str) -> None:
    connection = target.connect()
    connection.execute("CREATE TABLE t (i BIGINT)")
    equal(rows(connection, f"FROM {target.call(function, 'FROM t')}"), [(0,)])


@scenario("sums of what the planner knows to be empty", *SUM)
def sums_of_known_nothing(target: Target, function: str) -> None:
    equal(rows(target.connect(), f"FROM {target.call(function, 'SELECT 1::BIGINT AS i WHERE false')}"), [(0,)])


def in_order(target: Target, function: str) -> None:
    connection = target.connect(4)
    connection.execute("CREATE TABLE t AS FROM range(300000) r(i)")
    numbered = f"SELECT i, row_number() OVER () - 1 AS n FROM {target.call(function, 'FROM t')}"
    equal(rows(connection, f"SELECT count(*), bool_and(i = n) FROM ({numbered})"), [(300_000, True)])


scenario("ordered input: rows in order", "ordered_buffer_input")(in_order)
scenario("batch indexes: rows in order", "batch_index_buffer_input", "batch_index_sorted")(in_order)


@scenario("ordered output: streams in order", "ordered_source", "source_order_parts", "ordered_parts")
def ordered_output(target: Target, function: str) -> None:
    connection = target.connect(4)
    more, wanted = {
        "ordered_source": ("", "v"),
        "source_order_parts": (", args := [16]", "part"),
        "ordered_parts": (", args := [16, 3]", "part"),
    }[function]
    found = [value for (value,) in rows(connection, f"SELECT {wanted} FROM {target.call(function, 'SELECT 1 AS i', more)}")]
    equal(sorted(set(found)), list(range(16)))
    equal(found, sorted(found))


@scenario("one batch of 1,000,000 rows", "buffer_emit_wide", "emit_wide")
def wide(target: Target, function: str) -> None:
    call = target.call(function, "SELECT 1 AS i", ", args := [1000000]")
    equal(rows(target.connect(), f"SELECT count(*), min(n), max(n), sum(n) FROM {call}"), [(1_000_000, 0, 999_999, 499_999_500_000)])


@scenario("echo of 200 strings of 64 KiB", *ECHO)
def large_values(target: Target, function: str) -> None:
    echo_of(target, function, "SELECT i, repeat(chr(65 + i::INTEGER % 26), 65536) AS s FROM range(200) r(i)")


@scenario("echo of 1,000 columns", *ECHO)
def many_columns(target: Target, function: str) -> None:
    columns = ", ".join(f"i + {number} AS c{number}" for number in range(1000))
    echo_of(target, function, f"SELECT {columns} FROM range(3000) r(i)")


@scenario("echo of names and values beyond ASCII", *ECHO)
def beyond_ascii(target: Target, function: str) -> None:
    names = ["größe", "数量", "emoji 🦆", "with space", 'a "quote"', "it's", "SELECT"]
    columns = ", ".join("repeat('é🦆', i::INTEGER % 9) || i AS \"" + name.replace('"', '""') + '"' for name in names)
    echo_of(target, function, f"SELECT {columns} FROM range(3000) r(i)")


@scenario("named argument", "sum_all_columns", "args_echo")
def named_argument(target: Target, function: str) -> None:
    connection = target.connect()
    target.attach(connection)
    if function == "args_echo":
        found = rows(connection, f"SELECT e, f FROM {target.call(function, 'SELECT 1 AS i', ', args := row(1, $$x$$, 2.0, true), named := {e: 42}')}")
        equal(found, [(42, "dflt")])
    else:
        equal(rows(connection, f"FROM server.{function}((SELECT i FROM range(10) r(i)), logging := true)"), [(45,)])


@scenario("a call in a call", *ECHO)
def nested(target: Target, function: str) -> None:
    connection = target.connect()
    call = target.call(function, f"FROM {target.call(function, 'SELECT i FROM range(50000) r(i)')} WHERE i % 2 = 0")
    equal(rows(connection, f"SELECT count(*), sum(i) FROM {call}"), [(25_000, sum(range(0, 50_000, 2)))])


@scenario("two calls of one query", *ECHO)
def joined(target: Target, function: str) -> None:
    call = target.call(function, "SELECT i FROM range(30000) r(i)")
    equal(rows(target.connect(), f"SELECT count(*), sum(a.i) FROM {call} a JOIN {call} b USING (i)"), [(30_000, sum(range(30_000)))])


def expect_error(target: Target, call: str, *texts: str) -> None:
    """The server's message arrives, once, as the class of a refused input; the connection goes on."""
    connection = target.connect()
    try:
        rows(connection, f"FROM {call}")
    except duckdb.Error as error:
        assert isinstance(error, duckdb.InvalidInputException), f"the class is {type(error).__name__}: {error}"
        assert all(text in str(error) for text in texts), f"the message is: {error}"
    else:
        raise AssertionError("no error")
    equal(rows(connection, "SELECT 42"), [(42,)])


@scenario("error in combine", "crash_on_combine", "fail_combine", "fail_in")
def error_in_combine(target: Target, function: str) -> None:
    more = ", args := ['combine']" if function == "fail_in" else ""
    expect_error(target, target.call(function, "SELECT i FROM range(5000) r(i)", more), "combine")


@scenario("error in finalize", "crash_on_finalize", "fail_finalize", "fail_in")
def error_in_finalize(target: Target, function: str) -> None:
    more = ", args := ['finalize']" if function == "fail_in" else ""
    expect_error(target, target.call(function, "SELECT i FROM range(5000) r(i)", more), "finalize")


@scenario("error in process", "exception_process", "fail_process", "fail_in")
def error_in_process(target: Target, function: str) -> None:
    more = ", args := ['process']" if function == "fail_in" else ""
    expect_error(target, target.call(function, "SELECT i FROM range(5000) r(i)", more), "process")


@scenario("function that is not there")
def unknown_function(target: Target, _: str) -> None:
    try:
        rows(target.connect(), f"FROM {target.call('no_such_function', 'SELECT 1 AS i')}")
    except duckdb.Error as error:
        assert "no_such_function" in str(error), f"the message is: {error}"
    else:
        raise AssertionError("no error")


@scenario("LIMIT stops early and lets the server forget", *ECHO)
def early_stop(target: Target, function: str) -> None:
    with Tap(target.port, b"table_buffering_destructor HTTP/1.1") as tap:
        tapped = dataclasses.replace(target, url=f"http://127.0.0.1:{tap.port}")
        connection = tapped.connect()
        equal(len(rows(connection, f"SELECT i FROM {tapped.call(function, 'SELECT i FROM range(300000) r(i)')} LIMIT 3")), 3)
        equal(rows(connection, "SELECT state FROM vgi_calls()"), [("stopped",)])
        assert tap.seen.wait(10), "no destructor was sent"
        equal(rows(connection, f"SELECT count(*) FROM {tapped.call(function, 'SELECT i FROM range(3000) r(i)')}"), [(3000,)])


@scenario("interrupt ends a call at once", *ECHO)
def interrupt(target: Target, function: str) -> None:
    connection = target.connect()
    timer = threading.Timer(1, connection.interrupt)
    timer.start()
    started = time.monotonic()
    try:
        rows(connection, f"SELECT count(*) FROM {target.call(function, 'SELECT i FROM range(10000000000) r(i)')}")
    except duckdb.InterruptException:
        took = time.monotonic() - started - 1
        assert took < INTERRUPT_SECONDS, f"it took {took:.1f} s"
    else:
        raise AssertionError("it was not interrupted")
    finally:
        timer.cancel()
    equal(rows(connection, f"SELECT count(*) FROM {target.call(function, 'SELECT i FROM range(3000) r(i)')}"), [(3000,)])
