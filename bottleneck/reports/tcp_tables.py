"""The tables of TCP and UDP alone: buffers, messages, windows with their heat map, datagrams."""

from __future__ import annotations

import math
from collections.abc import Iterator

from bottleneck.analysis.finding import Comparison
from bottleneck.reports import layout
from bottleneck.reports.layout import Columns, Signs
from bottleneck.reports.safe import safe
from bottleneck.reports.table import Row, Table, first, written
from bottleneck.reports.units import (
    cost_text,
    count_text,
    megabytes_text,
    megabytes_unit,
    rate_text,
    seconds_text,
    size_text,
    small_megabytes_text,
)

MOST_BUFFERS = 11
MOST_WINDOWS, MOST_STREAMS = 16, 8
LABEL_COLUMNS = 12
"""As wide as `push Mbit/s` and `BDP 1.13 MiB`."""


def _window(row: Row) -> tuple[str | None, ...]:
    verb = row["verb"] and safe(row["verb"], 8)
    return (
        f"{verb or ''} {row['standing'] or ''}".strip(),
        f"{count_text(row['streams'])} x {_window_text(row['window_bytes'])}",
        rate_text(row["bytes_per_second"]),
        written(seconds_text, row["rtt_unloaded_seconds"]),
        written(seconds_text, row["rtt_loaded_seconds"]),
        written(seconds_text, row["cpu_seconds"]),
        written(count_text, row["retransmitted_segments"]),
    )


def _window_text(window_bytes: float) -> str:
    return size_text(window_bytes) if window_bytes else "auto"


