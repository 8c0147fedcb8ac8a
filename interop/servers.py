"""The servers of the matrix: how each is set up, started and ended."""

import dataclasses
import os
import pathlib
import re
import signal
import socket
import subprocess
import time
import urllib.request

FOREIGN = pathlib.Path(__file__).parent / "foreign"
SET_UP_SECONDS = 1800
START_SECONDS = 60
STOP_SECONDS = 10


class ServerFailed(Exception):
    """A server could not be set up or started; carries the end of its log."""


@dataclasses.dataclass(frozen=True)
class Server:
    """`set_up`: command, or none. `start`: command with {port} and {run}, where {port} is 0 if the server announces its own.

    `client`: the Python environment whose reference client lists the server's functions, with the protocol name and version to declare;
    none where no client of the server's generation works.
    """

    name: str
    catalog: str
    set_up: list[str]
    start: list[str]
    environment: dict[str, str] = dataclasses.field(default_factory=dict)
    picks_port: bool = True
    client: tuple[str, str | None, str | None] | None = None


def all_servers(cache: pathlib.Path, worker: pathlib.Path) -> list[Server]:
    """Every server that `make interop` must meet."""
    python, node = cache / "python", cache / "node"
    now, old = python / "venv", python / "venv-2.0"
    set_up_now = [str(FOREIGN / "python.sh"), str(python), "venv", "0.47.0", "0.52.2"]
    set_up_old = [str(FOREIGN / "python.sh"), str(python), "venv-2.0", "0.36.2", "0.47.3"]
    fixture = ["-m", "vgi._test_fixtures.http_server", "--host", "127.0.0.1", "--port", "0", "--port-file", "{run}/port"]
    home = {"HOME": str(python / "home"), "VGI_WORKER_SQLITE_PATH": ":memory:", "VGI_SIGNING_KEY": "ab" * 32}

    def rust(name: str, manifest: str, binary: str, client: tuple[str, str | None, str | None] | None) -> Server:
        prefix = cache / ("rust" if binary == "vgirust" else "rust3")
        return Server(
            name,
            "rustbuf",
            [str(FOREIGN / "rust.sh"), str(prefix), manifest],
            [str(prefix / "target/debug" / binary), "--http"],
            {"VGI_HTTP_BIND": "127.0.0.1:0", "VGI_WORKER_CATALOG_NAME": "rustbuf", "VGI_WORKER_SHARED_STORAGE": "memory"},
            client=client,
        )

    def python_server(name: str, venv: pathlib.Path, set_up: list[str], *more: str) -> Server:
        environment = home | {"PATH": f"{venv}/bin:{os.environ['PATH']}"}
        return Server(name, "example", set_up, [str(venv / "bin/python"), *fixture, *more], environment, client=(str(venv), None, None))

    granian = Server(
        "python 0.47.0 granian x2",
        "example",
        set_up_now,
        [str(now / "bin/vgi-serve"), "vgi._test_fixtures.worker:ExampleWorker", "--http", "--server", "granian", "--http-workers", "2"]
        + ["--host", "127.0.0.1", "--port", "{port}", "--max-stream-response-bytes", "64000000"],
        home | {"PATH": f"{now}/bin:{os.environ['PATH']}", "VGI_WORKER_SQLITE_PATH": "{run}/state.db"},
        picks_port=False,
        client=(str(now), None, None),
    )
    return [
        Server(
            "vgi-worker",
            "example",
            [],
            [str(worker), "serve", "--port", "0", "--port-file", "{run}/port", "--test-functions"]
            + ["--storage", "memory", "--parent-pid", str(os.getpid())],
            client=(str(now), None, None),
        ),
        python_server("python 0.47.0", now, set_up_now),
        granian,
        python_server("python 0.47.0 externalized", now, set_up_now, "--demo-storage", "--externalize-threshold-bytes", "2000"),
        python_server("python 0.36.2", old, set_up_old),
        Server(
            "typescript 0.36.1",
            "tsbuf",
            [str(FOREIGN / "node.sh"), str(node)],
            [str(node / "node_modules/.bin/bun"), "run", str(node / "worker.ts"), "0"],
            {"VGI_WORKER_SQLITE_PATH": ":memory:", "VGI_SIGNING_KEY": "ab" * 32, "DO_NOT_TRACK": "1", "BUN_RUNTIME_TRANSPILER_CACHE_PATH": "0"},
            client=(str(old), None, None),
        ),
        rust("rust 0.22.0", "flat.toml", "vgirust", None),
        rust("rust 0.48.1", "v3.toml", "vgirust3", (str(now), "vgi.v3", "3.0.0")),
    ]


def set_up(server: Server) -> None:
    """Installs what the server needs, if it is not there yet."""
    if not server.set_up:
        return
    try:
        done = subprocess.run(server.set_up, capture_output=True, text=True, timeout=SET_UP_SECONDS)
    except subprocess.TimeoutExpired as late:
        raise ServerFailed(f"set-up took longer than {SET_UP_SECONDS} s") from late
    if done.returncode:
        raise ServerFailed(f"set-up failed:\n{last_lines(done.stdout + done.stderr)}")


class Running:
    """A started server; a context manager that ends it."""

    def __init__(self, server: Server, run: pathlib.Path):
        self.log = run / "log"
        port = 0 if server.picks_port else free_port()
        fill = {"port": port, "run": run}
        environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
        environment |= {name: value.format(**fill) for name, value in server.environment.items()}
        with self.log.open("wb") as log:
            # A group of its own, so that the processes that it forks end with it.
            self.process = subprocess.Popen(
                [part.format(**fill) for part in server.start], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, process_group=0
            )
        try:
            self.url = self.wait(port, run / "port")
        except BaseException:
            self.stop()
            raise

    def wait(self, port: int, port_file: pathlib.Path) -> str:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise ServerFailed(f"it ended with {self.process.returncode}:\n{self.tail()}")
            port = port or announced(port_file, self.log)
            if port and healthy(port):
                return f"http://127.0.0.1:{port}"
            time.sleep(0.1)
        raise ServerFailed(f"not ready after {START_SECONDS} s:\n{self.tail()}")

    def tail(self) -> str:
        return last_lines(self.log.read_text(errors="replace"))

    def stop(self) -> None:
        for kind in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, kind)
            except ProcessLookupError:
                pass
            try:
                self.process.wait(STOP_SECONDS)
                return
            except subprocess.TimeoutExpired:
                continue

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def announced(port_file: pathlib.Path, log: pathlib.Path) -> int:
    """The port from the file, or from a line `PORT:n`; 0 while there is none."""
    if port_file.exists() and (text := port_file.read_text().strip()):
        return int(text)
    line = re.search(r"^PORT:(\d+)$", log.read_text(errors="replace"), re.MULTILINE)
    return int(line.group(1)) if line else 0


def healthy(port: int) -> bool:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"http://127.0.0.1:{port}/health", timeout=5) as reply:
            return reply.status == 200
    except OSError:
        return False


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def last_lines(text: str, count: int = 8) -> str:
    return "\n".join("    " + line for line in text.strip().splitlines()[-count:])
