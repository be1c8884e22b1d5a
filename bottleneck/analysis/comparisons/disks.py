"""Disks zone by zone, the location of a file on them, random reads, sustained writes.

Sources of a knee in long writes: the kernel's dirty limit (see sysctl/vm.rst in its documentation),
the cache of a RAID controller, the SLC part of an SSD.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace

from bottleneck.analysis import disk_zones, steps
from bottleneck.analysis.comparisons import table
from bottleneck.analysis.comparisons.axis import Axis, Group, Groups, compare_with_noise
from bottleneck.analysis.comparisons.table import Cell, Cells, Row
from bottleneck.analysis.disc import Zone
from bottleneck.analysis.disk_zones import Place, Zones
from bottleneck.analysis.noise import SINGLE_RATIO
from bottleneck.analysis.rules.disk.zone import where_text
from bottleneck.analysis.steps import MeasuredStep
from bottleneck.report.report import Report
from bottleneck.text.units import range_text
from probes.core.records import SIDES

DOES = {"read": "reads", "write": "writes"}
FILES = {"sequential": "the test file", "file": "the given file"}
LEAST_SEEKING_RATIO = 0.05
"""Least share of a read's time in seeks that is reported."""
KNEE_TOLERANCE_RATIO = 0.35
"""Relative distance of the knee from the dirty limit: pages written meanwhile move it beyond."""


def all_zones(report: Report) -> Iterator[Zones]:
    """Yields every measured disk with its zones, in the report's order."""
    for result in steps.measured_steps(report, "disk"):
        zones = disk_zones.zones_of(result) if disk_zones.pattern(result) == "zones" else None
        if zones is not None and zones.zones:
            yield zones


def _side(result: MeasuredStep) -> str:
    return result.setting.side or result.plan.initiator


def _disk(zones: Zones) -> str:
    return f"The {_side(zones.step)}'s disk {zones.device}".rstrip()


SEEK = "A seek takes {seek_seconds}."
FULL_RATIO = 0.9
"""Share of a disc, from its outer tracks on, that is in use before new files are stored."""
ONE_PLACE = {
    "ssd": "as the kernel reports no rotating disk",
    "network": "as a network file system reports no locations",
    "fuse": "as FUSE reports no locations",
    "other": "as only ext4 and XFS are known here",
    "discard": "because of the mount option `discard`",
    "full": "as it is nearly full",
}
"""Reasons for files at one place only, by the step's word."""
UNTOLD = "as its file system or volume reports no locations"

Others = Mapping[tuple[str, str, bool], Zones]
"""Zones by side, device, and whether they were written."""


def zones_by_disk(disks: Iterable[Zones]) -> Others:
    """Returns the zones of each disk, without those at one place only."""
    return {
        (_side(each.step), each.device, each.step.setting.verb == "write"): each
        for each in disks
        if _one_place(each) is None
    }


def other_way(others: Others, zones: Zones) -> Zones | None:
    """Returns the written zones of a disk for its read ones, or the reverse."""
    is_write = zones.step.setting.verb == "write"
    return others.get((_side(zones.step), zones.device, not is_write))


def both_ways(zone: Zone, verb: str | None, other: Zones | None) -> Row:
    rate = other.rate_at(zone) if other is not None else None
    read, write = (rate, zone.bytes_per_second)[:: 1 if verb == "write" else -1]
    return {
        "read_bytes_per_second": read,
        "write_bytes_per_second": write,
        "write_to_read_ratio": write / read if write and read else None,
    }


def _zones(report: Report) -> Iterator[Cell]:
    disks = tuple(all_zones(report))
    others = zones_by_disk(disks)
    for each in disks:
        curve, verb, other = each.curve, each.step.setting.verb or None, other_way(others, each)
        for index, (zone, details) in enumerate(zip(each.zones, each.rows, strict=True)):
            weak = curve is not None and index in curve.weak
            row = {
                "side": _side(each.step),
                "verb": verb,
                "device": each.device or None,
                "zone": index + 1,
                **asdict(zone),
                **both_ways(zone, verb, other),
                "curve_bytes_per_second": curve and curve.rate_at(zone.centre_ratio),
                "standing": "weak" if weak else None,
                "latency_median_seconds": steps.amount(details, "latency_seconds", "median"),
                "latency_p99_seconds": steps.amount(details, "latency_seconds", "p99"),
            }
            yield table.cell(each.step, row, each)


