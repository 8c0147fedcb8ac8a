"""The input tables of the scenarios, as SQL."""

# One row per column that is named after its type: a call per column tells which type fails.
TYPES = {
    "boolean": "i % 2 = 0",
    "tinyint": "(i % 100)::TINYINT",
    "smallint": "i::SMALLINT",
    "integer": "i::INTEGER",
    "bigint": "i * 4611686018427",
    "utinyint": "(i % 256)::UTINYINT",
    "usmallint": "i::USMALLINT",
    "uinteger": "i::UINTEGER",
    "ubigint": "(i * 1000000007)::UBIGINT",
    "hugeint": "(i::HUGEINT - 2500) * 170141183460469231731687303715::HUGEINT",
    "uhugeint": "i::UHUGEINT * 68056473384187692692674921486::UHUGEINT",
    "float": "(i / 3.0)::FLOAT",
    "double": "(i / 7.0)::DOUBLE",
    "decimal4": "(i / 10.0)::DECIMAL(4, 1)",
    "decimal9": "i::DECIMAL(9, 2)",
    "decimal18": "i::DECIMAL(18, 3)",
    "decimal38": "i::DECIMAL(38, 10)",
    "varchar": "repeat('é', i::INTEGER % 40) || i",
    "blob": "('b' || i)::BLOB",
    "bit": "(i % 256)::UTINYINT::BIT",
    "uuid": "md5(i::VARCHAR)::UUID",
    "json": "('{\"a\": ' || i || '}')::JSON",
    "date": "DATE '1992-01-01' + i::INTEGER",
    "time": "TIME '12:34:56.789' + to_seconds(i % 1000)",
    "timetz": "'12:34:56.789+02:30'::TIMETZ",
    "timestamp": "TIMESTAMP '2020-01-01 00:00:00.000001' + to_seconds(i)",
    "timestamp_s": "(TIMESTAMP '2020-01-01' + to_seconds(i))::TIMESTAMP_S",
    "timestamp_ms": "(TIMESTAMP '2020-01-01' + to_seconds(i))::TIMESTAMP_MS",
    "timestamp_ns": "(TIMESTAMP '2020-01-01' + to_seconds(i))::TIMESTAMP_NS",
    "timestamptz": "(TIMESTAMP '2020-01-01' + to_seconds(i))::TIMESTAMPTZ",
    "interval": "to_months((i % 13)::INTEGER) + to_days((i % 7)::INTEGER) + to_microseconds(i)",
    "enum": "(['sad', 'ok', 'happy'][i % 3 + 1])::ENUM('sad', 'ok', 'happy')",
    "list": "[i, NULL, i + 1]",
    "array": "[i, i + 1, i + 2]::BIGINT[3]",
    "struct": "{'a': i, 'b': 'x' || i}",
    "map": "MAP {'k' || i: i, 'z': NULL}",
    "union": "CASE WHEN i % 2 = 0 THEN i::UNION(num BIGINT, str VARCHAR) ELSE ('s' || i)::UNION(num BIGINT, str VARCHAR) END",
    "nested": "[{'m': MAP {'a': [i, NULL]}, 'b': i % 2 = 0}]",
}

# Three columns with NULLs, as most tables have.
MIXED = "SELECT i, CASE WHEN i % 7 > 0 THEN i / 3 END AS d, CASE WHEN i % 5 > 0 THEN 'row ' || i END AS s FROM range({rows}) r(i)"

NUMBERS = "SELECT i, i / 2 AS h FROM range({rows}) r(i)"
