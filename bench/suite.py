"""The groups of figures. Each makes its cells, has them measured, and returns their summaries."""

import dataclasses
import pathlib
import tempfile

from children import Limit, Peers, flight_server, slow_network
from client import Client, quoted
from data import SMALL, TABLES, Data
from measure import Cell, interleave
from report import COPY


@dataclasses.dataclass
class Suite:
    client: Client
    tools: pathlib.Path
    python: pathlib.Path
    worker: object
    runs: int
    # Rows are divided, and the time of every group is multiplied.
    scale: int
    share: float
    tables: list[Data]

    def measured(self, group: str, cells: list[Cell], seconds: float) -> list[dict]:
        interleave(cells, self.runs, seconds * self.share)
        results = [{"group": group} | cell.summary() for cell in cells]
        for result in results:
            text = result.get("error") or f"{result['seconds']:8.4f} s  ({result['runs']} runs)"
            print(f"  {group}: {result['data']}: {result['name']}: {text}", flush=True)
        return results

    def ours(self, name: str, data: str, rows: int, payload: int, run, server) -> Cell:
        return Cell(name, data, run, payload, rows, servers=(server.process.pid,), note=self.client.counters)

    def limit(self, name: str, data: str, payload: int, rows: int, *words: object) -> Cell:
        limit = Limit(self.tools, words)
        return Cell(name, data, limit.run, payload, rows, clients=(), note=limit.cpu)

    def own(self, function: str, table: str = "t", more: str = "", url: str | None = None) -> str:
        return self.client.call(url or self.worker.url, "example", function, table, more)

    def throughput(self) -> list[dict]:
        """Every data set: limits, Flight, and ours on the own worker, with two threads."""
        server, url = flight_server(self.python)
        peers = Peers(self.python)
        results = []
        try:
            for data in self.tables:
                results += self.measured("throughput", self.data_set(data, server, url, peers), 60)
        finally:
            peers.stop()
            server.stop()
        return results

    def data_set(self, data: Data, flight, url: str, peers: Peers) -> list[Cell]:
        client, name = self.client, data.name
        rows = client.table("t", data.sql(self.scale))
        client.read(self.own("batch_trace"), 2)
        payload = int(client.counters()["request_bytes"])
        cells = [self.limit("memcpy", name, payload, rows, "memcpy", payload)]
        for connections in (1, 2):
            cells.append(self.limit(f"loopback TCP, {connections} connections", name, payload, rows, "tcp", payload, connections))
        cells.append(self.ours("sink only", name, rows, payload, lambda: client.read(self.own("batch_trace"), 2), self.worker))
        if data.numeric and not data.sink_only:
            cells.append(self.ours("sums", name, rows, payload, lambda: client.read(self.own("sum_all_columns"), 2), self.worker))
        if data.sink_only:
            return cells
        cells.append(self.ours("echo", name, rows, payload, lambda: client.store(self.own("buffer_input"), 2), self.worker))
        cells.append(Cell(COPY, name, lambda: client.store("t", 2), payload, rows))
        with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
            client.db.execute(f"COPY t TO {quoted(file.name)} (FORMAT parquet)")
            peers.ask(parquet=file.name)
        for batch in (2048, 65536):
            run = lambda batch=batch: peers.ask(peer="flight", url=url, batch=batch)
            cells.append(Cell(f"Flight echo, {batch} rows", name, run, payload, rows, (peers.pid,), (flight.pid,)))
        return cells

    def source(self) -> list[dict]:
        """Rows that the worker makes: two columns of BIGINT, 8 streams, about 65,536 rows in a batch."""
        rows = 10_000_000 // self.scale
        ticks = max(rows // 8 // 65536, 1)
        self.client.table("one", "SELECT 1 AS i")
        call = self.own("emit_parts", "one", f", args := [8, {rows // 8}], named := {{ticks: {ticks}}}")
        cell = self.ours("source only", "2 x bigint", rows, rows * 16, lambda: self.client.read(call, 2), self.worker)
        limit = self.limit("loopback TCP, 1 connections", "2 x bigint", rows * 16, rows, "tcp", rows * 16, 1)
        return self.measured("source", [limit, cell], 15)

    def threads(self) -> list[dict]:
        rows = self.client.table("t", TABLES[1].sql(self.scale))
        cells = []
        for threads in (1, 2, 4, 8):
            for name, function, run in (("sink only", "batch_trace", self.client.read), ("echo", "buffer_input", self.client.store)):
                work = lambda run=run, threads=threads, function=function: run(self.own(function), threads)
                cells.append(self.ours(f"{name}, {threads} threads", TABLES[1].name, rows, 0, work, self.worker))
        return self.measured("threads", cells, 60)

    def servers(self, python_server, typescript_server) -> list[dict]:
        """The way of a Python user, and ours, on the same Python server; ours on the TypeScript server."""
        client, peers = self.client, Peers(self.python)
        rows = client.table("t", SMALL.sql(self.scale))
        cells = []
        try:
            with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
                client.db.execute(f"COPY t TO {quoted(file.name)} (FORMAT parquet)")
                peers.ask(parquet=file.name)
            cells.append(Cell("Python UDF over Arrow", SMALL.name, lambda: peers.ask(peer="udf"), 0, rows, (peers.pid,)))
            for name, server, catalog, functions in (
                ("Python", python_server, "example", ("buffer_input", "sum_all_columns")),
                ("TypeScript", typescript_server, "tsbuf", ("echo_all_rows", "sum_numeric")),
            ):
                for function in functions:
                    call = client.call(server.url, catalog, function, "t")
                    run = lambda call=call: client.store(call, 2)
                    cells.append(self.ours(f"{name} server, {function}", SMALL.name, rows, 0, run, server))
            for function in ("buffer_input", "sum_all_columns"):
                for batch in (2048, 65536):
                    run = lambda function=function, batch=batch: peers.ask(peer="python", url=python_server.url, function=function, batch=batch)
                    name = f"the Python way, {function}, {batch} rows"
                    cells.append(Cell(name, SMALL.name, run, 0, rows, (peers.pid,), (python_server.process.pid,)))
            return self.measured("servers", cells, 150)
        finally:
            peers.stop()

    def latency(self) -> list[dict]:
        """A delay each way: 1,000 chunks in, one chunk in and out, 1,000 batches out of 8 streams."""
        client, results = self.client, []
        client.table("chunks", "FROM range(2048000) r(i)")
        client.table("chunk", "FROM range(2000) r(i)")
        port = int(self.worker.url.rsplit(":", 1)[1])
        for millis in (0, 1, 5, 20, 50):
            network, url = slow_network(self.tools, port, millis)
            try:
                out = self.own("emit_parts", "chunk", ", args := [8, 1250], named := {ticks: 125}", url)
                sink, small = self.own("batch_trace", "chunks", url=url), self.own("buffer_input", "chunk", url=url)
                data = f"{millis} ms each way"
                cells = [
                    self.ours("one small call", data, 2000, 0, lambda small=small: client.read(small, 2), self.worker),
                    self.ours("sink of 1,000 chunks", data, 2_048_000, 0, lambda sink=sink: client.read(sink, 2), self.worker),
                    self.ours("source of 1,000 batches", data, 10_000, 0, lambda out=out: client.read(out, 2), self.worker),
                ]
                results += self.measured("latency", cells, 12 + millis * 1.6)
                if millis == 20:
                    unmerged = lambda sink=sink: client.unmerged(lambda: client.read(sink, 2))
                    cell = self.ours("sink of 1,000 chunks, unmerged", data, 2_048_000, 0, unmerged, self.worker)
                    results += self.measured("latency", [cell], 25)
            finally:
                network.stop()
        return results

    def scaling(self) -> list[dict]:
        """Cost of a row and memory as the input grows; the rows are made on the way, so that no table counts as memory."""
        cells = []
        for power in range(4, 9 if self.scale == 1 else 8):
            rows = 10**power
            for name, query in (("sink only", f"vgi:{rows}"), ("DuckDB alone", f"SELECT sum(i) FROM range({rows}) r(i)")):
                sql = query
                if query.startswith("vgi"):
                    url = quoted(self.worker.url)
                    sql = f"SELECT sum(num_rows) FROM vgi_call({url}, 'example', 'batch_trace', (FROM range({rows}) r(i)))"
                run = lambda sql=sql: self.client.run(sql, 2)
                cell = self.ours(name, f"10^{power} rows", rows, 0, run, self.worker)
                cells.append(cell if name == "sink only" else dataclasses.replace(cell, servers=(), note=dict, runs=[]))
        return self.measured("scaling", cells, 90)
