"""The disks: their tables of comparisons, and the devices below each folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bottleneck.analysis import disk_zones, steps
from bottleneck.analysis.comparisons.disks import FILES, all_zones, other_way, zones_by_disk
from bottleneck.analysis.disk_zones import Zones
from bottleneck.documents import document
from bottleneck.report.report import Report
from bottleneck.text import units
from bottleneck.text.safe import safe

MOST_LAYERS = 12
LONGEST_STACK = 2000
MOST_JOBS = 64
WAYS = {
    "acknowledged": "acknowledged",
    "sustained": "sustained",
    "durable": "with one final flush",
    "synced": "synchronous",
}


def disk_points(report: Report) -> Iterator[document.Points]:
    """Yields the layers below each side's folder, top first, each stack once."""
    stacks = list(dict.fromkeys(_stacks(report)))
    lines = [
        f"{side}: {stack}"
        for side, stack in stacks
        # A device that was read by itself is the lower part of its folder's stack.
        if not any(side == other and longer.endswith(f" on {stack}") for other, longer in stacks)
    ]
    yield from document.points("Disks", lines, longest=LONGEST_STACK)


def jobs(report: Report) -> Iterator[document.Table]:
    """Yields a table of the disk jobs that the user chose: requests a second and their latency."""
    names = ("job", "rate", "requests/s", "median", "p99")
    columns = (document.Column(each, right=each != "job") for each in names)
    table = document.Table("Disk requests", tuple(columns))
    for step, outcome in report.entries:
        details = getattr(outcome, "details", None) if step.stage == "disk" else None
        for each in steps.items(details, "jobs")[:MOST_JOBS]:
            side = safe(steps.word(step.setting, "side") or step.initiator, 16)
            rate, ios = (steps.positive(each, f"{key}_per_second") for key in ("bytes", "ios"))
            times = (steps.positive(each, "latency_seconds", key) for key in ("median", "p99"))
            table.add(
                f"{side}: {safe(steps.word(each, 'name') or '', 40)}",
                None if rate is None else units.rate_text(rate),
                None if ios is None else units.count_text(ios),
                *(None if one is None else units.seconds_text(one) for one in times),
            )
    if table.rows:
        yield table


def _stacks(report: Report) -> Iterator[tuple[str, str]]:
    for step, outcome in report.entries:
        details = getattr(outcome, "details", None)
        layers = steps.items(details, "layers")[:MOST_LAYERS] if step.stage == "disk" else ()
        if layers:
            side = safe(steps.word(step.setting, "side") or step.initiator, 16)
            yield side, " on ".join(_layer(each) for each in layers)


def _layer(layer: dict[str, Any]) -> str:
    """Returns a layer in a few words: `sda [ST4000, SATA at 6 Gbit/s, rotational]`."""
    name = safe(steps.word(layer, "name") or "", 48)
    kind = safe(steps.word(layer, "kind") or "", 24)
    facts = ", ".join(_layer_facts(layer))
    title = f"{name} ({kind})" if name and kind not in ("disk", name) else name or kind
    if kind == "filesystem":
        title = f"{safe(steps.word(layer, 'filesystem') or 'file system', 24)}"
    return f"{title} [{facts}]" if facts else title


def _layer_facts(layer: dict[str, Any]) -> Iterator[str]:
    yield from _raid(layer)
    model = steps.word(layer, "model")
    if model is not None:
        yield safe(model, 40)
    link, usb = (steps.positive(layer, f"{each}_bits_per_second") for each in ("link", "usb"))
    rate = link or usb
    transport = steps.word(layer, "transport")
    if transport is not None:
        speed = f" at {units.link_text(rate)}" if rate is not None else ""
        yield f"{safe(transport, 16)}{speed}"
    able = steps.positive(layer, "link_able_bits_per_second")
    if able is not None and rate is not None and able > rate:
        yield f"supports {units.link_text(able)}"
    rotational = steps.flag(layer, "rotational")
    if rotational is not None:
        yield "rotational" if rotational else "not rotational"
    size = steps.positive(layer, "bytes")
    if size is not None:
        yield units.size_text(size)
    scheduler, ahead = steps.word(layer, "scheduler"), steps.amount(layer, "read_ahead_bytes")
    if scheduler is not None:
        yield f"scheduler {safe(scheduler, 16)}"
    if ahead is not None and steps.word(layer, "kind") == "disk":
        yield f"read-ahead {units.size_text(ahead)}"
    if steps.word(layer, "write_cache") == "write through":
        yield "write cache off"
    if steps.flag(layer, "smart", "passed") is False:
        yield "SMART: FAILING"


def _raid(layer: dict[str, Any]) -> Iterator[str]:
    """Yields level, state and members of a layer that is made of several."""
    level, doing = steps.word(layer, "raid_level"), steps.word(layer, "sync_action")
    degraded, members = steps.positive(layer, "degraded_disks"), steps.texts(layer, "members")
    if level is not None:
        yield safe(level, 24)
    if degraded is not None:
        yield f"degraded: {units.count_text(degraded)} disk{'' if degraded == 1 else 's'}"
    if doing not in (None, "idle", "none"):
        speed = steps.positive(layer, "sync_bytes_per_second")
        yield f"{safe(doing, 16)}{f' at {units.rate_text(speed)}' if speed else ''}"
    if members:
        hidden = len(members) - MOST_LAYERS
        rest = f" and {hidden} more" if hidden > 0 else ""
        yield f"of {safe(' and '.join(members[:MOST_LAYERS]), 80)}{rest}"


