"""The processes beside the driver: peers, the slow network, the limits."""

import dataclasses
import json
import pathlib
import resource
import subprocess


class Child:
    """A process that is ended with the benchmark."""

    def __init__(self, command: list[str], **options):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True, **options)
        self.pid = self.process.pid

    def line(self) -> str:
        text = self.process.stdout.readline()
        assert text, f"{self.process.args[0]} ended with {self.process.wait()}"
        return text.strip()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


class Peers(Child):
    """peer.py, asked by JSON lines."""

    def __init__(self, python: pathlib.Path):
        super().__init__([str(python), str(pathlib.Path(__file__).parent / "peer.py")])

    def ask(self, **request) -> float:
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.line())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["seconds"]


def flight_server(python: pathlib.Path) -> tuple[Child, str]:
    child = Child([str(python), str(pathlib.Path(__file__).parent / "peer.py"), "--flight-server"], stderr=subprocess.DEVNULL)
    return child, f"grpc://127.0.0.1:{child.line()}"


def slow_network(tools: pathlib.Path, port: int, millis: int) -> tuple[Child, str]:
    child = Child([str(tools), "proxy", str(port), str(millis), "0"])
    return child, f"http://127.0.0.1:{child.line().removeprefix('PORT:')}"


@dataclasses.dataclass
class Limit:
    """A limit of the machine, measured by the tool; `cpu` is the processor time of the last run, of both sides together."""

    tools: pathlib.Path
    words: tuple[object, ...]
    cpu_seconds: float = 0

    def run(self) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([str(self.tools), *map(str, self.words)], capture_output=True, text=True, timeout=120, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.cpu_seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return float(done.stdout)

    def cpu(self) -> dict:
        return {"client_cpu_seconds": self.cpu_seconds, "server_cpu_seconds": 0.0}
