"""The smallest set of nodes that explains every slow pair; pure.

A pair is as fast as the slowest node that it passes, so rates compose by the minimum: a node that
limits its pairs limits all of them, and one fast pair clears all nodes that it passes. The model
is a rate for each slow node; the logarithm of a pair's rate is that minimum plus noise. Nodes are
added while they explain more than a further one costs, and removed where others explain it as well.

Units: rates as natural logarithms of their ratio to the usual one, evidence in nats.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Container, Iterable, Sequence, Set
from dataclasses import dataclass, field, replace

from bottleneck.fleet.adaptive import deciding
from bottleneck.fleet.records import FIRST_TESTS, NAMED, Culprit, Fleet, Found, Node, Pair, Seen

SLOW = 0.8
"""Of the usual rate: a pair below it is slow; a node that takes less from its pairs is none."""
_SLOW = math.log(SLOW)
LEAST_NOISE, MOST_NOISE = 0.08, 0.25
"""Of a rate, as a share: two runs of a healthy pair differ by so much at least."""
MOST_EVIDENCE = 7.5
"""Nats of one pair for a node, less than one costs: a pair may be slow for a reason of its own."""
MOST_AGAINST = 20.0
"""The same against it: no pair is by chance faster than a node that it passes."""
PRIOR = 11.0
"""Nats that a node costs beside the logarithm of the number of nodes: few of them are slow."""
SUSPECT = 2.0
"""Nats from which on a node is worth another test."""
ALIKE = 3.0
"""Nats: two explanations that differ by less are undecided."""
VERDICT = 2.0
"""Nats of a pair's own diagnosis for, or against, the side that it names."""
MOST_CULPRITS = 256
NEARLY = 0.6
"""Quantile of the rates of a node's slow pairs that is its own rate."""
LEAST_TESTS = 3
"""Tests of a host, behind no other culprit, that clear it of a slow one among them."""
MOST_CONFIDENCE = 0.99


def judge(
    fleet: Fleet, copy: str, seen: Sequence[Seen], usual_bytes_per_second: float | None = None
) -> Found:
    """What the pairs' rates of one copy show.

    usual_bytes_per_second: what a healthy pair has; None: the median of the clients' best pairs.
    """
    made, seen = Counter(each.pair for each in seen), list(by_pair(seen).values())
    usual = usual_bytes_per_second or _usual(seen)
    rates = [math.log(max(each.bytes_per_second, 1.0) / usual) for each in seen]
    rates = [max(0.0, rate) if e.healthy else rate for e, rate in zip(seen, rates, strict=True)]
    model = _Model(fleet, seen, rates, _noise(rates), made)
    for _ in range(2):
        # The first guess of the noise has the slow pairs in it.
        model.fitted()
        model.noise = _noise([rate - least for rate, least in zip(rates, model.least, strict=True)])
    caps = model.fitted()
    untested = model.untested(caps)
    told = sorted(model.told(caps, usual), key=lambda each: -len(each.slow))
    explained = {pair for each in told if each.is_likely for pair in each.slow}
    slow = {each.pair for each, rate in zip(seen, rates, strict=True) if rate < _SLOW}
    return Found(
        copy=copy,
        usual_bytes_per_second=usual,
        noise_ratio=model.noise,
        culprits=tuple(each for each in told if each.confidence >= NAMED),
        undecided=tuple(each for each in told if each.confidence < NAMED),
        unexplained=tuple(sorted(slow - explained)),
        untested=untested,
        slow=tuple(sorted(slow)),
        measured=len(seen),
    )


