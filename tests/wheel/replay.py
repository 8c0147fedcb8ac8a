"""A recorded call can be served again from its frames: replay.py EXTENSION URL VERSION"""

import collections
import http.server
import json
import pathlib
import struct
import sys
import tempfile
import threading
import urllib.request

import duckdb

extension, url, _ = sys.argv[1:4]


def connect():
    connection = duckdb.connect(config={"allow_unsigned_extensions": True, "threads": 1})
    connection.execute(f"LOAD '{extension}'")
    connection.execute("SET vgi_inflight = 1")
    return connection


def ask(connection, server):
    call = f"vgi_call('{server}', 'example', 'batch_index_buffer_input', (SELECT i, 'n' || i AS s FROM range(5000) t(i)))"
    return connection.execute(f"SELECT count(*), sum(i), max(s) FROM {call} WHERE i > 10").fetchall()


def read(path):
    """A frame: header length, JSON header, payload."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<I", data)
    header = json.loads(data[4 : 4 + length])
    assert header["batch"] == (len(data) > 4 + length), path
    return header, data[4 + length :]


class Replay(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send(self, status, headers, body):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.send(200, health[0], health[1])

    def do_POST(self):
        request = self.rfile.read(int(self.headers["Content-Length"]))
        method = self.path.strip("/")
        if method not in replies:  # the destructor is not waited for, so it is not recorded
            self.send(404, [], b"")
            return
        expected, reply = replies[method].popleft()
        if len(expected) != len(request):
            mismatches.append((method, len(expected), len(request)))
        self.send(200, [("Content-Type", "application/vnd.apache.arrow.stream")], reply)

    def log_message(self, *_):
        pass


with tempfile.TemporaryDirectory() as directory:
    connection = connect()
    connection.execute(f"SET vgi_trace_dir = '{directory}'")
    recorded = ask(connection, url)
    assert recorded[0][0] == 4989, recorded
    connection.close()
    names = sorted(path.name for path in pathlib.Path(directory).iterdir())
    frames = [(name, *read(pathlib.Path(directory) / name)) for name in names]

methods = [header["method"] for name, header, _ in frames if name.endswith(".reply.frame")]
assert any(method.endswith("table_buffering_process") for method in methods), methods
assert all(header["success"] for _, header, _ in frames)

replies = collections.defaultdict(collections.deque)
mismatches = []
requests = {name.removesuffix(".request.frame"): payload for name, _, payload in frames if name.endswith(".request.frame")}
for name, header, payload in frames:
    if name.endswith(".reply.frame"):
        replies[header["method"]].append((requests[name.removesuffix(".reply.frame")], payload))
with urllib.request.urlopen(f"{url}/health", timeout=10) as answer:
    kept = ("vgi", "content-type")
    health = ([(name, value) for name, value in answer.headers.items() if name.lower().startswith(kept)], answer.read())

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Replay)
threading.Thread(target=server.serve_forever, daemon=True).start()
connection = connect()
assert ask(connection, f"http://127.0.0.1:{server.server_port}") == recorded
assert not mismatches, mismatches
connection.close()
server.shutdown()
