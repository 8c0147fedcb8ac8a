"""DuckDB with the extension, as its users run it."""

import pathlib

import duckdb


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


class Client:
    """A database with the tables of the benchmark."""

    def __init__(self, extension: pathlib.Path, threads: int):
        self.db = duckdb.connect(config={"allow_unsigned_extensions": True, "threads": threads})
        self.db.execute(f"LOAD {quoted(str(extension))}")

    def table(self, name: str, sql: str) -> int:
        self.db.execute(f"CREATE OR REPLACE TABLE {name} AS {sql}")
        return self.db.execute(f"SELECT count(*) FROM {name}").fetchone()[0]

    def call(self, url: str, catalog: str, function: str, table: str, more: str = "") -> str:
        return f"vgi_call({quoted(url)}, {quoted(catalog)}, {quoted(function)}, (FROM {table}){more})"

    def read(self, call: str, threads: int | None = None) -> None:
        """Runs the call and drops its rows after one column was looked at."""
        self.run(f"SELECT count(COLUMNS(*)) FROM {call}", threads)

    def store(self, source: str, threads: int | None = None) -> None:
        """Stores the rows of a call in DuckDB; of a table, it is an echo without a server."""
        self.run(f"CREATE OR REPLACE TEMP TABLE back AS FROM {source}", threads)

    def unmerged(self, work) -> None:
        """With a request for every chunk."""
        self.db.execute("SET vgi_batch_bytes = 0")
        try:
            work()
        finally:
            self.db.execute("RESET vgi_batch_bytes")

    def run(self, sql: str, threads: int | None) -> None:
        if threads:
            self.db.execute(f"SET threads = {threads}")
        self.db.execute(sql).fetchall()

    def counters(self) -> dict:
        """Of the last call."""
        names = ("requests", "process_requests", "request_bytes", "response_bytes", "encode_ms", "wait_ms", "decode_ms")
        row = self.db.execute(f"SELECT {', '.join(names)} FROM vgi_calls() ORDER BY call_id DESC LIMIT 1").fetchone()
        return dict(zip(names, (float(value or 0) for value in row)))
