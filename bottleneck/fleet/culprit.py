"""Finds the smallest set of nodes that explains every slow pair; pure.

A pair is as fast as the slowest node that it passes: a node that limits its pairs limits all of
them, and one fast pair clears all nodes that it passes. The model has a rate for each slow node;
the logarithm of a pair's rate is their minimum plus noise. Nodes are added while they explain more
than they cost, and removed if others explain the same.

Units: rates as natural logarithms of their ratio to the usual rate, evidence in nats.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Container, Iterable, Sequence, Set
from dataclasses import dataclass, field, replace

from bottleneck.fleet.adaptive import deciding_pairs
from bottleneck.fleet.records import FIRST_TESTS, NAMED, Culprit, Findings, Fleet, Node, Pair, Rate

SLOW = 0.8
"""Share of the usual rate below which a pair is slow."""
_SLOW = math.log(SLOW)
LEAST_NOISE, MOST_NOISE = 0.08, 0.25
"""Bounds of the relative noise of a rate: two runs of a healthy pair differ by the first."""
MOST_EVIDENCE = 7.5
"""Nats of one pair for a node, less than its cost: a pair may be slow for its own reason."""
MOST_AGAINST = 20.0
"""Nats of one pair against a node: no pair is by chance faster than a node that it passes."""
PRIOR = 11.0
"""Cost of a node in nats, beside the logarithm of the number of nodes: few nodes are slow."""
SUSPECT = 2.0
"""Least evidence, in nats, at which a node deserves another test."""
ALIKE = 3.0
"""Least evidence, in nats, that decides between two explanations."""
VERDICT = 2.0
"""Nats of a pair's own diagnosis for, or against, the side that it names."""
MOST_CULPRITS = 256
NEARLY = 0.6
"""Quantile of the rates of a node's slow pairs that is the node's rate."""
LEAST_TESTS = 3
"""Tests that clear a host with one slow pair, if they pass no other culprit."""
MOST_CONFIDENCE = 0.99


def judge(
    fleet: Fleet, copy: str, rated: Sequence[Rate], usual_bytes_per_second: float | None = None
) -> Findings:
    """Finds the culprits by the pairs' rates of one copy.

    usual_bytes_per_second: rate of a healthy pair; None: the median of the clients' best pairs.
    """
    tests, rated = Counter(each.pair for each in rated), list(middle_runs(rated).values())
    usual = usual_bytes_per_second or _usual(rated)
    rates = [math.log(max(each.bytes_per_second, 1.0) / usual) for each in rated]
    rates = [max(0.0, rate) if e.healthy else rate for e, rate in zip(rated, rates, strict=True)]
    model = _Model(fleet, rated, rates, _noise(rates), tests)
    for _ in range(2):
        # The first estimate of the noise includes the slow pairs.
        model.fit()
        model.noise = _noise(
            [rate - limit for rate, limit in zip(rates, model.limits, strict=True)]
        )
    caps = model.fit()
    untested = model.untested_hosts(caps)
    culprits = sorted(model.list_culprits(caps, usual), key=lambda each: -len(each.slow))
    explained = {pair for each in culprits if each.is_likely for pair in each.slow}
    slow = {each.pair for each, rate in zip(rated, rates, strict=True) if rate < _SLOW}
    return Findings(
        copy=copy,
        usual_bytes_per_second=usual,
        noise_ratio=model.noise,
        culprits=tuple(each for each in culprits if each.confidence >= NAMED),
        undecided=tuple(each for each in culprits if each.confidence < NAMED),
        unexplained=tuple(sorted(slow - explained)),
        untested=untested,
        slow=tuple(sorted(slow)),
        measured=len(rated),
    )


