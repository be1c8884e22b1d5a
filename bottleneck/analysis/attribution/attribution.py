"""From a copy's trace to the shares of its time."""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.attribution.shares import Time
from bottleneck.analysis.attribution.timed_copy import TimedCopy
from bottleneck.analysis.attribution.trace import read
from bottleneck.analysis.attribution.views import best
from bottleneck.analysis.evidence.copies import LOSS_BASED
from bottleneck.analysis.finding import TimeShare
from bottleneck.analysis.hardware_limits import interfaces
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report.report import Report


@dataclass(frozen=True)
class Attribution:
    """Shares of a copy's time."""

    shares: tuple[TimeShare, ...]
    """The largest first; they sum to 1."""
    view: str
    """BOTH, HIDDEN or ALONE."""
    time: Time
    """Of which the shares are."""


def attribution_of(copy: TimedCopy) -> Attribution | None:
    """Attributes the time of a copy whose trace was parsed; None: too few looks."""
    seen = best(copy)
    if seen is None:
        return None
    ordered = sorted(seen.time.shares.items(), key=lambda each: -each[1])
    shares = tuple(TimeShare(*part, ratio) for part, ratio in ordered if ratio > 0)
    return Attribution(shares, seen.view, seen.time)


def timed_copy(report: Report, copy: Copy) -> TimedCopy | None:
    """Collects the input of the attribution; None: the copy was not made, or has no trace."""
    made = copy.made
    if made is None:
        return None
    asking = _asking(copy, made)
    trace = read(made.outcome.details, asking)
    if trace is None:
        return None
    usages = {side: made.usage(side) for side in (asking, steps.other(asking))}
    return TimedCopy(
        trace=trace,
        pull=copy.receiver == asking,
        asking=asking,
        serving=steps.other(asking),
        # What was watched has no beginning and no end.
        moved_bytes=made.rate.median * trace.lasted_seconds if copy.running else made.moved_bytes,
        flush_seconds=made.details.flush_seconds or 0.0,
        usages={side: usage for side, usage in usages.items() if usage is not None},
        link_rates=_link_rates(report),
        flushes=made.details.flushes,
        requests=made.details.requests,
        loss_based=(made.details.sockets.congestion_control or "cubic") in LOSS_BASED,
        uncached=copy.cache == "uncached",
        watched=copy.running,
        on_one_host=copy.on_one_host,
    )


def _asking(copy: Copy, made: Found) -> str:
    """The side whose program was timed: of a copy that was watched the client's, if it was seen."""
    if not copy.running:
        return made.step.initiator
    return "client" if "client" in made.outcome.details.get("looks", {}) else "server"


def _link_rates(report: Report) -> dict[str, float]:
    """By side: what the interface towards the other host claims, bytes per second."""
    return {
        side: link.rate_bits_per_second / 8
        for side, link in interfaces(report)
        if link.rate_bits_per_second and not link.virtual
    }
