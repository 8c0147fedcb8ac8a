"""A handful of statements in the wheel that the extension was built for: statements.py EXTENSION URL VERSION"""

import sys

import duckdb

extension, url, version = sys.argv[1:]
assert f"v{duckdb.__version__}" == version, duckdb.__version__

connection = duckdb.connect(config={"allow_unsigned_extensions": True})
connection.execute(f"LOAD '{extension}'")

loaded = connection.execute("SELECT loaded FROM duckdb_extensions() WHERE extension_name = 'vgi'").fetchall()
assert loaded == [(True,)], loaded

connection.execute("CREATE TABLE numbers AS SELECT i, i / 4 AS d, 'n' || i AS s FROM range(100_000) t(i)")
call = f"vgi_call('{url}', 'example', "

sums = connection.execute(f"SELECT i, d FROM {call}'sum_all_columns', (SELECT i, d FROM numbers))").fetchall()
assert sums == [(4_999_950_000, 1_249_987_500.0)], sums

back = f"FROM {call}'buffer_input', (FROM numbers))"
different = connection.execute(
    f"SELECT count(*) FROM ((FROM numbers EXCEPT ALL {back}) UNION ALL ({back} EXCEPT ALL FROM numbers))"
).fetchone()
assert different == (0,), different
assert connection.execute(f"SELECT count(*) {back}").fetchone() == (100_000,)

for _ in range(2):  # a plan is made anew for the second execution
    try:
        connection.execute(f"FROM {call}'no_such_function', (FROM numbers))")
    except duckdb.Error as error:
        assert "no_such_function" in str(error), error
    else:
        raise AssertionError("an unknown function was accepted")

connection.close()