def middle_runs(rates: Iterable[Rate]) -> dict[Pair, Rate]:
    """Returns the middle run of each pair, with the median rate: repeats are no new evidence."""
    runs: dict[Pair, list[Rate]] = {}
    for each in sorted(rates, key=lambda each: each.bytes_per_second):
        runs.setdefault(each.pair, []).append(each)
    return {
        pair: replace(
            repeats[(len(repeats) - 1) // 2],
            bytes_per_second=statistics.median(e.bytes_per_second for e in repeats),
        )
        for pair, repeats in runs.items()
    }


def usable_rates(
    every: Sequence[Rate], rated: Set[Pair], usual_bytes_per_second: float | None
) -> list[Rate]:
    """Returns rates of copies, and slow upper limits of pairs without a rated copy."""
    rates = [each for each in every if not each.at_most]
    usual = usual_bytes_per_second or (_usual(rates) if rates else 0.0)
    limits = (each for each in every if each.at_most and each.pair not in rated)
    return [*rates, *(each for each in limits if each.bytes_per_second < SLOW * usual)]


def _usual(rates: Iterable[Rate]) -> float:
    best: dict[str, float] = {}
    for each in rates:
        best[each.pair.client] = max(best.get(each.pair.client, 1.0), each.bytes_per_second)
    middle = statistics.median_high(best.values())
    # The best of several rates is a little too high.
    near = [e.bytes_per_second for e in rates if SLOW <= e.bytes_per_second / middle <= 1 / SLOW]
    return statistics.median(near or [middle])


def _noise(residuals: Iterable[float]) -> float:
    """Returns the standard deviation without outliers: single pairs may be faster or slower."""
    near = [abs(each) for each in residuals if abs(each) < 2 * MOST_NOISE]
    limit = 3 * 1.4826 * statistics.median(near) if near else 0.0
    deviation = math.sqrt(statistics.fmean(e**2 for e in near if e <= limit)) if near else 0.0
    return min(max(deviation, LEAST_NOISE), MOST_NOISE)


def side_of(rate: Rate, node: Node) -> int:
    """Returns 1 if a slow pair's diagnosis names the node's side, -1: another side, 0: none."""
    side = rate.verdict.side if rate.verdict else None
    return (1 if side == node.kind else -1) if side in ("client", "server") else 0


@dataclass
class _Model:
    """Pairs, each once, with the caps that explain their rates."""

    fleet: Fleet
    measured: Sequence[Rate]
    rates: Sequence[float]
    noise: float
    counts: Counter[Pair]
    """Number of runs of each pair."""
    by_node: dict[Node, list[int]] = field(default_factory=dict)
    """Indices of the pairs that pass each node."""
    limits: list[float] = field(default_factory=list)
    """Rate that the blamed nodes leave to each pair; 0: none is blamed."""

    def __post_init__(self) -> None:
        for i, each in enumerate(self.measured):
            for node in self.fleet.nodes(each.pair):
                self.by_node.setdefault(node, []).append(i)
        self.cost = PRIOR + math.log(max(1, len(self.by_node)))

    def fit(self) -> dict[Node, float]:
        """Returns the smallest set of nodes, each with the rate that it leaves to its pairs."""
        caps: dict[Node, float] = {}
        self._apply(caps)
        gains = {node: self.gain(node) for node in self.by_node}
        while len(caps) < MOST_CULPRITS:
            node, (gain, cap) = max(gains.items(), key=lambda each: each[1][0])
            if gain <= self.cost:
                break
            caps[node] = cap
            self._apply(caps)
            near = {other for i in self.by_node[node] for other in self._nodes(i)}
            gains.update({other: self.gain(other) for other in near - caps.keys()})
            gains[node] = (0.0, 0.0)
        for node in sorted(caps, key=lambda each: len(self.by_node[each])):
            without = {other: cap for other, cap in caps.items() if other != node}
            self._apply(without)
            if self.gain(node)[0] <= self.cost:
                caps = without
        self._apply(caps)
        return caps

    def _nodes(self, i: int) -> tuple[Node, ...]:
        return self.fleet.nodes(self.measured[i].pair)

    def _apply(self, caps: dict[Node, float]) -> None:
        self.limits = [0.0] * len(self.measured)
        for node, cap in caps.items():
            for i in self.by_node[node]:
                self.limits[i] = min(self.limits[i], cap)

    def _loss(self, rate: float, cap: float) -> float:
        """Returns the nats against a pair's rate under a cap."""
        if cap == 0 and rate > 0:
            return 0.0
        limit = MOST_AGAINST if rate > cap else MOST_EVIDENCE
        return min((rate - cap) ** 2 / (2 * self.noise**2), limit)

    def gain(self, node: Node) -> tuple[float, float]:
        """Returns the evidence in nats for a further slow node, and the rate that it would leave.

        It must take a share of 1 - SLOW from at least one pair. Its rate is nearly the best of its
        slow partners, each counted once: other nodes may slow some of them further.
        """
        indices = self.by_node[node]
        partners: dict[str, list[float]] = {}
        for i in indices:
            pair, rate = self.measured[i].pair, self.rates[i]
            if rate < self.limits[i] + _SLOW / 2:
                partners.setdefault(pair[node.kind == "client"], []).append(rate)
        below = sorted(map(statistics.fmean, partners.values()))
        if not below:
            return 0.0, 0.0
        cap = min(
            below[round(NEARLY * (len(below) - 1))], max(self.limits[e] for e in indices) + _SLOW
        )
        total = 0.0
        for i in indices:
            limit, rate = self.limits[i], self.rates[i]
            if cap < limit:
                gained = self._loss(rate, limit) - self._loss(rate, cap)
                vote = VERDICT * self.measured[i].confidence * side_of(self.measured[i], node)
                total += gained + (vote if gained > 0 else 0.0)
        return total, cap

    def untested_hosts(self, caps: Container[Node]) -> tuple[Node, ...]:
        """Returns hosts with too few tests; a test behind a slow node shows nothing.

        Hosts of slow, unexplained pairs need more tests, and come first.
        """
        tests: Counter[Node] = Counter()
        slow: set[Node] = set()
        for i, cap in enumerate(self.limits):
            if cap == 0:
                ends = self._nodes(i)[:2]
                tests.update({end: self.counts[self.measured[i].pair] for end in ends})
                slow.update(ends if self.rates[i] < _SLOW else ())
        hosts = [node for node in self.fleet.hosts if node not in caps]
        candidates = [
            node for node in hosts if tests[node] < (LEAST_TESTS if node in slow else FIRST_TESTS)
        ]
        return tuple(sorted(candidates, key=lambda node: node not in slow))

    def list_culprits(self, caps: dict[Node, float], usual: float) -> Iterable[Culprit]:
        """Yields the culprits and further suspects, with other explanations of their pairs."""
        culprits: list[Culprit] = []
        for node, cap in caps.items():
            self._apply({other: rate for other, rate in caps.items() if other != node})
            gain = self.gain(node)[0]
            near = {other for i in self.by_node[node] for other in self._nodes(i)} - caps.keys()
            rivals = [each for each in near if gain - self.gain(each)[0] < ALIKE]
            culprits.append(
                self._culprit(node, cap, gain - self.cost, usual, tuple(sorted(rivals)))
            )
        self._apply(caps)
        for node in self.by_node:
            gain, cap = (0.0, 0.0) if node in caps else self.gain(node)
            if gain > SUSPECT:
                culprits.append(self._culprit(node, cap, gain - self.cost, usual, ()))
        suspects = {each.node for each in culprits}
        for each in culprits:
            sure = each.confidence >= NAMED
            between = (each.node, *each.alternatives)
            pairs = [] if sure else deciding_pairs(self.fleet, between, suspects, self.counts)
            yield replace(each, measure=pairs[0] if pairs else None)

    def _culprit(
        self, node: Node, cap: float, margin: float, usual: float, rivals: tuple[Node, ...]
    ) -> Culprit:
        indices = self.by_node[node]
        slow = [i for i in indices if cap < self.limits[i] and self.rates[i] < _SLOW / 2]
        with_verdict = [each for i in slow if (each := self.measured[i]).verdict]
        verdicts = Counter(each.verdict for each in with_verdict if side_of(each, node) >= 0)
        words, agreeing = verdicts.most_common(1)[0] if verdicts else (None, 0)
        opposed = len(with_verdict) - verdicts.total()
        confidence = min(1 / (1 + math.exp(-max(-50.0, margin))), MOST_CONFIDENCE)
        # Verdicts for another side lower the confidence; a single one matters little.
        confidence *= 1 - opposed / max(len(with_verdict), len(slow) / 2, 1) / 2
        return Culprit(
            node=node,
            bytes_per_second=usual * math.exp(cap),
            confidence=confidence / (1 + len(rivals)),
            slow=tuple(sorted(self.measured[i].pair for i in slow)),
            measured=len(indices),
            verdict=words if 2 * agreeing > len(slow) else None,
            agreeing=agreeing,
            opposed=opposed,
            alternatives=rivals,
        )
