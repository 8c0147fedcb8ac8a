"""However a call ends, it ends at once and leaves nothing behind: teardown.py EXTENSION URL VERSION"""

import itertools
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request

import duckdb

extension, url, _ = sys.argv[1:4]
call = f"vgi_call('{url}', 'example', "
INTERRUPT_SECONDS = 0.1


def connect():
    connection = duckdb.connect(config={"allow_unsigned_extensions": True, "threads": 4})
    connection.execute(f"LOAD '{extension}'")
    return connection


def stats():
    with urllib.request.urlopen(f"{url}/stats", timeout=10) as reply:
        return json.load(reply)


# Executions whose init was interrupted: the client never learned their ids, and the server lets them expire.
ORPHANS = 2


def everything_is_freed(what):
    """The destructor runs in the background."""
    deadline = time.monotonic() + 10
    while (now := stats())["executions"] != now["destructor_calls"] + ORPHANS or now["live_executions"] > ORPHANS:
        assert time.monotonic() < deadline, f"{what}: {now}"
        time.sleep(0.02)


def fails(connection, sql, expected):
    try:
        connection.execute(sql).fetchall()
    except duckdb.Error as error:
        assert expected in str(error), (expected, str(error))
    else:
        raise AssertionError(f"no error: {sql}")


def interrupted(connection, sql):
    """Interrupts the statement after half a second; gives the seconds that it took to end."""
    asked = []
    timer = threading.Timer(0.5, lambda: (asked.append(time.monotonic()), connection.interrupt()))
    timer.start()
    try:
        connection.execute(sql).fetchall()
    except duckdb.InterruptException:
        return time.monotonic() - asked[0]
    finally:
        timer.join()
    raise AssertionError(f"not interrupted: {sql}")


connection = connect()
for phase, release in itertools.product(("bind", "init", "process", "combine", "finalize"), (False, True)):
    connection.execute(f"SET vgi_release_threads = {release}")
    hang = f"FROM {call}'hang_in', (FROM range(100_000) t(i)), args := row('{phase}', 3.0))"
    seconds = interrupted(connection, hang)
    print(f"interrupt in {phase}, threads released {release}: {seconds * 1000:.0f} ms")
    assert seconds < INTERRUPT_SECONDS, (phase, release, seconds)
# the worker's function sleeps on; what it answers then goes nowhere
time.sleep(3.0)
everything_is_freed("interrupt")

before = stats()
for _ in range(3):
    rows = connection.execute(
        f"FROM {call}'emit_parts', (SELECT 1 AS i), args := [8, 2_000_000], named := {{'ticks': 50}}) LIMIT 5"
    ).fetchall()
    assert len(rows) == 5
everything_is_freed("limit")
assert stats()["batches_out"] - before["batches_out"] < 3 * 8 * 50 / 2, "a satisfied LIMIT must stop the drain"
assert stats()["cancels"] > before["cancels"], "open streams must be cancelled"

# an error above the call and one below it
fails(connection, f"SELECT error('above') FROM {call}'buffer_input', (FROM range(1_000_000) t(i)))", "above")
below = "SELECT CASE WHEN i = 900_000 THEN error('below') ELSE i END AS i FROM range(1_000_000) t(i)"
before = stats()["combine_calls"]
fails(connection, f"FROM {call}'buffer_input', ({below}))", "below")
assert stats()["combine_calls"] == before, "combine was called after the input had failed"
everything_is_freed("errors")

before = stats()["combine_calls"]
fails(connection, f"FROM {call}'fail_in', (FROM range(1_000_000) t(i)), args := ['process'])", "process")
assert stats()["combine_calls"] == before, "combine was called after process had failed"
everything_is_freed("failed process")

# a result that is not read to its end, and then its connection is closed
rows = connection.execute(f"FROM {call}'emit_wide', (SELECT 1 AS i), args := [10_000_000])")
assert rows.fetchone() is not None
connection.close()
everything_is_freed("closed connection")

# the last database has gone; a new one works
connection = connect()
assert connection.execute(f"SELECT count(*) FROM {call}'buffer_input', (FROM range(1000) t(i)))").fetchone() == (1000,)

# a second database in the process, one closed while the other works
other = connect()
assert other.execute(f"SELECT count(*) FROM {call}'buffer_input', (FROM range(1000) t(i)))").fetchone() == (1000,)
other.close()
# read to the end: DuckDB itself hangs in a forked child that replaces an open result
assert connection.execute(f"SELECT count(*) FROM {call}'buffer_input', (FROM range(1000) t(i)))").fetchall() == [(1000,)]

# a forked child has no network threads: it gets a sentence, not a hang
child = os.fork()
if child == 0:
    try:
        connection.execute(f"FROM {call}'buffer_input', (SELECT 1 AS i))").fetchall()
    except duckdb.Error as error:
        os._exit(0 if "fork" in str(error) else 2)
    os._exit(3)
deadline = time.monotonic() + 10
while (ended := os.waitpid(child, os.WNOHANG))[0] == 0:
    if time.monotonic() > deadline:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise AssertionError("the forked child hangs")
    time.sleep(0.02)
assert os.waitstatus_to_exitcode(ended[1]) == 0, ended
connection.close()

# the process ends in the middle of a call, with an open connection
script = f"""
import duckdb, sys, threading
connection = duckdb.connect(config={{"allow_unsigned_extensions": True}})
connection.execute("LOAD '{extension}'")
rows = connection.execute("FROM {call}'emit_wide', (SELECT 1 AS i), args := [10_000_000])")
assert rows.fetchone() is not None
"""
ended = subprocess.run([sys.executable, "-c", script], timeout=30, check=False)
assert ended.returncode == 0, ended
