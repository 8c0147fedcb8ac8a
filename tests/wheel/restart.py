"""Servers that restart, and that are another one afterwards: restart.py EXTENSION URL VERSION"""

import sys

import duckdb
from worker import Worker

extension = sys.argv[1]
SMALL = ()
LARGE = ("--test-functions",)
OTHER = ("--test-functions", "--generated-functions", "3")


def one(sql, parameters=None):
    return connection.execute(sql, parameters or []).fetchall()


def fails(sql, *expected):
    try:
        one(sql)
    except duckdb.Error as error:
        message = str(error)
        assert any(text in message for text in expected), (expected, message)
        assert "INTERNAL" not in message, message
        # the connection goes on
        assert one("SELECT 42") == [(42,)]
        return message
    raise AssertionError(f"no error: {sql}")


def requests(worker):
    """Attachments that a worker was asked for, from DuckDB's log."""
    return one("SELECT count(*) FROM duckdb_logs() WHERE type = 'VGI' AND message LIKE '%catalog.rpc%catalog_attach%'")[0][0]


connection = duckdb.connect(config={"allow_unsigned_extensions": True, "threads": 2})
connection.execute(f"LOAD '{extension}'")
connection.execute("CALL enable_logging('VGI')")
connection.execute("CREATE TABLE t AS SELECT i FROM range(10000) r(i)")
total = [(sum(range(10000)),)]

with Worker(*LARGE) as worker:
    attach = f"ATTACH 'example' AS ex (TYPE vgi, LOCATION '{worker.url}')"
    one(attach)
    sums = "FROM ex.sum_all_columns((FROM memory.t))"
    assert one(sums) == total
    one("PREPARE p AS FROM ex.sum_all_columns((SELECT i FROM memory.t WHERE i < $1::BIGINT))")
    one("PREPARE fixed AS FROM ex.sum_all_columns((FROM memory.t))")
    one("PREPARE late AS FROM ex.which_schema((FROM memory.t))")
    assert one("EXECUTE p(10)") == [(45,)]
    assert one("EXECUTE fixed") == total

    # the same server, started again: nothing was lost
    worker.restart(*LARGE)
    assert one(sums) == total and one("EXECUTE p(5)") == [(10,)] and one("EXECUTE fixed") == total

    # a server with other functions does not know the attachment any more: attached again by itself, once
    before = requests(worker)
    worker.restart(*OTHER)
    assert one("EXECUTE fixed") == total, "the plan was made with the attachment that is lost"
    assert requests(worker) - before == 1
    assert one("EXECUTE fixed") == total and one(sums) == total and one("EXECUTE p(5)") == [(10,)]
    assert requests(worker) - before == 1

    # what is new is found without a word
    assert one("FROM ex.generated.generated_2((FROM range(1)), 1)") == [("number 1, share 0.5, label none",)]
    assert one("SELECT count(*) FROM duckdb_functions() WHERE database_name = 'ex' AND schema_name = 'generated'") == [(3,)]

    # what is gone is one clear error, and what is still there works
    worker.restart(*SMALL)
    fails("EXECUTE late", "does not exist", "has no function")
    fails("FROM ex.which_schema((FROM memory.t))", "does not exist")
    fails("FROM ex.generated.generated_2((FROM range(1)), 1)", "does not exist")
    assert one("SELECT count(*) FROM duckdb_functions() WHERE database_name = 'ex' AND schema_name = 'generated'") == [(0,)]
    assert one(sums) == total and one("EXECUTE p(5)") == [(10,)]

    # in a transaction
    worker.restart(*LARGE)
    one("BEGIN")
    assert one(sums) == total
    worker.restart(*OTHER)
    assert one(sums) == total
    one("COMMIT")

    # a server that is away is an error, and no catalog on the search path keeps local statements from working
    one("USE ex")
    worker.stop()
    message = fails(sums, "cannot connect")
    assert worker.url in message, message
    assert one("SELECT count(*) FROM memory.t") == [(10000,)]
    one("USE memory")
    fails("EXECUTE fixed", "cannot connect")
    worker.start(*LARGE)
    assert one(sums) == total and one("EXECUTE fixed") == total

    # a statement that was prepared before DETACH
    one("DETACH ex")
    try:
        assert one("EXECUTE fixed") == total
    except duckdb.Error as error:
        assert "does not exist" in str(error), error
    fails(sums, "does not exist")
    one(attach)
    assert one("EXECUTE fixed") == total and one("EXECUTE p(5)") == [(10,)]

    # a second database of this process has attachments of its own, and one that is closed leaves the other alone
    other = duckdb.connect(config={"allow_unsigned_extensions": True, "threads": 2})
    other.execute(f"LOAD '{extension}'")
    other.execute(attach)
    assert other.execute("FROM ex.sum_all_columns((FROM range(3)))").fetchall() == [(3,)]
    other.close()
    assert one(sums) == total

# what a catalog requires is asked for by name, and what must not be shown is not
with Worker("--required-option", "api_key") as worker:
    attach = f"ATTACH 'example' AS strict (TYPE vgi, LOCATION '{worker.url}'"
    fails(f"{attach})", "the catalog requires the options 'api_key' (Shown to nobody.)")
    fails(f"{attach}, colour 'red')", "the catalog requires the options 'api_key'", "'colour'")
    fails(f"{attach}, api_key 'k', colour 'red')", "'colour'; known are location, path")
    one(f"{attach}, api_key 's3same')")
    assert one("FROM strict.sum_all_columns((FROM range(3)))") == [(3,)]
    shown = "SELECT count(*) FROM duckdb_databases() d, duckdb_logs() l WHERE d::VARCHAR || l::VARCHAR LIKE '%s3same%'"
    assert one(shown) == [(0,)]
connection.close()
