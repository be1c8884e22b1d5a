"""Disks zone by zone, the location of a file on them, random reads, sustained writes.

Sources of a knee in long writes: the kernel's dirty limit (see sysctl/vm.rst in its documentation),
the cache of a RAID controller, the SLC part of an SSD.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import disk_zones, steps
from bottleneck.analysis.comparisons import table
from bottleneck.analysis.comparisons.table import Row
from bottleneck.analysis.disc import Zone
from bottleneck.analysis.disk_zones import Place, Span, Zones
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.rules.disk.zone import where_text
from bottleneck.analysis.steps import Found
from bottleneck.report.report import Report
from bottleneck.text.units import (
    count_text,
    percent_text,
    range_text,
    rate_text,
    seconds_text,
    size_text,
    times_text,
)
from probes.core.records import SIDES

DOES = {"read": "reads", "write": "writes"}
MATTERS_RATIO, LEAST_SEEKING_RATIO = 1.25, 0.05
"""Outer tracks over location, and seeks in all of the time, from which on they are reported."""
FILES = {"sequential": "the test file", "file": "the given file"}
DEPTHS = (1, 32)
KNEE_TOLERANCE_RATIO = 0.35
"""Pages that are written meanwhile move the knee: it is at the dirty limit or a bit beyond."""


# -- zone by zone: each zone, the curve through them, and what is weak ----------------------------


def by_zone(report: Report) -> Iterator[Comparison]:
    """One comparison for each disk that was measured zone by zone."""
    for each in all_zones(report):
        yield Comparison(
            about="zones",
            sentence=_zone_sentence(each),
            rows=tuple(_zone_row(each, at, zone) for at, zone in enumerate(each.zones)),
            ratio=each.curve.ratio if each.curve is not None and each.curve.ratio >= 1 else None,
            significant=each.curve is not None and each.curve.falls,
            steps=(each.found.index,),
        )


def all_zones(report: Report) -> Iterator[Zones]:
    """Every measured disk with its zones, in the report's order."""
    for found in steps.measured(report, "disk"):
        if disk_zones.pattern(found) == "zones":
            told = disk_zones.zones_of(found)
            if told.zones:
                yield told


def _side(found: Found) -> str:
    return found.setting.side or found.step.initiator


def disk_name(zones: Zones) -> str:
    """As in a sentence: `the server's disk sda`."""
    return f"the {_side(zones.found)}'s disk {zones.device}".rstrip()


def _zone_sentence(each: Zones) -> str:
    does, name = DOES.get(each.found.setting.verb or "read", "moves"), disk_name(each)
    name = name[0].upper() + name[1:]
    seek = each.seek_seconds
    jump = f" A seek takes {seconds_text(seek)}." if seek is not None else ""
    return f"{name} {does} {_curve_words(each)}{_weak_words(each)}.{jump}"


def _curve_words(each: Zones) -> str:
    curve = each.curve
    if curve is None:
        rates = [zone.bytes_per_second for zone in each.zones]
        many = "one zone" if len(rates) == 1 else f"{len(rates)} zones"
        why = "too few for a curve" if len(rates) < 3 else "unlike the curve of a hard disk"
        return f"{range_text(min(rates), max(rates))} in {many}, {why}"
    outer, inner = curve.outer_bytes_per_second, curve.inner_bytes_per_second
    if curve.flat:
        healthy = (zone for at, zone in enumerate(each.zones) if at not in curve.weak)
        rates = [zone.bytes_per_second for zone in healthy]
        within = percent_text((max(rates) - min(rates)) / max(rates))
        usual = rate_text(sum(rates) / len(rates))
        return f"{usual} in all zones (within {within}), unlike a hard disk"
    if not curve.falls:
        return (
            f"{rate_text(outer)} at its first address and {rate_text(inner)} at its last, unlike a "
            "hard disk"
        )
    return (
        f"{rate_text(outer)} on its outer tracks and {rate_text(inner)} on the inner ones "
        f"({curve.ratio:.2f} to 1), as a hard disk does"
    )


def _weak_words(each: Zones) -> str:
    curve = each.curve
    if curve is None or not curve.weak:
        return ""
    told = [
        f"zone {at + 1} ({rate_text(each.zones[at].bytes_per_second)}, expected "
        f"{rate_text(curve.rate_at(each.zones[at].centre_ratio))})"
        for at in curve.weak
    ]
    return f". Weak: {', '.join(told)}"


def _zone_row(each: Zones, at: int, zone: Zone) -> Row:
    curve, told, setting = each.curve, each.told[at], each.found.setting
    return {
        "side": _side(each.found),
        "verb": setting.verb or None,
        "device": each.device or None,
        "zone": at + 1,
        "from_ratio": zone.from_ratio,
        "to_ratio": zone.to_ratio,
        "bytes_per_second": zone.bytes_per_second,
        "low_bytes_per_second": zone.low_bytes_per_second,
        "high_bytes_per_second": zone.high_bytes_per_second,
        "curve_bytes_per_second": None if curve is None else curve.rate_at(zone.centre_ratio),
        "standing": "weak" if curve is not None and at in curve.weak else None,
        "latency_median_seconds": steps.amount(told, "latency_seconds", "median"),
        "latency_p99_seconds": steps.amount(told, "latency_seconds", "p99"),
    }


