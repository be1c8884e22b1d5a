"""The comparisons on a terminal: a heading, a small table, and what it means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from rich.console import Console

from bottleneck.analysis.finding import Comparison, Diagnosis
from bottleneck.reports import layout
from bottleneck.reports.layout import Columns, Signs
from bottleneck.reports.safe import safe
from bottleneck.reports.units import (
    cost_text,
    count_text,
    megabytes_text,
    percent_text,
    rate_text,
    seconds_text,
    size_text,
    times_text,
)

SENTENCE_CHARACTERS = 1000
MOST_LINES = 8
"""And columns of a matrix: this tool measures fewer."""
OF_TCP_ALONE = frozenset({"buffers", "messages", "windows", "datagrams"})
MOST_BUFFERS = 11
BAR_CELLS = 10
MOST_WINDOWS = 16
HEAT_CHARACTERS = 5
Row = dict[str, Any]


def print_comparisons(
    diagnosis: Diagnosis, console: Console, signs: Signs, verbose: bool = False
) -> None:
    """Each kind of comparison that the diagnosis has; verbose: with all of its rows.

    Beside copies the tables of TCP alone would bury the verdict: their sentences are enough.
    """
    brief = [
        each
        for each in diagnosis.comparisons
        if each.about in OF_TCP_ALONE and diagnosis.copies and not verbose
    ]
    for about, group in groupby(diagnosis.comparisons, key=lambda each: each.about):
        found = [each for each in group if each not in brief]
        if found:
            _print(TABLES[about], found, console, signs, verbose)
    sentences = [safe(each.sentence, SENTENCE_CHARACTERS) for each in brief]
    layout.bullets(console, "TCP alone (its tables with --verbose)", sentences)


@dataclass(frozen=True)
class Table:
    """How one kind of comparison is shown."""

    heading: str
    titles: tuple[str, ...]
    cells: Callable[[Row], tuple[str | None, ...]]
    right: frozenset[int]
    telling: Callable[[tuple[Row, ...]], tuple[Row, ...]]
    """The rows of each comparison that are shown without --verbose."""
    remark: str = ""
    """What a star in a cell means."""
    grid: Callable[[Comparison, Signs], Columns] | None = None
    """Of each comparison a table of its own, in two dimensions."""
    both: bool = False
    """Whether --verbose shows the grid's figures as rows, too: they tell more than it."""
    bar: Callable[[Row], float] | None = None
    """Share of the longest bar, for a last column of bars."""


def _first(most: int) -> Callable[[tuple[Row, ...]], tuple[Row, ...]]:
    return lambda rows: rows[:most]


