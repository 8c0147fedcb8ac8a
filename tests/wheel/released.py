"""Threads that would wait for a server are released where that is wanted: released.py EXTENSION URL VERSION"""

import sys
import time

import duckdb

extension, url, _ = sys.argv[1:4]
PAUSE = 1.0

# with one thread, two calls of a query wait one after the other, unless the thread is released
connection = duckdb.connect(config={"allow_unsigned_extensions": True, "threads": 1})
connection.execute(f"LOAD '{extension}'")


def seconds(phase, release):
    connection.execute(f"SET vgi_release_threads = {release}")
    call = f"FROM vgi_call('{url}', 'example', 'hang_in', (FROM range(10)), args := row('{phase}', {PAUSE}))"
    started = time.monotonic()
    assert connection.execute(f"SELECT count(*) FROM ({call} UNION ALL {call})").fetchall() == [(12,)]
    return time.monotonic() - started


for phase in ("process", "finalize"):
    held, released = seconds(phase, False), seconds(phase, True)
    print(f"{phase}: held {held:.2f} s, released {released:.2f} s")
    assert held >= 2 * PAUSE > 1.2 * released, (phase, held, released)
