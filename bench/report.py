"""One table, with every figure as a ratio to its limits and peers of the same run, and the curve of the scaling."""

import math

MEBIBYTE = 1 << 20

# The cell of an echo without a server.
COPY = "DuckDB alone, table to table"


def table(results: list[dict]) -> str:
    head = f"{'group':11} {'data':29} {'what':40} {'n':>2} {'seconds':>9} {'MiB/s':>7} {'of TCP':>7} {'cpu c':>7} {'cpu s':>7} {'requests':>8} {'peak c':>7} {'peak s':>7}"
    lines = [head, "-" * len(head)]
    for one in results:
        start = f"{one['group']:11} {one['data'][:29]:29} {one['name'][:40]:40} {one['runs']:2}"
        if "error" in one:
            lines.append(f"{start} {one['error']}")
            continue
        rate = f"{one['payload_bytes'] / MEBIBYTE / one['seconds']:7.0f}" if one["payload_bytes"] else f"{'':7}"
        tcp = seconds_of(results, one, "loopback TCP, 1 connections")
        share = f"{tcp / one['seconds']:7.0%}" if tcp else f"{'':7}"
        requests = f"{one['requests']:8.0f}" if "requests" in one else f"{'':8}"
        cpu = f"{one['client_cpu_seconds']:7.2f} {one['server_cpu_seconds']:7.2f}"
        memory = f"{one['client_peak_bytes'] / MEBIBYTE:7.0f} {one['server_peak_bytes'] / MEBIBYTE:7.0f}"
        lines.append(f"{start} {one['seconds']:9.4f} {rate} {share} {cpu} {requests} {memory}")
    return "\n".join(lines)


def seconds_of(results: list[dict], like: dict, name: str) -> float | None:
    """Of the cell `name` of the same group and data."""
    for one in results:
        if (one["group"], one["data"], one["name"]) == (like["group"], like["data"], name):
            return one.get("seconds")
    return None


def ratios(results: list[dict]) -> list[tuple[str, str, float, str]]:
    """What the goals compare: data, name, ratio and the goal."""
    pairs = [
        ("throughput", "sink only", "loopback TCP, 1 connections", ">= 0.6"),
        ("throughput", "echo", "Flight echo, 2048 rows", ">= 1.5"),
        ("throughput", "echo", "Flight echo, 65536 rows", ">= 1.0"),
        ("servers", "Python server, buffer_input", "the Python way, buffer_input, 2048 rows", ">= 5"),
        ("servers", "Python server, buffer_input", "the Python way, buffer_input, 65536 rows", ">= 1.2"),
        ("servers", "Python server, sum_all_columns", "the Python way, sum_all_columns, 2048 rows", ">= 5"),
        ("servers", "Python server, sum_all_columns", "the Python way, sum_all_columns, 65536 rows", ">= 1.2"),
    ]
    found = []
    for group, ours, other, goal in pairs:
        for one in results:
            peer = seconds_of(results, one, other)
            if (one["group"], one["name"]) == (group, ours) and "seconds" in one and peer:
                found.append((one["data"], f"{ours} : {other}", peer / one["seconds"], goal))
    for one in results:
        if one["group"] == "servers" and "server," in one["name"] and "seconds" in one:
            found.append((one["data"], f"{one['name']}: server's processor time : wall time", one["server_cpu_seconds"] / one["seconds"], ">= 0.9"))
    return found + floors(results) + processor(results) + round_trips(results) + scaling_ratios(results)


def floors(results: list[dict]) -> list[tuple[str, str, float, str]]:
    """What an echo would reach if only DuckDB and the network took time: its rows are read, cross twice, and are stored. Its output begins
    when its input is complete, so that the two crossings do not overlap; every core is busy in each part."""
    found = []
    for one in results:
        crossing, peer = (seconds_of(results, one, name) for name in ("loopback TCP, 2 connections", "Flight echo, 65536 rows"))
        if (one["group"], one["name"]) == ("throughput", COPY) and crossing and peer and "seconds" in one:
            found.append((one["data"], "the most that an echo could reach : Flight echo, 65536 rows", peer / (one["seconds"] + 2 * crossing), "none"))
    return found


