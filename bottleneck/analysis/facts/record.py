"""The facts about one copy: what is known of each component that its bytes pass.

Whoever told it (a trace, a counter, another copy, a setting, a person), it is one of four kinds:

    BUSY     share of the copy's time in which the component had work
    ALONE    rate that the component reached by itself, in this direction
    SHOWN    rate that something moved through the component: it can do that at least
    ALLOWS   rate that a setting or physics lets through at most

and of a CPU, for what comes after another limit, one more:

    COSTS    rate at which it would be full, by the time that this copy takes of it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from bottleneck.analysis.attribution.shares import NETWORK, UNKNOWN
from bottleneck.analysis.finding import Claim, Part

Kind = Literal["busy", "alone", "shown", "allows", "costs"]
BUSY: Kind = "busy"
ALONE: Kind = "alone"
SHOWN: Kind = "shown"
ALLOWS: Kind = "allows"
COSTS: Kind = "costs"
View = Literal["both", "hidden", "alone", "counters", ""]
"""Who watched the copy's time: both hosts; both without the server's threads; the initiator's host;
nobody, but counters over the whole copy; nobody at all."""
THROTTLED_RATIO = 0.1
"""Of its quota's periods in which a copy was stopped, from which on that is its CPU's time."""

__all__ = ["NETWORK", "UNKNOWN", "Part"]


@dataclass(frozen=True)
class Level:
    """A rate with its spread, bytes per second; as a utilization, a ratio."""

    low: float
    median: float
    high: float

    @classmethod
    def around(cls, rate: float, low_ratio: float = 1.0, high_ratio: float = 1.0) -> Level:
        """Returns a rate that is known to these ratios of it."""
        return cls(low_ratio * rate, rate, high_ratio * rate)


@dataclass(frozen=True)
class Fact:
    """One thing that is known of a component."""

    part: Part
    kind: Kind
    level: Level
    words: str
    """Where it is from, as a noun phrase: "TCP by itself (1 connection)"."""
    steps: tuple[int, ...] = ()
    """Indices of the report's steps that told it."""
    beside: bool = False
    """Whether it comes from a copy that lacks some parts and differs in nothing else (a twin): then
    all that both share, known or not, can do this rate."""


@dataclass(frozen=True)
class Sign:
    """Something seen in this copy, or told of it, that a cause can rest on: "lost", "throttled"."""

    name: str
    side: str | None = None
    """client, server; None: of the path, or of no side."""
    value: float = 1.0
    """How strong it is; a sign says in which unit."""
    words: str = ""
    """What was seen, as a sentence without its full stop; empty: its name says it."""


@dataclass(frozen=True)
class Without:
    """A measurement of the same copy without one cause."""

    cause: str
    """The contract's word, or its component."""
    side: str | None
    """Where the cause is; None: anywhere."""
    level: Level
    is_diskless: bool = False
    """Whether its bytes come from memory and go to memory."""


@dataclass(frozen=True)
class CopyFacts:
    """All that the decision knows of one copy."""

    name: str
    dialect: str
    engine: str
    initiator: str
    sender: str
    receiver: str
    rate: Level | None
    """None: it was not made, and only its surroundings are known."""
    chain: tuple[Part, ...]
    """The components that every byte passes, from the sender's disk to the receiver's."""
    facts: tuple[Fact, ...]
    signs: tuple[Sign, ...]
    claims: tuple[tuple[Part, Claim], ...] = ()
    """What is known of causes, by component, with the words that a person reads."""
    ignored: tuple[str, ...] = ()
    """Claims that were refuted, each in a sentence."""
    without: tuple[Without, ...] = ()
    view: View = ""
    unseen: frozenset[Part] = frozenset()
    """Components whose work the view cannot see: it is part of the unknown time."""
    rtt_seconds: float | None = None
    trust: float = 1.0
    """The most confidence that the copy's own measurement allows: its source was not proven to be
    where it should be, its runs scatter, its cores were stolen."""
    is_scattered: bool = False
    """Whether its runs lie too far apart to tell."""
    supplied: bool = False
    """Whether a person told the figures."""

    @property
    def is_watched(self) -> bool:
        """Whether looks at single moments tell where its time went, and not counters over it."""
        return self.view not in ("counters", "")

    def of(self, part: Part, *kinds: Kind) -> list[Fact]:
        """Returns the facts of some kinds about a component."""
        return [each for each in self.facts if each.part == part and each.kind in kinds]

    def busy(self, part: Part) -> float | None:
        """Returns the share of the time in which a component had work; None: not seen."""
        return next((each.level.median for each in self.of(part, BUSY)), None)

    def most(self, part: Part, *kinds: Kind) -> float:
        """Returns the highest rate of some kinds about a component; 0: there is none."""
        return max((each.level.median for each in self.of(part, *kinds)), default=0.0)

    def least(self, part: Part, *kinds: Kind) -> float | None:
        """Returns the lowest rate of some kinds about a component; None: there is none."""
        return min((each.level.median for each in self.of(part, *kinds)), default=None)

    def sign(self, name: str, side: str | None = None) -> Sign | None:
        """Returns the first sign of a name, of a side if one is given; None: it was not seen."""
        found = (e for e in self.signs if e.name == name and side in (None, e.side))
        return next(found, None)


def each_part(
    parts: Iterable[Part], kind: Kind, level: Level, words: str, *steps: int, beside: bool = False
) -> Iterator[Fact]:
    """Yields the same fact about several components."""
    for part in parts:
        yield Fact(part, kind, level, words, steps, beside)
