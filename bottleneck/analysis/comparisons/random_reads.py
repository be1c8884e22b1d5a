"""Single small reads: one at a time, each a jump, against many at once that the disk may sort."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bottleneck.analysis import steps
from bottleneck.analysis.comparisons.zones import all_zones, disk_name
from bottleneck.analysis.disk_zones import Zones
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.noise import SINGLE_RATIO, factor
from bottleneck.report import Report
from bottleneck.reports.units import count_text, rate_text, seconds_text, size_text, times_text

DEPTHS = (1, 32)


def compare(report: Report) -> Iterator[Comparison]:
    """One comparison for each disk whose single small reads were measured."""
    for each in all_zones(report):
        rows = tuple(_rows(each))
        if not rows:
            continue
        ratio = None
        if len(rows) == len(DEPTHS):
            ratio = factor(rows[0]["reads_per_second"], rows[1]["reads_per_second"])
        yield Comparison(
            about="random",
            sentence=_sentence(each, rows),
            rows=rows,
            ratio=ratio,
            significant=ratio is not None and ratio > SINGLE_RATIO,
            steps=(each.found.index,),
        )


def _rows(each: Zones) -> Iterator[dict[str, Any]]:
    told = each.found.outcome.details.get("random")
    size = steps.positive(told, "bytes")
    for depth in DEPTHS:
        rate = steps.positive(told, f"depth_{depth}_per_second")
        if size is None or rate is None:
            continue
        yield {
            "side": steps.word(each.found.step.setting, "side") or each.found.step.initiator,
            "device": each.device or None,
            "depth": depth,
            "read_bytes": size,
            "reads_per_second": rate,
            "bytes_per_second": rate * size,
            "median_seconds": steps.amount(told, "median_seconds") if depth == 1 else None,
            "p99_seconds": steps.amount(told, "p99_seconds") if depth == 1 else None,
        }


def _sentence(each: Zones, rows: tuple[dict[str, Any], ...]) -> str:
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
