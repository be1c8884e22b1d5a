"""Who had work, instant by instant, as shares of a copy's time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Stage = tuple[str, "str | None"]
"""A component and the side that it is on: ("disk", "server")."""
UNKNOWN: Stage = ("unknown", None)
Instant = tuple[float, frozenset[Stage]]
"""Its weight, and who had work in it."""
NETWORK: Stage = ("network", "path")
BOTH, HIDDEN, ALONE = "both hosts", "both hosts, without the server's threads", "{} alone"
"""Views, by what could be seen; the last one of the host that makes the copy."""
DOUBTED = 0.6
"""The most confidence in what a view cannot tell from something else."""
SATURATED_RATIO = 0.7
"""A stage with work for less of the time does not explain the rate alone."""
CERTAIN = 0.98


@dataclass(frozen=True)
class Time:
    """Where a copy's time went."""

    shares: Mapping[Stage, float]
    """Each stage's own part; they sum to 1."""
    uses: Mapping[Stage, float]
    """Share of the time in which a stage had work, whoever else had."""
    looks: int
    """How many samples this was read off."""

    @property
    def first(self) -> Stage:
        """The stage that had work for most of the time."""
        return max(self.shares, key=lambda stage: self.shares[stage])

    def confidence(self, stage: Stage) -> float:
        """How far a stage is ahead of all others in use, less the error of the sampling."""
        first = self.uses.get(stage, 0.0)
        second = max((use for each, use in self.uses.items() if each != stage), default=0.0)
        error = math.sqrt(_variance(first, self.looks) + _variance(second, self.looks))
        return max(0.0, min(CERTAIN, 0.5 + first - second) - error)


def _variance(use: float, looks: int) -> float:
    """Of a share that was sampled so often, with one hit and one miss more (Agresti and Coull)."""
    ratio = (use * looks + 1) / (looks + 2)
    return ratio * (1 - ratio) / (looks + 2)


@dataclass(frozen=True)
class Seen:
    """What a view tells of a copy."""

    time: Time
    stage: Stage
    """Whom it names; UNKNOWN: it cannot tell."""
    view: str
    """BOTH, HIDDEN or ALONE."""
    most: float = CERTAIN
    """The most confidence that it deserves."""
    by: Stage | None = None
    """Whose time it is, where that is another's: a round trip's, a window's."""

    @property
    def confidence(self) -> float:
        """In what it names."""
        if self.stage == UNKNOWN:
            return 0.0
        return min(self.most, self.time.confidence(self.by or self.stage))


def chances(instant: Instant, ratios: Iterable[tuple[Stage, float]]) -> list[Instant]:
    """An instant as several: with and without each stage that has work for a part of it."""
    parts = [instant]
    for stage, ratio in ratios:
        parts = [
            each
            for weight, stages in parts
            for each in ((weight * ratio, stages | {stage}), (weight * (1 - ratio), stages))
            if each[0] > 0
        ]
    return parts


def covered(instants: Sequence[Instant], looks: int) -> Time | None:
    """The shares: the busiest has all of its own time, the next what is left of its, and so on.

    None: there are no instants.
    """
    whole = sum(weight for weight, _ in instants)
    if whole <= 0:
        return None
    uses: dict[Stage, float] = {}
    for weight, stages in instants:
        for stage in stages:
            uses[stage] = uses.get(stage, 0.0) + weight / whole
    shares, left = {}, list(instants)
    for stage in sorted(uses, key=lambda each: (-round(uses[each], 9), each[0])):
        shares[stage] = sum(weight for weight, stages in left if stage in stages) / whole
        left = [each for each in left if stage not in each[1]]
    rest = sum(weight for weight, _ in left) / whole
    if rest > 1e-9:
        shares[UNKNOWN] = shares.get(UNKNOWN, 0.0) + rest
    return Time(shares, uses, looks)