def _compare_by_curve(ends: Cells) -> tuple[float | None, bool]:
    curve = ends[0].source.curve
    if curve is None:
        return None, False
    return curve.ratio if curve.ratio >= 1 else None, curve.falls


def _zone_figures(group: Group, _: Groups) -> Row:
    zones, weak = group.cells[0].source, [e.row for e in group.cells if e.row["standing"]]
    text = "zone {zone} ({bytes_per_second}, expected {curve_bytes_per_second})"
    healthy = [each.rate for each in group.cells if not each.row["standing"]]
    curve, shape, writes = zones.curve, "no_curve", zones.step.setting.verb == "write"
    if curve is not None:
        shape = "flat" if curve.is_flat else "falls" if curve.falls else "odd"
    ratios = [e.row["write_to_read_ratio"] for e in group.cells if writes]
    shares = [each for each in ratios if each is not None]
    count = "in one zone" if len(healthy) == 1 else f"in {len(healthy)} zones"
    return {
        shape: True,
        "disk": _disk(zones),
        "does": DOES.get(zones.step.setting.verb or "read", "moves"),
        "weak": ", ".join(table.write(text, row) for row in weak) or None,
        "seek_seconds": zones.seek_seconds,
        "range": range_text(min(healthy), max(healthy)),
        "zones": "at one location" if _one_place(zones) else count,
        "reason": _no_curve(zones, len(healthy)),
        "write_to_read_ratio": sum(shares) / len(shares) if shares else None,
        "full_bytes_per_second": curve.rate_at(FULL_RATIO) if curve and writes else None,
        "full_ratio": FULL_RATIO,
        "mean_bytes_per_second": sum(healthy) / len(healthy),
        "within_ratio": 1 - min(healthy) / max(healthy),
        "outer_bytes_per_second": curve and curve.outer_bytes_per_second,
        "inner_bytes_per_second": curve and curve.inner_bytes_per_second,
        "about": "about " if curve and curve.partial else "",
        "fall": curve and f"{curve.ratio:.2f} to 1",
    }


def _one_place(zones: Zones) -> str | None:
    return steps.word(zones.step.outcome.details, "one_place")


def _no_curve(zones: Zones, healthy: int) -> str:
    why = _one_place(zones)
    if why:
        return ONE_PLACE.get(why, UNTOLD)
    if healthy < 3:
        return "too few for a curve"
    near = zones.reach_ratio < disk_zones.WIDE_RATIO
    return "too near each other for a curve" if near else "unlike the curve of a hard disk"


ZONES = Axis(
    "zones",
    cells=_zones,
    apart=_compare_by_curve,
    figures=_zone_figures,
    sentences=(
        "{no_curve}{disk} {does} {range} {zones}, {reason}[. Weak: {weak}].",
        "{flat}{disk} {does} at one rate everywhere, {mean_bytes_per_second} (within "
        "{within_ratio}), unlike a hard disk[. Weak: {weak}].",
        "{odd}{disk} {does} {outer_bytes_per_second} at its first address and "
        "{inner_bytes_per_second} at its last, unlike a hard disk[. Weak: {weak}].",
        "{falls}{disk} {does} {outer_bytes_per_second} on its outer tracks and {about}"
        "{inner_bytes_per_second} on the inner ones ({fall}), as a hard disk does[. Weak: {weak}].",
        "{falls}At {full_ratio} full, it writes new files at about {full_bytes_per_second}.",
        "Writes reach {write_to_read_ratio} of the reads at the same locations.",
        SEEK,
    ),
)


