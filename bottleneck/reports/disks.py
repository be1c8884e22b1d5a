"""The disks: their tables of comparisons, and what lies under each folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bottleneck.analysis import disk_zones, steps
from bottleneck.analysis.comparisons.zones import all_zones
from bottleneck.analysis.disk_zones import Zones
from bottleneck.report import Report
from bottleneck.reports.document import (
    Field,
    FileMark,
    Form,
    Found,
    Points,
    ZoneCurve,
    figure,
    first,
    points,
)
from bottleneck.reports.safe import safe
from bottleneck.reports.units import (
    count_text,
    link_text,
    megabytes_unit,
    percent_text,
    rate_text,
    seconds_text,
    size_text,
)
from bottleneck.reports.words import known

MOST_LAYERS = 12
LONGEST_STACK = 2000
WAYS = {
    "acknowledged": "acknowledged at once",
    "sustained": "after the knee",
    "durable": "flushed once, at the end",
    "synced": "each write forced",
}


def disk_points(report: Report) -> Iterator[Points]:
    """What lies under each side's folder, top first, each stack once; nothing if none tells."""
    stacks = list(dict.fromkeys(_stacks(report)))
    told = [
        f"{side}: {stack}"
        for side, stack in stacks
        # A device that was read by itself is the lower part of its folder's stack.
        if not any(side == other and more.endswith(f" on {stack}") for other, more in stacks)
    ]
    yield from points("Disks", told, longest=LONGEST_STACK)


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


MOST_FILES = 8
FILES = {"sequential": "this run's own file", "file": "the file"}


def zone_curves(report: Report) -> Iterator[ZoneCurve]:
    """One for each disk that was measured zone by zone."""
    for each in all_zones(report):
        yield ZoneCurve(_curve_title(each), each, tuple(_marks(report, each))[:MOST_FILES])


def _curve_title(zones: Zones) -> str:
    """What the curve is of, in one line; safe to print."""
    setting = zones.found.step.setting
    side = safe(steps.word(setting, "side") or zones.found.step.initiator, 16)
    does = "written" if steps.word(setting, "verb") == "write" else "read"
    device = f" {safe(zones.device, 32)}" if zones.device else ""
    return f"{side} disk{device}, {does} zone by zone, {megabytes_unit()}"


def _marks(report: Report, zones: Zones) -> Iterator[FileMark]:
    """The files of a report that lie on the disk of a curve; the sentences' names for them."""
    for found in steps.measured(report, "disk"):
        place, name = disk_zones.place_of(found), FILES.get(disk_zones.pattern(found))
        side = steps.word(found.step.setting, "side")
        spans = () if place is None else place.spans_on(zones.device)
        if name is None or not spans or side != steps.word(zones.found.step.setting, "side"):
            continue
        # A cached read has the same file as the uncached one.
        if steps.word(found.step.setting, "cache") == "uncached":
            yield FileMark(name, tuple((span.from_ratio, span.to_ratio) for span in spans))


def _span(row: Found) -> str:
    return f"{percent_text(row['from_ratio'])} to {percent_text(row['to_ratio'])}"


def _disk(row: Found) -> str:
    return f"{row['side']} {safe(row['device'] or 'disk', 24)}"


def _edges_and_weak(rows: tuple[Found, ...]) -> tuple[Found, ...]:
    last = len(rows) - 1
    return tuple(row for at, row in enumerate(rows) if at in (0, last) or row["standing"])


def _whose(row: Found) -> str:
    return f"{row['side']}: {'the file' if row['pattern'] == 'file' else 'own file'}"


TABLES = {
    "zones": Form(
        "Disk by zone, from the outer edge to the inner",
        (
            Field("", lambda row: f"{_disk(row)} {safe(row['verb'] or '', 8)} {_span(row)}"),
            figure("rate", rate_text, "bytes_per_second"),
            figure("the curve's", rate_text, "curve_bytes_per_second"),
            figure("latency", seconds_text, "latency_median_seconds"),
            figure("p99", seconds_text, "latency_p99_seconds"),
            Field("", lambda row: row["standing"] or ""),
        ),
        _edges_and_weak,
    ),
    "place": Form(
        "Where the files lie, and what their places can give",
        (
            Field("", _whose),
            Field("disk", lambda row: safe(row["device"], 24)),
            Field("place", _span),
            figure("pieces", count_text, "fragments"),
            figure("was read", rate_text, "bytes_per_second"),
            figure("place", rate_text, "place_bytes_per_second"),
            figure("edge", rate_text, "edge_bytes_per_second"),
        ),
        first(1),
    ),
    "random": Form(
        "Small reads at random places",
        (
            Field("", _disk),
            figure("at once", str, "depth"),
            figure("reads/s", count_text, "reads_per_second"),
            figure("rate", rate_text, "bytes_per_second"),
            figure("median", seconds_text, "median_seconds"),
            figure("p99", seconds_text, "p99_seconds"),
        ),
        first(2),
    ),
    "sustained": Form(
        "Writing for long, and with each write forced",
        (
            Field("", lambda row: f"{row['side']}: {WAYS[row['way']]}"),
            figure("rate", rate_text, "bytes_per_second"),
            Field(
                "knee, size",
                lambda row: known(size_text, row["knee_bytes"] or row["request_bytes"]),
                right=True,
            ),
            Field(
                "waits",
                lambda row: known(seconds_text, row["wait_seconds"] or row["flush_seconds"]),
                right=True,
            ),
        ),
        first(4),
    ),
}
