"""Every stage that has a rate, with what both hosts were busy with."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.report import Report, Step
from bottleneck.reports.document import ON_PAGES, WIDE, Bar, Block, Column, Table
from bottleneck.reports.units import bits_beside, log_share, rate_text, scale_text, size_text
from bottleneck.reports.words import busy_text, spread_text, stage_text
from probes.records import Measured, Spread, Usage, rates

RICHNESS = ((48, True), (24, True), (0, True), (0, False))
"""Characters of the bars, and whether both spreads and dirty memory are shown; richest first."""
Known = tuple[Step, Measured, Spread]


def stages(report: Report) -> Iterator[Block]:
    """A line each, with all that the width has room for; nothing where no stage was measured."""
    known = [
        (step, outcome, spread)
        for step, outcome in report.entries
        if isinstance(outcome, Measured) and (spread := _spread_of(outcome))
    ]
    if not known:
        return
    usages = [usage for _, outcome, _ in known for usage in (outcome.initiator, outcome.responder)]
    throttled = any(usage and usage.throttled_ratio for usage in usages)
    note = "* stopped by its CPU quota some or all of the time" if throttled else ""
    table = None
    for bar_columns, full in reversed(RICHNESS):
        table = _table(known, bar_columns, full, note, table)
    if table is not None:
        yield table


def _table(
    known: list[Known], bar_columns: int, full: bool, note: str, narrower: Table | None
) -> Table:
    least = WIDE if narrower is not None else 0
    scale = (Column(scale_text(bar_columns), bar=lambda _: bar_columns),)
    table = Table(
        "Stages: rate, then busiest core and RAM in use at both ends",
        (
            Column("stage"),
            Column("rate", right=True),
            *(scale if bar_columns else ()),
            Column("low-high"),
            Column("client", right=True),
            Column("server", right=True),
            Column("runs", right=True, least_columns=ON_PAGES),
        ),
        note=note,
        narrower=narrower,
        least_columns=least,
    )
    for step, outcome, spread in known:
        usages = (outcome.initiator, outcome.responder)
        client, server = usages if step.initiator == "client" else usages[::-1]
        table.add(
            stage_text(step),
            rate_text(spread.median),
            *((_bar(spread.median),) if bar_columns else ()),
            _spread_text(step, spread, full),
            _usage_text(client, full),
            _usage_text(server, full),
            f"{spread.runs}",
        )
    return table


def _bar(bytes_per_second: float) -> Bar | str:
    share = log_share(bytes_per_second)
    return Bar(share, 1.0) if share > 0 else ""


def _spread_of(outcome: Measured) -> Spread | None:
    """Its rates; None: there is none to show, as of a stage that moves no payload."""
    try:
        spread = rates(outcome)
    except (ValueError, IndexError):
        return None
    return spread if spread.high > 0 else None


def _spread_text(step: Step, spread: Spread, full: bool) -> str:
    unit = rate_text(spread.median).split(" ")[1]
    about = spread_text(spread.low, spread.high).removesuffix(f" {unit}")
    bits = bits_beside(spread.median) if step.stage == "tcp" else ""
    return "  ".join(each for each in (bits, about) if each) if full else bits or about


def _usage_text(usage: Usage | None, full: bool) -> str | None:
    told = busy_text(usage)
    if usage is None or not told:
        return None
    dirty = usage.memory_dirty_bytes
    written = full and dirty is not None and usage.memory_used_bytes is not None
    return f"{told} dirty {size_text(dirty or 0)}" if written else told