def _places(report: Report) -> Iterator[Cell]:
    for result in steps.measured_steps(report, "disk"):
        place, pattern = disk_zones.place_of(result), disk_zones.pattern(result)
        uncached = (result.setting.verb, result.setting.cache) == ("read", "uncached")
        if place is None or not uncached or pattern not in FILES:
            continue
        side = _side(result)
        zones = disk_zones.zones_under(report, side, "read", place)
        spans = place.spans if zones is None else place.spans_on(zones.device)
        weight = sum(span.weight for span in spans)
        row = {
            "side": side,
            "pattern": pattern,
            "file": FILES[pattern],
            "device": place.device if zones is None else zones.device,
            "bytes": place.size_bytes,
            "unwritten_bytes": place.details.unwritten_bytes,
            "fragments": place.details.fragments,
            "from_ratio": min(span.from_ratio for span in spans),
            "to_ratio": max(span.to_ratio for span in spans),
            "centre_ratio": sum(span.weight * span.centre_ratio for span in spans) / weight,
            "bytes_per_second": result.rate.median,
            **_allowed_rates(place, zones),
        }
        yield table.cell(result, row, spans, *(() if zones is None else (zones.step,)))


def _allowed_rates(place: Place, zones: Zones | None) -> Row:
    """Returns rates of the file's location, in one extent, and at the edge; None: unknown."""
    contiguous = seeks = due = edge = None
    if zones is not None:
        contiguous, first = zones.rate_of(place.spans_on(zones.device)), zones.zones[0]
        edge = zones.curve.outer_bytes_per_second if zones.curve else first.bytes_per_second
        if contiguous is not None:
            if zones.seek_seconds and place.details.fragments is not None:
                seeks = place.seeks_seconds(zones.seek_seconds, contiguous)
            due = place.size_bytes / (place.size_bytes / contiguous + (seeks or 0.0))
    return {
        "place_bytes_per_second": due,
        "contiguous_bytes_per_second": contiguous,
        "edge_bytes_per_second": edge,
        "seeks_seconds": seeks,
    }


def _place_and_edge(cells: Cells) -> Cells:
    due, edge = (cells[0].row[name] for name in ("place_bytes_per_second", "edge_bytes_per_second"))
    return (
        cells if due is None else [replace(cells[0], spread=table.single(e)) for e in (due, edge)]
    )


def _compare_by_location(ends: Cells) -> tuple[float | None, bool]:
    ratio, significant = compare_with_noise(ends)
    return ratio, significant and ends[-1].rate > ends[0].rate


def _place_figures(group: Group, _: Groups) -> Row:
    row, spans = group.cells[0].row, group.cells[0].source
    fragments, due = row["fragments"], row["place_bytes_per_second"]
    many = (
        "one extent" if fragments and fragments < 2 else table.number_text(fragments or 0, "extent")
    )
    far = due is not None and row["edge_bytes_per_second"] >= SINGLE_RATIO * due
    share = (row["seeks_seconds"] or 0.0) * (due or 0.0) / row["bytes"]
    return {
        "name": table.capital(row["file"]),
        "where": where_text(spans),
        "extents": many if fragments else None,
        "near": due is not None and not far,
        "far": far,
        "seeking_ratio": share if far and share >= LEAST_SEEKING_RATIO else None,
        "unwritten_bytes": row["unwritten_bytes"] or None,
    }


PLACE = Axis(
    "place",
    cells=_places,
    ends=_place_and_edge,
    apart=_compare_by_location,
    figures=_place_figures,
    sentences=(
        "{name} is stored {where} of the {side}'s {device}[ in {extents}] and was read at "
        "{bytes_per_second}.",
        "{near}This location allows {place_bytes_per_second}; no other would be much faster.",
        "{far}This location allows {place_bytes_per_second}.",
        "Seeks take {seeking_ratio} of the time; in one extent, it would allow "
        "{contiguous_bytes_per_second}.",
        "{far}One extent on the outer tracks would allow {edge_bytes_per_second}.",
        "{unwritten_bytes} of the file were never written and are not read from the disk.",
    ),
)


def _random_reads(report: Report) -> Iterator[Cell]:
    for each in all_zones(report):
        details = each.step.outcome.details.get("random")
        size = steps.positive(details, "bytes")
        for depth in (1, 32):
            rate = steps.positive(details, f"depth_{depth}_per_second")
            names = ("median_seconds", "p99_seconds")
            if size is not None and rate is not None:
                row = {
                    "side": _side(each.step),
                    "device": each.device or None,
                    "depth": depth,
                    "read_bytes": size,
                    "reads_per_second": rate,
                    "bytes_per_second": rate * size,
                    **{e: steps.amount(details, e) if depth == 1 else None for e in names},
                }
                yield Cell(each.step, row, table.single(rate), each)


