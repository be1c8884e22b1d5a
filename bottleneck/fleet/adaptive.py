"""Chooses the next pairs to measure: those that decide between suspects; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence, Set

from bottleneck.fleet.records import FIRST_TESTS, Findings, Fleet, Node, Pair

EACH_TESTS = 2
"""Tests of each suspect before all are judged again."""
MOST_REPEATED = 3
"""Most tests of one pair."""


def next_pairs(
    fleet: Fleet,
    findings: Iterable[Findings],
    tests: Counter[Pair],
    limit: int,
    dead: Container[str] = (),
) -> list[Pair]:
    """Returns up to `limit` pairs that decide between suspects; none: all is decided.

    tests: number of tests of each pair, failed ones included; dead: hosts without a report. A slow
    pair is repeated if there is no other one.
    """
    limit, results = max(0, limit), tuple(findings)
    culprits = {each.node for one in results for each in one.culprits}
    doubts = [each for one in results for each in one.undecided if each.node not in culprits]
    doubts.sort(key=lambda each: -each.confidence)
    suspects = {each.node for one in results for each in (*one.culprits, *one.undecided)}
    tests = Counter(tests)
    picked: list[Pair] = []
    # Several copies may have the same doubt: one test is for all of them.
    for between in dict.fromkeys((each.node, *each.alternatives) for each in doubts):
        pairs = deciding_pairs(fleet, between, suspects, tests, dead)[:EACH_TESTS]
        tests.update(pairs)
        picked += pairs
    if picked:
        return picked[:limit]
    slow = {node for one in results for pair in one.unexplained for node in fleet.nodes(pair)}
    for node in dict.fromkeys(node for one in results for node in one.untested):
        if node not in suspects:
            clean = (
                pair
                for pair in pairs_through(fleet, node)
                if suspects.isdisjoint(fleet.nodes(pair)) and (node in slow or not tests[pair])
            )
            pairs = _ranked_pairs(((0, pair) for pair in clean), tests, dead)[:1]
            tests.update(pairs)
            picked += pairs
    # These results may demand further tests, so only half of the limit is used.
    return picked[: max(min(limit, 1), limit // 2)]


def dead_hosts(tests: Counter[Pair], reported: Iterable[Pair]) -> set[str]:
    """Returns hosts that were tried often enough without any report."""
    alive = {host for pair in reported for host in pair}
    tried = Counter(host for pair in tests.elements() for host in pair)
    return {host for host, times in tried.items() if times > FIRST_TESTS and host not in alive}


def deciding_pairs(
    fleet: Fleet,
    between: Sequence[Node],
    suspects: Set[Node],
    tests: Counter[Pair],
    dead: Container[str] = (),
) -> list[Pair]:
    """Returns pairs that pass some but not all of the nodes in doubt, the most decisive first.

    Decisive is a pair that passes no other suspect and was not measured yet.
    """
    doubted = set(between)
    ranked: list[tuple[int, Pair]] = []
    for pair in dict.fromkeys(pair for node in between for pair in pairs_through(fleet, node)):
        nodes = set(fleet.nodes(pair))
        if len(doubted) == 1 or not doubted <= nodes:
            ranked.append((len(nodes & suspects - doubted), pair))
    return _ranked_pairs(ranked, tests, dead)


def _ranked_pairs(
    pairs: Iterable[tuple[int, Pair]], tests: Counter[Pair], dead: Container[str]
) -> list[Pair]:
    """Sorts pairs by number of other suspects, then by number of tests."""
    rest = (each for each in pairs if tests[each[1]] < MOST_REPEATED)
    alive = (each for each in rest if each[1].client not in dead and each[1].server not in dead)
    return [pair for _, pair in sorted(alive, key=lambda each: (each[0], tests[each[1]]))]


def pairs_through(fleet: Fleet, node: Node) -> Iterator[Pair]:
    """Yields every pair that passes a node."""
    match node.kind:
        case "client":
            yield from (Pair(node.name, each) for each in fleet.servers)
        case "server":
            yield from (Pair(each, node.name) for each in fleet.clients)
        case _:
            (segment,) = (each for each in fleet.segments if each.node == node)
            every = (Pair(client, server) for server in fleet.servers for client in fleet.clients)
            yield from filter(segment.is_passed_by, every)
