"""Facts about one copy: figures of each component that its bytes pass.

Whatever its source (a trace, a counter, another copy, a setting, a person), it has one of 4 kinds:

    BUSY     share of the copy's time in which the component had work
    ALONE    rate that the component reached by itself, in this direction
    SHOWN    rate of a transfer through the component: it can do that at least
    ALLOWS   rate that a setting or physics lets through at most

and for a CPU, to find the limit after another one, one more:

    COSTS    rate at which it would be full, by the time that this copy takes of it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from bottleneck.analysis.attribution.shares import NETWORK, UNKNOWN
from bottleneck.analysis.finding import Claim, Part

Kind = Literal["busy", "alone", "shown", "allows", "costs"]
BUSY: Kind = "busy"
ALONE: Kind = "alone"
SHOWN: Kind = "shown"
ALLOWS: Kind = "allows"
COSTS: Kind = "costs"
View = Literal["both", "hidden", "alone", "capture", "counters", ""]
"""Observers of the copy's time: both hosts; both without the server's threads; the initiator's
host; a capture of its packets; only counters over the whole copy; none."""
THROTTLED_RATIO, OTHERS_RATIO = 0.1, 0.25
"""Least share of stopped quota periods that counts as the CPU's time; of others' bytes on a path
that make the path the limit."""

__all__ = ["NETWORK", "UNKNOWN", "Part"]


@dataclass(frozen=True)
class Level:
    """A rate with its spread, bytes per second; as a utilization, a ratio."""

    low: float
    median: float
    high: float

    @classmethod
    def with_spread(cls, rate: float, low_ratio: float = 1.0, high_ratio: float = 1.0) -> Level:
        """Returns a rate whose spread is given by ratios of it."""
        return cls(low_ratio * rate, rate, high_ratio * rate)


@dataclass(frozen=True)
class Fact:
    """One figure of a component."""

    part: Part
    kind: Kind
    level: Level
    words: str
    """Source of the figure, as a noun phrase: "TCP by itself (1 connection)"."""
    steps: tuple[int, ...] = ()
    """Indices of the report's steps that it comes from."""
    is_of_twin: bool = False
    """Whether it comes from a copy that lacks some parts and differs in nothing else (a twin): then
    everything that both share, measured or not, can do this rate."""


@dataclass(frozen=True)
class Sign:
    """Observation of this copy, or supplied, that a cause can rest on: "lost", "throttled"."""

    name: str
    side: str | None = None
    """client, server; None: the path, or no side."""
    value: float = 1.0
    """Strength of the sign, in the unit of its kind."""
    words: str = ""
    """The observation, as a sentence without its full stop; empty: its name says it."""


@dataclass(frozen=True)
class RateWithout:
    """A measurement of the same copy without one cause."""

    cause: str
    """The contract's word, or its component."""
    side: str | None
    """Side of the cause; None: any."""
    level: Level
    is_diskless: bool = False
    """Whether its bytes go from memory to memory."""


@dataclass(frozen=True)
class CopyFacts:
    """Complete input of the decision about one copy."""

    name: str
    dialect: str
    engine: str
    initiator: str
    sender: str
    receiver: str
    rate: Level | None
    """None: the copy was not made, and only its surroundings are known."""
    chain: tuple[Part, ...]
    """The components that every byte passes, from the sender's disk to the receiver's."""
    facts: tuple[Fact, ...]
    signs: tuple[Sign, ...]
    claims: tuple[tuple[Part, Claim], ...] = ()
    """Claims of causes, by component, with the words that a person reads."""
    ignored: tuple[str, ...] = ()
    """Remarks about refuted claims, each a sentence."""
    without: tuple[RateWithout, ...] = ()
    view: View = ""
    unseen: frozenset[Part] = frozenset()
    """Components whose work the view cannot see: it is part of the unknown time."""
    rtt_seconds: float | None = None
    trust: float = 1.0
    """Highest confidence that the copy's own measurement allows: less if its source was not proven
    to be where it should be, its runs scatter, or its cores were stolen."""
    component_trust: Mapping[Any, float] = field(default_factory=dict)
    """Such a confidence by component; without one that of `trust` alone."""
    is_scattered: bool = False
    """Whether its runs lie too far apart for a verdict."""
    supplied: bool = False
    """Whether a person supplied the figures."""

    @property
    def is_watched(self) -> bool:
        """Whether the copy's time was observed by looks at single moments, and not by counters."""
        return self.view not in ("counters", "")

    def facts_of(self, part: Part, *kinds: Kind) -> list[Fact]:
        """Returns the facts of some kinds about a component."""
        return [each for each in self.facts if each.part == part and each.kind in kinds]

    def busy(self, part: Part) -> float | None:
        """Returns the share of the time in which a component had work; None: not seen."""
        return next((each.level.median for each in self.facts_of(part, BUSY)), None)

    def highest(self, part: Part, *kinds: Kind) -> float:
        """Returns the highest rate of some kinds about a component; 0: there is none."""
        return max((each.level.median for each in self.facts_of(part, *kinds)), default=0.0)

    def lowest(self, part: Part, *kinds: Kind) -> float | None:
        """Returns the lowest rate of some kinds about a component; None: there is none."""
        return min((each.level.median for each in self.facts_of(part, *kinds)), default=None)

    def sign(self, name: str, side: str | None = None) -> Sign | None:
        """Returns the first sign of a name, of `side` unless None; None: there is none."""
        return next((e for e in self.signs if e.name == name and side in (None, e.side)), None)


def each_part(
    parts: Iterable[Part], kind: Kind, level: Level, words: str, *steps: int, is_twin: bool = False
) -> Iterator[Fact]:
    """Yields the same fact about several components."""
    for part in parts:
        yield Fact(part, kind, level, words, steps, is_twin)
