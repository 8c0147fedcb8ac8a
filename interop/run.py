"""The matrix: every server × every scenario. `make interop` calls it; see --help."""

import argparse
import os
import pathlib
import sys
import tempfile
import threading
import time
import traceback

import duckdb

from scenarios import SCENARIOS, Scenario
from servers import Running, Server, ServerFailed, all_servers, set_up
from target import Target

# More than the clocks of a single exchange, so that what hangs past it hangs in the client.
SCENARIO_SECONDS = 120


def attempt(scenario: Scenario, target: Target, listed: set[str]) -> tuple[str, str]:
    """`pass`, `n/a` or `FAIL`, with a reason."""
    function = next((name for name in scenario.any_of if name in listed), None)
    if scenario.any_of and function is None:
        return "n/a", f"no function {' or '.join(scenario.any_of)}"
    outcome = ("FAIL", f"hangs: no end after {SCENARIO_SECONDS} s")

    def run() -> None:
        nonlocal outcome
        try:
            scenario.run(target, function or "")
            outcome = ("pass", "")
        except (duckdb.Error, AssertionError) as error:
            outcome = ("FAIL", str(error))
        except Exception:
            outcome = ("FAIL", traceback.format_exc())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(SCENARIO_SECONDS)
    return outcome


def try_server(server: Server, extension: pathlib.Path, only: str) -> dict[str, str]:
    """Sets up, starts and tries one server; prints as it goes."""
    print(f"== {server.name}", flush=True)
    results: dict[str, str] = {}
    try:
        set_up(server)
        with tempfile.TemporaryDirectory(prefix="vgi-interop-") as run, Running(server, pathlib.Path(run)) as running:
            target = Target(server, running.url, extension)
            names = target.functions()
            listed = {name.removeprefix("main.") for name in names if name.startswith("main.")}
            for scenario in SCENARIOS:
                if only not in scenario.name:
                    continue
                started = time.monotonic()
                outcome, reason = attempt(scenario, target, listed)
                results[scenario.name] = outcome
                first, *rest = reason.strip().splitlines() or [""]
                print(f"{outcome:4} {time.monotonic() - started:6.1f} s  {scenario.name}{': ' if first else ''}{first}", flush=True)
                for line in rest[:20]:
                    print(f"               {line}")
                if running.process.poll() is not None:
                    raise ServerFailed(f"it ended during '{scenario.name}':\n{running.tail()}")
            if "FAIL" in results.values():
                print("end of the server's log:\n" + running.tail())
    except (ServerFailed, duckdb.Error) as error:
        print(f"FAIL {error}", flush=True)
        # What could not be tried has failed.
        return {scenario.name: results.get(scenario.name, "FAIL") for scenario in SCENARIOS if only in scenario.name}
    return results


def print_matrix(matrix: dict[str, dict[str, str]], only: str) -> None:
    print("\nscenario × server:")
    for number, server in enumerate(matrix, 1):
        print(f"  {number}: {server}")
    names = [scenario.name for scenario in SCENARIOS if only in scenario.name]
    width = max(map(len, names), default=0)
    print(f"{'':{width}}  " + "  ".join(f"{number:>4}" for number in range(1, len(matrix) + 1)))
    for name in names:
        print(f"{name:{width}}  " + "  ".join(f"{results[name]:>4}" for results in matrix.values()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extension", type=pathlib.Path, required=True)
    parser.add_argument("--worker", type=pathlib.Path, required=True)
    parser.add_argument("--cache", type=pathlib.Path, required=True, help="where foreign servers are installed")
    parser.add_argument("--server", default="", help="only servers whose name contains this")
    parser.add_argument("--scenario", default="", help="only scenarios whose name contains this")
    asked = parser.parse_args()
    servers = [one for one in all_servers(asked.cache.resolve(), asked.worker.resolve()) if asked.server in one.name]
    if any(one.client for one in servers) and all(not one.set_up for one in servers):
        # The reference client lives in the environment of a server that was not asked for.
        set_up(next(one for one in all_servers(asked.cache.resolve(), asked.worker.resolve()) if one.name == "python 0.47.0"))
    matrix = {server.name: try_server(server, asked.extension.resolve(), asked.scenario) for server in servers}
    print_matrix(matrix, asked.scenario)
    outcomes = [outcome for results in matrix.values() for outcome in results.values()]
    counts = {outcome: outcomes.count(outcome) for outcome in ("pass", "n/a", "FAIL")}
    print("\n" + ", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return 1 if counts["FAIL"] or not counts["pass"] else 0


if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    # A scenario that hangs must not keep the process.
    os._exit(status)