def _standing_out(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    return tuple(row for row in rows if row["standing"])


def _heat_map(found: Comparison, signs: Signs, width: int) -> Columns:
    """Rate by window (down) and streams (across), as a figure and as a bar; the knee in brackets.

    The bandwidth-delay product stands between the windows that are smaller and those that hold it.
    """
    cells = {(row["window_bytes"], row["streams"]): row for row in found.rows}
    windows = sorted({window for window, _ in cells})[:MOST_WINDOWS]
    streams = sorted({many for _, many in cells})[:MOST_STREAMS]
    most = max(row["bytes_per_second"] for row in found.rows)
    verb = next((safe(row["verb"], 8) for row in found.rows if row["verb"]), "")
    titles = (f"{verb} {megabytes_unit()}", *(f"{f'x {count_text(each)}':>7}" for each in streams))
    cells_each = layout.heat_columns(width, LABEL_COLUMNS, len(streams))
    table = Columns(titles)
    product = found.rows[0]["bdp_bytes"]
    for window in windows:
        if product is not None and window >= product:
            table.add(f"BDP {size_text(product)}", *("" for _ in streams))
            product = None
        told = (cells.get((window, many)) for many in streams)
        table.add(_window_text(window), *(_heat(row, most, cells_each, signs) for row in told))
    return table


def _heat(row: Row | None, most: float, width: int, signs: Signs) -> str:
    if row is None:
        return ""
    rate = megabytes_text(row["bytes_per_second"])
    figure = f"[{rate}]" if row["standing"] == "knee" else rate
    return layout.heat(figure, row["bytes_per_second"], most, width, signs)


def _datagrams(row: Row) -> tuple[str | None, ...]:
    late, lost = row["reordered_datagrams"], row["lost_datagrams"]
    return (
        row["verb"] and safe(row["verb"], 8),
        written(rate_text, row["sent_bytes_per_second"]),
        rate_text(row["bytes_per_second"]),
        written(count_text, lost),
        written(count_text, late),
        written(count_text, row["duplicate_datagrams"]),
        written(seconds_text, row["jitter_seconds"]),
        written(count_text, row["receiver_dropped_datagrams"]),
    )


def _buffer(row: Row) -> tuple[str | None, ...]:
    alone = row["over"] == "loopback"
    who = row["initiator"] if alone else safe(row["verb"] or "", 8)
    received = None if alone else row["receiver_cpu_seconds_per_byte"]
    return (
        f"{who} {_buffer_text(row['buffer_bytes'])}",
        rate_text(row["bytes_per_second"]),
        written(count_text, row["calls_per_second"]),
        written(seconds_text, row["seconds_per_call"]),
        written(cost_text, row["sender_cpu_seconds_per_byte"]),
        written(cost_text, received),
    )


def _buffer_text(buffer_bytes: float) -> str:
    """Buffers are powers of two; those that are not are a segment's payload."""
    return f"{count_text(buffer_bytes)} B" if buffer_bytes % 512 else size_text(buffer_bytes)


def _message(row: Row) -> tuple[str | None, ...]:
    ways = ("cold_none", "cold_one", "cold_two", "warm_one")
    return (
        count_text(row["message_bytes"]),
        *(written(seconds_text, row[f"{way}_seconds"]) for way in ways),
        *(written(small_megabytes_text, row[f"{way}_bytes_per_second"]) for way in ways[1:]),
    )


def _buffer_sparks(found: Comparison, signs: Signs) -> Iterator[str]:
    """The rates of a sweep from its smallest buffer to its greatest, the knee in brackets."""
    rows = sorted(found.rows, key=lambda row: float(row["buffer_bytes"]))
    ends = (_buffer_text(row["buffer_bytes"]) for row in (rows[0], rows[-1]))
    yield from _sparks("", rows, tuple(ends), signs)


def _window_sparks(found: Comparison, signs: Signs) -> Iterator[str]:
    """The rates of each number of streams from the smallest window to the greatest."""
    for many in sorted({row["streams"] for row in found.rows})[:MOST_STREAMS]:
        of_it = (row for row in found.rows if row["streams"] == many)
        # The window that the kernel chooses has no size: it comes last.
        rows = sorted(of_it, key=lambda row: row["window_bytes"] or math.inf)[:MOST_WINDOWS]
        ends = (_window_text(row["window_bytes"]) for row in (rows[0], rows[-1]))
        most = max(row["bytes_per_second"] for row in found.rows)
        yield from _sparks(f"x {count_text(many)}", rows, tuple(ends), signs, most)


def _sparks(
    label: str, rows: list[Row], ends: tuple[str, ...], signs: Signs, most: float = 0.0
) -> Iterator[str]:
    if not signs.rising:
        return
    most = most or max(row["bytes_per_second"] for row in rows)
    drawn = "".join(
        f"[{height}]" if row["standing"] == "knee" else height
        for row in rows
        for height in [layout.spark(row["bytes_per_second"], most, signs)]
    )
    best = rate_text(max(row["bytes_per_second"] for row in rows))
    yield f"{label:<4} {ends[0]:>7} {drawn} {ends[-1]}, best {best}".strip()


TABLES = {
    "buffers": Table(
        "Buffer size of each call: between the hosts, or on one alone",
        ("", "rate", "calls/s", "a call", "sender CPU", "receiver"),
        _buffer,
        frozenset({1, 2, 3, 4, 5}),
        first(MOST_BUFFERS),
        bar=lambda row: float(row["best_ratio"]),
        sparks=_buffer_sparks,
    ),
    "messages": Table(
        "Messages: 0, 1, 2 round trips on a connection each (cold), and on one (warm)",
        ("bytes", "cold 0", "cold 1", "cold 2", "warm 1", "{unit} 1", "2", "warm"),
        _message,
        frozenset(range(1, 8)),
        first(MOST_BUFFERS),
    ),
    "windows": Table(
        "TCP windows x streams",
        ("", "window", "rate", "round trip", "loaded", "CPU", "resent"),
        _window,
        frozenset({1, 2, 3, 4, 5, 6}),
        _standing_out,
        grid=_heat_map,
        both=True,
        sparks=_window_sparks,
    ),
    "datagrams": Table(
        "Datagrams at a steady pace",
        ("", "sent", "arrived", "lost", "late", "twice", "jitter", "own drops"),
        _datagrams,
        frozenset({1, 2, 3, 4, 5, 6, 7}),
        first(2),
    ),
}
