"""Calls every function of the worker's example catalog with vgi-python's own client, and compares what comes back with what is computed here.

Runs in the environment of that client: reference_calls.py URL [PROTOCOL VERSION]. Prints one line per function; fails if any does, or if
the worker lists a function that is not called here.
"""

import dataclasses
import logging
import math
import sys
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from vgi.arguments import Arguments
from vgi.catalog.catalog_interface import SchemaObjectType
from vgi.client import Client

Rows = list[tuple]

# Rows with NULLs, ties, negative numbers and texts beyond ASCII, in batches whose sizes have nothing in common with their number.
ROWS = 1009
BATCH = 137
TABLE = [
    (i, (i * 37) % 101 - 50 if i % 11 else None, ((i * 53) % 97) / 4 - 10, f"größe {(i * 7) % 13}" if i % 5 else None) for i in range(ROWS)
]
SCHEMA = pa.schema([("i", pa.int64()), ("n", pa.int32()), ("x", pa.float64()), ("s", pa.string())])


@dataclasses.dataclass(frozen=True)
class Case:
    """A call, and the rows that must come back: in this order, or in any."""

    function: str
    expected: Callable[[], Rows]
    positional: tuple = ()
    named: dict[str, Any] = dataclasses.field(default_factory=dict)
    table: tuple[pa.Schema, Rows] = (SCHEMA, TABLE)
    ordered: bool = False
    schema: str = "main"
    settings: dict[str, Any] | None = None
    secrets: dict[str, Any] | None = None
    # The call must fail with a message that contains this.
    error: str | None = None


def columns(*names: str) -> tuple[pa.Schema, Rows]:
    """The table narrowed to some columns."""
    places = [SCHEMA.names.index(name) for name in names]
    return pa.schema([SCHEMA.field(place) for place in places]), [tuple(row[place] for place in places) for row in TABLE]


def key(value: Any, descending: bool = False) -> tuple:
    """NULLs last in both directions."""
    return (1, 0) if value is None else (0, -value if descending else value)


def quantiles() -> Rows:
    found: Rows = []
    for place, name in ((0, "i"), (1, "n"), (2, "x")):
        values = sorted(row[place] for row in TABLE if row[place] is not None)
        for probability in (0.25, 0.5, 0.9):
            at = probability * (len(values) - 1)
            low, high = values[math.floor(at)], values[math.ceil(at)]
            found.append((name, probability, low + (high - low) * (at - math.floor(at))))
    return found


# Three groups far from each other, so that there is one right clustering; numbered by their first coordinate.
POINTS = [(group * 1000.0 + (i % 7) / 10, (i % 5) / 10 - group, f"{group}") for i in range(300) for group in ((i * 7) % 3,)]
POINTS_TABLE = (pa.schema([("x", pa.float64()), ("y", pa.float64()), ("name", pa.string())]), POINTS)

# y = 3 a - 2 b + 7, without noise.
LINE = [(3.0 * a - 2.0 * b + 7.0, a, float(b)) for a, b in ((i % 17, (i * i) % 23) for i in range(200))]
LINE_TABLE = (pa.schema([("y", pa.float64()), ("a", pa.int64()), ("b", pa.float64())]), LINE)

