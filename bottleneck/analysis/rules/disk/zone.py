"""disk/zone: the file lies where the disc is slow: far inside, or in a zone that is weak."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.disc import Curve
from bottleneck.analysis.disk_zones import Span, Zones
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.disk.alone import DOES, Alone
from bottleneck.units import percent_text, rate_text

CAUSE = Cause("disk", "zone", "slow zone", stays=True)
INSIDE_RATIO = 0.8
"""Of the outermost rate: a place that gives more is none to speak of."""
AGREES_RATIO = 0.15
WEAK_SHARE = 0.5
"""Of the file, in weak zones."""


def claims(alone: Alone) -> Iterator[Claim]:
    """The rate of the file's place, where the disc is faster elsewhere."""
    place, zones = alone.place, alone.zones
    if place is None or zones is None:
        return
    curve, spans = zones.curve, place.spans_on(zones.device)
    due, healthy = zones.rate_of(spans), zones.healthy_rate_of(spans)
    if curve is None or due is None or healthy is None:
        return
    in_weak = sum(span.weight for span in spans if zones.weak_at(span.centre_ratio) is not None)
    inside = healthy <= INSIDE_RATIO * curve.outer_bytes_per_second
    if in_weak >= WEAK_SHARE and _agrees(alone, due):
        yield from _weak(alone, zones, healthy, spans)
    elif curve.falls and inside and (_agrees(alone, healthy) or _agrees(alone, due)):
        # The file's own read is longer than a zone's: where it finds no weakness there is none.
        yield from _inside(alone, zones, curve, healthy, spans)


def _agrees(alone: Alone, rate: float) -> bool:
    return abs(alone.rate / rate - 1) <= AGREES_RATIO


def where_text(spans: tuple[Span, ...]) -> str:
    """A place in percent from the outer edge: `from 92 % to 97 %`, `at 92 %`."""
    begin, end = (
        min(span.from_ratio for span in spans),
        max(span.to_ratio for span in spans),
    )
    first, last = percent_text(begin), percent_text(end)
    return f"at {first}" if first == last else f"from {first} to {last}"


def _inside(
    alone: Alone, zones: Zones, curve: Curve, healthy: float, spans: tuple[Span, ...]
) -> Iterator[Claim]:
    edge = curve.outer_bytes_per_second
    where, does = where_text(spans), DOES[alone.verb]
    yield claim(
        CAUSE,
        alone.side,
        alone.best,
        f"the file lies {where} of {alone.disk}, which {does} {rate_text(alone.rate)} there "
        f"and {rate_text(edge)} at its outer edge",
        source="measured",
        evidence=(
            f"{_measured(alone, zones)} {rate_text(edge)} at the outer edge and "
            f"{rate_text(curve.inner_bytes_per_second)} at the inner; where the file lies that "
            f"makes {rate_text(healthy)}, and {rate_text(alone.rate)} was "
            "measured there.",
        ),
        remedy=(
            f"The file at the outer edge of {alone.disk} ({rate_text(edge)}; a partition or a disk "
            "that is filled from there)"
        ),
    )
    yield alone.without("at its outer edge", edge, zones.found.index)


def _weak(alone: Alone, zones: Zones, healthy: float, spans: tuple[Span, ...]) -> Iterator[Claim]:
    if alone.rate > INSIDE_RATIO * healthy:
        return
    where, does = where_text(spans), DOES[alone.verb]
    yield claim(
        CAUSE,
        alone.side,
        alone.best,
        f"the file lies {where} of {alone.disk}, in a weak zone: it {does} "
        f"{rate_text(alone.rate)} there where {rate_text(healthy)} are due",
        source="measured",
        evidence=(
            f"{_measured(alone, zones)} {rate_text(alone.rate)} where the file lies; by its other "
            f"zones {rate_text(healthy)} are due there. Look at its SMART data: sectors that are "
            "read again and again, or were moved, do that.",
        ),
        remedy=f"The file elsewhere on {alone.disk}, or another disk,",
    )
    yield alone.without("outside its weak zones", healthy, zones.found.index)


def _measured(alone: Alone, zones: Zones) -> str:
    how = "written" if zones.found.setting.verb == "write" else "read"
    return f"Zone by zone, {alone.disk} was {how} at"
