"""When which pair is measured: rounds in which no two tests share a host or an uplink.

Static, and made before the first test: negotiating at run time fails at scale. The order is random,
because tests that follow each other trip traffic shapers; the caller brings the chance.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import TypeVar

from bottleneck.fleet.records import FIRST_TESTS, Fleet, Node, Pair

T = TypeVar("T")
Round = tuple[Pair, ...]


def all_pairs(fleet: Fleet, chance: Random) -> list[Pair]:
    """Every pair, in an order whose first fit is max(clients, servers) rounds without uplinks."""
    clients, servers = _shuffled(fleet.clients, chance), _shuffled(fleet.servers, chance)
    longer = max(len(clients), len(servers))
    # Within a round each shorter one meets another of the longer: the edge colouring of K(N, M).
    return [
        Pair(clients[(at + turn) % longer], servers[at])
        if len(clients) >= len(servers)
        else Pair(clients[at], servers[(at + turn) % longer])
        for turn in _shuffled(range(longer), chance)
        for at in range(min(len(clients), len(servers)))
    ]


def first_pairs(fleet: Fleet, chance: Random) -> list[Pair]:
    """Each client and each server FIRST_TESTS times, with different partners where there are."""
    clients, servers = _shuffled(fleet.clients, chance), _shuffled(fleet.servers, chance)
    count = max(len(clients), len(servers))
    found = (
        Pair(clients[at % len(clients)], servers[(at + at // len(servers) + turn) % len(servers)])
        if len(clients) >= len(servers)
        else Pair(clients[(at + at // len(clients) + turn) % len(clients)], servers[at])
        for turn in range(FIRST_TESTS)
        for at in range(count)
    )
    return list(dict.fromkeys(found))


def rounds(fleet: Fleet, pairs: Iterable[Pair]) -> list[Round]:
    """The pairs in as few rounds as a first fit takes; a pair that is asked for twice, twice."""
    used: dict[Node, int] = {}
    found: list[list[Pair]] = []
    for pair in pairs:
        nodes = fleet.exclusive(pair)
        taken = 0
        for node in nodes:
            taken |= used.get(node, 0)
        free = ~taken & (taken + 1)
        for node in nodes:
            used[node] = used.get(node, 0) | free
        at = free.bit_length() - 1
        if at == len(found):
            found.append([])
        found[at].append(pair)
    return [tuple(each) for each in found]


def _shuffled(of: Sequence[T], chance: Random) -> list[T]:
    return chance.sample(of, len(of))