# Times that grow, with gaps above 10 now and then, of three keys.
CLICKS = [(i * 3 + (i // 20) * 50, f"k{i % 3}") for i in range(200)]
CLICKS_TABLE = (pa.schema([("at", pa.int64()), ("who", pa.string())]), CLICKS)


def sessions() -> Rows:
    """Numbers in the order in which sessions begin."""
    last: dict[str, tuple[int, int]] = {}
    count, found = 0, []
    for at, who in CLICKS:
        if who not in last or at - last[who][0] > 10:
            count += 1
            last[who] = (at, count)
        else:
            last[who] = (at, last[who][1])
        found.append((at, who, last[who][1]))
    return found


def ranks() -> Rows:
    order = sorted((row for row in columns("n", "i")[1]), key=lambda row: key(row[0], True))
    found: Rows = []
    for place, row in enumerate(order):
        if place and order[place - 1][0] == row[0]:
            found.append((*row, *found[-1][2:]))
        else:
            found.append((*row, place + 1, found[-1][3] + 1 if found else 1))
    return found


def batches() -> Rows:
    return [(number, BATCH if start + BATCH <= ROWS else ROWS - start) for number, start in enumerate(range(0, ROWS, BATCH))]


def trace() -> Rows:
    """This client numbers every batch, whether the function asks for it or not."""
    return [(number, number, rows) for number, rows in batches()]


def witness(at: str, projection: str) -> Rows:
    return [(a, str(a), at, at, projection) for a in range(10)]


# No buffering function, which the worker lists for the tests of clients.
ONLY_LISTED = {"main.listed_streaming"}

SESSION = {"setting": None, "attach option": "none", "secret token": None, "secret port": None, "transaction": None}


def all_cases() -> list[Case]:
    parts = [(part, n) for part in range(3) for n in range(10)]
    by_x = sorted(columns("x")[1])
    return [
        Case("buffer_input", lambda: TABLE),
        Case("filtered_buffer_input", lambda: TABLE),
        Case("ordered_buffer_input", lambda: TABLE, ordered=True),
        Case("batch_index_buffer_input", lambda: TABLE, ordered=True),
        Case("sum_all_columns", lambda: [(sum(r[0] for r in TABLE), sum(r[1] or 0 for r in TABLE), sum(r[2] for r in TABLE))]),
        Case("quantiles", quantiles, (0.25, [0.5, 0.9])),
        Case("kmeans", lambda: [(*point, int(point[2])) for point in POINTS], (3,), {"seed": 7}, POINTS_TABLE),
        Case("sort_rows", lambda: by_x, ("x",), table=columns("x"), ordered=True),
        Case("top_k", lambda: by_x[::-1][:20], (20, "x"), {"descending": True}, columns("x"), ordered=True),
        Case("distinct_rows", lambda: sorted(set(columns("n", "s")[1]), key=str), table=columns("n", "s")),
        Case("rank_all", ranks, ("n",), {"descending": True}, columns("n", "i")),
        Case("sessionize", sessions, ("at", 10.0), {"key": "who"}, CLICKS_TABLE, ordered=True),
        Case("train_linear", lambda: [("(intercept)", 7.0), ("a", 3.0), ("b", -2.0)], ("y",), table=LINE_TABLE),
        Case("count_rows", lambda: [(ROWS,)]),
        Case("count_rows", lambda: [(10,)], named={"at_most": 10}),
        Case("emit_parts", lambda: parts, (3, 10), {"ticks": 4}),
        Case("ordered_parts", lambda: parts, (3, 10), ordered=True),
        Case("emit_wide", lambda: [(n,) for n in range(20_000)], (20_000,), ordered=True),
        Case("batch_trace", trace, ordered=True),
        Case("serial_batch_trace", trace, ordered=True),
        Case("indexed_batch_trace", trace, ordered=True),
        Case("log_in_phases", lambda: [(0,), (1,), (2,)] * 2),
        Case("hang_in", lambda: [(0,), (1,), (2,)] * 2, ("combine", 0.2)),
        *(Case("fail_in", list, (phase,), error=f"boom in {phase} — café") for phase in ("bind", "init", "process", "combine", "finalize")),
        Case("fail_in", list, ("nowhere",), error="argument 'phase' must be one of 'bind', 'init'"),
        Case("witness", lambda: witness("nothing", "all")),
        Case("exact_witness", lambda: witness("nothing", "all")),
        Case("plain_witness", lambda: witness("nothing", "all")),
        Case("session_values", lambda: list((SESSION | {"setting": "good day"}).items()), settings={"vgi_example_greeting": "good day"}),
        # This client does not answer a bind that asks for secrets.
        Case("session_lookup", list, error="session_lookup asked for secrets when it was bound"),
        Case("which_schema", lambda: [("main",)]),
        Case("which_schema", lambda: [("alt",)], schema="alt"),
        Case("which_form", lambda: [("number 42",)], (42,)),
        Case("which_form", lambda: [("text größe",)], ("größe",)),
        Case("which_form", lambda: [("number 7, share 0.25, label new",)], (7, 0.25), {"label": "new"}),
        Case("which_value", lambda: [("3 values",)], (1, 2, 3)),
        Case("which_value", lambda: [("0 values",)], schema="geo.points"),
        Case("row", lambda: [("text a",)], ("a",)),
        Case("repeat_row", lambda: [("text b",)], ("b",)),
    ]


def scalar(value: Any) -> pa.Scalar:
    return pa.scalar(value, pa.list_(pa.float64())) if isinstance(value, list) else pa.scalar(value)


def call(client: Client, case: Case) -> Rows:
    schema, rows = case.table
    pieces = [
        pa.RecordBatch.from_pydict({name: [row[place] for row in rows[at : at + BATCH]] for place, name in enumerate(schema.names)}, schema)
        for at in range(0, len(rows), BATCH)
    ]
    output = client.table_buffering_function(
        function_name=case.function,
        schema_path=case.schema.split("."),
        input=iter(pieces),
        input_schema=schema,
        arguments=Arguments(positional=tuple(map(scalar, case.positional)), named={name: scalar(value) for name, value in case.named.items()}),
        settings=case.settings,
        secrets=case.secrets,
    )
    return [tuple(row.values()) for batch in output for row in batch.to_pylist()]


def same(found: Rows, expected: Rows) -> bool:
    """Equal, where doubles may differ by rounding."""

    def close(one: Any, other: Any) -> bool:
        if isinstance(one, float) or isinstance(other, float):
            return one is not None and other is not None and math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
        return one == other

    return len(found) == len(expected) and all(len(a) == len(b) and all(map(close, a, b)) for a, b in zip(found, expected))


def attempt(client: Client, case: Case) -> str:
    """What is wrong; nothing if all is right."""
    try:
        found = call(client, case)
    except Exception as error:
        if case.error and case.error in str(error):
            return ""
        return f"{type(error).__name__}: {error}"
    if case.error:
        return "no error"
    expected = case.expected()
    if not case.ordered:
        found, expected = sorted(found, key=str), sorted(expected, key=str)
    return "" if same(found, expected) else f"{len(found)} rows {str(found[:3])[:150]}, expected {len(expected)} rows {str(expected[:3])[:150]}"


def listed(client: Client, opaque: bytes) -> set[str]:
    names = set()
    for schema in client.schemas(attach_opaque_data=opaque):
        path = getattr(schema, "path", None) or [schema.name]
        where = {"path": path} if hasattr(schema, "path") else {"name": schema.name}
        for function in client.schema_contents(attach_opaque_data=opaque, type=SchemaObjectType.TABLE_FUNCTION, **where):
            names.add(".".join(path) + "." + function.name)
    return names


def objects(client: Client, opaque: bytes) -> set[str]:
    """Tables and indexes of the default schema, of which this client wants every field that the protocol lists."""
    where = {"attach_opaque_data": opaque, "path": ["main"]}
    found = [found for kind in (SchemaObjectType.TABLE, SchemaObjectType.INDEX) for found in client.schema_contents(type=kind, **where)]
    if hasattr(client, "contents"):
        client.contents(attach_opaque_data=opaque)
    return {each.name for each in found}


def main() -> int:
    url, *protocol = sys.argv[1:]
    if protocol:
        from vgi.protocol import VgiProtocol

        VgiProtocol.protocol_name, VgiProtocol.protocol_version = protocol
    logging.disable(logging.CRITICAL)
    failures = 0
    with Client.from_http(url) as client:
        attached = client.catalog_attach(name="example", options={}, data_version_spec=None, implementation_version=None)
        opaque = attached.attach_opaque_data
        names = listed(client, opaque)
        if (only_listed := objects(client, opaque)) != {"listed_table", "listed_index"}:
            print(f"FAIL tables and indexes: {only_listed}")
            failures += 1
    cases = all_cases()
    with Client.from_http(url, attach_opaque_data=opaque) as client:
        for case in cases:
            wrong = attempt(client, case)
            failures += bool(wrong)
            arguments = ", ".join([*map(repr, case.positional), *(f"{name} := {value!r}" for name, value in case.named.items())])
            print(f"{'FAIL' if wrong else 'pass'} {case.schema}.{case.function}({arguments}){': ' if wrong else ''}{wrong}")
        client.catalog_detach(attach_opaque_data=opaque)
    called = {f"{case.schema}.{case.function}" for case in cases} | ONLY_LISTED
    for name in sorted(names ^ called):
        print(f"FAIL {name}: {'listed, but not called' if name in names else 'called, but not listed'}")
        failures += 1
    print(f"{len(names)} functions listed, {len(cases)} calls, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
