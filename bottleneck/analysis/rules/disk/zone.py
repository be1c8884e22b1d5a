"""disk/zone: the file lies where the disc is slow: on inner tracks, or in a weak zone."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.disc import Curve
from bottleneck.analysis.disk_zones import Span, Zones
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.disk.alone import DOES, DiskTest
from bottleneck.text.units import percent_text, rate_text

CAUSE = Cause("disk", "zone", "slow zone", limits_without_fault=True)
INSIDE_RATIO = 0.8
"""Least rate of a place / outermost rate at which the place is not slow."""
AGREES_RATIO = 0.15
WEAK_SHARE = 0.5
"""Least share of the file in weak zones at which they matter."""


def claims(test: DiskTest) -> Iterator[Claim]:
    """Yields the rate of the file's place, if the disc is faster elsewhere."""
    place, zones = test.place, test.zones
    if place is None or zones is None:
        return
    curve, spans = zones.curve, place.spans_on(zones.device)
    due, healthy = zones.rate_of(spans), zones.healthy_rate_of(spans)
    if curve is None or due is None or healthy is None:
        return
    in_weak = sum(span.weight for span in spans if zones.weak_at(span.centre_ratio) is not None)
    inside = healthy <= INSIDE_RATIO * curve.outer_bytes_per_second
    if in_weak >= WEAK_SHARE and _agrees(test, due):
        yield from _weak(test, zones, healthy, spans)
    elif curve.falls and inside and (_agrees(test, healthy) or _agrees(test, due)):
        # The file's own read is longer than a zone's: if it is not slow, the zone is not weak.
        yield from _inside(test, zones, curve, healthy, spans)


def _agrees(test: DiskTest, rate: float) -> bool:
    return abs(test.rate / rate - 1) <= AGREES_RATIO


def where_text(spans: tuple[Span, ...]) -> str:
    """Returns a location in percent from the outer edge: `at 92\u201397%`, `at 92%`."""
    begin, end = (min(span.from_ratio for span in spans), max(span.to_ratio for span in spans))
    first, last = percent_text(begin), percent_text(end)
    return f"at {last}" if first == last else f"at {first[:-1]}\u2013{last}"


def _inside(
    test: DiskTest, zones: Zones, curve: Curve, healthy: float, spans: tuple[Span, ...]
) -> Iterator[Claim]:
    edge = curve.outer_bytes_per_second
    where, does = where_text(spans), DOES[test.verb]
    yield claim(
        CAUSE,
        test.side,
        test.best,
        f"the file is {where} of {test.disk}, which {does} {rate_text(test.rate)} there and "
        f"{rate_text(edge)} on its outer tracks",
        evidence=(
            f"{_measured_text(test, zones)} {rate_text(edge)} on its outer tracks and "
            f"{rate_text(curve.inner_bytes_per_second)} on its inner tracks. The file's location "
            f"should give {rate_text(healthy)}, and gave {rate_text(test.rate)}.",
        ),
        remedy=(
            f"Move the file to the outer tracks of {test.disk} ({rate_text(edge)}), for example "
            "into its first partition"
        ),
        detail="file on slow tracks",
    )
    yield test.without("on its outer tracks", edge, zones.step.index)


def _weak(test: DiskTest, zones: Zones, healthy: float, spans: tuple[Span, ...]) -> Iterator[Claim]:
    if test.rate > INSIDE_RATIO * healthy:
        return
    where, does = where_text(spans), DOES[test.verb]
    yield claim(
        CAUSE,
        test.side,
        test.best,
        f"the file is in a weak zone ({where}) of {test.disk}, which {does} "
        f"{rate_text(test.rate)} there instead of {rate_text(healthy)}",
        evidence=(
            f"{_measured_text(test, zones)} {rate_text(test.rate)} at the file's location. Its "
            f"other zones suggest {rate_text(healthy)} there.",
        ),
        remedy=(
            f"Check {test.disk} for reallocated or unreadable sectors with `smartctl -a`. Then "
            "move the file to another location or disk"
        ),
        detail="file in a weak zone",
    )
    yield test.without("outside its weak zones", healthy, zones.step.index)


def _measured_text(test: DiskTest, zones: Zones) -> str:
    how = "wrote" if zones.step.setting.verb == "write" else "read"
    return f"By zone, {test.disk} {how}"