MOST_FILES = 8


def zone_curves(report: Report) -> Iterator[document.ZoneCurve]:
    """Yields a curve for each disk measured zone by zone: its reads, its writes, or both."""
    zone_sets = tuple(all_zones(report))
    others = zones_by_disk(zone_sets)
    for each in zone_sets:
        other = other_way(others, each)
        if other is None or each.step.setting.verb != "write":
            marks = tuple(_marks(report, each))[:MOST_FILES]
            yield document.ZoneCurve(_curve_title(each, other), each, marks, other)


def _curve_title(zones: Zones, other: Zones | None) -> str:
    """Returns the side, disk and direction of a curve in one line; safe to print."""
    setting = zones.step.plan.setting
    side = safe(steps.word(setting, "side") or zones.step.plan.initiator, 16)
    does = "write" if steps.word(setting, "verb") == "write" else "read"
    does = f"{does} and write" if other is not None else does
    device = f" {safe(zones.device, 32)}" if zones.device else ""
    return f"{side} disk{device}, {does} rate by zone, {units.megabytes_unit()}"


def _marks(report: Report, zones: Zones) -> Iterator[document.FileMark]:
    """Yields the files of a report on the disk of a curve, with the names that sentences use."""
    for test in steps.measured_steps(report, "disk"):
        place, name = disk_zones.place_of(test), FILES.get(disk_zones.pattern(test))
        side = steps.word(test.plan.setting, "side")
        spans = () if place is None else place.spans_on(zones.device)
        if name is None or not spans or side != steps.word(zones.step.plan.setting, "side"):
            continue
        # A cached read has the same file as the uncached one.
        if test.setting.cache == "uncached" and test.setting.verb == zones.step.setting.verb:
            yield document.FileMark(name, tuple((span.from_ratio, span.to_ratio) for span in spans))


def _span(row: document.RawRow) -> str:
    first, last = (units.percent_text(row[f"{end}_ratio"]) for end in ("from", "to"))
    return last if first == last else f"{first.removesuffix('%')}\u2013{last}"


def _zone(row: document.RawRow) -> str:
    device = safe(row["device"] or "disk", 24)
    return f"{row['side']} {safe(row['verb'] or '', 8)} {_span(row)} {device}"


def _edges_and_weak(rows: tuple[document.RawRow, ...]) -> tuple[document.RawRow, ...]:
    last = len(rows) - 1
    return tuple(row for index, row in enumerate(rows) if index in (0, last) or row["standing"])


def _whose(row: document.RawRow) -> str:
    return f"{row['side']}: {FILES[row['pattern']].removeprefix('the ')}"


TABLES = {
    "zones": document.Form(
        "Zones",
        (
            document.Field("", _zone),
            document.figure("read", units.rate_text, "read_bytes_per_second"),
            document.figure("write", units.rate_text, "write_bytes_per_second"),
            document.figure("ratio", units.percent_text, "write_to_read_ratio"),
            document.figure("curve", units.rate_text, "curve_bytes_per_second"),
            document.figure("latency", units.seconds_text, "latency_median_seconds"),
            document.Field("", lambda row: row["standing"] or ""),
        ),
        _edges_and_weak,
    ),
    "place": document.Form(
        "Location on disk",
        (
            document.Field("", _whose),
            document.Field("disk", lambda row: safe(row["device"], 24)),
            document.Field("location", _span),
            document.figure("extents", units.count_text, "fragments"),
            document.figure("read rate", units.rate_text, "bytes_per_second"),
            document.figure("expected", units.rate_text, "place_bytes_per_second"),
            document.figure("outer", units.rate_text, "edge_bytes_per_second"),
        ),
        document.first(1),
    ),
    "random": document.Form(
        "Random reads",
        (
            document.Field("", lambda row: f"{row['side']} {safe(row['device'] or 'disk', 24)}"),
            document.figure("queue depth", str, "depth"),
            document.figure("reads/s", units.count_text, "reads_per_second"),
            document.figure("rate", units.rate_text, "bytes_per_second"),
            document.figure("median", units.seconds_text, "median_seconds"),
            document.figure("p99", units.seconds_text, "p99_seconds"),
        ),
        document.first(2),
    ),
    "sustained": document.Form(
        "Sustained and synchronous writes",
        (
            document.Field("", lambda row: f"{row['side']}: {WAYS[row['way']]}"),
            document.figure("rate", units.rate_text, "bytes_per_second"),
            document.figure("knee, size", units.size_text, "knee_bytes", "request_bytes"),
            document.figure("wait", units.seconds_text, "wait_seconds", "flush_seconds"),
        ),
        document.first(4),
    ),
}
