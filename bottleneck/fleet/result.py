"""Judges a fleet by its reports: each copy by itself, the worst first; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from bottleneck.analysis.finding import Words
from bottleneck.fleet.culprit import judge, middle_runs, usable_rates
from bottleneck.fleet.records import NAMED, Culprit, Findings, Fleet, Pair, Rate, Together
from probes.core.records import OWN_COPIES

MOST_RATE = 1e13
"""Most rate of a copy, bytes per second; more is no valid figure."""
LEAST_COMMON = 0.75
"""Share of a server's pairs that must name the same limit."""


@dataclass(frozen=True)
class CommonLimit:
    """A limit that the diagnoses of servers' pairs name, while no pair is slower than others."""

    servers: tuple[str, ...]
    verdict: Words
    agreeing_pairs: int
    measured_pairs: int


@dataclass(frozen=True)
class Result:
    """Judgement of a fleet."""

    fleet: Fleet
    findings: tuple[Findings, ...]
    """Findings of each measured copy; a summary is about the first."""
    rates: Mapping[str, Mapping[Pair, float]]
    """Median rates by copy and pair, bytes per second."""
    missing: Mapping[Pair, str]
    """Pairs that were tried and have no rate, with the reason."""
    skipped: tuple[str, ...] = ()
    """Files that are no report of a pair."""
    common: tuple[CommonLimit, ...] = ()
    at_most: frozenset[Pair] = frozenset()
    """Slow pairs whose rates are upper limits; see Rate.at_most."""
    status: str = "complete"
    """complete, partial, interrupted or failed, as the status of a report."""
    together: Together | None = None
    """Result of clients that copy at once; None: not requested."""
    unread: tuple[str, ...] = ()
    """Files and folders that may hold a pair's report and cannot be read, with the reason."""

    @property
    def culprits(self) -> tuple[Culprit, ...]:
        """Named culprits, each once, by the copy with the highest confidence."""
        best = {
            each.node: each
            for one in reversed(self.findings)
            for each in sorted(one.culprits, key=lambda each: each.confidence)
        }
        return tuple(sorted(best.values(), key=lambda each: (-len(each.slow), each.node)))

    @property
    def undecided_suspects(self) -> tuple[Culprit, ...]:
        """Likely suspects of the first copy."""
        suspects = self.findings[0].undecided if self.findings else ()
        return tuple(each for each in suspects if each.is_likely)

    @property
    def is_decided(self) -> bool:
        """Whether every tried pair has a rate, and nothing is in doubt."""
        unread = self.unread if not self.culprits else ()
        doubts = self.missing or self.undecided_suspects or self.unmeasured_hosts or unread
        if self.together is not None and not self.together.is_decided:
            return False
        return bool(self.findings) and not (doubts or self.findings[0].unexplained)

    @property
    def unmeasured_hosts(self) -> tuple[str, ...]:
        """Hosts without any rate."""
        hosts = {host for rates in self.rates.values() for pair in rates for host in pair}
        return tuple(each.name for each in self.fleet.hosts if each.name not in hosts)

    def copies_of(self, culprit: Culprit) -> tuple[str, ...]:
        """Returns the copies that show a culprit."""
        nodes = {one.copy: {each.node for each in one.culprits} for one in self.findings}
        return tuple(copy for copy in OWN_COPIES if culprit.node in nodes.get(copy, ()))


def judge_pairs(
    by_copy: Mapping[str, Sequence[Rate]],
    fleet: Fleet | None = None,
    usual_bytes_per_second: float | None = None,
    missing: Mapping[Pair, str] | None = None,
    skipped: Sequence[str] = (),
) -> Result:
    """Judges the copies of all pairs.

    fleet: None: its hosts are those of the pairs. usual_bytes_per_second: rate of a healthy pair.
    A pair whose rates are all invalid (infinite, not a number, negative) is missing.
    """
    lost = {each.pair: "no valid rate" for runs in by_copy.values() for each in runs}
    by_copy = {
        copy: [each for each in runs if 0 <= each.bytes_per_second <= MOST_RATE]
        for copy, runs in by_copy.items()
    }
    rated = {each.pair for runs in by_copy.values() for each in runs if not each.at_most}
    by_copy = {
        copy: usable_rates(runs, rated, usual_bytes_per_second) for copy, runs in by_copy.items()
    }
    valid = {each.pair for runs in by_copy.values() for each in runs}
    lost |= missing or {}
    missing = {pair: why for pair, why in lost.items() if pair not in valid}
    whole_fleet = fleet or Fleet((), ())
    pairs = valid | missing.keys()
    clients = dict.fromkeys((*whole_fleet.clients, *sorted(each.client for each in pairs)))
    servers = dict.fromkeys((*whole_fleet.servers, *sorted(each.server for each in pairs)))
    whole_fleet = replace(whole_fleet, clients=tuple(clients), servers=tuple(servers))
    findings = [
        judge(whole_fleet, copy, by_copy[copy], usual_bytes_per_second)
        for copy in OWN_COPIES
        if by_copy.get(copy)
    ]
    findings.sort(
        key=lambda each: (
            -sum(len(culprit.slow) for culprit in each.culprits),
            -len(each.slow),
            each.usual_bytes_per_second,
        )
    )
    rates = {
        copy: {pair: each.bytes_per_second for pair, each in middle_runs(runs).items()}
        for copy, runs in by_copy.items()
    }
    common = [each for one in findings[:1] if not one.slow for each in _common(by_copy[one.copy])]
    at_most = frozenset(each.pair for runs in by_copy.values() for each in runs if each.at_most)
    return Result(
        whole_fleet, tuple(findings), rates, missing, tuple(skipped), tuple(common), at_most
    )


def _common(rates: Iterable[Rate]) -> list[CommonLimit]:
    """Returns limits that nearly all pairs of a server with several clients name, most first."""
    middle_rates = middle_runs(rates).values()
    by_verdict: dict[Words, CommonLimit] = {}
    for server in dict.fromkeys(each.pair.server for each in middle_rates):
        of_server = [each for each in middle_rates if each.pair.server == server]
        sure = (e for e in of_server if e.verdict and e.confidence >= NAMED and not e.healthy)
        for words, count in Counter(each.verdict for each in sure).most_common(1):
            if words is None or words.side == "client" or len(of_server) == 1:
                continue
            if count >= LEAST_COMMON * len(of_server):
                so_far = by_verdict.get(words, CommonLimit((), words, 0, 0))
                counts = so_far.agreeing_pairs + count, so_far.measured_pairs + len(of_server)
                by_verdict[words] = CommonLimit((*so_far.servers, server), words, *counts)
    return sorted(by_verdict.values(), key=lambda each: -each.agreeing_pairs)
