"""Disks beside their zones: where a file lies, single small reads, writing for long.

Sources of a knee in long writes: the kernel's dirty limit (see sysctl/vm.rst in its documentation),
the cache of a RAID controller, the SLC part of an SSD.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import disk_zones, steps
from bottleneck.analysis.comparisons import table
from bottleneck.analysis.comparisons.table import Row
from bottleneck.analysis.comparisons.zones import all_zones, disk_name
from bottleneck.analysis.disk_zones import Place, Span, Zones
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.rules.disk.zone import where_text
from bottleneck.analysis.steps import Found
from bottleneck.report import Report
from bottleneck.reports.units import (
    count_text,
    percent_text,
    rate_text,
    seconds_text,
    size_text,
    times_text,
)
from probes.records import SIDES

MATTERS_RATIO, LEAST_SEEKING_RATIO = 1.25, 0.05
"""Edge over place, and seeks in all of the time, from which on they are worth a word."""
_FILES = {"sequential": "this run's own file", "file": "the file"}
DEPTHS = (1, 32)
KNEE_TOLERANCE_RATIO = 0.35
"""Pages that are written meanwhile move the knee: it lies at the dirty limit or a bit beyond."""


# -- where a file lies, and what one piece at the edge would give ------------------------------


def places(report: Report) -> Iterator[Comparison]:
    """One comparison for each file that was read past the cache and whose place is known."""
    for found in steps.measured(report, "disk"):
        place, setting = disk_zones.place_of(found), found.setting
        whole = disk_zones.pattern(found) in _FILES and setting.verb == "read"
        if place is None or not whole or setting.cache != "uncached":
            continue
        side = setting.side or found.step.initiator
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
        if contiguous is not None and zones.seek_seconds and place.fragments is not None:
            seeks = place.seeks_seconds(zones.seek_seconds, contiguous)
    if contiguous is not None:
        due = place.size_bytes / (place.size_bytes / contiguous + (seeks or 0.0))
    return {
        "side": side,
        "pattern": disk_zones.pattern(found),
        "file": _FILES[disk_zones.pattern(found)],
        "device": place.device if zones is None else zones.device,
        "bytes": place.size_bytes,
        "unwritten_bytes": place.unwritten_bytes,
        "fragments": place.fragments,
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
    if place.fragments is not None:
        many = "one piece" if place.fragments < 2 else f"{count_text(place.fragments)} pieces"
        pieces = f" in {many}"
    name = row["file"][0].upper() + row["file"][1:]
    told = f"{name} lies {where_text(spans)} of the {row['side']}'s {row['device']}{pieces}"
    due, edge = row["place_bytes_per_second"], row["edge_bytes_per_second"]
    was = f"it was read at {rate_text(row['bytes_per_second'])}"
    if due is None:
        told = f"{told}; {was}"
    elif edge < MATTERS_RATIO * due:
        told = f"{told}, which can give {rate_text(due)}: no place on it gives much more; {was}"
    else:
        seeking = ""
        share = (row["seeks_seconds"] or 0.0) / (row["bytes"] / due)
        if share >= LEAST_SEEKING_RATIO:
            seeking = (
                f" ({percent_text(share)} of the time it seeks: "
                f"{rate_text(row['contiguous_bytes_per_second'])} there in one piece)"
            )
        told = (
            f"{told}, which can give {rate_text(due)}{seeking}; one piece at the outer edge "
            f"would give {rate_text(edge)}; {was}"
        )
    if place.unwritten_bytes:
        size = size_text(place.unwritten_bytes)
        told = f"{told}; {size} of it were never written and are read from nowhere"
    return f"{told}."


# -- single small reads: one at a time, each a jump, and many that the disk may sort -----------


def random_reads(report: Report) -> Iterator[Comparison]:
    """One comparison for each disk whose single small reads were measured."""
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
            "side": each.found.setting.side or each.found.step.initiator,
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
    how = "one at a time" if first["depth"] == 1 else "32 at once"
    name = disk_name(each)
    told = f"Of {size} at random places {name} reads {many} a second {how} ({rate})"
    if each.seek_seconds is not None:
        told = f"{told}, a jump costing {seconds_text(each.seek_seconds)}"
    if last is first:
        return f"{told}."
    more = count_text(last["reads_per_second"])
    gain = last["reads_per_second"] / first["reads_per_second"]
    return f"{told}; 32 at once give {more}, {times_text(gain)} as many."


# -- writing for long, and with each write forced ----------------------------------------------


Ways = dict[str, tuple[float, Found]]
"""By the way to write: its rate in bytes per second, and the step that showed it."""


def writing(report: Report) -> Iterator[Comparison]:
    """One comparison for each side's disk that was written for long or with each write forced."""
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
        late = "" if flush is None else f"; the flush at the end took {seconds_text(flush)}"
        then = " throughout"
        if knee is not None and "sustained" in ways:
            kept = rate_text(ways["sustained"][0])
            then = f" for {size_text(knee)}, then at {kept}{_why(found, knee)}"
        yield f"Writes to {disk} were acknowledged at {rate_text(fast)}{then}{late}."
    if "synced" in ways:
        rate, found = ways["synced"]
        size = _told(found, "request_bytes")
        each = "each write" if size is None else f"each {size_text(size)}"
        wait = _told(found, "sync_seconds", "median")
        waits = "" if wait is None else f" ({seconds_text(wait)} of waiting each)"
        against = ""
        if "durable" in ways:
            against = f", against {rate_text(ways['durable'][0])} flushed once at the end"
        takes = f"it takes {rate_text(rate)}{waits}{against}"
        yield f"With {each} forced to {disk} before the next {takes}."


def _why(found: Found, knee: float) -> str:
    """What the knee looks like: the kernel's own limit, or a cache below it."""
    limit = _told(found, "dirty_limit_bytes")
    if limit is None:
        return ""
    if limit * (1 - KNEE_TOLERANCE_RATIO) <= knee <= limit * (1 + KNEE_TOLERANCE_RATIO):
        return f": that is where the kernel's dirty limit ({size_text(limit)}) lies"
    if knee > limit:
        return (
            f", far beyond the kernel's dirty limit ({size_text(limit)}): a cache in the disk or "
            "its controller is full from there on"
        )
    return (
        f", before the kernel's dirty limit ({size_text(limit)}): a limit of a container, or a "
        "cache in the disk"
    )


def _way_row(side: str, way: str, rate: float, found: Found) -> Row:
    of_long = ("knee_bytes", "dirty_limit_bytes", "flush_seconds")
    own = way in ("acknowledged", "sustained")
    return {
        "side": side,
        "way": way,
        "bytes_per_second": rate,
        "request_bytes": _told(found, "request_bytes") if way == "synced" else None,
        "wait_seconds": _told(found, "sync_seconds", "median"),
        **{name: _told(found, name) if own else None for name in of_long},
    }
