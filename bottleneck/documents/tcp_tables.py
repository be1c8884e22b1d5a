"""The comparisons of TCP and UDP by themselves: buffers, messages, windows, datagrams."""

from __future__ import annotations

from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.phrases import cell_text
from bottleneck.documents import document
from bottleneck.text import units
from bottleneck.text.safe import safe

MOST_BUFFERS = 11


def _window_text(window_bytes: float) -> str:
    """Returns the size of a window; 0 is automatic tuning."""
    return units.size_text(window_bytes) if window_bytes else "auto"


def _window(row: document.RawRow) -> str:
    return f"{units.count_text(row['streams'])} x {_window_text(row['window_bytes'])}"


def _verb_and_standing(row: document.RawRow) -> str:
    verb = row["verb"] and safe(row["verb"], 8)
    return f"{verb or ''} {row['standing'] or ''}".strip()


def windows_heat(comparison: Comparison) -> document.Heat:
    """Returns rates by window (down) and streams (across), the knee framed.

    The bandwidth-delay product stands between the windows that are smaller and those that hold it.
    """
    knee = next((row for row in comparison.rows if row["standing"] == "knee"), None)
    product = comparison.rows[0]["bdp_bytes"]
    return document.Heat(
        cells=tuple(
            document.HeatCell(
                row=row["window_bytes"],
                column=row["streams"],
                bytes_per_second=row["bytes_per_second"],
                second=cell_text(units.seconds_text, row["rtt_loaded_seconds"]) or "",
                framed=row["standing"] == "knee",
            )
            for row in comparison.rows
        ),
        rows="window",
        columns="connections",
        row_text=_window_text,
        column_text=units.count_text,
        verb=next((safe(row["verb"], 8) for row in comparison.rows if row["verb"]), ""),
        second="RTT under load",
        framed="" if knee is None else f"knee: {_knee(knee)}",
        knee=True,
        line=None if product is None else (product, "BDP"),
    )


def _knee(row: document.RawRow) -> str:
    return f"{_window_text(row['window_bytes'])} x {units.count_text(row['streams'])}"


def _buffer(row: document.RawRow) -> str:
    size = row["buffer_bytes"]
    side = row["initiator"] if row["over"] == "loopback" else safe(row["verb"] or "", 8)
    # One that is no multiple of 512 is a segment's payload.
    return f"{side} {units.count_text(size)} B" if size % 512 else f"{side} {units.size_text(size)}"


def _receiver_cost(row: document.RawRow) -> str | None:
    on_loopback = row["over"] == "loopback"
    return None if on_loopback else cell_text(units.cost_text, row["receiver_cpu_seconds_per_byte"])


TABLES = {
    "buffers": document.Form(
        "TCP buffer size per call",
        (
            document.Field("", _buffer),
            document.figure("rate", units.rate_text, "bytes_per_second"),
            document.figure("calls/s", units.count_text, "calls_per_second"),
            document.figure("per call", units.seconds_text, "seconds_per_call"),
            document.figure("sender CPU", units.cost_text, "sender_cpu_seconds_per_byte"),
            document.Field("receiver", _receiver_cost, right=True),
        ),
        document.first(MOST_BUFFERS),
        bar=lambda row: float(row["best_ratio"]),
    ),
    "messages": document.Form(
        "Message time, cold and warm",
        (
            document.Field("bytes", lambda row: units.count_text(row["message_bytes"])),
            document.figure("connect", units.seconds_text, "cold_none_seconds"),
            document.figure("cold 1", units.seconds_text, "cold_one_seconds"),
            document.figure("cold 2", units.seconds_text, "cold_two_seconds"),
            document.figure("warm 1", units.seconds_text, "warm_one_seconds"),
            document.figure("{unit} 1", units.small_megabytes_text, "cold_one_bytes_per_second"),
            document.figure("2", units.small_megabytes_text, "cold_two_bytes_per_second"),
            document.figure("warm", units.small_megabytes_text, "warm_one_bytes_per_second"),
        ),
        document.first(MOST_BUFFERS),
    ),
    "windows": document.Form(
        "TCP windows and connections",
        (
            document.Field("", _verb_and_standing),
            document.Field("window", _window, right=True),
            document.figure("rate", units.rate_text, "bytes_per_second"),
            document.figure("RTT", units.seconds_text, "rtt_unloaded_seconds"),
            document.figure("RTT, loaded", units.seconds_text, "rtt_loaded_seconds"),
            document.figure("CPU", units.seconds_text, "cpu_seconds"),
            document.figure("retransmits", units.count_text, "retransmitted_segments"),
        ),
        lambda rows: tuple(row for row in rows if row["standing"]),
        heat=windows_heat,
        both=True,
    ),
    "datagrams": document.Form(
        "Datagrams (UDP)",
        (
            document.word("", "verb", 8),
            document.figure("sent", units.rate_text, "sent_bytes_per_second"),
            document.figure("received", units.rate_text, "bytes_per_second"),
            document.figure("lost", units.count_text, "lost_datagrams"),
            document.figure("reordered", units.count_text, "reordered_datagrams"),
            document.figure("duplicate", units.count_text, "duplicate_datagrams"),
            document.figure("jitter", units.seconds_text, "jitter_seconds"),
            document.figure("own drops", units.count_text, "receiver_dropped_datagrams"),
        ),
        document.first(2),
    ),
}
