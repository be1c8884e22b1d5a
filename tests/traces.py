"""A trace as it would be where less may be seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bottleneck.analysis.attribution.attribution import Attribution, attribution_of, timed_copy
from bottleneck.analysis.attribution.trace import Trace
from bottleneck.analysis.steps import Copy
from bottleneck.report.report import Report


def unchanged_trace(trace: Trace) -> Trace:
    return trace


def hidden(trace: Trace) -> Trace:
    """Nobody may look at the file server's threads."""
    serving = trace.serving and replace(trace.serving, threads=())
    return replace(trace, serving=serving)


def without_agent(trace: Trace) -> Trace:
    return replace(trace, serving=None)


VIEWS: dict[str, Callable[[Trace], Trace]] = {
    "both": unchanged_trace,
    "hidden": hidden,
    "alone": without_agent,
}


def attribute(report: Report, copy: Copy, view: str) -> Attribution | None:
    """Returns the attribution of a copy by a partial view of its trace."""
    copy_trace = timed_copy(report, copy)
    return copy_trace and attribution_of(replace(copy_trace, trace=VIEWS[view](copy_trace.trace)))
