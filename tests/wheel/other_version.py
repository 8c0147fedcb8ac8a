"""LOAD in the wheel of another DuckDB version must give DuckDB's plain message: other_version.py EXTENSION URL VERSION"""

import sys

import duckdb

extension, _, version = sys.argv[1:]
assert f"v{duckdb.__version__}" != version, "this wheel is the right one"

connection = duckdb.connect(config={"allow_unsigned_extensions": True})

try:
    connection.execute(f"LOAD '{extension}'")
except duckdb.Error as error:
    message = str(error)
else:
    raise AssertionError("the wrong version was accepted")

assert f"built specifically for DuckDB version '{version}'" in message, message
assert f"this version of DuckDB is 'v{duckdb.__version__}'" in message, message
assert connection.execute("SELECT 42").fetchone() == (42,)
