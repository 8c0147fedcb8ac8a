"""A client that others wrote calls every function of our worker, in each protocol version that it speaks. `make clients` calls it."""

import argparse
import pathlib
import subprocess
import sys
import tempfile

from servers import Running, ServerFailed, all_servers, last_lines, set_up

HERE = pathlib.Path(__file__).parent
CALL_SECONDS = 300

# What is said, the server whose environment has the client, and the protocol to declare instead of the client's own.
CLIENTS = [
    ("vgi-python 0.47.0, vgi.v2 2.2.0", "python 0.47.0", []),
    ("vgi-python 0.36.2, vgi.v2 2.0.0", "python 0.36.2", []),
    ("vgi-python 0.47.0, vgi.v3 3.0.0", "python 0.47.0", ["vgi.v3", "3.0.0"]),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worker", type=pathlib.Path, required=True)
    parser.add_argument("--cache", type=pathlib.Path, required=True, help="where foreign clients are installed")
    parser.add_argument("--client", default="", help="only clients whose name contains this")
    asked = parser.parse_args()
    servers = {server.name: server for server in all_servers(asked.cache.resolve(), asked.worker.resolve())}
    failed = []
    tried = [client for client in CLIENTS if asked.client in client[0]]
    for name, home, protocol in tried:
        print(f"== {name}", flush=True)
        try:
            set_up(servers[home])
            with tempfile.TemporaryDirectory(prefix="vgi-clients-") as run, Running(servers["vgi-worker"], pathlib.Path(run)) as worker:
                command = [f"{servers[home].client[0]}/bin/python", str(HERE / "reference_calls.py"), worker.url, *protocol]
                done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=CALL_SECONDS)
                print(done.stdout, end="")
                if done.returncode:
                    failed.append(name)
                    print(last_lines(done.stderr) + "\nend of the worker's log:\n" + worker.tail())
        except (ServerFailed, subprocess.TimeoutExpired) as error:
            failed.append(name)
            print(f"FAIL {error}")
    print(f"\n{len(tried)} clients, {len(failed)} failed{': ' if failed else ''}{', '.join(failed)}")
    return 1 if failed or not tried else 0


if __name__ == "__main__":
    sys.exit(main())
