"""An axis: one thing that measurements of a report differ in, and the engine that compares them.

An axis defines the cells that it compares, the figures that must be equal, the two cells that are
its ends, and its rows and sentences. Grouping, noise and ratio are the same for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bottleneck.analysis import cap as caps
from bottleneck.analysis.comparisons import table
from bottleneck.analysis.finding import Ceiling, Comparison, Ladder, Part
from bottleneck.analysis.load import SATURATED_RATIO, load
from bottleneck.analysis.noise import SINGLE_RATIO, differ, factor
from bottleneck.analysis.sentences import name_with_verb, part_name
from bottleneck.analysis.steps import Copy, MeasuredStep
from bottleneck.report.report import Report
from bottleneck.text.units import rate_text, seconds_text, times_text
from probes.core.records import SIDES

STAGES = ("disk", "network", "tcp")
"""Components that all bytes pass."""
MOST_NAMED = 4
"""Most components that are listed as not the cause."""
MOVING = {"pull": "Pulling", "push": "Pushing"}
"""Sentence beginnings by a step's verb."""
Limited = tuple[caps.Cap | None, Part | None, Ladder]
"""Cap of a copy, the component that its own time names, and all its limits."""
Limits = Callable[[Report, Copy], Limited]
FULL_CORES = tuple(
    f"{{full_{side}}}This tool used a full core of the {side}: other programs may be faster."
    for side in SIDES
)


@dataclass(frozen=True)
class Why:
    """Reason why a copy is slower than another."""

    mechanism: str
    """ceiling, flush or unexplained."""
    words: str
    """Continuation after the rates: ` because ...`, or that it is unexplained; with full stop."""
    ceiling: Ceiling | None = None
    """Limit of the slower copy; None: not identified."""


@dataclass(frozen=True, eq=False)
class Group:
    """Cells that are equal except for the figure that an axis varies."""

    report: Report
    cells: table.Cells
    ends: table.Cells
    """The two that are compared; only one if the other was not measured."""
    limits: Limits | None
    """None: its cells are no copies."""
    ratio: float | None
    significant: bool

    @property
    def slow(self) -> table.Cell:
        return min(self.ends, key=table.rate_of)

    @property
    def fast(self) -> table.Cell:
        """The other end."""
        return self.ends[-1] if self.slow is self.ends[0] else self.ends[0]

    @cached_property
    def why(self) -> Why | None:
        """Reason why the slower is slower; None: the two do not differ, or are no copies."""
        slow = self.slow.source
        if not self.significant or not isinstance(slow, Copy) or self.limits is None:
            return None
        return why_slower(self.limits(self.report, slow), slow, self.slow.result, self.fast.rate)

    @property
    def figures(self) -> table.Row:
        """Figures of any axis: both ends, and their difference."""
        first, second, verb = self.ends[0], self.ends[-1], self.ends[0].row.get("verb")
        loads = {f"full_{side}": load(first.result.usage(side)) for side in SIDES}
        return {
            **first.row,
            "first": first.row,
            "second": second.row,
            "slow": self.slow.row,
            "fast": self.fast.row,
            "same": not self.significant,
            "more": self.significant and second.rate > first.rate,
            "less": self.significant and second.rate < first.rate,
            "times": self.ratio and times_text(self.ratio),
            "reason": self.why and self.why.words,
            "moving": MOVING.get(verb or "", "Moving"),
            **{name: x and x.process_ratio >= SATURATED_RATIO for name, x in loads.items()},
        }


def compare_with_noise(ends: table.Cells) -> tuple[float | None, bool]:
    """Returns the ratio of two rates, and whether they differ by more than their noise."""
    if len(ends) < 2:
        return None, False
    first, second = (each.spread for each in ends)
    return factor(first.median, second.median), differ(first, second)


Groups = Sequence[Group]


