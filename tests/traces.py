"""A trace as it would be where less may be seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bottleneck.analysis.attribution.attribution import Attribution, attribution_of, timed_copy
from bottleneck.analysis.attribution.trace import Trace
from bottleneck.analysis.steps import Copy
from bottleneck.report.report import Report


def whole(trace: Trace) -> Trace:
    """All of it."""
    return trace


def hidden(trace: Trace) -> Trace:
    """Nobody may look at the file server's threads."""
    serving = trace.serving and replace(trace.serving, threads=())
    return replace(trace, serving=serving)


def alone(trace: Trace) -> Trace:
    """The other host has no agent."""
    return replace(trace, serving=None)


VIEWS: dict[str, Callable[[Trace], Trace]] = {"both": whole, "hidden": hidden, "alone": alone}


def attribute(report: Report, copy: Copy, view: str) -> Attribution | None:
    """What a part of a copy's trace says."""
    found = timed_copy(report, copy)
    return found and attribution_of(replace(found, trace=VIEWS[view](found.trace)))
