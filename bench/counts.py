"""Counts the instructions of the hot paths with callgrind, which are the same on every run: what a change costs shows before it can be timed.

`make counts` calls it. The client is DuckDB in Python with the extension that still has its symbols; only what the named functions do,
with all that they call, is counted.
"""

import argparse
import contextlib
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "interop"))

from servers import Running, all_servers

# Both are counted, and the difference is what the rows between them cost: discovery, bind and the first small requests are in both.
FEW, MANY = 204_800, 614_400

TABLES = {
    "bigint": "SELECT i FROM range({rows}) r(i)",
    "bigint with NULLs": "SELECT CASE WHEN i % 7 > 0 THEN i END AS i FROM range({rows}) r(i)",
    "varchar(16)": "SELECT lpad(i::VARCHAR, 16, 'x') AS s FROM range({rows}) r(i)",
    "varchar(8)": "SELECT lpad(i::VARCHAR, 8, 'x') AS s FROM range({rows}) r(i)",
    "256-byte strings": "SELECT repeat('é', 124) || lpad(i::VARCHAR, 8, '0') AS s FROM range({rows}) r(i)",
    "varchar(16) with NULLs": "SELECT CASE WHEN i % 7 > 0 THEN lpad(i::VARCHAR, 16, 'x') END AS s FROM range({rows}) r(i)",
    "list<struct>": "SELECT [{{'a': i, 'b': 'x' || i}}, {{'a': i + 1, 'b': NULL}}] AS l FROM range({rows}) r(i)",
}

# What is counted, and the functions that do it.
PATHS = {
    "convert out": ("vgi::convert::export::Exporter::append", "vgi::convert::export::Exporter::take"),
    "encode": ("vgi_wire::ipc::encode::encode_stream", "vgi_wire::methods::buffering::ProcessTemplate::body"),
    "decode": ("vgi_wire::ipc::decode::decode_streams",),
    "convert in": ("vgi::convert::import::Importer::set_batch", "vgi::convert::import::Importer::read"),
}

QUERY = """
import duckdb, sys
extension, url, table = sys.argv[1:]
db = duckdb.connect(config={"allow_unsigned_extensions": True, "threads": 1})
db.execute(f"LOAD '{extension}'")
db.execute(f"CREATE TABLE t AS {table}")
(rows,) = db.execute(f"SELECT count(COLUMNS(*)) FROM vgi_call('{url}', 'example', 'buffer_input', (FROM t))").fetchone()
assert rows > 0
"""


def count(extension: pathlib.Path, url: str, table: str) -> dict[str, int]:
    """Instructions of every path, with all that is called there."""
    functions = [function for path in PATHS.values() for function in path]
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "callgrind.out"
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--collect-atstart=no"]
        tool += [f"--toggle-collect={function}" for function in functions]
        program = [sys.executable, "-c", QUERY, str(extension), url, table]
        subprocess.run(tool + program, check=True, capture_output=True, timeout=600)
        annotated = ["callgrind_annotate", "--inclusive=yes", "--threshold=100", str(out)]
        lines = subprocess.run(annotated, check=True, capture_output=True, text=True, timeout=600).stdout.splitlines()
    found = {function: 0 for function in functions}
    for line in lines:
        matched = re.match(r"\s*([\d,]+) \([ \d.]+%\)\s+\S+?:(\S+) \[", line)
        if matched and matched[2] in found:
            found[matched[2]] += int(matched[1].replace(",", ""))
    if missing := [function for function, instructions in found.items() if not instructions]:
        raise SystemExit(f"not found in what callgrind saw (was the extension stripped?): {', '.join(missing)}")
    return {name: sum(found[function] for function in path) for name, path in PATHS.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extension", type=pathlib.Path, required=True, help="one that was not stripped")
    parser.add_argument("--worker", type=pathlib.Path, required=True)
    asked = parser.parse_args()
    worker = next(one for one in all_servers(pathlib.Path(), asked.worker.resolve()) if one.name == "vgi-worker")
    print(f"{'instructions per row':24}" + "".join(f"{name:>14}" for name in PATHS))
    with tempfile.TemporaryDirectory(prefix="vgi-counts-") as folder, contextlib.ExitStack() as stack:
        server = stack.enter_context(Running(worker, pathlib.Path(folder)))
        for name, table in TABLES.items():
            few, many = (count(asked.extension.resolve(), server.url, table.format(rows=rows)) for rows in (FEW, MANY))
            print(f"{name:24}" + "".join(f"{(many[path] - few[path]) / (MANY - FEW):14.2f}" for path in PATHS), flush=True)


if __name__ == "__main__":
    main()
