"""From a copy's trace to the shares of its time, and to the component that these name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from bottleneck.analysis import steps
from bottleneck.analysis.attribution import causes, sockets
from bottleneck.analysis.attribution.alone import SATURATED_RATIO, by_asking, in_flight_bytes
from bottleneck.analysis.attribution.both import NETWORK, by_both
from bottleneck.analysis.attribution.copied import Copied
from bottleneck.analysis.attribution.shares import UNKNOWN, Stage, Time
from bottleneck.analysis.attribution.trace import Trace, read
from bottleneck.analysis.evidence.copies import LOSS_BASED
from bottleneck.analysis.finding import TimeShare
from bottleneck.analysis.steps import Copy, Found

VIEWS = BOTH, HIDDEN, ALONE = (
    "both hosts",
    "both hosts, without the server's threads",
    "client alone",
)
"""By what could be seen."""
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


def whole(trace: Trace) -> Trace:
    """All of it."""
    return trace


def hidden(trace: Trace) -> Trace:
    """The trace as it would be where nobody may look at the file server's threads."""
    serving = trace.serving and replace(trace.serving, threads=())
    return replace(trace, serving=serving)


def alone(trace: Trace) -> Trace:
    """The trace as it would be without an agent on the other host."""
    return replace(trace, serving=None)


def attribute(copy: Copy, part: Callable[[Trace], Trace] = whole) -> Attribution | None:
    """Where the time of a copy went; None: it did not time itself, or too little was seen.

    part: which part of its trace counts: whole, hidden or alone.
    """
    if copy.made is None:
        return None
    trace = read(copy.made.outcome.details, copy.made.step.initiator)
    return None if trace is None else attributed(_copied(part(trace), copy.made, copy.twin))


def attributed(copy: Copied) -> Attribution | None:
    """The same of a copy whose trace was read; None: too little was seen."""
    seen = _by_both(copy) or _by_asking(copy)
    if seen is None:
        return None
    time, stage, confidence, view = seen
    if causes.stalled(copy, copy.connection(copy.sender)):
        return _told(time, NETWORK, "mtu", confidence, view)
    if stage == NETWORK and causes.pinned(copy):
        return _told(time, ("tcp", copy.sender), "congestion-control", confidence, view)
    if confidence < LEAST_CONFIDENCE:
        stage = UNKNOWN
    return _told(time, stage, causes.cause(copy, stage), confidence, view)


def _copied(trace: Trace, made: Found, cached: Found | None) -> Copied:
    asking = made.step.initiator
    usages = {side: made.usage(side) for side in (asking, steps.other(asking))}
    name = made.setting.copy.removeprefix("server.")
    return Copied(
        trace=trace,
        pull=name.startswith("pull"),
        asking=asking,
        serving=steps.other(asking),
        moved_bytes=made.moved_bytes,
        flush_seconds=made.details.flush_seconds or 0.0,
        usages={side: usage for side, usage in usages.items() if usage is not None},
        loss_based=(made.details.sockets.congestion_control or "cubic") in LOSS_BASED,
        uncached=name.endswith(".uncached"),
        cached_rate=cached.rate.median if cached else None,
    )


_Seen = tuple[Time, Stage, float, str]


def _by_both(copy: Copied) -> _Seen | None:
    time = by_both(copy)
    host = copy.host(copy.serving)
    if time is None or host is None:
        return None
    stage, confidence = time.first, time.confidence
    waits = stage[0] in ("disk", "cpu") and time.uses.get(stage, 0.0) < SATURATED_RATIO
    sender = copy.connection(copy.sender)
    rtt = sockets.middle(sender.known("min_rtt_seconds")) if sender else 0.0
    if waits and sockets.fills(in_flight_bytes(copy), rtt, copy.rate):
        # Nobody works all the time, and most of a request's life is the round trip.
        stage = "smb", copy.serving
    return time, stage, confidence, BOTH if host.threads else HIDDEN


def _by_asking(copy: Copied) -> _Seen | None:
    seen = by_asking(copy)
    return None if seen is None else (seen.time, seen.verdict, seen.confidence, ALONE)


def _told(time: Time, stage: Stage, cause: str, confidence: float, view: str) -> Attribution:
    shares = sorted(time.shares.items(), key=lambda each: -each[1])
    component, side = stage
    if stage == UNKNOWN:
        cause = "inconclusive"
    return Attribution(
        tuple(TimeShare(*key, ratio) for key, ratio in shares if ratio > 0),
        *(component, side, cause, confidence, view),
    )
