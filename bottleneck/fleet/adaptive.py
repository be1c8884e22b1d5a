"""Which pairs to measure next: those that decide between suspects; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence, Set

from bottleneck.fleet.records import FIRST_TESTS, Fleet, Found, Node, Pair

EACH_TESTS = 2
"""Of each suspect, before all are judged again."""
MOST_REPEATED = 3
"""Tests of one pair."""


def next_pairs(
    fleet: Fleet, found: Iterable[Found], made: Counter[Pair], most: int, dead: Container[str] = ()
) -> list[Pair]:
    """At most so many pairs that decide between suspects; none: nothing is left to decide.

    made: how often each pair was measured or tried; dead: hosts that gave no report. A pair is
    repeated where no other is left and it is slow.
    """
    most, results = max(0, most), tuple(found)
    named = {each.node for told in results for each in told.culprits}
    doubts = [each for told in results for each in told.undecided if each.node not in named]
    doubts.sort(key=lambda each: -each.confidence)
    suspects = {each.node for told in results for each in (*told.culprits, *told.undecided)}
    made = Counter(made)
    wanted: list[Pair] = []
    # Several copies have the same doubt: the tests are of all of them.
    for between in dict.fromkeys((each.node, *each.alternatives) for each in doubts):
        pairs = deciding(fleet, between, suspects, made, dead)[:EACH_TESTS]
        made.update(pairs)
        wanted += pairs
    if wanted:
        return wanted[:most]
    slow = {node for told in results for pair in told.unexplained for node in fleet.nodes(pair)}
    for node in dict.fromkeys(node for told in results for node in told.untested):
        if node not in suspects:
            clean = (
                pair
                for pair in passing(fleet, node)
                if suspects.isdisjoint(fleet.nodes(pair)) and (node in slow or not made[pair])
            )
            pairs = _ranked(((0, pair) for pair in clean), made, dead)[:1]
            made.update(pairs)
            wanted += pairs
    # What these show is worth further tests.
    return wanted[: max(min(most, 1), most // 2)]


def dead_hosts(made: Counter[Pair], reported: Iterable[Pair]) -> set[str]:
    """Hosts that were tried often enough and are in no report."""
    alive = {host for pair in reported for host in pair}
    tried = Counter(host for pair in made.elements() for host in pair)
    return {host for host, times in tried.items() if times > FIRST_TESTS and host not in alive}


def deciding(
    fleet: Fleet,
    between: Sequence[Node],
    suspects: Set[Node],
    made: Counter[Pair],
    dead: Container[str] = (),
) -> list[Pair]:
    """The pairs that pass some but not all of the nodes in doubt, the most telling first.

    Telling is one that passes no other suspect, and that was not measured yet.
    """
    doubted = set(between)
    found: list[tuple[int, Pair]] = []
    for pair in dict.fromkeys(pair for node in between for pair in passing(fleet, node)):
        nodes = set(fleet.nodes(pair))
        if len(doubted) == 1 or not doubted <= nodes:
            found.append((len(nodes & suspects - doubted), pair))
    return _ranked(found, made, dead)


def _ranked(
    pairs: Iterable[tuple[int, Pair]], made: Counter[Pair], dead: Container[str]
) -> list[Pair]:
    """Of the fewest suspects first, then the least measured."""
    left = (each for each in pairs if made[each[1]] < MOST_REPEATED)
    alive = (each for each in left if each[1].client not in dead and each[1].server not in dead)
    return [pair for _, pair in sorted(alive, key=lambda each: (each[0], made[each[1]]))]


def passing(fleet: Fleet, node: Node) -> Iterator[Pair]:
    """Every pair that passes a node."""
    match node.kind:
        case "client":
            yield from (Pair(node.name, each) for each in fleet.servers)
        case "server":
            yield from (Pair(each, node.name) for each in fleet.clients)
        case _:
            (segment,) = (each for each in fleet.segments if each.node == node)
            every = (Pair(client, server) for server in fleet.servers for client in fleet.clients)
            yield from filter(segment.is_passed_by, every)
