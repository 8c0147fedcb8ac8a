"""A server that refuses large requests without having announced a limit gets smaller ones: refused.py EXTENSION URL VERSION"""

import http.server
import sys
import threading
import urllib.error
import urllib.request

import duckdb

extension, url, _ = sys.argv[1:4]
LIMIT = 60_000
refused = []


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send(self, status, headers, body):
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "connection", "transfer-encoding", "vgi-max-request-bytes", "date"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def forward(self, body=None):
        request = urllib.request.Request(url + self.path, data=body, method=self.command)
        for name, value in self.headers.items():
            if name.lower() not in ("host", "content-length", "connection"):
                request.add_header(name, value)
        try:
            with urllib.request.urlopen(request, timeout=30) as reply:
                self.send(reply.status, reply.headers.items(), reply.read())
        except urllib.error.HTTPError as reply:
            self.send(reply.code, reply.headers.items(), reply.read())

    def do_GET(self):
        self.forward()

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if len(body) > LIMIT:
            refused.append(len(body))
            self.send(413, [("Content-Type", "text/plain")], b"too large")
        else:
            self.forward(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
threading.Thread(target=server.serve_forever, daemon=True).start()
call = f"vgi_call('http://127.0.0.1:{server.server_port}', 'example', "

connection = duckdb.connect(config={"allow_unsigned_extensions": True, "threads": 2})
connection.execute(f"LOAD '{extension}'")
connection.execute("CREATE TABLE t AS SELECT i, repeat('x', 100) || i AS s FROM range(5_000) t(i)")

back = f"FROM {call}'buffer_input', (FROM t))"
assert connection.execute(f"SELECT count(*) FROM (FROM t EXCEPT ALL {back})").fetchone() == (0,)
assert connection.execute(f"SELECT count(*) {back}").fetchone() == (5_000,)
assert refused, "nothing was refused, so nothing was tested"

# in order, too
numbered = f"SELECT i, row_number() OVER () - 1 AS n FROM {call}'ordered_buffer_input', (FROM t))"
assert connection.execute(f"SELECT count(*), bool_and(i = n) FROM ({numbered})").fetchone() == (5_000, True)

# a source without indexes, counted by the sink
counted = f"SELECT i, row_number() OVER () - 1 AS n FROM {call}'batch_index_buffer_input', (SELECT i, repeat('x', 100) AS s FROM range(5_000) t(i)))"
assert connection.execute(f"SELECT count(*), bool_and(i = n) FROM ({counted})").fetchone() == (5_000, True)

# a source with indexes, several requests in flight: the pieces stand between the requests of one batch
connection.execute("CREATE TABLE large AS SELECT i, repeat('x', 100) || i AS s FROM range(130_000) t(i)")
before = len(refused)
indexed = f"SELECT i, row_number() OVER () - 1 AS n FROM {call}'batch_index_buffer_input', (FROM large))"
assert connection.execute(f"SELECT count(*), bool_and(i = n) FROM ({indexed})").fetchone() == (130_000, True)
assert len(refused) > before, "nothing was refused, so nothing was tested"

# refused again and again: pieces of pieces
LIMIT = 25_000
connection.execute("CREATE OR REPLACE TABLE large AS SELECT i, repeat('x', 1_000) || i AS s FROM range(4_000) t(i)")
before = len(refused)
assert connection.execute(f"SELECT count(*), bool_and(i = n) FROM ({indexed})").fetchone() == (4_000, True)
assert len(refused) > before + 5, refused[before:]

# one row that does not fit is an error that says so
try:
    connection.execute(f"FROM {call}'buffer_input', (SELECT repeat('x', 100_000) AS s))").fetchall()
except duckdb.Error as error:
    assert "one row takes" in str(error) or "413" in str(error), error
else:
    raise AssertionError("a row above the limit was accepted")
connection.close()
server.shutdown()