def processor(results: list[dict]) -> list[tuple[str, str, float, str]]:
    """Processor time of client and server together against that of both ends of the plain connection: other work on the machine hardly
    changes it."""
    found = []
    for one in results:
        limit = next((other for other in results if (other["group"], other["data"], other["name"]) == ("throughput", one["data"], "loopback TCP, 1 connections")), {})
        ours = one.get("client_cpu_seconds", 0) + one.get("server_cpu_seconds", 0)
        if (one["group"], one["name"]) == ("throughput", "sink only") and ours and limit.get("client_cpu_seconds"):
            found.append((one["data"], "sink only : loopback TCP, processor time of both sides", limit["client_cpu_seconds"] / ours, ">= 0.6"))
    return found


def round_trips(results: list[dict]) -> list[tuple[str, str, float, str]]:
    """Wall time in round trips, above what the same call takes without delay."""
    found = []
    for millis in (20, 50):
        data = f"{millis} ms each way"
        for one in results:
            if one["group"] != "latency" or one["data"] != data or "seconds" not in one:
                continue
            trips = one["seconds"] / (2 * millis / 1000)
            if one["name"] == "one small call":
                found.append((data, "one small call: round trips", trips, "<= 6"))
            elif one["name"].startswith("sink"):
                found.append((data, f"{one['name']}: time : process requests / (4 x 2) round trips", trips / (one["process_requests"] / 8), "<= 1.2"))
            else:
                found.append((data, "source: time : 1,000 / 8 round trips", trips / 125, "<= 1.3"))
    return found


def scaling_ratios(results: list[dict]) -> list[tuple[str, str, float, str]]:
    sinks = [one for one in results if one["group"] == "scaling" and one["name"] == "sink only" and "seconds" in one]
    costs = [one["seconds"] / one["rows"] for one in sinks if one["rows"] >= 100_000]
    found = [("10^5 to 10^8 rows", "cost of a row: most : least", max(costs) / min(costs), "<= 1.2")] if costs else []
    for one in sinks:
        # not less what DuckDB takes alone: memory that a call has kept for the next one would be taken off
        found.append((one["data"], "sink: client's peak memory with DuckDB's own, MiB", one["client_peak_bytes"] / MEBIBYTE, "<= 256"))
    return found


def svg(results: list[dict]) -> str:
    """Nanoseconds per row and peak memory of the client over the number of rows, both axes logarithmic."""
    sinks = [one for one in results if one["group"] == "scaling" and one["name"] == "sink only" and "seconds" in one]
    series = [
        ("ns per row", "#1f77b4", [(one["rows"], one["seconds"] / one["rows"] * 1e9) for one in sinks]),
        ("client's peak, MiB", "#d62728", [(one["rows"], max(one["client_peak_bytes"] / MEBIBYTE, 0.1)) for one in sinks]),
    ]
    width, height, left, bottom = 640, 360, 70, 50
    x = lambda rows: left + (math.log10(rows) - 4) / 4 * (width - left - 30)
    y = lambda value: height - bottom - (math.log10(value) + 1) / 5 * (height - bottom - 30)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">']
    parts.append(f'<rect width="{width}" height="{height}" fill="white"/>')
    for power in range(-1, 5):
        parts.append(f'<line x1="{left}" x2="{width - 30}" y1="{y(10.0**power):.1f}" y2="{y(10.0**power):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{y(10.0**power) + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    for power in range(4, 9):
        parts.append(f'<text x="{x(10**power):.1f}" y="{height - bottom + 18}" text-anchor="middle">10^{power}</text>')
    parts.append(f'<text x="{(left + width) / 2}" y="{height - 10}" text-anchor="middle">rows (sink only, one BIGINT)</text>')
    for number, (name, color, points) in enumerate(series):
        line = " ".join(f"{x(rows):.1f},{y(min(max(value, 0.1), 1e4)):.1f}" for rows, value in points)
        parts.append(f'<polyline points="{line}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.append(f'<text x="{width - 40}" y="{20 + 16 * number}" text-anchor="end" fill="{color}">{name}</text>')
    return "\n".join([*parts, "</svg>"])
