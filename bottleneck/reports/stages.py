"""Every stage that has a rate, on a terminal, with what both hosts were busy with."""

from __future__ import annotations

from rich.console import Console

from bottleneck.report import Report, Step
from bottleneck.reports import layout
from bottleneck.reports.layout import Columns, Signs
from bottleneck.reports.units import bits_beside, range_text, rate_text, size_text
from bottleneck.reports.words import busy_text, stage_text
from probes.records import Measured, Outcome, Spread, Usage, rates

RICHNESS = ((48, True), (24, True), (0, True), (0, False))
"""Characters of the bars, and whether both spreads and dirty memory are shown; richest first."""
Known = tuple[Step, Measured, Spread]


def print_stages(report: Report, console: Console, signs: Signs) -> None:
    """A line each, with all that the width has room for; nothing where no stage was measured."""
    known = [
        (step, outcome, spread)
        for step, outcome in report.entries
        if isinstance(outcome, Measured) and (spread := spread_of(outcome))
    ]
    if not known:
        return
    choice = RICHNESS if console.width >= layout.WIDE else RICHNESS[-1:]
    tables = [_table(known, *richness, signs) for richness in choice]
    table = next((each for each in tables if each.width <= console.width), tables[-1])
    layout.heading(console, "Stages: rate, then busiest core and RAM in use at both ends")
    table.print(console)
    usages = [usage for _, outcome, _ in known for usage in (outcome.initiator, outcome.responder)]
    if any(usage and usage.throttled_ratio for usage in usages):
        layout.line(console, "* stopped by its CPU quota some or all of the time", "dim")


def _table(known: list[Known], bar_columns: int, full: bool, signs: Signs) -> Columns:
    scale = (layout.scale_text(bar_columns),) if bar_columns else ()
    titles = ("stage", "rate", *scale, "low-high", "client", "server")
    table = Columns(titles, right=frozenset({1, len(titles) - 2, len(titles) - 1}))
    for step, outcome, spread in known:
        usages = (outcome.initiator, outcome.responder)
        client, server = usages if step.initiator == "client" else usages[::-1]
        bar = (layout.log_bar(spread.median, bar_columns, signs),) if bar_columns else ()
        table.add(
            stage_text(step),
            rate_text(spread.median),
            *bar,
            _spread_text(step, spread, full, signs),
            _usage_text(client, full, signs),
            _usage_text(server, full, signs),
        )
    return table


def spread_of(outcome: Outcome) -> Spread | None:
    """Its rates; None: there is none to show, as of a stage that moves no payload."""
    try:
        spread = rates(outcome) if isinstance(outcome, Measured) else None
    except (ValueError, IndexError):
        return None
    return spread if spread is not None and spread.high > 0 else None


def _spread_text(step: Step, spread: Spread, full: bool, signs: Signs) -> str:
    told = range_text(spread.low, spread.high)
    about = told.replace("-", signs.dash) if "-" in told else ""
    unit = rate_text(spread.median).split(" ")[1]
    about = about.removesuffix(f" {unit}")
    bits = bits_beside(spread.median) if step.stage == "tcp" else ""
    return "  ".join(each for each in (bits, about) if each) if full else bits or about


def _usage_text(usage: Usage | None, full: bool, signs: Signs) -> str:
    told = busy_text(usage)
    if usage is None or not told:
        return signs.none
    dirty = usage.memory_dirty_bytes
    written = full and dirty is not None and usage.memory_used_bytes is not None
    return f"{told} dirty {size_text(dirty or 0)}" if written else told
