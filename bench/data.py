"""The tables that go through the functions, as SQL with the number of rows to fill in."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Data:
    name: str
    query: str
    rows: int
    numeric: bool = True
    # What the worker would have to hold for an echo is more than a machine of the usual size has.
    sink_only: bool = False

    def sql(self, scale: int) -> str:
        return self.query.format(rows=max(self.rows // scale, 1))


MIXED = "SELECT i, i / 3 AS d, lpad(i::VARCHAR, 16, 'x') AS s FROM range({rows}) r(i)"

TABLES = [
    Data("bigint", "SELECT i FROM range({rows}) r(i)", 10_000_000),
    Data("bigint, double, varchar(16)", MIXED, 10_000_000),
    Data("256-byte strings", "SELECT repeat(chr(65 + i::INTEGER % 26), 248) || lpad(i::VARCHAR, 8, '0') AS s FROM range({rows}) r(i)", 1_000_000, numeric=False),
    Data("64 KiB blobs", "SELECT repeat(chr(65 + i::INTEGER % 26), 65536)::BLOB AS b FROM range({rows}) r(i)", 20_000, numeric=False, sink_only=True),
    Data("list<struct>", "SELECT i, [{{'a': i, 'b': 'x' || i}}, {{'a': i + 1, 'b': NULL}}] AS l FROM range({rows}) r(i)", 1_000_000),
    Data("100 columns", "SELECT " + ", ".join(f"i + {n} AS c{n}" for n in range(100)) + " FROM range({rows}) r(i)", 300_000),
]

# What Python servers and Python clients are measured with: a tenth, since one of their runs takes seconds.
SMALL = Data("mixed, a tenth", MIXED, 1_000_000)
