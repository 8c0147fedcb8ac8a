"""A server as the scenarios see it: its URL, its catalog, and the functions that it lists."""

import dataclasses
import pathlib
import re
import subprocess

import duckdb

from servers import FOREIGN, Server, last_lines


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@dataclasses.dataclass(frozen=True)
class Target:
    server: Server
    url: str
    extension: pathlib.Path

    @property
    def port(self) -> int:
        return int(self.url.rsplit(":", 1)[1])

    def connect(self, threads: int = 2) -> duckdb.DuckDBPyConnection:
        """A new database with the extension and clocks that end a hanging exchange before its scenario is given up."""
        connection = duckdb.connect(config={"allow_unsigned_extensions": True, "threads": threads})
        connection.execute(f"LOAD {quoted(str(self.extension))}")
        connection.execute("SET vgi_http_timeout_seconds = 60")
        connection.execute("SET vgi_stall_timeout_seconds = 30")
        return connection

    def attach(self, connection: duckdb.DuckDBPyConnection) -> None:
        connection.execute(f"ATTACH {quoted(self.server.catalog)} AS server (TYPE vgi, LOCATION {quoted(self.url)})")

    def call(self, function: str, table: str, more: str = "") -> str:
        """SQL of a call of a function of the default schema, with a query as its table."""
        return f"vgi_call({quoted(self.url)}, {quoted(self.server.catalog)}, {quoted(function)}, ({table}){more})"

    def functions(self) -> set[str]:
        """`schema.function` of every buffering function, by the extension's listing."""
        connection = self.connect()
        self.attach(connection)
        rows = connection.execute("SELECT schema_name || '.' || name FROM vgi_catalog_contents('server') WHERE kind = 'buffering function'")
        return {name for (name,) in rows.fetchall()}

    def listing(self) -> list[str]:
        """`kind schema.function` of every function, forms of one name as often as there are, by the extension's listing."""
        connection = self.connect()
        self.attach(connection)
        rows = connection.execute("SELECT kind || ' ' || schema_name || '.' || name FROM vgi_catalog_contents('server') WHERE kind LIKE '%function'")
        return sorted(name for (name,) in rows.fetchall())

    def callable_functions(self) -> set[str]:
        """`function` of every function that DuckDB itself lists for the attached catalog; it folds case and shows forms once."""
        connection = self.connect()
        self.attach(connection)
        rows = connection.execute("SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE database_name = 'server' AND function_type = 'table'")
        return {name for (name,) in rows.fetchall()}

    def reference_listing(self) -> list[str] | None:
        """The same as `listing` by the reference client; None where there is no client that speaks to the server."""
        if self.server.client is None:
            return None
        venv, *protocol = self.server.client
        command = [f"{venv}/bin/python", str(pathlib.Path(__file__).parent / "reference_client.py"), self.url, self.server.catalog]
        done = subprocess.run(command + [part for part in protocol if part], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, "the reference client failed:\n" + last_lines(done.stderr, 3)
        return sorted(done.stdout.splitlines())

    def declared_listing(self) -> list[str]:
        """The names that the source of the Rust worker registers, for the generation that no reference client speaks."""
        source = (FOREIGN / "rust/main.rs").read_text()
        return sorted(f"buffering function main.{name}" for name in re.findall(r'F\("(\w+)"', source))
