"""Two reports on a terminal, side by side: the copies first, then what is behind them."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from bottleneck.analysis.changes import Change, CopyChange, FactChange, RateChange
from bottleneck.analysis.finding import Verdict
from bottleneck.report import Step
from bottleneck.reports import layout
from bottleneck.reports.layout import Columns, Signs
from bottleneck.reports.safe import safe
from bottleneck.reports.units import link_text, rate_text, size_text, times_text
from bottleneck.reports.words import cap_text, stage_text
from bottleneck.wire import to_plain
from probes.records import Spread

SCHEMA = "copy-bottleneck/compare/1"
FACTS_SHOWN = 12
NOISE = "in the noise"


def to_json(change: Change) -> dict[str, Any]:
    """The document: plain values, bytes, seconds and ratios."""
    plain: dict[str, Any] = to_plain(change)
    return {"schema": SCHEMA, **plain}


def print_change(change: Change, console: Console, verbose: bool = False) -> None:
    """Writes the whole change; readable from 80 columns on.

    verbose: every stage and every fact, not those alone that differ beyond the noise. Foreign text
    is made safe.
    """
    signs = layout.signs(console)
    layout.paragraph(console, safe(change.summary, 2000), "bold")
    if change.copies:
        _print_copies(change, console, signs)
        layout.bullets(console, "What became of the caps", [_told(each) for each in change.copies])
    _print_stages(change, console, verbose)
    facts = [_fact(each) for each in change.facts]
    shown = facts if verbose else facts[:FACTS_SHOWN]
    layout.bullets(console, "What else is different", shown)
    if len(facts) > len(shown):
        layout.line(console, f"  and {len(facts) - len(shown)} more with --verbose", "dim")
    for when, names in (("before", change.only_before), ("after", change.only_after)):
        if names:
            layout.bullets(console, f"Copies of the report {when} alone", [safe(", ".join(names))])


def _print_copies(change: Change, console: Console, signs: Signs) -> None:
    layout.heading(console, "Copies, before and after")
    titles = ("copy", "before", "after", "change", "cap now")
    table = Columns(titles, right=frozenset({1, 2, 3}))
    for each in change.copies:
        table.add(
            safe(each.copy, 40),
            _rate(each.before_bytes_per_second, signs),
            _rate(each.after_bytes_per_second, signs),
            signs.none if each.ratio is None else _times(each.ratio, each.significant),
            _cap(each.after_verdict, signs),
        )
    table.print(console)


def _rate(rate: Spread | None, signs: Signs) -> str:
    return signs.none if rate is None else rate_text(rate.median)


def _times(ratio: float, significant: bool) -> str:
    if not significant:
        return NOISE
    return times_text(ratio) if ratio >= 1 else f"1/{times_text(1 / ratio)}"


def _cap(verdict: Verdict, signs: Signs) -> str:
    return signs.none if verdict.cause == "not-measured" else cap_text(verdict)


def _told(change: CopyChange) -> str:
    return safe(change.sentence, 600)


def _print_stages(change: Change, console: Console, verbose: bool) -> None:
    rows = [each for each in change.stages if verbose or each.significant]
    if not rows:
        if change.stages:
            layout.heading(console, "Stages: none differs by more than the noise of its runs")
        return
    layout.heading(console, "Stages, before and after")
    table = Columns(("stage", "before", "after", "change"), right=frozenset({1, 2, 3}))
    for each in rows:
        table.add(
            _stage(each),
            rate_text(each.before_bytes_per_second.median),
            rate_text(each.after_bytes_per_second.median),
            _times(each.ratio, each.significant),
        )
    table.print(console)


def _stage(change: RateChange) -> str:
    return stage_text(Step(change.stage, change.setting, change.initiator))


def _fact(change: FactChange) -> str:
    name = change.fact.rpartition(".")[2]
    return f"{safe(change.fact, 80)}: {_value(name, change.before)} -> {_value(name, change.after)}"


def _value(name: str, value: object) -> str:
    """A fact as a person reads it."""
    if value is None:
        return "not told"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)) and name.endswith("_bits_per_second"):
        return link_text(value)
    if isinstance(value, (int, float)) and name.endswith("_total_bytes"):
        return size_text(value)
    return safe(str(value), 80)
