"""The comparisons of TCP and UDP alone: buffers, messages, windows, datagrams."""

from __future__ import annotations

import math

from bottleneck.analysis.finding import Comparison
from bottleneck.reports.document import (
    Field,
    Form,
    Found,
    Heat,
    HeatCell,
    Sparks,
    figure,
    first,
    word,
)
from bottleneck.reports.safe import safe
from bottleneck.reports.units import (
    cost_text,
    count_text,
    rate_text,
    seconds_text,
    size_text,
    small_megabytes_text,
)
from bottleneck.reports.words import known

MOST_BUFFERS = 11
MOST_WINDOWS, MOST_STREAMS = 16, 8


def _window_text(window_bytes: float) -> str:
    """The system's own tuning is told as a window of 0."""
    return size_text(window_bytes) if window_bytes else "auto"


def _window(row: Found) -> str:
    return f"{count_text(row['streams'])} x {_window_text(row['window_bytes'])}"


def _verb_and_standing(row: Found) -> str:
    verb = row["verb"] and safe(row["verb"], 8)
    return f"{verb or ''} {row['standing'] or ''}".strip()


def _standing_out(rows: tuple[Found, ...]) -> tuple[Found, ...]:
    return tuple(row for row in rows if row["standing"])


def windows_heat(found: Comparison) -> Heat:
    """Rate by window (down) and streams (across), the knee framed.

    The bandwidth-delay product stands between the windows that are smaller and those that hold it.
    """
    knee = next((row for row in found.rows if row["standing"] == "knee"), None)
    product = found.rows[0]["bdp_bytes"]
    return Heat(
        cells=tuple(
            HeatCell(
                row=row["window_bytes"],
                column=row["streams"],
                bytes_per_second=row["bytes_per_second"],
                second=known(seconds_text, row["rtt_loaded_seconds"]) or "",
                framed=row["standing"] == "knee",
            )
            for row in found.rows
        ),
        rows="window",
        columns="TCP streams",
        row_text=_window_text,
        column_text=count_text,
        verb=next((safe(row["verb"], 8) for row in found.rows if row["verb"]), ""),
        second="round trip under load",
        framed="" if knee is None else f"the knee: {_knee(knee)}",
        knee=True,
        line=None if product is None else (product, "BDP"),
    )


def _knee(row: Found) -> str:
    return f"{_window_text(row['window_bytes'])} x {count_text(row['streams'])}"


def buffer_text(buffer_bytes: float) -> str:
    """Buffers are powers of two; those that are not are a segment's payload."""
    return f"{count_text(buffer_bytes)} B" if buffer_bytes % 512 else size_text(buffer_bytes)


def _buffer(row: Found) -> str:
    who = row["initiator"] if row["over"] == "loopback" else safe(row["verb"] or "", 8)
    return f"{who} {buffer_text(row['buffer_bytes'])}"


def _receiver_cost(row: Found) -> str | None:
    alone = row["over"] == "loopback"
    return None if alone else known(cost_text, row["receiver_cpu_seconds_per_byte"])


def _buffer_sparks(found: Comparison) -> tuple[Sparks, ...]:
    """The rates of a sweep from its smallest buffer to its greatest."""
    rows = sorted(found.rows, key=lambda row: float(row["buffer_bytes"]))
    ends = buffer_text(rows[0]["buffer_bytes"]), buffer_text(rows[-1]["buffer_bytes"])
    return (_sparks("", rows, ends, found),)


def _window_sparks(found: Comparison) -> tuple[Sparks, ...]:
    """The rates of each number of streams from the smallest window to the greatest."""
    drawn = []
    for many in sorted({row["streams"] for row in found.rows})[:MOST_STREAMS]:
        of_it = (row for row in found.rows if row["streams"] == many)
        # The window that the kernel chooses has no size: it comes last.
        rows = sorted(of_it, key=lambda row: row["window_bytes"] or math.inf)[:MOST_WINDOWS]
        ends = _window_text(rows[0]["window_bytes"]), _window_text(rows[-1]["window_bytes"])
        drawn.append(_sparks(f"x {count_text(many)}", rows, ends, found))
    return tuple(drawn)


def _sparks(label: str, rows: list[Found], ends: tuple[str, str], found: Comparison) -> Sparks:
    return Sparks(
        label=label,
        rates=tuple(row["bytes_per_second"] for row in rows),
        most=max(row["bytes_per_second"] for row in found.rows),
        ends=ends,
        knees=frozenset(at for at, row in enumerate(rows) if row["standing"] == "knee"),
    )


TABLES = {
    "buffers": Form(
        "Buffer size of each call: between the hosts, or on one alone",
        (
            Field("", _buffer),
            figure("rate", rate_text, "bytes_per_second"),
            figure("calls/s", count_text, "calls_per_second"),
            figure("a call", seconds_text, "seconds_per_call"),
            figure("sender CPU", cost_text, "sender_cpu_seconds_per_byte"),
            Field("receiver", _receiver_cost, right=True),
        ),
        first(MOST_BUFFERS),
        bar=lambda row: float(row["best_ratio"]),
        sparks=_buffer_sparks,
    ),
    "messages": Form(
        "Messages: 0, 1, 2 round trips on a connection each (cold), and on one (warm)",
        (
            Field("bytes", lambda row: count_text(row["message_bytes"])),
            figure("cold 0", seconds_text, "cold_none_seconds"),
            figure("cold 1", seconds_text, "cold_one_seconds"),
            figure("cold 2", seconds_text, "cold_two_seconds"),
            figure("warm 1", seconds_text, "warm_one_seconds"),
            figure("{unit} 1", small_megabytes_text, "cold_one_bytes_per_second"),
            figure("2", small_megabytes_text, "cold_two_bytes_per_second"),
            figure("warm", small_megabytes_text, "warm_one_bytes_per_second"),
        ),
        first(MOST_BUFFERS),
    ),
    "windows": Form(
        "TCP windows x streams",
        (
            Field("", _verb_and_standing),
            Field("window", _window, right=True),
            figure("rate", rate_text, "bytes_per_second"),
            figure("round trip", seconds_text, "rtt_unloaded_seconds"),
            figure("loaded", seconds_text, "rtt_loaded_seconds"),
            figure("CPU", seconds_text, "cpu_seconds"),
            figure("resent", count_text, "retransmitted_segments"),
        ),
        _standing_out,
        heat=windows_heat,
        both=True,
        sparks=_window_sparks,
    ),
    "datagrams": Form(
        "Datagrams at a steady pace",
        (
            word("", "verb", 8),
            figure("sent", rate_text, "sent_bytes_per_second"),
            figure("arrived", rate_text, "bytes_per_second"),
            figure("lost", count_text, "lost_datagrams"),
            figure("late", count_text, "reordered_datagrams"),
            figure("twice", count_text, "duplicate_datagrams"),
            figure("jitter", seconds_text, "jitter_seconds"),
            figure("own drops", count_text, "receiver_dropped_datagrams"),
        ),
        first(2),
    ),
}
