"""Runs demo.sql against a worker of its own and shows what went over the wire."""

import argparse
import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import duckdb

HERE = Path(__file__).resolve().parent


def start_worker(binary):
    """The running worker and its URL, which it says in its first line."""
    command = [binary, "serve", "--port", "0", "--parent-pid", str(os.getpid())]
    worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    line = worker.stdout.readline().strip()
    if not line.startswith("listening on "):
        worker.kill()
        sys.exit(f"the worker does not start: {line!r}")
    return worker, line.removeprefix("listening on ")


def statements(text):
    """Pairs of comment and SQL; an empty line is between two statements."""
    for block in text.strip().split("\n\n"):
        lines = block.splitlines()
        comment = [line.removeprefix("--").strip() for line in lines if line.startswith("--")]
        yield " ".join(comment), "\n".join(line for line in lines if not line.startswith("--"))


def print_table(names, rows):
    table = [names] + [[str(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*table)]
    table.insert(1, ["-" * width for width in widths])
    for row in table:
        print("    " + "  ".join(value.ljust(width) for value, width in zip(row, widths)).rstrip())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extension", required=True, type=Path)
    parser.add_argument("--worker", required=True, type=Path)
    options = parser.parse_args()
    extension = options.extension.resolve()
    worker, url = start_worker(options.worker.resolve())
    try:
        os.chdir(HERE)
        connection = duckdb.connect(config={"allow_unsigned_extensions": True})
        connection.execute(f"LOAD '{extension}'")
        connection.execute(f"SET VARIABLE server = '{url}'")
        print(f"DuckDB {duckdb.__version__} with {extension.name}; the worker listens on {url}")
        for comment, sql in statements((HERE / "demo.sql").read_text()):
            print(f"\n-- {comment}\n\n{sql}\n")
            result = connection.execute(sql)
            print_table([column[0] for column in result.description], result.fetchall())
        with urllib.request.urlopen(f"{url}/stats", timeout=10) as response:
            stats = json.load(response)
        print(f"\nto the worker:   {stats['batches_in']:>4} batches with {stats['rows_in']:>6} rows")
        print(f"from the worker: {stats['batches_out']:>4} batches with {stats['rows_out']:>6} rows")
    finally:
        worker.terminate()
        worker.wait(timeout=10)


if __name__ == "__main__":
    main()