def by_pair(seen: Iterable[Seen]) -> dict[Pair, Seen]:
    """Of each pair its middle run, with the median rate: repeats are no further evidence."""
    runs: dict[Pair, list[Seen]] = {}
    for each in sorted(seen, key=lambda each: each.bytes_per_second):
        runs.setdefault(each.pair, []).append(each)
    return {
        pair: replace(
            of[(len(of) - 1) // 2],
            bytes_per_second=statistics.median(e.bytes_per_second for e in of),
        )
        for pair, of in runs.items()
    }


def telling(
    seen: Sequence[Seen], rated: Set[Pair], usual_bytes_per_second: float | None
) -> list[Seen]:
    """The rates of copies, and the upper limits that are slow, of pairs that no copy has rated."""
    rates = [each for each in seen if not each.at_most]
    usual = usual_bytes_per_second or (_usual(rates) if rates else 0.0)
    limits = (each for each in seen if each.at_most and each.pair not in rated)
    return [*rates, *(each for each in limits if each.bytes_per_second < SLOW * usual)]


def _usual(seen: Iterable[Seen]) -> float:
    best: dict[str, float] = {}
    for each in seen:
        best[each.pair.client] = max(best.get(each.pair.client, 1.0), each.bytes_per_second)
    middle = statistics.median_high(best.values())
    # Of several the best is a little too good.
    near = [e.bytes_per_second for e in seen if SLOW <= e.bytes_per_second / middle <= 1 / SLOW]
    return statistics.median(near or [middle])


def _noise(residuals: Iterable[float]) -> float:
    """Their standard deviation, without outliers: pairs may be faster than usual, or slow alone."""
    near = [abs(each) for each in residuals if abs(each) < 2 * MOST_NOISE]
    most = 3 * 1.4826 * statistics.median(near) if near else 0.0
    found = math.sqrt(statistics.fmean(e**2 for e in near if e <= most)) if near else 0.0
    return min(max(found, LEAST_NOISE), MOST_NOISE)


def side_of(seen: Seen, node: Node) -> int:
    """Whether a slow pair's own diagnosis names the node's side, 1, another, -1, or neither, 0."""
    side = seen.verdict.side if seen.verdict else None
    return (1 if side == node.kind else -1) if side in ("client", "server") else 0


@dataclass
class _Model:
    """Pairs, each once, what each of them is explained by, and by how much."""

    fleet: Fleet
    seen: Sequence[Seen]
    rates: Sequence[float]
    noise: float
    made: Counter[Pair]
    """Runs of each pair."""
    passing: dict[Node, list[int]] = field(default_factory=dict)
    """Indices of the pairs that pass each node."""
    least: list[float] = field(default_factory=list)
    """What the nodes that are blamed leave of each pair's rate; 0: nobody takes anything."""

    def __post_init__(self) -> None:
        for at, each in enumerate(self.seen):
            for node in self.fleet.nodes(each.pair):
                self.passing.setdefault(node, []).append(at)
        self.cost = PRIOR + math.log(max(1, len(self.passing)))

    def fitted(self) -> dict[Node, float]:
        """The smallest set of nodes, each with the rate that it leaves to its pairs."""
        caps: dict[Node, float] = {}
        self._apply(caps)
        gains = {node: self.gain(node) for node in self.passing}
        while len(caps) < MOST_CULPRITS:
            node, (gain, cap) = max(gains.items(), key=lambda each: each[1][0])
            if gain <= self.cost:
                break
            caps[node] = cap
            self._apply(caps)
            near = {other for at in self.passing[node] for other in self._nodes(at)}
            gains.update({other: self.gain(other) for other in near - caps.keys()})
            gains[node] = (0.0, 0.0)
        for node in sorted(caps, key=lambda each: len(self.passing[each])):
            without = {other: cap for other, cap in caps.items() if other != node}
            self._apply(without)
            if self.gain(node)[0] <= self.cost:
                caps = without
        self._apply(caps)
        return caps

    def _nodes(self, at: int) -> tuple[Node, ...]:
        return self.fleet.nodes(self.seen[at].pair)

    def _apply(self, caps: dict[Node, float]) -> None:
        self.least = [0.0] * len(self.seen)
        for node, cap in caps.items():
            for at in self.passing[node]:
                self.least[at] = min(self.least[at], cap)

    def _loss(self, rate: float, least: float) -> float:
        """Nats against a pair's rate where it should be so much."""
        if least == 0 and rate > 0:
            return 0.0
        most = MOST_AGAINST if rate > least else MOST_EVIDENCE
        return min((rate - least) ** 2 / (2 * self.noise**2), most)

    def gain(self, node: Node) -> tuple[float, float]:
        """Evidence in nats for a further slow node, and the rate that it would leave.

        It has to take a share of 1 - SLOW from one pair at least. Its rate is nearly the best that
        its slow partners have, each of them counted once: others may make some slower still.
        """
        of = self.passing[node]
        partners: dict[str, list[float]] = {}
        for at in of:
            pair, rate = self.seen[at].pair, self.rates[at]
            if rate < self.least[at] + _SLOW / 2:
                partners.setdefault(pair[node.kind == "client"], []).append(rate)
        below = sorted(map(statistics.fmean, partners.values()))
        if not below:
            return 0.0, 0.0
        cap = min(below[round(NEARLY * (len(below) - 1))], max(self.least[e] for e in of) + _SLOW)
        total = 0.0
        for at in of:
            least, rate = self.least[at], self.rates[at]
            if cap < least:
                gained = self._loss(rate, least) - self._loss(rate, cap)
                told = VERDICT * self.seen[at].confidence * side_of(self.seen[at], node)
                total += gained + (told if gained > 0 else 0.0)
        return total, cap

    def untested(self, caps: Container[Node]) -> tuple[Node, ...]:
        """Hosts that had too few tests of their own; behind a slow node a test shows nothing.

        Those of slow pairs that no node explains need more, and come first.
        """
        own: Counter[Node] = Counter()
        slow: set[Node] = set()
        for at, least in enumerate(self.least):
            if least == 0:
                ends = self._nodes(at)[:2]
                own.update({end: self.made[self.seen[at].pair] for end in ends})
                slow.update(ends if self.rates[at] < _SLOW else ())
        hosts = [node for node in self.fleet.hosts if node not in caps]
        found = [
            node for node in hosts if own[node] < (LEAST_TESTS if node in slow else FIRST_TESTS)
        ]
        return tuple(sorted(found, key=lambda node: node not in slow))

    def told(self, caps: dict[Node, float], usual: float) -> Iterable[Culprit]:
        """Those of the set and the suspects beside it, with what else explains their pairs."""
        found: list[Culprit] = []
        for node, cap in caps.items():
            without = {other: rate for other, rate in caps.items() if other != node}
            self._apply(without)
            gain = self.gain(node)[0]
            near = {other for at in self.passing[node] for other in self._nodes(at)} - caps.keys()
            alike = [each for each in near if gain - self.gain(each)[0] < ALIKE]
            found.append(self._culprit(node, cap, gain - self.cost, usual, tuple(sorted(alike))))
        self._apply(caps)
        for node in self.passing:
            gain, cap = (0.0, 0.0) if node in caps else self.gain(node)
            if gain > SUSPECT:
                found.append(self._culprit(node, cap, gain - self.cost, usual, ()))
        suspects = {each.node for each in found}
        for each in found:
            sure = each.confidence >= NAMED
            between = (each.node, *each.alternatives)
            pairs = [] if sure else deciding(self.fleet, between, suspects, self.made)
            yield replace(each, measure=pairs[0] if pairs else None)

    def _culprit(
        self, node: Node, cap: float, margin: float, usual: float, alike: tuple[Node, ...]
    ) -> Culprit:
        of = self.passing[node]
        slow = [at for at in of if cap < self.least[at] and self.rates[at] < _SLOW / 2]
        named = [each for at in slow if (each := self.seen[at]).verdict]
        own = Counter(each.verdict for each in named if side_of(each, node) >= 0)
        words, agreeing = own.most_common(1)[0] if own else (None, 0)
        opposed = len(named) - own.total()
        confidence = min(1 / (1 + math.exp(-max(-50.0, margin))), MOST_CONFIDENCE)
        # Where most that name anything name another side, it is not sure; a stray one matters less.
        confidence *= 1 - opposed / max(len(named), len(slow) / 2, 1) / 2
        return Culprit(
            node=node,
            bytes_per_second=usual * math.exp(cap),
            confidence=confidence / (1 + len(alike)),
            slow=tuple(sorted(self.seen[at].pair for at in slow)),
            measured=len(of),
            verdict=words if 2 * agreeing > len(slow) else None,
            agreeing=agreeing,
            opposed=opposed,
            alternatives=alike,
        )
