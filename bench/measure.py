"""Interleaved runs with everything that a figure needs: wall time, CPU of both sides, peak memory."""

import dataclasses
import os
import pathlib
import statistics
import time
from collections.abc import Callable

TICKS = os.sysconf("SC_CLK_TCK")


@dataclasses.dataclass
class Cell:
    """One figure: `run` is timed, unless it returns the seconds that it measured itself; `clients` and `servers` are process ids."""

    name: str
    data: str
    run: Callable[[], float | None]
    payload: int = 0
    rows: int = 0
    clients: tuple[int, ...] = (os.getpid(),)
    servers: tuple[int, ...] = ()
    note: Callable[[], dict] = dict
    runs: list[dict] = dataclasses.field(default_factory=list)
    error: str = ""

    def summary(self) -> dict:
        """Medians; times in seconds, sizes in bytes."""
        head = {"name": self.name, "data": self.data, "rows": self.rows, "payload_bytes": self.payload, "runs": len(self.runs)}
        if self.error or not self.runs:
            return head | {"error": self.error or "not run: the time was used up"}
        medians = {key: statistics.median(run[key] for run in self.runs) for key in self.runs[0]}
        return head | medians | {"seconds_min": min(run["seconds"] for run in self.runs), "seconds_max": max(run["seconds"] for run in self.runs)}


def interleave(cells: list[Cell], wanted: int, seconds: float) -> None:
    """Runs every cell in turn, `wanted` times, after one round that is not counted.

    When `seconds` are used up, only cells without a figure are run, so that each has at least one. Memory counts from what is resident now:
    an upper bound of what a cell needs, since allocators keep what an earlier one gave back.
    """
    end = time.monotonic() + seconds
    resident = {pid: status(pid, "VmRSS") for cell in cells for pid in cell.clients + cell.servers}
    for turn in range(wanted + 1):
        for cell in cells:
            if cell.error or (cell.runs and time.monotonic() > end):
                continue
            try:
                run = once(cell, resident)
            except Exception as error:
                cell.error = f"{type(error).__name__}: {str(error).splitlines()[0]}"
                continue
            if turn:
                cell.runs.append(run)


def once(cell: Cell, resident: dict[int, int]) -> dict:
    sides = {"client": cell.clients, "server": cell.servers}
    before = {side: sum(map(cpu_seconds, pids)) for side, pids in sides.items()}
    for pid in cell.clients + cell.servers:
        reset_peak(pid)
    start = time.perf_counter()
    own = cell.run()
    run = {"seconds": time.perf_counter() - start if own is None else own}
    for side, pids in sides.items():
        run[f"{side}_cpu_seconds"] = sum(map(cpu_seconds, pids)) - before[side]
        run[f"{side}_peak_bytes"] = sum(status(pid, "VmHWM") - resident[pid] for pid in pids)
    return run | cell.note()


def cpu_seconds(pid: int) -> float:
    """User and system time of a process with all its threads."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def status(pid: int, name: str) -> int:
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    return 0


def reset_peak(pid: int) -> None:
    """Makes the peak start again at what is resident now."""
    try:
        pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")
    except OSError:
        pass  # then the peak is that of the whole life of the process
