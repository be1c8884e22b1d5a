"""From a copy's trace to the shares of its time, and to the component that these name."""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.attribution import causes
from bottleneck.analysis.attribution.alone import by_asking
from bottleneck.analysis.attribution.both import by_both
from bottleneck.analysis.attribution.copied import Copied
from bottleneck.analysis.attribution.shares import NETWORK, UNKNOWN
from bottleneck.analysis.attribution.trace import read
from bottleneck.analysis.evidence.copies import LOSS_BASED
from bottleneck.analysis.finding import TimeShare
from bottleneck.analysis.steps import Copy
from bottleneck.report import Report

STALLED_SURE = 0.9
"""Confidence in a hole that long packets vanish in: nothing else stalls a sender so."""
LEAST_CONFIDENCE = 0.5
"""Below it the sampling may as well have named the next one."""


@dataclass(frozen=True)
class Attribution:
    """Where the time of a copy went, and whom that names."""

    shares: tuple[TimeShare, ...]
    """The largest first; they sum to 1."""
    component: str
    side: str | None
    cause: str
    confidence: float
    view: str
    """BOTH, HIDDEN or ALONE."""


def attribute(report: Report, copy: Copy) -> Attribution | None:
    """Where the time of a copy went; None: it did not time itself, or too little was seen."""
    found = copied(report, copy)
    return None if found is None else attributed(found)


def attributed(copy: Copied) -> Attribution | None:
    """The same of a copy whose trace was read; None: too little was seen."""
    seen = by_both(copy) or by_asking(copy)
    if seen is None:
        return None
    stage, cause, confidence = seen.stage, "", seen.confidence
    if causes.stalled(copy, copy.connection(copy.sender)):
        stage, cause, confidence = NETWORK, "mtu", STALLED_SURE
    elif confidence < LEAST_CONFIDENCE:
        stage = UNKNOWN
    elif stage == NETWORK and causes.pinned(copy):
        stage, cause = ("tcp", copy.sender), "congestion-control"
    shares = sorted(seen.time.shares.items(), key=lambda each: -each[1])
    return Attribution(
        tuple(TimeShare(*key, ratio) for key, ratio in shares if ratio > 0),
        *stage,
        cause or causes.cause(copy, stage),
        round(confidence, 2),
        seen.view,
    )


def copied(report: Report, copy: Copy) -> Copied | None:
    """A copy with its trace; None: it was not made, or did not time itself."""
    made = copy.made
    trace = read(made.outcome.details, made.step.initiator) if made else None
    if made is None or trace is None:
        return None
    asking = made.step.initiator
    usages = {side: made.usage(side) for side in (asking, steps.other(asking))}
    return Copied(
        trace=trace,
        pull=copy.verb == "pull",
        asking=asking,
        serving=steps.other(asking),
        moved_bytes=made.moved_bytes,
        flush_seconds=made.details.flush_seconds or 0.0,
        usages={side: usage for side, usage in usages.items() if usage is not None},
        link_rates=_link_rates(report),
        flushes=made.details.flushes,
        requests=made.details.requests,
        loss_based=(made.details.sockets.congestion_control or "cubic") in LOSS_BASED,
        uncached=copy.cache == "uncached",
        cached_rate=copy.twin.rate.median if copy.twin else None,
    )


def _link_rates(report: Report) -> dict[str, float]:
    """By side: what the interface towards the other host claims, bytes per second."""
    hosts = {"client": report.client, "server": report.server}
    links = {side: host.interface for side, host in hosts.items() if host is not None}
    return {
        side: link.rate_bits_per_second / 8
        for side, link in links.items()
        if link is not None and link.rate_bits_per_second and not link.virtual
    }
