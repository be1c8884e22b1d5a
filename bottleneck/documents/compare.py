"""Two reports on a terminal, side by side: the result, the copies, what differs in the setup."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import chain

from rich.console import Console

from bottleneck.analysis.changes import Change, CopyChange, FactChange
from bottleneck.analysis.noise import factor
from bottleneck.analysis.phrases import LEAST_SHARE, cell_text, share_name, stage_text
from bottleneck.documents.document import Bar, Block, Cell, Column, Table, Text, columns, points
from bottleneck.documents.terminal import show
from bottleneck.report.report import Step
from bottleneck.text import units
from bottleneck.text.safe import safe
from probes.core.records import Spread

SCHEMA = "copy-bottleneck/compare/1"
COPIES_SHOWN, FACTS_SHOWN, CAUSES_SHOWN, TIMES_SHOWN = 8, 8, 4, 1
LONGEST_VALUE, LONGEST_VALUE_SHOWN = 80, 24
LONGEST_BAR, BESIDE_BARS = 30, 36
PARTS = {
    "network": ("interface",),
    "tcp": ("socket_buffers", "congestion_control", "interface"),
    "disk": ("folder",),
    "memory": ("memory", "folder"),
    "cpu": ("cores",),
    "smb": ("target", "mount_options", "settings"),
}
"""Facts that may explain why a component limits more, or less, than before."""


def print_change(change: Change, console: Console, verbose: bool = False) -> None:
    """Writes the change on one screen, its first line the result; readable from 80 columns on.

    verbose: every copy and fact, and after them what limits each copy and every test of both
    reports. Foreign text is made safe.
    """
    show(console, _blocks(change, verbose))


def _blocks(change: Change, verbose: bool) -> Iterator[Block]:
    yield Text(safe(change.summary, 2000), "strong")
    changed_copies = [each for each in change.copies if each.significant]
    longest = LONGEST_VALUE if verbose else LONGEST_VALUE_SHOWN
    known_in_both = [e for e in change.facts if e.before is not None and e.after is not None]
    causes = known_in_both if changed_copies else []
    causes.sort(key=lambda each: not _concerns(each, changed_copies))
    title, limit = "What else differs, and may be why", None if verbose else CAUSES_SHOWN
    yield from points(title, [_fact(each, longest) for each in causes], limit)
    if change.copies:
        yield _copies(change.copies, verbose)
    timed = [each for each in change.copies if each.before_time and each.after_time]
    # The copy that the summary names comes first.
    changed = sorted(
        (e for e in timed if e.significant), key=lambda e: e.copy not in change.summary
    )
    yield from (_times(each) for each in (timed if verbose else changed[:TIMES_SHOWN]))
    facts = [_fact(each, longest) for each in change.facts if each not in causes]
    yield from points("Differences in the setup", facts, None if verbose else FACTS_SHOWN)
    if verbose:
        yield from points("Limits of the copies", [each.sentence for each in change.copies])
        yield from _tests(change)
        for when, names in (("before", change.only_before), ("after", change.only_after)):
            yield from points(f"Only in the report {when}", names)
    elif hidden := ", ".join(_hidden_parts(change)):
        yield Text(f"More: --verbose ({hidden})", apart=True)


def _concerns(fact: FactChange, changed: list[CopyChange]) -> bool:
    """Whether a fact is of a component that limits a changed copy before or after."""
    verdicts = [v for each in changed for v in (each.before_verdict, each.after_verdict)]
    parts = {part for each in verdicts for part in PARTS.get(each.component, ())}
    return any(part in fact.fact for part in parts)


def _hidden_parts(change: Change) -> Iterator[str]:
    """Yields the parts that one screen has no room for."""
    if change.copies:
        yield "limits of the copies"
    if change.stages:
        differ = sum(each.significant for each in change.stages)
        words = f"of which {differ} differ" if differ else "without a significant difference"
        yield f"{len(change.stages)} tests {words}"
    if unpaired := len(change.only_before) + len(change.only_after):
        yield f"copies in one report only: {unpaired}"


def _copies(copies: tuple[CopyChange, ...], verbose: bool) -> Table:
    titles = ("copy", "before", "after", "change", "predicted")
    table = Table("Copies, before and after", columns(*titles, right="1 2 4"))
    rows = copies if verbose else copies[:COPIES_SHOWN]
    table.left_out = len(copies) - len(rows)
    counts = Counter(each.copy for each in copies)
    for each in rows:
        dialect = f" {each.after_dialect}" if counts[each.copy] > 1 else ""
        band = None if each.lift is None else each.lift.predicted_bytes_per_second
        table.add(
            safe(f"{each.copy}{dialect}", 40),
            *_rates(each.before_bytes_per_second, each.after_bytes_per_second, each.significant),
            cell_text(lambda spread: units.range_text(spread.low, spread.high), band),
        )
    return table


def _times(copy: CopyChange) -> Table:
    """Returns a table of the time shares of a copy before and after, the largest first."""
    was, now = (
        {share_name(e): e.ratio for e in time} for time in (copy.before_time, copy.after_time)
    )
    largest = {name: max(was.get(name, 0.0), now.get(name, 0.0)) for name in (*was, *now)}
    bars = Column("", bar=lambda width: min(LONGEST_BAR, (width - BESIDE_BARS) // 2))
    titles = Column(""), Column("before", right=True), bars, Column("after", right=True), bars
    table = Table(f"Where the time of {safe(copy.copy, 40)} went", titles, inset=True)
    for name in sorted(largest, key=lambda each: -largest[each]):
        if largest[name] >= LEAST_SHARE:
            shares = was.get(name, 0.0), now.get(name, 0.0)
            cells = ((units.percent_text(each), Bar(each, 1.0) if each else "") for each in shares)
            table.add(name, *chain.from_iterable(cells))
    return table


def _rates(was: Spread | None, now: Spread | None, significant: bool) -> tuple[Cell, Cell, Cell]:
    """Returns both rates, and which is faster by how much."""
    change = None
    if was is not None and now is not None:
        word = "faster" if now.median > was.median else "slower"
        ratio = units.times_text(factor(was.median, now.median))
        change = f"{ratio} {word}" if significant else "no difference"
    return cell_text(_rate, was), cell_text(_rate, now), change


def _rate(rate: Spread) -> str:
    return units.rate_text(rate.median)


def _tests(change: Change) -> Iterator[Block]:
    titles = columns("test", "before", "after", "change", right="1 2")
    table = Table("Tests, before and after", titles)
    for each in change.stages:
        rates = each.before_bytes_per_second, each.after_bytes_per_second
        test = stage_text(Step(each.stage, each.setting, each.initiator))
        table.add(test, *_rates(*rates, each.significant))
    if table.rows:
        yield table


def _fact(change: FactChange, longest: int) -> str:
    name = change.fact.rpartition(".")[2]
    title = change.fact.replace(".", " ").replace("_", " ")
    title = re.sub(r" (bits|bytes) per second$| bytes$", "", title)
    values = change.before, change.after
    old, new = (_value(name, each, longest) for each in values)
    if old == new:
        # Two amounts that are rounded to one text differ all the same.
        old, new = (safe(str(each), longest) for each in values)
    return f"{safe(title, 80)}: {old} -> {new}"


def _value(name: str, value: object, longest: int) -> str:
    """Returns a fact as a person reads it."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)) and name.endswith("_bytes_per_second"):
        return units.rate_text(value)
    if isinstance(value, (int, float)) and name.endswith("_bits_per_second"):
        return units.link_text(value)
    if isinstance(value, (int, float)) and name.endswith("_total_bytes"):
        return units.size_text(value)
    return safe(str(value), longest)
