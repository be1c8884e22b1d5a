"""Shares of a copy's time by component, from the components that had work in each instant."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bottleneck.analysis.finding import Part

UNKNOWN: Part = ("unknown", None)
Instant = tuple[float, frozenset[Part]]
"""Weight of an instant, and the components that had work in it."""
Slice = tuple[float, list[Instant]]
"""Duration of one sample or time bin, and its instants, in no known order."""
NETWORK: Part = ("network", "path")
BOTH, THREADS_UNSEEN, ALONE = "both hosts", "both hosts, without the server's threads", "{} alone"
"""Views, by the hosts that were observed; the last one is of the host that makes the copy."""


@dataclass(frozen=True)
class Time:
    """A copy's time, divided among the components."""

    shares: Mapping[Part, float]
    """Shares of the copy's time, each instant counted once; they sum to 1."""
    uses: Mapping[Part, float]
    """Utilization of each component; several can have work at once, so these exceed 1 in sum."""
    looks: int
    """Number of samples."""
    slices: Sequence[Slice] = ()
    """Slices in the order of time."""

    @property
    def first(self) -> Part:
        """The component with the largest share."""
        return max(self.shares, key=lambda part: self.shares[part])

    def periods(self, count: int) -> list[dict[Part, float]]:
        """Returns the shares in each of `count` equal parts of the time; each sums to 1."""
        length = sum(lasted for lasted, _ in self.slices) / count
        shares: list[dict[Part, float]] = [{} for _ in range(count)]
        began = 0.0
        for lasted, instants in self.slices if length > 0 else ():
            total = sum(weight for weight, _ in instants)
            ended = began + lasted
            for index in range(int(began / length), min(count, math.ceil(ended / length))):
                inside = min(ended, (index + 1) * length) - max(began, index * length)
                for weight, at_work in instants if total > 0 else ():
                    part = next((each for each in self.shares if each in at_work), UNKNOWN)
                    share = max(0.0, inside) / length * weight / total
                    shares[index][part] = shares[index].get(part, 0.0) + share
            began = ended
        return shares


@dataclass(frozen=True)
class ViewResult:
    """A copy's time as one view shows it."""

    time: Time
    view: str
    """BOTH, THREADS_UNSEEN or ALONE."""


def split_by_ratios(instant: Instant, ratios: Iterable[tuple[Part, float]]) -> list[Instant]:
    """Splits an instant's weight by ratio, as if components worked independently."""
    pieces = [instant]
    for part, ratio in ratios:
        pieces = [
            each
            for weight, at_work in pieces
            for each in ((weight * ratio, at_work | {part}), (weight * (1 - ratio), at_work))
            if each[0] > 0
        ]
    return pieces


def shares_of_time(slices: Sequence[Slice], looks: int) -> Time:
    """Attributes each instant to the busiest of its components, by utilization over the copy.

    Without instants all time is unknown.
    """
    instants = [each for _, pieces in slices for each in pieces]
    if not sum(weight for weight, _ in instants) > 0:
        instants = [(1.0, frozenset({UNKNOWN}))]
    total = sum(weight for weight, _ in instants)
    uses: dict[Part, float] = {}
    for weight, at_work in instants:
        for part in at_work:
            uses[part] = uses.get(part, 0.0) + weight / total
    shares, remaining = {}, list(instants)
    for part in sorted(uses, key=lambda each: (-round(uses[each], 9), each[0])):
        shares[part] = sum(weight for weight, at_work in remaining if part in at_work) / total
        remaining = [each for each in remaining if part not in each[1]]
    rest = sum(weight for weight, _ in remaining) / total
    if rest > 1e-9:
        shares[UNKNOWN] = shares.get(UNKNOWN, 0.0) + rest
    return Time(shares, uses, looks, slices)