def most_different(groups: Groups) -> Groups:
    """Returns the groups, the one that differs most first."""
    return sorted(groups, key=lambda each: (each.significant, each.ratio), reverse=True)


def pick_widest(groups: Groups) -> Groups:
    """Returns the group that differs most."""
    return most_different(groups)[:1]


@dataclass(frozen=True)
class Axis:
    """One thing that measurements differ in, with all that is specific to it."""

    topic: str
    cells: Callable[[Report], Iterable[table.Cell]]
    sentences: tuple[str, ...]
    """Templates; those whose figures are known are written."""
    figures: Callable[[Group, Groups], table.Row] = lambda group, groups: {}
    """Further figures for the templates, beside Group.figures; groups: all of the comparison."""
    equal: str = ""
    """Figures that the cells of a group have in common; empty: the step that reported them."""
    varies: str = ""
    """The figure by which cells are paired; empty: groups have any number of cells."""
    names: tuple[Any, Any] = ("", "")
    """Values of that figure in both cells of a pair."""
    minimum: int = 1
    """Fewest cells of a group."""
    ends: Callable[[table.Cells], table.Cells] = table.first_and_last
    apart: Callable[[table.Cells], tuple[float | None, bool]] = compare_with_noise
    """The ratio of the ends, and whether it is significant."""
    columns: str = ""
    """Figures of a cell that its row contains; empty: all."""
    rows: Callable[[Group], Iterable[table.Row]] | None = None
    """The rows of a group; None: one for each cell."""
    leading: Callable[[Groups], Groups] | None = None
    """Selects the groups for the sentences, the most different first, if all groups form one
    comparison; None: each group is a comparison."""
    remarks: Callable[[Report], Iterable[Comparison]] = lambda report: ()
    """Comparisons that the report states without figures."""
    is_unreliable_on_busy_cores: bool = True
    """Whether other processes on full cores make it unreliable."""


def comparisons(axis: Axis, report: Report, limits: Limits | None = None) -> Iterator[Comparison]:
    """Yields a report's comparisons on an axis; limits: finds the limits of a copy."""
    groups = list(_groups(axis, report, limits))
    for part in [[each] for each in groups] if axis.leading is None else filter(None, [groups]):
        lead = part if axis.leading is None else axis.leading(part)
        cells = [cell for each in part for cell in each.cells]
        result = [step for cell in cells for step in (cell.result, *cell.others)]
        cell_rows = (table.pick(cell.row, axis.columns) or cell.row for cell in cells)
        rows = cell_rows if axis.rows is None else (row for each in part for row in axis.rows(each))
        yield Comparison(
            about=axis.topic,
            sentence=" ".join(text for each in lead for text in sentences(axis, each, part)),
            rows=tuple(rows),
            ratio=lead[0].ratio,
            significant=lead[0].significant,
            steps=tuple(dict.fromkeys(each.index for each in result)),
        )
    yield from axis.remarks(report)


def sentences(axis: Axis, group: Group, groups: Groups) -> Iterator[str]:
    """Returns the sentences about a group whose figures are known."""
    row = {**group.figures, **axis.figures(group, groups)}
    return filter(None, (table.write(text, row) for text in axis.sentences))


def _groups(axis: Axis, report: Report, limits: Limits | None) -> Iterator[Group]:
    cells = tuple(axis.cells(report))
    for each in _pairs(axis, cells) if axis.varies else _equal(axis, cells):
        ends = axis.ends(each)
        yield Group(report, each, ends, limits, *axis.apart(ends))


def _equal(axis: Axis, cells: table.Cells) -> Iterator[table.Cells]:
    groups: dict[Any, list[table.Cell]] = {}
    for each in cells:
        groups.setdefault(_key(axis, each), []).append(each)
    return (each for each in groups.values() if len(each) >= axis.minimum)


def _pairs(axis: Axis, cells: table.Cells) -> Iterator[table.Cells]:
    first, second = ([e for e in cells if e.row[axis.varies] == name] for name in axis.names)
    return ((e, other) for e in first for other in second if _key(axis, e) == _key(axis, other))