def _of_first_copy(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """All dialects of the copy that the sentence is about."""
    return tuple(row for row in rows if row["copy"] == rows[0]["copy"])


def _print(
    table: Table, found: Sequence[Comparison], console: Console, signs: Signs, verbose: bool
) -> None:
    layout.heading(console, table.heading)
    columns = Columns((*table.titles, "") if table.bar else table.titles, table.right)
    left_out = 0
    for each in found:
        in_rows = table.grid is None or table.both
        rows = each.rows if verbose and in_rows else table.telling(each.rows)
        left_out += len(each.rows) - len(rows) if in_rows else 0
        for row in rows:
            texts = (signs.none if text is None else text for text in table.cells(row))
            drawn = (layout.bar(table.bar(row), 1.0, BAR_CELLS, signs),) if table.bar else ()
            columns.add(*texts, *drawn)
    columns.print(console)
    if table.remark and any("*" in text for row in columns.rows for text in row.cells):
        layout.line(console, table.remark, "dim")
    if left_out:
        layout.line(console, f"  and {left_out} more with --verbose", "dim")
    for each in found:
        if table.grid is not None:
            table.grid(each, signs).print(console)
        layout.paragraph(console, safe(each.sentence, SENTENCE_CHARACTERS), bullet="- ")


def _told(write: Callable[[float], str], value: float | None) -> str | None:
    return None if value is None else write(value)


def _shape(row: Row) -> str | None:
    size, depth = row["request_bytes"], row["depth"]
    if size is None or depth is None:
        return None
    return f"{count_text(depth)} x {size_text(size)}"


def _dialect(row: Row) -> tuple[str | None, ...]:
    name = safe(row["dialect"], 16)
    return (
        safe(row["copy"], 40),
        "SMB1" if name == "smb1" else f"SMB {name}",
        rate_text(row["bytes_per_second"]),
        _shape(row),
        _told(size_text, row["in_flight_bytes"]),
        row["security"],
    )


def _initiator(row: Row) -> tuple[str | None, ...]:
    told = times_text(row["ratio"]) if row["significant"] else "in the noise"
    return (
        row["direction"],
        row["cache"],
        rate_text(row["sender_bytes_per_second"]),
        rate_text(row["receiver_bytes_per_second"]),
        f"{told}{'' if row['durable'] else ' *'}",
    )


def _native(row: Row) -> tuple[str | None, ...]:
    slower = row["native_bytes_per_second"] < row["own_bytes_per_second"]
    options = safe(" ".join(row["options"]), 32) if slower and row["significant"] else ""
    told = f"{times_text(row['ratio'])} {'slower' if slower else 'faster'}"
    return (
        row["copy"],
        rate_text(row["native_bytes_per_second"]),
        rate_text(row["own_bytes_per_second"]),
        told if row["significant"] else "in the noise",
        options or None,
    )


def _security(row: Row) -> tuple[str | None, ...]:
    first = row["cost_ratio"] == 0
    cost = percent_text(row["cost_ratio"]) if row["cost_ratio"] > 0 else "none"
    cost = cost if row["significant"] else "in the noise"
    return (
        f"{row['verb']} {row['security']}",
        rate_text(row["bytes_per_second"]),
        None if first else cost,
        _told(cost_text, row["client_cpu_seconds_per_byte"]),
        _told(cost_text, row["server_cpu_seconds_per_byte"]),
    )


def _request(row: Row) -> tuple[str | None, ...]:
    return (
        row["application"],
        row["verb"] and safe(row["verb"], 8),
        _shape(row),
        rate_text(row["bytes_per_second"]),
        {"fit": "by the fit"}.get(row["source"], row["source"]),
    )


def _applications(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    return tuple(row for row in rows if row["application"] is not None)


def _matrix(found: Comparison, _signs: Signs) -> Columns:
    """Rate by request size (down) and requests in flight (across)."""
    cells = {
        (row["request_bytes"], row["depth"]): row["bytes_per_second"]
        for row in found.rows
        if row["application"] is None
    }
    sizes, depths = (sorted({key[axis] for key in cells})[:MOST_LINES] for axis in (0, 1))
    verb = next((safe(row["verb"], 8) for row in found.rows if row["verb"]), "")
    titles = (f"{verb} MB/s", *(f"x {count_text(depth)}" for depth in depths))
    table = Columns(titles, frozenset(range(1, len(titles))))
    for size in sizes:
        told = (cells.get((size, depth)) for depth in depths)
        rates = ("" if rate is None else megabytes_text(rate) for rate in told)
        table.add(size_text(size), *rates)
    return table


def _small_files(row: Row) -> tuple[str | None, ...]:
    trips = _told(count_text, row["round_trips_per_file"])
    spent = row["round_trips_seconds"]
    return (
        f"{row['verb']} {count_text(row['files'])} of {size_text(row['file_bytes'])}",
        count_text(row["files_per_second"]),
        seconds_text(row["seconds_per_file"]),
        None if trips is None or spent is None else f"{trips} = {seconds_text(spent)}",
        seconds_text(row["ten_thousand_files_seconds"]),
        _told(seconds_text, row["same_as_one_file_seconds"]),
    )


def _durability(row: Row) -> tuple[str | None, ...]:
    name = safe(row["dialect"], 16)
    return (
        f"{row['copy']} {name}",
        rate_text(row["acknowledged_bytes_per_second"]),
        rate_text(row["durable_bytes_per_second"]),
        seconds_text(row["flush_seconds"]),
    )


def _window(row: Row) -> tuple[str | None, ...]:
    verb = row["verb"] and safe(row["verb"], 8)
    return (
        f"{verb or ''} {row['standing'] or ''}".strip(),
        f"{count_text(row['streams'])} x {_window_text(row['window_bytes'])}",
        rate_text(row["bytes_per_second"]),
        _told(seconds_text, row["rtt_unloaded_seconds"]),
        _told(seconds_text, row["rtt_loaded_seconds"]),
        _told(seconds_text, row["cpu_seconds"]),
        _told(count_text, row["retransmitted_segments"]),
    )


def _window_text(window_bytes: float) -> str:
    return size_text(window_bytes) if window_bytes else "auto"


def _standing_out(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    return tuple(row for row in rows if row["standing"])


def _heat_map(found: Comparison, signs: Signs) -> Columns:
    """Rate by window (down) and streams (across), as a figure and as a bar; the knee in brackets.

    The bandwidth-delay product stands between the windows that are smaller and those that hold it.
    """
    cells = {(row["window_bytes"], row["streams"]): row for row in found.rows}
    windows = sorted({window for window, _ in cells})[:MOST_WINDOWS]
    streams = sorted({many for _, many in cells})[:MOST_LINES]
    most = max(row["bytes_per_second"] for row in found.rows)
    verb = next((safe(row["verb"], 8) for row in found.rows if row["verb"]), "")
    titles = (f"{verb} MB/s", *(f"{'x ' + count_text(many):>7}" for many in streams))
    table = Columns(titles)
    product = found.rows[0]["bdp_bytes"]
    for window in windows:
        if product is not None and window >= product:
            table.add(f"BDP {size_text(product)}", *("" for _ in streams))
            product = None
        told = (cells.get((window, many)) for many in streams)
        table.add(_window_text(window), *(_heat(row, most, signs) for row in told))
    return table


def _heat(row: Row | None, most: float, signs: Signs) -> str:
    if row is None:
        return ""
    rate = megabytes_text(row["bytes_per_second"])
    figure = f"[{rate}]" if row["standing"] == "knee" else rate
    return f"{figure:>7} {layout.bar(row['bytes_per_second'], most, HEAT_CHARACTERS, signs)}"


def _datagrams(row: Row) -> tuple[str | None, ...]:
    late, lost = row["reordered_datagrams"], row["lost_datagrams"]
    return (
        row["verb"] and safe(row["verb"], 8),
        _told(rate_text, row["sent_bytes_per_second"]),
        rate_text(row["bytes_per_second"]),
        _told(count_text, lost),
        _told(count_text, late),
        _told(count_text, row["duplicate_datagrams"]),
        _told(seconds_text, row["jitter_seconds"]),
        _told(count_text, row["receiver_dropped_datagrams"]),
    )


def _buffer(row: Row) -> tuple[str | None, ...]:
    alone = row["over"] == "loopback"
    who = row["initiator"] if alone else safe(row["verb"] or "", 8)
    received = None if alone else row["receiver_cpu_seconds_per_byte"]
    return (
        f"{who} {_buffer_text(row['buffer_bytes'])}",
        rate_text(row["bytes_per_second"]),
        _told(count_text, row["calls_per_second"]),
        _told(seconds_text, row["seconds_per_call"]),
        _told(cost_text, row["sender_cpu_seconds_per_byte"]),
        _told(cost_text, received),
    )


def _buffer_text(buffer_bytes: float) -> str:
    """Buffers are powers of two; those that are not are a segment's payload."""
    return f"{count_text(buffer_bytes)} B" if buffer_bytes % 512 else size_text(buffer_bytes)


def _message(row: Row) -> tuple[str | None, ...]:
    ways = ("cold_none", "cold_one", "cold_two", "warm_one")
    return (
        count_text(row["message_bytes"]),
        *(_told(seconds_text, row[f"{way}_seconds"]) for way in ways),
        *(_told(_small_rate, row[f"{way}_bytes_per_second"]) for way in ways[1:]),
    )


def _small_rate(bytes_per_second: float) -> str:
    return "<0.001" if bytes_per_second < 1000 else megabytes_text(bytes_per_second)


TABLES = {
    "dialect": Table(
        "Dialects",
        ("copy", "dialect", "rate", "requests", "in flight", "security"),
        _dialect,
        frozenset({2, 3, 4}),
        _of_first_copy,
    ),
    "initiator": Table(
        "Who starts the copy",
        ("direction", "source", "sender starts", "receiver starts", "difference"),
        _initiator,
        frozenset({2, 3}),
        _first(4),
        "* as acknowledged: the one that the server started was not flushed",
    ),
    "native": Table(
        "The system's own copy beside this tool's",
        ("copy", "mount", "this tool", "the mount is", "options that cost"),
        _native,
        frozenset({1, 2}),
        _first(4),
    ),
    "security": Table(
        "What security costs",
        ("", "rate", "cost", "client CPU", "server CPU"),
        _security,
        frozenset({1, 2, 3, 4}),
        _first(3),
    ),
    "requests": Table(
        "Requests: which application would get what",
        ("application", "verb", "requests", "rate", ""),
        _request,
        frozenset({2, 3}),
        _applications,
        grid=_matrix,
    ),
    "small-files": Table(
        "Small files, one after the other",
        ("", "files/s", "a file", "round trips", "10,000 files", "as one"),
        _small_files,
        frozenset({1, 2, 3, 4, 5}),
        _first(1),
    ),
    "durability": Table(
        "Acknowledged and safe",
        ("push", "acknowledged", "on the disk", "last flush"),
        _durability,
        frozenset({1, 2, 3}),
        _first(2),
    ),
    "buffers": Table(
        "Buffer size of each call: between the hosts, or on one alone",
        ("", "rate", "calls/s", "a call", "sender CPU", "receiver"),
        _buffer,
        frozenset({1, 2, 3, 4, 5}),
        _first(MOST_BUFFERS),
        bar=lambda row: float(row["best_ratio"]),
    ),
    "messages": Table(
        "Messages: 0, 1, 2 round trips on a connection each (cold), and on one (warm)",
        ("bytes", "cold 0", "cold 1", "cold 2", "warm 1", "MB/s 1", "2", "warm"),
        _message,
        frozenset(range(1, 8)),
        _first(MOST_BUFFERS),
    ),
    "windows": Table(
        "TCP windows x streams",
        ("", "window", "rate", "round trip", "loaded", "CPU", "resent"),
        _window,
        frozenset({1, 2, 3, 4, 5, 6}),
        _standing_out,
        grid=_heat_map,
        both=True,
    ),
    "datagrams": Table(
        "Datagrams at a steady pace",
        ("", "sent", "arrived", "lost", "late", "twice", "jitter", "own drops"),
        _datagrams,
        frozenset({1, 2, 3, 4, 5, 6, 7}),
        _first(2),
    ),
}