def _random_figures(group: Group, _: Groups) -> Row:
    first, last = group.cells[0], group.cells[-1]
    row = {"disk": _disk(first.source), "seek_seconds": first.source.seek_seconds}
    return {**row, "gain_times": None if first is last else last.rate / first.rate}


RANDOM = Axis(
    "random",
    cells=_random_reads,
    figures=_random_figures,
    sentences=(
        "{disk} makes {first.reads_per_second} random reads of {first.read_bytes} per second at "
        "queue depth {first.depth} ({first.bytes_per_second}).",
        "Queue depth {second.depth} gives {second.reads_per_second} ({gain_times}).",
        SEEK,
    ),
)


def _writes(report: Report) -> Iterator[Cell]:
    for side in SIDES:
        sustained, synced, durable = (
            steps.fastest(disk_zones.disk_steps(report, side, "write", pattern))
            for pattern in ("sustained", "synced", "sequential")
        )
        for way, result in (("acknowledged", sustained), ("sustained", sustained)):
            details = result.outcome.details if result else {}
            rate = steps.positive(details, f"{way}_bytes_per_second")
            if result is not None and rate is not None:
                yield _way(side, way, result, rate)
        for way, result in (("durable", durable), ("synced", synced)):
            if result is not None and (sustained or synced):
                yield _way(side, way, result, result.rate.median)


def _way(side: str, way: str, result: MeasuredStep, rate: float) -> Cell:
    details, long = result.outcome.details, way in ("acknowledged", "sustained")
    row = {
        "side": side,
        "way": way,
        "bytes_per_second": rate,
        "request_bytes": steps.positive(details, "request_bytes") if way == "synced" else None,
        "wait_seconds": steps.positive(details, "sync_seconds", "median"),
        "knee_bytes": steps.positive(details, "knee_bytes") if long else None,
        "flush_seconds": steps.positive(details, "flush_seconds") if long else None,
    }
    return table.cell(result, row)


def _write_figures(group: Group, _: Groups) -> Row:
    ways = {each.row["way"]: each for each in group.cells}
    rows = {way: each.row for way, each in ways.items()}
    fast, slow, synced = (rows.get(way) for way in ("acknowledged", "sustained", "synced"))
    knee = slow and fast and fast["knee_bytes"]
    return {
        "fast": fast,
        "kept": slow if knee else None,
        "steady": not knee,
        "knee": _knee(ways["acknowledged"]) if knee else None,
        "synced": synced,
        "durable": synced and rows.get("durable"),
    }


def _knee(fast: Cell) -> str:
    """Returns the reason for the knee: the kernel's own limit, or a cache."""
    knee = fast.row["knee_bytes"]
    limit = steps.positive(fast.result.outcome.details, "dirty_limit_bytes")
    text = ", from the kernel's dirty limit on ({limit_bytes})"
    if limit is not None and abs(knee / limit - 1) > KNEE_TOLERANCE_RATIO:
        where, reason = "below", "a container's limit or a cache of the disk"
        if knee > limit:
            where, reason = "beyond", "a cache of the disk or its controller was full"
        text = f". {{knee_bytes}} is {where} the kernel's dirty limit ({{limit_bytes}}): {reason}"
    return table.write(text, {"limit_bytes": limit, "knee_bytes": knee})


SUSTAINED = Axis(
    "sustained",
    cells=_writes,
    equal="side",
    minimum=2,
    ends=table.slowest_and_fastest,
    figures=_write_figures,
    sentences=(
        "Writes to the {fast.side}'s disk were acknowledged at {fast.bytes_per_second}[{steady} "
        "throughout][ for the first {fast.knee_bytes}, then at {kept.bytes_per_second}][{knee}].",
        "The final flush took {fast.flush_seconds}.",
        "Synchronous writes[ of {synced.request_bytes}] to the {synced.side}'s disk run at "
        "{synced.bytes_per_second}[ (each waits {synced.wait_seconds})].",
        "With one final flush, writes run at {durable.bytes_per_second}.",
    ),
)