def _key(axis: Axis, cell: table.Cell) -> tuple[Any, ...]:
    return tuple(cell.row[name] for name in axis.equal.split()) or (cell.result.index,)


def pair_rows(group: Group, axis: Axis, **others: Any) -> Iterator[table.Row]:
    """Yields the row of a pair: both rates, the axis' own figures, and why one is slower."""
    ends = zip(axis.names, group.ends, strict=True)
    rates = {f"{name}_bytes_per_second": end.rate for name, end in ends}
    head = {**table.pick(group.ends[-1].row, axis.columns), **rates, **others}
    why, names = group.why, ("component", "side", "cause")
    words = (None, None, None) if why is None or why.ceiling is None else why.ceiling.key
    reason = {"mechanism": why and why.mechanism, **dict(zip(names, words, strict=True))}
    yield {**head, "ratio": group.ratio, "significant": group.significant, **reason}


# Its own limit explains the slower copy if that is below the other one's rate, and so does a flush
# that takes the whole difference. Otherwise the difference is reported as unexplained.


def why_slower(limited: Limited, slow: Copy, result: MeasuredStep, fast_rate: float) -> Why:
    """Returns why a copy is below the rate, bytes per second, of another like it."""
    (cap, part, ladder), late = limited, _flush(slow, result, fast_rate)
    # A ceiling above the faster rate is no reason, unless the copy's own time names it.
    low = cap is not None and cap.claim.ceiling.bytes_per_second < fast_rate
    if cap is not None and (low or cap.claim.ceiling.part == part):
        rival = "" if cap.rival is None else f". Equally likely: {cap.rival.words}"
        also = f" In addition, {late}." if late else ""
        return Why("ceiling", f" because {cap.claim.words}{rival}.{also}", cap.claim.ceiling)
    if late:
        return Why("flush", f" because {late}.")
    return Why("unexplained", _unexplained_text(slow, ladder, fast_rate))


def _flush(slow: Copy, result: MeasuredStep, fast_rate: float) -> str:
    """Returns words for the final flush, if the copy would be as fast without it; else empty."""
    flush = result.details.flush_seconds
    acknowledged = result.details.acknowledged_bytes_per_second
    if not flush or acknowledged is None:
        return ""
    if acknowledged * SINGLE_RATIO < fast_rate or acknowledged < SINGLE_RATIO * result.rate.median:
        return ""
    return (
        f"the final flush to the {slow.receiver}'s disk took {seconds_text(flush)} after all data "
        f"was acknowledged at {rate_text(acknowledged)}"
    )


def _unexplained_text(slow: Copy, ladder: Ladder, fast_rate: float) -> str:
    """Returns that a rate is unexplained, with higher limits and components not measured."""
    allowing: dict[tuple[str, str | None], str] = {}
    between = ""
    ceilings = [each.ceiling for each in ladder.claims if not each.ceiling.tool]
    # Components that every byte passes come first.
    for each in sorted(ceilings, key=lambda each: each.component not in STAGES):
        if each.bytes_per_second >= fast_rate:
            allowing.setdefault(each.part, _level(each, ""))
        elif each.standing != "at-least" and not between:
            between = f" The lowest known limit, {_level(each, 'at ')}, was not reached."
    text = ", not explained by any measurement."
    if allowing:
        text += f" Higher limits: {_list_text(list(allowing.values())[:MOST_NAMED])}."
    missing = caps.unknown_parts(slow, ladder, fast_rate)
    if missing:
        text += f" Not measured: {_list_text([part_name(part) for part in missing])}."
    return f"{text}{between}"


def _level(ceiling: Ceiling, preposition: str) -> str:
    return f"{name_with_verb(ceiling)} {preposition}{rate_text(ceiling.bytes_per_second)}"


def _list_text(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
