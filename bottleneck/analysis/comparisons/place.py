"""Where a file lies on its disk, what that place can give, and what one piece at the edge would."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bottleneck.analysis import disk_zones, steps
from bottleneck.analysis.disk_zone import where_text
from bottleneck.analysis.disk_zones import Place, Span, Zones
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.noise import factor
from bottleneck.analysis.steps import Found
from bottleneck.report import Report
from bottleneck.reports.units import count_text, percent_text, rate_text, size_text

MATTERS_RATIO = 1.25
"""Edge over place, from which on a better place is worth a word."""
_FILES = {"sequential": "this run's own file", "file": "the file"}


def compare(report: Report) -> Iterator[Comparison]:
    """One comparison for each file that was read past the cache and whose place is known."""
    for found in steps.measured(report, "disk"):
        place = disk_zones.place_of(found)
        uncached = steps.word(found.step.setting, "cache") == "uncached"
        if place is None or not uncached or disk_zones.pattern(found) not in _FILES:
            continue
        verb = steps.word(found.step.setting, "verb") or ""
        if verb == "read":
            yield _compared(report, found, place)


def _compared(report: Report, found: Found, place: Place) -> Comparison:
    side = steps.word(found.step.setting, "side") or found.step.initiator
    zones = disk_zones.zones_under(report, side, "read", place)
    spans = place.spans_on(zones.device) if zones is not None else place.spans
    row = _row(found, side, place, zones, spans)
    due, edge = row["place_bytes_per_second"], row["edge_bytes_per_second"]
    ratio = None if due is None or edge is None else factor(due, edge)
    return Comparison(
        about="place",
        sentence=_sentence(row, place, spans),
        rows=(row,),
        ratio=ratio,
        significant=ratio is not None and edge > due and ratio > MATTERS_RATIO,
        steps=(found.index,) if zones is None else (found.index, zones.found.index),
    )


def _row(
    found: Found, side: str, place: Place, zones: Zones | None, spans: tuple[Span, ...]
) -> dict[str, Any]:
    contiguous = None if zones is None else zones.rate_of(spans)
    seek = None if zones is None else zones.seek_seconds
    seeks = None
    if seek is not None and contiguous is not None and place.fragments is not None:
        seeks = place.seeks_seconds(seek, contiguous)
    due = None
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
        "edge_bytes_per_second": None if zones is None else _edge(zones),
        "seeks_seconds": seeks,
    }


def _edge(zones: Zones) -> float:
    """What one piece at the outer edge would give."""
    if zones.curve is not None:
        return zones.curve.outer_bytes_per_second
    return zones.zones[0].bytes_per_second


def _sentence(row: dict[str, Any], place: Place, spans: tuple[Span, ...]) -> str:
    pieces = ""
    if place.fragments is not None:
        many = "one piece" if place.fragments < 2 else f"{count_text(place.fragments)} pieces"
        pieces = f" in {many}"
    name = row["file"][0].upper() + row["file"][1:]
    told = f"{name} lies {where_text(spans)} of the {row['side']}'s {row['device']}{pieces}"
    due, edge = row["place_bytes_per_second"], row["edge_bytes_per_second"]
    was = f"it was read at {rate_text(row['bytes_per_second'])}"
    if due is None or edge is None:
        told = f"{told}; {was}"
    elif edge < MATTERS_RATIO * due:
        told = f"{told}, which can give {rate_text(due)}: no place on it gives much more; {was}"
    else:
        told = (
            f"{told}, which can give {rate_text(due)}{_seeks(row)}; one piece at the outer edge "
            f"would give {rate_text(edge)}; {was}"
        )
    if place.unwritten_bytes:
        size = size_text(place.unwritten_bytes)
        told = f"{told}; {size} of it were never written and are read from nowhere"
    return f"{told}."


def _seeks(row: dict[str, Any]) -> str:
    seeks, due = row["seeks_seconds"], row["place_bytes_per_second"]
    share = 0.0 if not seeks else seeks / (row["bytes"] / due)
    if share < 0.05:
        return ""
    return (
        f" ({percent_text(share)} of the time it seeks: "
        f"{rate_text(row['contiguous_bytes_per_second'])} there in one piece)"
    )