# -- the location of a file, and what one extent on the outer tracks would give ----------------


def places(report: Report) -> Iterator[Comparison]:
    """One comparison for each file that was read past the cache and whose location is known."""
    for found in steps.measured(report, "disk"):
        place, setting = disk_zones.place_of(found), found.setting
        whole = disk_zones.pattern(found) in FILES and setting.verb == "read"
        if place is None or not whole or setting.cache != "uncached":
            continue
        side = _side(found)
        zones = disk_zones.zones_under(report, side, "read", place)
        spans = place.spans_on(zones.device) if zones is not None else place.spans
        row = _place_row(found, side, place, zones, spans)
        due, edge = row["place_bytes_per_second"], row["edge_bytes_per_second"]
        yield table.compared(
            "place",
            _place_sentence(row, place, spans),
            (row,),
            (found,) if zones is None else (found, zones.found),
            (due, edge),
            believed=due is not None and edge > due,
            least_ratio=MATTERS_RATIO,
        )


def _place_row(
    found: Found, side: str, place: Place, zones: Zones | None, spans: tuple[Span, ...]
) -> Row:
    contiguous = seeks = due = edge = None
    if zones is not None:
        contiguous, first = zones.rate_of(spans), zones.zones[0]
        edge = zones.curve.outer_bytes_per_second if zones.curve else first.bytes_per_second
        if contiguous is not None and zones.seek_seconds and place.told.fragments is not None:
            seeks = place.seeks_seconds(zones.seek_seconds, contiguous)
    if contiguous is not None:
        due = place.size_bytes / (place.size_bytes / contiguous + (seeks or 0.0))
    return {
        "side": side,
        "pattern": disk_zones.pattern(found),
        "file": FILES[disk_zones.pattern(found)],
        "device": place.device if zones is None else zones.device,
        "bytes": place.size_bytes,
        "unwritten_bytes": place.told.unwritten_bytes,
        "fragments": place.told.fragments,
        "from_ratio": min(span.from_ratio for span in spans),
        "to_ratio": max(span.to_ratio for span in spans),
        "centre_ratio": sum(span.weight * span.centre_ratio for span in spans)
        / sum(span.weight for span in spans),
        "bytes_per_second": found.rate.median,
        "place_bytes_per_second": due,
        "contiguous_bytes_per_second": contiguous,
        "edge_bytes_per_second": edge,
        "seeks_seconds": seeks,
    }


def _place_sentence(row: Row, place: Place, spans: tuple[Span, ...]) -> str:
    pieces = ""
    if place.told.fragments is not None:
        many = (
            "one extent"
            if place.told.fragments < 2
            else f"{count_text(place.told.fragments)} extents"
        )
        pieces = f" in {many}"
    name = row["file"][0].upper() + row["file"][1:]
    told = (
        f"{name} is stored {where_text(spans)} of the {row['side']}'s {row['device']}{pieces} and "
        f"was read at {rate_text(row['bytes_per_second'])}."
    )
    due, edge = row["place_bytes_per_second"], row["edge_bytes_per_second"]
    if due is not None and edge < MATTERS_RATIO * due:
        told += f" This location allows {rate_text(due)}; no other would be much faster."
    elif due is not None:
        seeking = ""
        share = (row["seeks_seconds"] or 0.0) / (row["bytes"] / due)
        if share >= LEAST_SEEKING_RATIO:
            seeking = (
                f" Seeks take {percent_text(share)} of the time; in one extent, it would allow "
                f"{rate_text(row['contiguous_bytes_per_second'])}."
            )
        told += (
            f" This location allows {rate_text(due)}.{seeking} One extent on the outer tracks "
            f"would allow {rate_text(edge)}."
        )
    if place.told.unwritten_bytes:
        size = size_text(place.told.unwritten_bytes)
        told += f" {size} of the file were never written and are not read from the disk."
    return told


# -- random reads: one at a time, each a seek, and many that the disk may sort -----------


def random_reads(report: Report) -> Iterator[Comparison]:
    """One comparison for each disk whose random reads were measured."""
    for each in all_zones(report):
        rows = tuple(_random_rows(each))
        if not rows:
            continue
        first, last = (each["reads_per_second"] for each in (rows[0], rows[-1]))
        rates = (first, last) if len(rows) == len(DEPTHS) else (None, None)
        sentence = _random_sentence(each, rows)
        yield table.compared("random", sentence, rows, (each.found,), rates)


