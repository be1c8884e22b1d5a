"""disk/zone: the file lies where the disc is slow: far inside, or in a zone that is weak."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.disc import Curve
from bottleneck.analysis.disk_zones import Span, Zones
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.disk.alone import DOES, Alone
from bottleneck.text.units import percent_text, rate_text

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
    """A location in percent from the outer edge: `at 92\u201397%`, `at 92%`."""
    begin, end = (min(span.from_ratio for span in spans), max(span.to_ratio for span in spans))
    first, last = percent_text(begin), percent_text(end)
    return f"at {last}" if first == last else f"at {first[:-1]}\u2013{last}"


def _inside(
    alone: Alone, zones: Zones, curve: Curve, healthy: float, spans: tuple[Span, ...]
) -> Iterator[Claim]:
    edge = curve.outer_bytes_per_second
    where, does = where_text(spans), DOES[alone.verb]
    yield claim(
        CAUSE,
        alone.side,
        alone.best,
        f"the file is {where} of {alone.disk}, which {does} {rate_text(alone.rate)} there and "
        f"{rate_text(edge)} on its outer tracks",
        evidence=(
            f"{_measured(alone, zones)} {rate_text(edge)} on its outer tracks and "
            f"{rate_text(curve.inner_bytes_per_second)} on its inner tracks. The file's location "
            f"should give {rate_text(healthy)}, and gave {rate_text(alone.rate)}.",
        ),
        remedy=(
            f"Move the file to the outer tracks of {alone.disk} ({rate_text(edge)}), for example "
            "into its first partition"
        ),
        detail="file on slow tracks",
    )
    yield alone.without("on its outer tracks", edge, zones.found.index)


def _weak(alone: Alone, zones: Zones, healthy: float, spans: tuple[Span, ...]) -> Iterator[Claim]:
    if alone.rate > INSIDE_RATIO * healthy:
        return
    where, does = where_text(spans), DOES[alone.verb]
    yield claim(
        CAUSE,
        alone.side,
        alone.best,
        f"the file is in a weak zone ({where}) of {alone.disk}, which {does} "
        f"{rate_text(alone.rate)} there instead of {rate_text(healthy)}",
        evidence=(
            f"{_measured(alone, zones)} {rate_text(alone.rate)} at the file's location. Its other "
            f"zones suggest {rate_text(healthy)} there.",
        ),
        remedy=(
            f"Check {alone.disk} for reallocated or unreadable sectors with `smartctl -a`. Then "
            "move the file to another location or disk"
        ),
        detail="file in a weak zone",
    )
    yield alone.without("outside its weak zones", healthy, zones.found.index)


def _measured(alone: Alone, zones: Zones) -> str:
    how = "wrote" if zones.found.setting.verb == "write" else "read"
    return f"By zone, {alone.disk} {how}"
