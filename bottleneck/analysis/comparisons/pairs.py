"""Two copies that differ in one thing alone: which is slower, by how much, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from bottleneck.analysis import physics, steps
from bottleneck.analysis.comparisons.mechanism import Why, why
from bottleneck.analysis.noise import differ, factor
from bottleneck.analysis.sentences import dialect_name
from bottleneck.analysis.steps import OWN, Copy, Found
from bottleneck.report import Report


@dataclass(frozen=True)
class Half:
    """A copy with what was measured of it."""

    copy: Copy
    made: Found

    @property
    def rate(self) -> float:
        """Median, bytes per second."""
        return self.made.rate.median

    @property
    def proven(self) -> bool | None:
        """Whether its source was shown to be in the cache, or not in it; None: not told."""
        return steps.flag(self.made.outcome.details, "cache", "proven")


@dataclass(frozen=True)
class Pair:
    """Two copies; `first` and `second` are what the comparison calls its two sides."""

    first: Half
    second: Half

    @property
    def slow(self) -> Half:
        """The slower one."""
        return min(self.first, self.second, key=lambda each: each.rate)

    @property
    def fast(self) -> Half:
        """The other one."""
        return self.second if self.slow is self.first else self.first

    @property
    def ratio(self) -> float:
        """The faster over the slower."""
        return factor(self.first.rate, self.second.rate)

    @property
    def significant(self) -> bool:
        """Whether they differ by more than their noise."""
        return differ(self.first.made.rate, self.second.made.rate)

    @property
    def group(self) -> tuple[str, str, str]:
        """Who made both, and how."""
        return group(self.first.copy)

    @property
    def steps(self) -> tuple[int, int]:
        """Their indices."""
        return self.first.made.index, self.second.made.index

    def why(self, report: Report) -> Why | None:
        """What makes the slower one slower; None: they do not differ."""
        if not self.significant:
            return None
        return why(report, self.slow.copy, self.slow.made, self.fast.rate)


def pairs(
    report: Report, is_first: Callable[[Copy], bool], alike: Callable[[Half], Any]
) -> tuple[Pair, ...]:
    """The copies that are alike but for one thing, in the report's order of copies."""
    halves = list(_halves(report))
    return tuple(
        Pair(each, other)
        for each in halves
        if is_first(each.copy)
        for other in halves
        if not is_first(other.copy)
        and (group(each.copy), alike(each)) == (group(other.copy), alike(other))
    )


def leading(found: tuple[Pair, ...]) -> tuple[Pair, ...]:
    """Those that a sentence speaks of: of the client's copies, the mount's or newest dialect's."""
    chosen = next((each for each in found if each.first.copy.initiator == "client"), found[0])
    return tuple(each for each in found if each.group == chosen.group)


def group(copy: Copy) -> tuple[str, str, str]:
    """Who made a copy, and how: initiator, dialect, engine."""
    return copy.initiator, copy.dialect, copy.engine


def by(copy: Copy) -> str:
    """The same in words."""
    what = "by the system's own copy" if copy.native else dialect_name(copy.dialect)
    program = "" if copy.native or copy.engine == OWN else f" with {copy.engine}"
    starts = ", started by the server" if copy.initiator == "server" else ""
    return f"{what}{program}{starts}"


def _halves(report: Report) -> Iterator[Half]:
    """The copies whose rate is one: durable at its end, intact, and within physics."""
    for copy in steps.copies(report):
        made = copy.made
        if made is None or not made.intact or physics.impossible(report, made) is not None:
            continue
        if steps.flag(made.outcome.details, "flushed") is not False:
            yield Half(copy, made)
