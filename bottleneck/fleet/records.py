"""A fleet, its pairs, and what a pair's traffic passes; frozen, rates in bytes per second."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from bottleneck.analysis.finding import Words

FIRST_TESTS = 2
"""Of each host, before anybody is suspected."""
NAMED = 0.7
"""Confidence from which on a node is named."""
Kind = Literal["client", "server", "uplink", "switch"]


class Pair(NamedTuple):
    """A client and a server between which copies are made."""

    client: str
    server: str


class Node(NamedTuple):
    """What several pairs share: a host, the uplink of a site, or a switch."""

    kind: Kind
    name: str


@dataclass(frozen=True)
class Segment:
    """Hosts behind one link to all others, or at one switch."""

    node: Node
    members: frozenset[str]
    """Clients and servers."""

    def is_passed_by(self, pair: Pair) -> bool:
        """Whether a pair's traffic passes it: an uplink with one end inside, a switch with any."""
        inside = (pair.client in self.members) + (pair.server in self.members)
        return inside == 1 if self.node.kind == "uplink" else inside > 0


@dataclass(frozen=True)
class Fleet:
    """Who is measured with whom."""

    clients: tuple[str, ...]
    servers: tuple[str, ...]
    segments: tuple[Segment, ...] = ()

    @property
    def most_tests(self) -> int:
        """Tests that are enough for a fleet of this size, if not all pairs are asked for."""
        return 2 * (len(self.clients) + len(self.servers))

    @property
    def pairs(self) -> int:
        """How many there are."""
        return len(self.clients) * len(self.servers)

    @property
    def hosts(self) -> tuple[Node, ...]:
        """All clients, then all servers."""
        clients = (Node("client", each) for each in self.clients)
        return (*clients, *(Node("server", each) for each in self.servers))

    def nodes(self, pair: Pair) -> tuple[Node, ...]:
        """All that a pair's traffic passes, its two hosts first."""
        near = dict.fromkeys((*self._of(pair.client), *self._of(pair.server)))
        passed = (each.node for each in near if each.is_passed_by(pair))
        return (Node("client", pair.client), Node("server", pair.server), *passed)

    def exclusive(self, pair: Pair) -> tuple[Node, ...]:
        """What no other test may use at the same time: the hosts and the uplinks between them."""
        return tuple(each for each in self.nodes(pair) if each.kind != "switch")

    def _of(self, host: str) -> tuple[Segment, ...]:
        return self._segments.get(host, ())

    @cached_property
    def _segments(self) -> dict[str, tuple[Segment, ...]]:
        found: dict[str, tuple[Segment, ...]] = {}
        for segment in self.segments:
            for host in segment.members:
                found[host] = (*found.get(host, ()), segment)
        return found


@dataclass(frozen=True)
class Seen:
    """The rate of one copy between a pair, and what the pair's own diagnosis limits it by."""

    pair: Pair
    bytes_per_second: float
    verdict: Words | None = None
    """None: it names nothing."""
    confidence: float = 0.0
    healthy: bool = False
    """Whether that diagnosis found no fault: what it reaches is all that its links carry."""
    at_most: bool = False
    """Whether the copy itself was not made in time: the rate is that of one without the client's
    disk, which no copy exceeds. It shows that a pair is slow, never that it is fast."""


@dataclass(frozen=True)
class Culprit:
    """A node whose pairs are slow because of it."""

    node: Node
    bytes_per_second: float
    """The most that its pairs reach."""
    confidence: float
    slow: tuple[Pair, ...]
    """The pairs that it explains."""
    measured: int
    """Measured pairs that pass it."""
    verdict: Words | None = None
    """What most of those pairs' own diagnoses name of this node or the path, if more than half of
    them name the same."""
    agreeing: int = 0
    """How many do."""
    opposed: int = 0
    """How many name a host that this node is not."""
    alternatives: tuple[Node, ...] = ()
    """Others that explain the same pairs about as well: it is undecidable between them."""
    measure: Pair | None = None
    """The pair that would decide; None: it is decided, or no pair would."""

    @property
    def is_likely(self) -> bool:
        """Whether it, or one of its alternatives, is worth telling."""
        return bool(self.slow) and (bool(self.alternatives) or self.confidence >= 1 - NAMED)


@dataclass(frozen=True)
class Taken:
    """What one of several clients gets that copy at once, beside what it gets by itself."""

    pair: Pair
    alone_bytes_per_second: float
    bytes_per_second: float
    """While all of them copied."""
    fair_bytes_per_second: float
    """An equal share of the sum; less where the client by itself reaches less."""
    starved: bool
    """Whether it gets clearly less than that."""
    verdict: Words | None = None
    """What its own diagnosis, by itself, limits the copy by."""


class Suspect(NamedTuple):
    """What may limit the sum: a part of a node; no words: the node as a whole."""

    node: Node
    verdict: Words | None = None


@dataclass(frozen=True)
class Together:
    """Several clients that copy from, or to, one server at once."""

    copy: str
    server: str
    wanted: int
    """Clients that were asked for."""
    taken: tuple[Taken, ...] = ()
    """Of those that copied; empty: nothing is known."""
    seconds: float = 0.0
    """In which all of them copied."""
    kind: Literal["shared", "none", "undecided"] = "undecided"
    """shared: something that all pass limits the sum; none: nothing such is reached."""
    suspects: tuple[Suspect, ...] = ()
    """What limits the sum: one is named, several are not told apart."""
    confidence: float = 0.0
    link_bits_per_second: int | None = None
    """The standard link whose payload the sum looks like."""
    reason: str = ""
    """Why nothing is concluded."""

    @property
    def total(self) -> float:
        """The sum of the rates, bytes per second."""
        return sum(each.bytes_per_second for each in self.taken)

    @property
    def alone(self) -> float:
        """What one of them gets by itself at most, bytes per second."""
        return max((each.alone_bytes_per_second for each in self.taken), default=0.0)

    @property
    def is_decided(self) -> bool:
        """Whether all that were asked for copied, and what limits them is named."""
        named = self.kind == "none" or self.kind == "shared" and len(self.suspects) == 1
        return named and len(self.taken) == self.wanted


@dataclass(frozen=True)
class Found:
    """What the rates of one copy show about a fleet."""

    copy: str
    usual_bytes_per_second: float
    """What most clients reach with their best server, or the rate that was asked for."""
    noise_ratio: float
    """Standard deviation of the rates around the model, as a share of each."""
    culprits: tuple[Culprit, ...]
    """Those that are named, most slow pairs first."""
    undecided: tuple[Culprit, ...]
    """The same of those that are not named: one of several explains the pairs, or too few do."""
    unexplained: tuple[Pair, ...]
    """Slow pairs that no node explains."""
    untested: tuple[Node, ...]
    """Hosts with fewer tests than it takes to clear them, the most suspected first."""
    slow: tuple[Pair, ...]
    """Pairs below SLOW of the usual rate, except those whose own diagnosis finds no fault."""
    measured: int
