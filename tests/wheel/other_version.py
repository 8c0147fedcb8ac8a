"""LOAD in the wheel of another DuckDB version must give DuckDB's plain message: other_version.py EXTENSION URL"""

import sys

import duckdb

extension = sys.argv[1]
connection = duckdb.connect(config={"allow_unsigned_extensions": True})
assert duckdb.__version__ != "2.0.0", "this wheel is the right one"

try:
    connection.execute(f"LOAD '{extension}'")
except duckdb.Error as error:
    message = str(error)
else:
    raise AssertionError("the wrong version was accepted")

assert "built specifically for DuckDB version 'v2.0.0'" in message, message
assert f"this version of DuckDB is 'v{duckdb.__version__}'" in message, message
assert connection.execute("SELECT 42").fetchone() == (42,)
