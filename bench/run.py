"""The benchmark: limits, peers and ours in the same run. `make bench` calls it; see --help."""

import argparse
import contextlib
import json
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "interop"))

import duckdb

from client import Client, quoted
from data import TABLES, Data
from report import ratios, svg, table
from servers import Running, all_servers, set_up
from suite import Suite


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extension", type=pathlib.Path, required=True)
    parser.add_argument("--worker", type=pathlib.Path, required=True)
    parser.add_argument("--tools", type=pathlib.Path, required=True)
    parser.add_argument("--cache", type=pathlib.Path, required=True, help="where foreign servers are installed")
    parser.add_argument("--output", type=pathlib.Path, required=True, help="folder of bench.json, bench.txt and scaling.svg")
    parser.add_argument("--flights", default="", help="a Parquet file that is measured too")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows and 3 runs: for trials, not for figures")
    parser.add_argument("--only", default="", help="one group: throughput, source, threads, servers, latency, scaling")
    asked = parser.parse_args()
    started = time.monotonic()
    servers = {one.name: one for one in all_servers(asked.cache.resolve(), asked.worker.resolve())}
    with contextlib.ExitStack() as stack:

        def start(name: str) -> Running:
            set_up(servers[name])
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="vgi-bench-"))
            return stack.enter_context(Running(servers[name], pathlib.Path(folder)))

        worker, python, typescript = start("vgi-worker"), start("python 0.47.0"), start("typescript 0.36.1")
        suite = Suite(
            Client(asked.extension.resolve(), 2),
            asked.tools.resolve(),
            asked.cache.resolve() / "python/venv/bin/python",
            worker,
            runs=3 if asked.quick else 7,
            scale=10 if asked.quick else 1,
            share=0.1 if asked.quick else 1.0,
            tables=TABLES + ([Data("flights", f"FROM {quoted(asked.flights)} LIMIT {{rows}}", 3_000_000)] if asked.flights else []),
        )
        groups = {
            "scaling": suite.scaling,  # first: its memory is compared with that of a process that did nothing yet
            "throughput": suite.throughput,
            "source": suite.source,
            "threads": suite.threads,
            "servers": lambda: suite.servers(python, typescript),
            "latency": suite.latency,
        }
        results = [one for name, group in groups.items() if asked.only in name for one in group()]
    asked.output.mkdir(parents=True, exist_ok=True)
    goals = ratios(results)
    machine = {"cpus": os.cpu_count(), "load_before_and_after": os.getloadavg(), "duckdb": duckdb.__version__, "quick": asked.quick}
    machine["seconds"] = round(time.monotonic() - started)
    document = {"machine": machine, "results": results, "ratios": [dict(zip(("data", "name", "ratio", "goal"), one)) for one in goals]}
    (asked.output / "bench.json").write_text(json.dumps(document, indent=1))
    (asked.output / "scaling.svg").write_text(svg(results))
    text = table(results) + "\n\n" + "\n".join(f"{data:29} {name:75} {ratio:9.2f}   goal {goal}" for data, name, ratio, goal in goals)
    (asked.output / "bench.txt").write_text(text + "\n")
    print("\n" + text + f"\n\n{machine}\nwritten: {asked.output}/bench.json, bench.txt, scaling.svg")


if __name__ == "__main__":
    main()
