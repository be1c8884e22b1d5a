"""What the reports of a fleet come to: each copy judged by itself, the worst first; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bottleneck.analysis.finding import Words
from bottleneck.fleet.culprit import by_pair, judge, telling
from bottleneck.fleet.records import NAMED, Culprit, Fleet, Found, Pair, Seen, Together
from probes.core.records import OWN_COPIES

MOST_RATE = 1e13
"""Bytes per second: what is above it, or no number, is no rate of a copy."""
LEAST_COMMON = 0.75
"""Of a server's pairs: so many have to name the same limit."""


@dataclass(frozen=True)
class Common:
    """A limit that the pairs of servers name themselves, while none is slower than others."""

    servers: tuple[str, ...]
    verdict: Words
    agreeing: int
    measured: int


@dataclass(frozen=True)
class Result:
    """A fleet, judged."""

    fleet: Fleet
    found: tuple[Found, ...]
    """Of each copy that was measured; the first is what a summary speaks of."""
    rates: Mapping[str, Mapping[Pair, float]]
    """By copy and pair the median, bytes per second."""
    missing: Mapping[Pair, str]
    """Pairs that were tried and have no rate, and why."""
    skipped: tuple[str, ...] = ()
    """Files that are no report of a pair."""
    common: tuple[Common, ...] = ()
    limited: frozenset[Pair] = frozenset()
    """Slow pairs whose rates are upper limits; see Seen.at_most."""
    status: str = "complete"
    """As that of a report: complete, partial, interrupted or failed."""
    together: Together | None = None
    """What clients get that copy at once; None: nobody asked."""
    unread: tuple[str, ...] = ()
    """Files and folders that may hold a pair's report and cannot be read, and why."""

    @property
    def culprits(self) -> tuple[Culprit, ...]:
        """Each named node once, as of the copy that shows it best."""
        best = {
            each.node: each
            for told in reversed(self.found)
            for each in sorted(told.culprits, key=lambda each: each.confidence)
        }
        return tuple(sorted(best.values(), key=lambda each: (-len(each.slow), each.node)))

    @property
    def undecided(self) -> tuple[Culprit, ...]:
        """Those of the first copy that have slow pairs and some likelihood."""
        told = self.found[0].undecided if self.found else ()
        return tuple(each for each in told if each.is_likely)

    @property
    def is_decided(self) -> bool:
        """Whether every pair that was tried has a rate, and nothing is in doubt."""
        unread = self.unread if not self.culprits else ()
        doubts = self.missing or self.undecided or self.unmeasured or unread
        if self.together is not None and not self.together.is_decided:
            return False
        return bool(self.found) and not (doubts or self.found[0].unexplained)

    @property
    def unmeasured(self) -> tuple[str, ...]:
        """Hosts of which there is no rate."""
        hosts = {host for rates in self.rates.values() for pair in rates for host in pair}
        return tuple(each.name for each in self.fleet.hosts if each.name not in hosts)

    def copies_of(self, culprit: Culprit) -> tuple[str, ...]:
        """The copies that show a culprit."""
        nodes = {told.copy: {each.node for each in told.culprits} for told in self.found}
        return tuple(copy for copy in OWN_COPIES if culprit.node in nodes.get(copy, ()))


def of_pairs(
    seen: Mapping[str, Sequence[Seen]],
    fleet: Fleet | None = None,
    usual_bytes_per_second: float | None = None,
    missing: Mapping[Pair, str] | None = None,
    skipped: Sequence[str] = (),
) -> Result:
    """The copies of all pairs, judged.

    fleet: None: its hosts are those of the pairs. usual_bytes_per_second: what a healthy pair has.
    A pair whose rates are all invalid (infinite, not a number, negative) is missing.
    """
    lost = {each.pair: "no valid rate" for many in seen.values() for each in many}
    seen = {
        copy: [each for each in many if 0 <= each.bytes_per_second <= MOST_RATE]
        for copy, many in seen.items()
    }
    rated = {each.pair for many in seen.values() for each in many if not each.at_most}
    seen = {copy: telling(many, rated, usual_bytes_per_second) for copy, many in seen.items()}
    valid = {each.pair for many in seen.values() for each in many}
    lost |= missing or {}
    missing = {pair: why for pair, why in lost.items() if pair not in valid}
    known = fleet or Fleet((), ())
    pairs = valid | missing.keys()
    clients = {**dict.fromkeys(known.clients), **dict.fromkeys(sorted(e.client for e in pairs))}
    servers = {**dict.fromkeys(known.servers), **dict.fromkeys(sorted(e.server for e in pairs))}
    known = replace(known, clients=tuple(clients), servers=tuple(servers))
    found = [
        judge(known, copy, seen[copy], usual_bytes_per_second)
        for copy in OWN_COPIES
        if seen.get(copy)
    ]
    found.sort(
        key=lambda each: (
            -sum(len(culprit.slow) for culprit in each.culprits),
            -len(each.slow),
            each.usual_bytes_per_second,
        )
    )
    rates = {
        copy: {pair: each.bytes_per_second for pair, each in by_pair(many).items()}
        for copy, many in seen.items()
    }
    common = [each for told in found[:1] if not told.slow for each in _common(seen[told.copy])]
    limited = frozenset(each.pair for many in seen.values() for each in many if each.at_most)
    return Result(known, tuple(found), rates, missing, tuple(skipped), tuple(common), limited)


def _common(seen: Iterable[Seen]) -> list[Common]:
    """What nearly all pairs of a server name, of servers with several clients; most pairs first."""
    many = by_pair(seen).values()
    found: dict[Words, Common] = {}
    for server in dict.fromkeys(each.pair.server for each in many):
        own = [each for each in many if each.pair.server == server]
        sure = (e for e in own if e.verdict and e.confidence >= NAMED and not e.healthy)
        for words, count in Counter(each.verdict for each in sure).most_common(1):
            if words is None or words.side == "client" or len(own) == 1:
                continue
            if count >= LEAST_COMMON * len(own):
                so_far = found.get(words, Common((), words, 0, 0))
                counts = so_far.agreeing + count, so_far.measured + len(own)
                found[words] = Common((*so_far.servers, server), words, *counts)
    return sorted(found.values(), key=lambda each: -each.agreeing)
