"""The disks on a terminal: their tables of comparisons, and what lies under each folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console

from bottleneck.analysis import steps
from bottleneck.report import Report
from bottleneck.reports import layout
from bottleneck.reports.safe import safe
from bottleneck.reports.table import Row, Table, first, written
from bottleneck.reports.units import (
    count_text,
    link_text,
    percent_text,
    rate_text,
    seconds_text,
    size_text,
)

MOST_LAYERS = 12
WAYS = {
    "acknowledged": "acknowledged at once",
    "sustained": "after the knee",
    "durable": "flushed once, at the end",
    "synced": "each write forced",
}


def print_disks(report: Report, console: Console) -> None:
    """What lies under each side's folder, top first; nothing where no disk step tells."""
    layout.bullets(console, "Disks", disk_lines(report))


def disk_lines(report: Report) -> list[str]:
    """The same as sentences, each stack once; safe."""
    stacks = list(dict.fromkeys(_stacks(report)))
    return [
        f"{side}: {stack}"
        for side, stack in stacks
        # A device that was read by itself is the lower part of its folder's stack.
        if not any(side == other and more.endswith(f" on {stack}") for other, more in stacks)
    ]


def _stacks(report: Report) -> Iterator[tuple[str, str]]:
    for step, outcome in report.entries:
        told = getattr(outcome, "details", None)
        layers = steps.items(told, "layers")[:MOST_LAYERS] if step.stage == "disk" else ()
        if layers:
            side = safe(steps.word(step.setting, "side") or step.initiator, 16)
            yield side, " on ".join(_layer(each) for each in layers)


def _layer(told: dict[str, Any]) -> str:
    """A layer in a few words: `sda (ST4000, SATA at 6 Gbit/s, rotational)`."""
    name = safe(steps.word(told, "name") or "", 48)
    kind = safe(steps.word(told, "kind") or "", 24)
    known = ", ".join(_known(told))
    named = f"{name} ({kind})" if name and kind not in ("disk", name) else name or kind
    if kind == "filesystem":
        named = f"{safe(steps.word(told, 'filesystem') or 'file system', 24)}"
    return f"{named} [{known}]" if known else named


def _known(told: dict[str, Any]) -> Iterator[str]:
    model, level = steps.word(told, "model"), steps.word(told, "raid_level")
    if level is not None:
        yield safe(level, 24)
    if model is not None:
        yield safe(model, 40)
    rate = steps.positive(told, "link_bits_per_second") or steps.positive(
        told, "usb_bits_per_second"
    )
    transport = steps.word(told, "transport")
    if transport is not None:
        at = f" at {link_text(rate)}" if rate is not None else ""
        yield f"{safe(transport, 16)}{at}"
    able = steps.positive(told, "link_able_bits_per_second")
    if able is not None and rate is not None and able > rate:
        yield f"could {link_text(able)}"
    rotational = steps.flag(told, "rotational")
    if rotational is not None:
        yield "rotational" if rotational else "not rotational"
    size = steps.positive(told, "bytes")
    if size is not None:
        yield size_text(size)
    scheduler, ahead = steps.word(told, "scheduler"), steps.amount(told, "read_ahead_bytes")
    if scheduler is not None:
        yield f"scheduler {safe(scheduler, 16)}"
    if ahead is not None and steps.word(told, "kind") == "disk":
        yield f"read-ahead {size_text(ahead)}"
    if steps.word(told, "write_cache") == "write through":
        yield "write cache off"
    if steps.flag(told, "smart", "passed") is False:
        yield "SMART: FAILING"
    if steps.flag(told, "tested") is False:
        yield "as a system tells that was not tested"


def _zone(row: Row) -> tuple[str | None, ...]:
    verb = safe(row["verb"] or "", 8)
    where = f"{percent_text(row['from_ratio'])} to {percent_text(row['to_ratio'])}"
    return (
        f"{row['side']} {safe(row['device'] or 'disk', 24)} {verb} {where}",
        rate_text(row["bytes_per_second"]),
        written(rate_text, row["curve_bytes_per_second"]),
        written(seconds_text, row["latency_median_seconds"]),
        written(seconds_text, row["latency_p99_seconds"]),
        row["standing"] or "",
    )


def _edges_and_weak(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    last = len(rows) - 1
    return tuple(row for at, row in enumerate(rows) if at in (0, last) or row["standing"])


def _place(row: Row) -> tuple[str | None, ...]:
    span = f"{percent_text(row['from_ratio'])} to {percent_text(row['to_ratio'])}"
    return (
        f"{row['side']}: {'the file' if row['pattern'] == 'file' else 'own file'}",
        safe(row["device"], 24),
        span,
        written(count_text, row["fragments"]),
        rate_text(row["bytes_per_second"]),
        written(rate_text, row["place_bytes_per_second"]),
        written(rate_text, row["edge_bytes_per_second"]),
    )


def _random(row: Row) -> tuple[str | None, ...]:
    return (
        f"{row['side']} {safe(row['device'] or 'disk', 24)}",
        f"{row['depth']}",
        count_text(row["reads_per_second"]),
        rate_text(row["bytes_per_second"]),
        written(seconds_text, row["median_seconds"]),
        written(seconds_text, row["p99_seconds"]),
    )


def _writing(row: Row) -> tuple[str | None, ...]:
    return (
        f"{row['side']}: {WAYS[row['way']]}",
        rate_text(row["bytes_per_second"]),
        written(size_text, row["knee_bytes"] or row["request_bytes"]),
        written(seconds_text, row["wait_seconds"] or row["flush_seconds"]),
    )


TABLES = {
    "zones": Table(
        "Disk by zone, from the outer edge to the inner",
        ("", "rate", "the curve's", "latency", "p99", ""),
        _zone,
        frozenset({1, 2, 3, 4}),
        _edges_and_weak,
    ),
    "place": Table(
        "Where the files lie, and what their places can give",
        ("", "disk", "place", "pieces", "was read", "place", "edge"),
        _place,
        frozenset({3, 4, 5, 6}),
        first(1),
    ),
    "random": Table(
        "Small reads at random places",
        ("", "at once", "reads/s", "rate", "median", "p99"),
        _random,
        frozenset({1, 2, 3, 4, 5}),
        first(2),
    ),
    "sustained": Table(
        "Writing for long, and with each write forced",
        ("", "rate", "knee, size", "waits"),
        _writing,
        frozenset({1, 2, 3}),
        first(4),
    ),
}
