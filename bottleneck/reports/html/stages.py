"""Every stage with its rate, its spread, and what both hosts' CPU and RAM did meanwhile."""

from __future__ import annotations

from bottleneck.report import Report, Step
from bottleneck.reports.html.markup import Child, Markup, tag, together
from bottleneck.reports.html.tables import Line, table, with_below
from bottleneck.reports.html.wording import spread_text
from bottleneck.reports.stages import spread_of
from bottleneck.reports.units import bits_beside, percent_text, rate_text, size_text
from bottleneck.reports.words import stage_text
from probes.records import Measured, Spread, Usage

OF_NETWORK = ("tcp", "udp", "matrix")
_TITLES = (
    *("stage", "rate", "low to high"),
    *("client's core", "RAM in use", "unwritten"),
    *("server's core", "RAM in use", "unwritten"),
)


def stages(report: Report) -> Markup | None:
    """A table of all that were measured and move bytes; None: there are none."""
    lines = []
    throttled = False
    for step, outcome in report.entries:
        spread = spread_of(outcome)
        if not isinstance(outcome, Measured) or spread is None:
            continue
        usages = (outcome.initiator, outcome.responder)
        client, server = usages if step.initiator == "client" else usages[::-1]
        throttled = throttled or any(each and each.throttled_ratio for each in usages)
        lines.append(Line((*_rate(step, spread), *_usage(client), *_usage(server))))
    if not lines:
        return None
    caption = "In the order that they were measured; at each end the busiest core, and the RAM"
    star = "* stopped by its CPU quota some or all of the time"
    note = tag("p", star, class_="note small") if throttled else None
    return together((table(caption, _TITLES, lines, frozenset(range(1, len(_TITLES)))), note))


def _rate(step: Step, spread: Spread) -> tuple[Child, ...]:
    ranges: Child = spread_text(spread.low, spread.high)
    if ranges and spread.runs > 1:
        ranges = with_below(ranges, f"of {spread.runs} runs")
    bits = bits_beside(spread.median) if step.stage in OF_NETWORK else ""
    return stage_text(step), with_below(rate_text(spread.median), bits), ranges


def _usage(usage: Usage | None) -> tuple[str | None, ...]:
    if usage is None or not usage.core_busy_ratios:
        return None, None, None
    star = " *" if usage.throttled_ratio else ""
    sizes = (usage.memory_used_bytes, usage.memory_dirty_bytes)
    return (
        f"{percent_text(min(1.0, usage.busiest_core_ratio))}{star}",
        *(None if size is None else size_text(size) for size in sizes),
    )
