"""Computes the shares of a copy's time from its trace."""

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
from bottleneck.analysis.steps import Copy, MeasuredStep
from bottleneck.report.report import Report


@dataclass(frozen=True)
class Attribution:
    """Shares of a copy's time."""

    shares: tuple[TimeShare, ...]
    """The largest first; they sum to 1."""
    view: str
    """BOTH, THREADS_UNSEEN or ALONE."""
    time: Time
    """The time that the shares divide."""


def attribution_of(copy: TimedCopy) -> Attribution | None:
    """Attributes the time of a copy whose trace was parsed; None: too few looks."""
    result = best(copy)
    if result is None:
        return None
    ordered = sorted(result.time.shares.items(), key=lambda each: -each[1])
    shares = tuple(TimeShare(*part, ratio) for part, ratio in ordered if ratio > 0)
    return Attribution(shares, result.view, result.time)


def timed_copy(report: Report, copy: Copy) -> TimedCopy | None:
    """Collects the input of the attribution; None: the copy was not made, or has no trace."""
    step = copy.step
    if step is None:
        return None
    asking = _timing_end(copy, step)
    trace = read(step.outcome.details, asking)
    if trace is None:
        return None
    usages = {side: step.usage(side) for side in (asking, steps.other(asking))}
    return TimedCopy(
        trace=trace,
        pull=copy.receiver == asking,
        asking=asking,
        serving=steps.other(asking),
        # A watched copy began before its looks and goes on after them.
        moved_bytes=step.rate.median * trace.lasted_seconds
        if copy.is_running
        else step.moved_bytes,
        flush_seconds=step.details.flush_seconds or 0.0,
        usages={side: usage for side, usage in usages.items() if usage is not None},
        link_rates=_link_rates(report),
        flushes=step.details.flushes,
        requests=step.details.requests,
        loss_based=(step.details.sockets.congestion_control or "cubic") in LOSS_BASED,
        uncached=copy.cache == "uncached",
        watched=copy.is_running,
        on_one_host=copy.on_one_host,
    )


def _timing_end(copy: Copy, step: MeasuredStep) -> str:
    # A watched copy is timed at the client's program, if that could be observed.
    if not copy.is_running:
        return step.plan.initiator
    return "client" if "client" in step.outcome.details.get("looks", {}) else "server"


def _link_rates(report: Report) -> dict[str, float]:
    """Returns by side the claimed rate of the interface to the other host, bytes per second."""
    return {
        side: link.rate_bits_per_second / 8
        for side, link in interfaces(report)
        if link.rate_bits_per_second and not link.virtual
    }
