"""A disk from its outer edge to its inner: each zone, the curve through them, and what is weak."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bottleneck.analysis import disk_zones, steps
from bottleneck.analysis.disc import Zone
from bottleneck.analysis.disk_zones import Zones
from bottleneck.analysis.finding import Comparison
from bottleneck.report import Report
from bottleneck.reports.units import percent_text, range_text, rate_text, seconds_text

DOES = {"read": "reads", "write": "writes"}


def compare(report: Report) -> Iterator[Comparison]:
    """One comparison for each disk that was measured zone by zone."""
    for each in all_zones(report):
        yield Comparison(
            about="zones",
            sentence=_sentence(each),
            rows=tuple(_row(each, at, zone) for at, zone in enumerate(each.zones)),
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


def disk_name(zones: Zones) -> str:
    """As a person calls it: `the server's disk sda`."""
    side = zones.found.setting.side or zones.found.step.initiator
    return f"the {side}'s disk {zones.device}".rstrip()


def _sentence(each: Zones) -> str:
    does, name = DOES.get(each.found.setting.verb or "read", "moves"), disk_name(each)
    name = name[0].upper() + name[1:]
    seek = each.seek_seconds
    jump = f" A jump to another place costs {seconds_text(seek)}." if seek is not None else ""
    return f"{name} {does} {_shape(each)}{_weak(each)}.{jump}"


def _shape(each: Zones) -> str:
    curve = each.curve
    if curve is None:
        rates = [zone.bytes_per_second for zone in each.zones]
        many = "one zone" if len(rates) == 1 else f"{len(rates)} zones"
        why = "too few for a curve" if len(rates) < 3 else "on no curve that a disc would have"
        return f"{range_text(min(rates), max(rates))} in {many}, {why}"
    outer, inner = curve.outer_bytes_per_second, curve.inner_bytes_per_second
    if curve.flat:
        healthy = (zone for at, zone in enumerate(each.zones) if at not in curve.weak)
        rates = [zone.bytes_per_second for zone in healthy]
        within = percent_text((max(rates) - min(rates)) / max(rates))
        usual = rate_text(sum(rates) / len(rates))
        return f"{usual}, the same everywhere within {within}: no spinning disc shows there"
    if not curve.falls:
        return (
            f"{rate_text(outer)} at its first address and {rate_text(inner)} at its last, where a "
            "spinning disc falls off"
        )
    return (
        f"{rate_text(outer)} at its outer edge and {rate_text(inner)} at the inner, "
        f"{curve.ratio:.2f} to 1, as a spinning disc does"
    )


def _weak(each: Zones) -> str:
    curve = each.curve
    if curve is None or not curve.weak:
        return ""
    told = [
        f"zone {at + 1} is weak ({rate_text(each.zones[at].bytes_per_second)} where "
        f"{rate_text(curve.rate_at(each.zones[at].centre_ratio))} were due)"
        for at in curve.weak
    ]
    return f"; {', '.join(told)}"


def _row(each: Zones, at: int, zone: Zone) -> dict[str, Any]:
    curve, told, setting = each.curve, each.told[at], each.found.setting
    return {
        "side": setting.side or each.found.step.initiator,
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