def _random_rows(each: Zones) -> Iterator[Row]:
    told = each.found.outcome.details.get("random")
    size = steps.positive(told, "bytes")
    for depth in DEPTHS:
        rate = steps.positive(told, f"depth_{depth}_per_second")
        if size is None or rate is None:
            continue
        yield {
            "side": _side(each.found),
            "device": each.device or None,
            "depth": depth,
            "read_bytes": size,
            "reads_per_second": rate,
            "bytes_per_second": rate * size,
            "median_seconds": steps.amount(told, "median_seconds") if depth == 1 else None,
            "p99_seconds": steps.amount(told, "p99_seconds") if depth == 1 else None,
        }


def _random_sentence(each: Zones, rows: tuple[Row, ...]) -> str:
    first, last = rows[0], rows[-1]
    size = size_text(first["read_bytes"])
    rate = rate_text(first["bytes_per_second"])
    many = count_text(first["reads_per_second"])
    name = disk_name(each)
    told = (
        f"{name[0].upper()}{name[1:]} makes {many} random reads of {size} per second at queue "
        f"depth {first['depth']} ({rate})."
    )
    if last is not first:
        more = count_text(last["reads_per_second"])
        gain = last["reads_per_second"] / first["reads_per_second"]
        told += f" Queue depth {last['depth']} gives {more} ({times_text(gain)})."
    if each.seek_seconds is not None:
        told += f" A seek takes {seconds_text(each.seek_seconds)}."
    return told


# -- sustained and synchronous writes ----------------------------------------------


Ways = dict[str, tuple[float, Found]]
"""By the way to write: its rate in bytes per second, and the step that showed it."""


def writing(report: Report) -> Iterator[Comparison]:
    """One comparison for each side's disk whose sustained or synchronous writes were measured."""
    for side in SIDES:
        ways = dict(_ways(report, side))
        if len(ways) > 1:
            rates, found = zip(*ways.values(), strict=True)
            yield table.compared(
                "sustained",
                " ".join(_writing_sentences(side, ways)),
                (_way_row(side, way, *each) for way, each in ways.items()),
                found,
                (max(rates), min(rates)),
            )


def _ways(report: Report, side: str) -> Iterator[tuple[str, tuple[float, Found]]]:
    sustained, synced, durable = (
        steps.fastest(disk_zones.disk_steps(report, side, "write", pattern))
        for pattern in ("sustained", "synced", "sequential")
    )
    if sustained is None and synced is None:
        return
    for way in ("acknowledged", "sustained"):
        rate = _told(sustained, f"{way}_bytes_per_second")
        if rate is not None and sustained is not None:
            yield way, (rate, sustained)
    for way, found in (("durable", durable), ("synced", synced)):
        if found is not None:
            yield way, (found.rate.median, found)


def _told(found: Found | None, *path: str) -> float | None:
    return None if found is None else steps.positive(found.outcome.details, *path)


def _writing_sentences(side: str, ways: Ways) -> Iterator[str]:
    disk = f"the {side}'s disk"
    if "acknowledged" in ways:
        fast, found = ways["acknowledged"]
        knee, flush = _told(found, "knee_bytes"), _told(found, "flush_seconds")
        late = "" if flush is None else f" The final flush took {seconds_text(flush)}."
        then = " throughout"
        if knee is not None and "sustained" in ways:
            kept = rate_text(ways["sustained"][0])
            then = f" for the first {size_text(knee)}, then at {kept}{_why(found, knee)}"
        yield f"Writes to {disk} were acknowledged at {rate_text(fast)}{then}.{late}"
    if "synced" in ways:
        rate, found = ways["synced"]
        size = _told(found, "request_bytes")
        each = "" if size is None else f" of {size_text(size)}"
        wait = _told(found, "sync_seconds", "median")
        waits = "" if wait is None else f" (each waits {seconds_text(wait)})"
        yield f"Synchronous writes{each} to {disk} run at {rate_text(rate)}{waits}."
        if "durable" in ways:
            yield f"With one final flush, writes run at {rate_text(ways['durable'][0])}."


def _why(found: Found, knee: float) -> str:
    """What explains the knee: the kernel's own limit, or a cache below it."""
    limit = _told(found, "dirty_limit_bytes")
    if limit is None:
        return ""
    if limit * (1 - KNEE_TOLERANCE_RATIO) <= knee <= limit * (1 + KNEE_TOLERANCE_RATIO):
        return f", from the kernel's dirty limit on ({size_text(limit)})"
    if knee > limit:
        return (
            f". {size_text(knee)} is beyond the kernel's dirty limit ({size_text(limit)}): a cache "
            "of the disk or its controller was full"
        )
    return (
        f". {size_text(knee)} is below the kernel's dirty limit ({size_text(limit)}): a "
        "container's limit or a cache of the disk"
    )


def _way_row(side: str, way: str, rate: float, found: Found) -> Row:
    of_long = ("knee_bytes", "flush_seconds")
    own = way in ("acknowledged", "sustained")
    return {
        "side": side,
        "way": way,
        "bytes_per_second": rate,
        "request_bytes": _told(found, "request_bytes") if way == "synced" else None,
        "wait_seconds": _told(found, "sync_seconds", "median"),
        **{name: _told(found, name) if own else None for name in of_long},
    }
