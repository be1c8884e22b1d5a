"""A fleet, its pairs, and the nodes that a pair's traffic passes; rates in bytes per second."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from bottleneck.analysis.finding import Words

FIRST_TESTS = 2
"""Tests of each host before any suspicion."""
NAMED = 0.7
"""Least confidence in a node that is named."""
Kind = Literal["client", "server", "uplink", "switch"]


class Pair(NamedTuple):
    """A client and a server between which copies are made."""

    client: str
    server: str


class Node(NamedTuple):
    """Resource that several pairs share: a host, the uplink of a site, or a switch."""

    kind: Kind
    name: str


@dataclass(frozen=True)
class Segment:
    """Hosts behind one uplink, or at one switch."""

    node: Node
    members: frozenset[str]
    """Clients and servers."""

    def is_passed_by(self, pair: Pair) -> bool:
        """Whether a pair passes it: an uplink with one end inside, a switch with any."""
        inside = (pair.client in self.members) + (pair.server in self.members)
        return inside == 1 if self.node.kind == "uplink" else inside > 0


@dataclass(frozen=True)
class Fleet:
    """Clients, servers and segments of a fleet."""

    clients: tuple[str, ...]
    servers: tuple[str, ...]
    segments: tuple[Segment, ...] = ()

    @property
    def most_tests(self) -> int:
        """Tests that suffice for a fleet of this size, unless all pairs are requested."""
        return 2 * (len(self.clients) + len(self.servers))

    @property
    def pairs(self) -> int:
        """Number of pairs."""
        return len(self.clients) * len(self.servers)

    @property
    def hosts(self) -> tuple[Node, ...]:
        """All clients, then all servers."""
        clients = (Node("client", each) for each in self.clients)
        return (*clients, *(Node("server", each) for each in self.servers))

    def nodes(self, pair: Pair) -> tuple[Node, ...]:
        """Returns all nodes that a pair's traffic passes, its two hosts first."""
        near = dict.fromkeys((*self._segments_of(pair.client), *self._segments_of(pair.server)))
        passed = (each.node for each in near if each.is_passed_by(pair))
        return (Node("client", pair.client), Node("server", pair.server), *passed)

    def exclusive(self, pair: Pair) -> tuple[Node, ...]:
        """Returns nodes that no other test may use at the same time: the hosts and uplinks."""
        return tuple(each for each in self.nodes(pair) if each.kind != "switch")

    def _segments_of(self, host: str) -> tuple[Segment, ...]:
        return self._segments.get(host, ())

    @cached_property
    def _segments(self) -> dict[str, tuple[Segment, ...]]:
        by_host: dict[str, tuple[Segment, ...]] = {}
        for segment in self.segments:
            for host in segment.members:
                by_host[host] = (*by_host.get(host, ()), segment)
        return by_host


@dataclass(frozen=True)
class Rate:
    """Rate of one copy between a pair, and the limit in the pair's own diagnosis."""

    pair: Pair
    bytes_per_second: float
    verdict: Words | None = None
    """None: it names no limit."""
    confidence: float = 0.0
    healthy: bool = False
    """Whether that diagnosis found no fault: the copy fills its links."""
    at_most: bool = False
    """Whether the rate is an upper limit: the copy was not made in time, and this is the rate
    without the client's disk. It shows that a pair is slow, never that it is fast."""


@dataclass(frozen=True)
class Culprit:
    """A node that slows its pairs."""

    node: Node
    bytes_per_second: float
    """Highest rate of its pairs."""
    confidence: float
    slow: tuple[Pair, ...]
    """Pairs that it explains."""
    measured: int
    """Number of measured pairs that pass it."""
    verdict: Words | None = None
    """Cap of this node or the path that more than half of those pairs' diagnoses name."""
    agreeing: int = 0
    """Number of diagnoses that name the verdict."""
    opposed: int = 0
    """Number of diagnoses that name another host."""
    alternatives: tuple[Node, ...] = ()
    """Other nodes that explain the same pairs about as well."""
    measure: Pair | None = None
    """Pair whose test would decide; None: it is decided, or no pair would."""

    @property
    def is_likely(self) -> bool:
        """Whether this culprit, or one of its alternatives, is worth reporting."""
        return bool(self.slow) and (bool(self.alternatives) or self.confidence >= 1 - NAMED)


@dataclass(frozen=True)
class ClientRates:
    """Rate of a client that copies at the same time as others, and by itself."""

    pair: Pair
    alone_bytes_per_second: float
    bytes_per_second: float
    """Rate while all of them copied."""
    fair_bytes_per_second: float
    """Equal share of the sum; less if the client by itself reaches less."""
    is_starved: bool
    """Whether it gets clearly less than its fair share."""
    verdict: Words | None = None
    """Cap of its copy by itself."""


class Suspect(NamedTuple):
    """Possible limit of the sum: a part of a node; without a verdict the node as a whole."""

    node: Node
    verdict: Words | None = None


@dataclass(frozen=True)
class Together:
    """Result of several clients that copy from, or to, one server at once."""

    copy: str
    server: str
    requested: int
    """Number of requested clients."""
    clients: tuple[ClientRates, ...] = ()
    """Rates of the clients that copied; empty: unknown."""
    seconds: float = 0.0
    """Time in which all of them copied."""
    kind: Literal["shared", "none", "undecided"] = "undecided"
    """shared: a node that all pass limits the sum; none: no shared limit is reached."""
    suspects: tuple[Suspect, ...] = ()
    """Limits of the sum: one is the cause, several cannot be distinguished."""
    confidence: float = 0.0
    link_bits_per_second: int | None = None
    """Standard link whose payload is about the sum."""
    reason: str = ""
    """Reason why there is no conclusion."""

    @property
    def total(self) -> float:
        """Sum of the rates, bytes per second."""
        return sum(each.bytes_per_second for each in self.clients)

    @property
    def fastest_single(self) -> float:
        """Highest rate of one of them by itself, bytes per second."""
        return max((each.alone_bytes_per_second for each in self.clients), default=0.0)

    @property
    def is_decided(self) -> bool:
        """Whether all requested clients copied, and their limit is named."""
        is_named = self.kind == "none" or self.kind == "shared" and len(self.suspects) == 1
        return is_named and len(self.clients) == self.requested


@dataclass(frozen=True)
class Findings:
    """Findings about a fleet by the rates of one copy."""

    copy: str
    usual_bytes_per_second: float
    """Rate of most clients with their best server, or the requested rate."""
    noise_ratio: float
    """Standard deviation of the rates around the model, as a share of each."""
    culprits: tuple[Culprit, ...]
    """Named culprits, most slow pairs first."""
    undecided: tuple[Culprit, ...]
    """Suspects, most slow pairs first: one of several explains the pairs, or evidence is thin."""
    unexplained: tuple[Pair, ...]
    """Slow pairs that no node explains."""
    untested: tuple[Node, ...]
    """Hosts with too few tests to clear them, the most suspected first."""
    slow: tuple[Pair, ...]
    """Pairs below SLOW of the usual rate, except those whose own diagnosis finds no fault."""
    measured: int
