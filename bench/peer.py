"""The peers, in the environment of vgi-python: other ways to bring a table's rows to a server and back.

Reads one JSON request a line, {"peer", "batch", "url", "function"} or {"parquet": path}, and answers with {"seconds"} or {"error"}.
"""

import json
import logging
import sys
import threading
import time

import duckdb
import pyarrow as pa
import pyarrow.flight as flight
from vgi.arguments import Arguments
from vgi.client import Client

logging.disable(logging.CRITICAL)
db = duckdb.connect()
batches: dict[int, list[pa.RecordBatch]] = {}


class Echo(flight.FlightServerBase):
    """DoExchange that sends every batch back at once."""

    def do_exchange(self, context, descriptor, reader, writer):
        begun = False
        for chunk in reader:
            if not begun:
                writer.begin(chunk.data.schema)
                begun = True
            writer.write_batch(chunk.data)


def load(path: str) -> None:
    db.execute(f"CREATE OR REPLACE TABLE t AS FROM '{path}'")
    batches.clear()


def cut(size: int) -> list[pa.RecordBatch]:
    if size not in batches:
        batches[size] = db.sql("FROM t").to_arrow_table().combine_chunks().to_batches(size)
    return batches[size]


def flight_echo(request: dict) -> float:
    """The batches are in memory already, and what comes back is dropped: less work than ours does."""
    wanted = cut(request["batch"])
    with flight.connect(request["url"]) as client:
        start = time.perf_counter()
        writer, reader = client.do_exchange(flight.FlightDescriptor.for_command(b"echo"))
        writer.begin(wanted[0].schema)

        def send() -> None:
            for batch in wanted:
                writer.write_batch(batch)
            writer.done_writing()

        sender = threading.Thread(target=send)
        sender.start()
        rows = sum(chunk.data.num_rows for chunk in reader)
        sender.join()
        writer.close()
        seconds = time.perf_counter() - start
    assert rows == sum(batch.num_rows for batch in wanted)
    return seconds


def python_way(request: dict) -> float:
    """DuckDB → Arrow → vgi-python's client → server → Arrow → DuckDB."""
    start = time.perf_counter()
    relation = db.sql("FROM t")
    reader = relation.to_arrow_reader(request["batch"])
    with Client.from_http(request["url"]) as client:
        attached = client.catalog_attach(name="example", options={}, data_version_spec=None, implementation_version=None)
        client._attach_opaque_data = attached.attach_opaque_data
        output = list(
            client.table_buffering_function(
                function_name=request["function"], input=iter(reader), arguments=Arguments(), schema_path=["main"], input_schema=reader.schema
            )
        )
    back = pa.Table.from_batches(output)
    db.execute("CREATE OR REPLACE TEMP TABLE back AS FROM back")
    return time.perf_counter() - start


def python_udf(_: dict) -> float:
    """A scalar function over Arrow in the process itself: what a function costs that needs no server and no whole input."""
    start = time.perf_counter()
    db.execute("CREATE OR REPLACE TEMP TABLE back AS SELECT same(i) AS i FROM t")
    return time.perf_counter() - start


def main() -> None:
    server = Echo("grpc://127.0.0.1:0") if sys.argv[1:] == ["--flight-server"] else None
    if server:
        print(server.port, flush=True)
        server.serve()
        return
    db.create_function("same", lambda values: values, ["BIGINT"], "BIGINT", type="arrow")
    peers = {"flight": flight_echo, "python": python_way, "udf": python_udf}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "parquet" in request:
                load(request["parquet"])
                answer = {"seconds": 0}
            else:
                answer = {"seconds": peers[request["peer"]](request)}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


main()
