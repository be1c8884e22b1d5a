"""Two reports on a terminal, side by side: the copies first, then what is behind them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console

from bottleneck.analysis.changes import Change, FactChange, RateChange
from bottleneck.analysis.finding import Verdict
from bottleneck.report import Step
from bottleneck.reports.document import Block, Points, Table, Text, columns, points
from bottleneck.reports.terminal import show
from bottleneck.safe import safe
from bottleneck.units import link_text, rate_text, size_text, times_text
from bottleneck.wire import to_plain
from bottleneck.words import cap_text, known, stage_text
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
    show(console, _blocks(change, verbose))


def _blocks(change: Change, verbose: bool) -> Iterator[Block]:
    yield Text(safe(change.summary, 2000), "strong")
    if change.copies:
        yield _copies(change)
        yield from points("What became of the caps", [each.sentence for each in change.copies])
    yield from _stages(change, verbose)
    facts = [_fact(each) for each in change.facts]
    yield from points("What else is different", facts, None if verbose else FACTS_SHOWN)
    for when, names in (("before", change.only_before), ("after", change.only_after)):
        if names:
            yield from points(f"Copies of the report {when} alone", [", ".join(names)])


def _copies(change: Change) -> Table:
    titles = ("copy", "before", "after", "change", "cap now")
    table = Table("Copies, before and after", columns(*titles, right="1 2 3"))
    for each in change.copies:
        table.add(
            safe(each.copy, 40),
            known(_rate, each.before_bytes_per_second),
            known(_rate, each.after_bytes_per_second),
            None if each.ratio is None else _times(each.ratio, each.significant),
            _cap(each.after_verdict),
        )
    return table


def _rate(rate: Spread) -> str:
    return rate_text(rate.median)


def _times(ratio: float, significant: bool) -> str:
    if not significant:
        return NOISE
    return times_text(ratio) if ratio >= 1 else f"1/{times_text(1 / ratio)}"


def _cap(verdict: Verdict) -> str | None:
    return None if verdict.cause == "not-measured" else cap_text(verdict)


def _stages(change: Change, verbose: bool) -> Iterator[Block]:
    rows = [each for each in change.stages if verbose or each.significant]
    if not rows:
        if change.stages:
            yield Points("Stages: none differs by more than the noise of its runs", ())
        return
    titles = columns("stage", "before", "after", "change", right="1 2 3")
    table = Table("Stages, before and after", titles)
    for each in rows:
        table.add(
            _stage(each),
            _rate(each.before_bytes_per_second),
            _rate(each.after_bytes_per_second),
            _times(each.ratio, each.significant),
        )
    yield table


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
