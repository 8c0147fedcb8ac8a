"""Workers that a test starts and ends by itself."""

import os
import socket
import subprocess
import time
import urllib.request


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Worker:
    """The project's worker on a port of its own, which it keeps when it is started again with other options."""

    def __init__(self, *options):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.start(*options)

    def start(self, *options):
        command = [os.environ["VGI_WORKER_BINARY"], "serve", "--port", str(self.port), "--storage", "memory"]
        command += ["--parent-pid", str(os.getpid())]
        self.process = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while True:
            try:
                with urllib.request.urlopen(f"{self.url}/health", timeout=5):
                    return
            except OSError:
                assert self.process.poll() is None, "the worker does not start"
                assert time.monotonic() < deadline, "the worker does not listen"
                time.sleep(0.01)

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=30)

    def restart(self, *options):
        self.stop()
        self.start(*options)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
