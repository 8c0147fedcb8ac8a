"""A catalog of 5,000 functions costs little time and memory: large_catalog.py EXTENSION URL VERSION"""

import resource
import sys
import time

import duckdb
from worker import Worker

extension = sys.argv[1]
FUNCTIONS = 5000
SECONDS = 1.0
# At its peak, with what the allocator keeps for ten seconds of what was freed.
MIB = 96


def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def timed(what, sql):
    """The seconds that this process computes, which is what remains beyond the server's and the network's."""
    started, computing = time.monotonic(), time.process_time()
    rows = connection.execute(sql).fetchall()
    seconds = time.process_time() - computing
    waited = time.monotonic() - started
    print(f"{what}: {seconds * 1000:.0f} ms of computing, {waited * 1000:.0f} ms in all, peak {peak_mib():.0f} MiB")
    return seconds, rows


with Worker("--test-functions", "--generated-functions", str(FUNCTIONS)) as worker:
    connection = duckdb.connect(config={"allow_unsigned_extensions": True, "threads": 2})
    connection.execute(f"LOAD '{extension}'")
    before = peak_mib()
    attach, _ = timed("ATTACH", f"ATTACH 'example' AS ex (TYPE vgi, LOCATION '{worker.url}')")
    first, rows = timed("first call", "FROM ex.generated.generated_4711((FROM range(1)), 42)")
    assert rows == [("number 42, share 0.5, label none",)], rows
    assert attach + first < SECONDS, "attaching and the first call take too long"
    second, rows = timed("second call", "FROM ex.generated.generated_0((FROM range(1)), 1, label := 'x')")
    assert rows == [("number 1, share 0.5, label x",)], rows
    assert second < SECONDS / 4, second
    listed, rows = timed("duckdb_functions()", "SELECT count(*) FROM duckdb_functions() WHERE database_name = 'ex' AND schema_name = 'generated'")
    assert rows == [(FUNCTIONS,)], rows
    assert listed < 2 * SECONDS, listed
    contents, rows = timed("vgi_catalog_contents", "SELECT count(*) FROM vgi_catalog_contents('ex') WHERE schema_name = 'generated'")
    assert rows == [(FUNCTIONS,)], rows
    assert contents < SECONDS, contents
    assert peak_mib() - before < MIB, f"{peak_mib() - before:.0f} MiB for {FUNCTIONS} functions"
    # without keeping listings, too
    connection.execute(f"ATTACH 'example' AS fresh (TYPE vgi, LOCATION '{worker.url}', cache false, label 'x')")
    for _ in range(10):
        connection.execute("FROM fresh.generated.generated_1((FROM range(1)), 42)").fetchall()
    again, rows = timed("a call that asks for the listing again", "FROM fresh.generated.generated_1((FROM range(1)), 42)")
    assert again < SECONDS, again
    assert peak_mib() - before < 2 * MIB, f"{peak_mib() - before:.0f} MiB after listings that were not kept"
    connection.close()
