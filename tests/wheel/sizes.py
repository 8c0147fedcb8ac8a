"""Inputs of unusual sizes, and the memory that they take: sizes.py EXTENSION URL VERSION"""

import resource
import sys

import duckdb

extension, url, _ = sys.argv[1:4]
call = f"vgi_call('{url}', 'example', "
connection = duckdb.connect(config={"allow_unsigned_extensions": True, "threads": 2})
connection.execute(f"LOAD '{extension}'")


def one(sql):
    return connection.execute(sql).fetchone()


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


# the memory of the client does not grow with the input
counted = f"SELECT sum(num_rows) FROM {call}'batch_trace', (SELECT i, i AS j FROM range({{}}) t(i)))"
assert one(counted.format(1_000_000)) == (1_000_000,)
before = peak_mib()
assert one(counted.format(100_000_000)) == (100_000_000,)
print(f"peak memory: {before} MiB after 10^6 rows, {peak_mib()} MiB after 10^8")
assert peak_mib() - before < 64, (before, peak_mib())

# a thousand columns
columns = ", ".join(f"i + {column} AS c{column}" for column in range(1000))
connection.execute(f"CREATE TABLE wide AS SELECT {columns} FROM range(3000) t(i)")
back = f"FROM {call}'buffer_input', (FROM wide))"
assert one(f"SELECT count(*) FROM (FROM wide EXCEPT ALL {back})") == (0,)
assert one(f"SELECT count(*), sum(c0), sum(c999) {back}") == (3000, 4_498_500, 4_498_500 + 3000 * 999)

# one value of 64 MiB
text = f"SELECT repeat('0123456789abcdef', 4 * 1024 * 1024) || i AS s FROM range(2) t(i)"
assert one(f"SELECT count(*), min(length(s)), count(DISTINCT s) FROM {call}'buffer_input', ({text}))") == (
    2,
    64 * 1024 * 1024 + 1,
    2,
)

# nothing, one row, and what lies around DuckDB's vectors
for rows in (0, 1, 2047, 2048, 2049, 100_000):
    assert one(f"SELECT count(*), sum(i) FROM {call}'buffer_input', (FROM range({rows}) t(i)))") == (
        rows,
        sum(range(rows)) if rows else None,
    ), rows
    assert one(f"SELECT count(*) FROM {call}'emit_wide', (SELECT 1 AS i), args := [{rows}])") == (rows,), rows

# a limit that leaves no room is DuckDB's out-of-memory error, and the next query works
connection.execute("SET memory_limit = '40MB'")
connection.execute("SET threads = 1")
try:
    one(f"SELECT count(*) FROM {call}'buffer_input', ({text}))")
except duckdb.OutOfMemoryException:
    pass
else:
    raise AssertionError("64 MiB fit into 40 MB")
connection.execute("RESET memory_limit")
assert one(f"SELECT count(*) FROM {call}'buffer_input', (FROM range(1000) t(i)))") == (1000,)
held = one("SELECT sum(memory_usage_bytes) FROM duckdb_memory() WHERE tag = 'EXTENSION'")
assert held == (0,), f"bytes still claimed: {held}"
