"""Schedules pairs into rounds in which no two tests share a host or an uplink.

The schedule is static: negotiating at run time fails at scale. The order is random, because tests
in sequence trip traffic shapers; the caller passes the random generator.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import TypeVar

from bottleneck.fleet.records import FIRST_TESTS, Fleet, Node, Pair

T = TypeVar("T")
Round = tuple[Pair, ...]


def all_pairs(fleet: Fleet, chance: Random) -> list[Pair]:
    """Returns every pair, in an order that first fit packs into max(clients, servers) rounds."""
    clients, servers = (_shuffle(fleet.clients, chance), _shuffle(fleet.servers, chance))
    longer = max(len(clients), len(servers))
    # Within a round each host of the shorter list meets another of the longer: the edge colouring
    # of K(N, M).
    return [
        Pair(clients[(i + turn) % longer], servers[i])
        if len(clients) >= len(servers)
        else Pair(clients[i], servers[(i + turn) % longer])
        for turn in _shuffle(range(longer), chance)
        for i in range(min(len(clients), len(servers)))
    ]


def first_pairs(fleet: Fleet, chance: Random) -> list[Pair]:
    """Returns pairs with each host FIRST_TESTS times, with different partners if possible."""
    clients, servers = (_shuffle(fleet.clients, chance), _shuffle(fleet.servers, chance))
    count = max(len(clients), len(servers))
    pairs = (
        Pair(clients[i % len(clients)], servers[(i + i // len(servers) + turn) % len(servers)])
        if len(clients) >= len(servers)
        else Pair(clients[(i + i // len(clients) + turn) % len(clients)], servers[i])
        for turn in range(FIRST_TESTS)
        for i in range(count)
    )
    return list(dict.fromkeys(pairs))


def rounds(fleet: Fleet, pairs: Iterable[Pair]) -> list[Round]:
    """Packs pairs into rounds by first fit; a pair that is listed twice is tested twice."""
    used: dict[Node, int] = {}
    result: list[list[Pair]] = []
    for pair in pairs:
        nodes = fleet.exclusive(pair)
        taken = 0
        for node in nodes:
            taken |= used.get(node, 0)
        free = ~taken & (taken + 1)
        for node in nodes:
            used[node] = used.get(node, 0) | free
        i = free.bit_length() - 1
        if i == len(result):
            result.append([])
        result[i].append(pair)
    return [tuple(each) for each in result]


def _shuffle(items: Sequence[T], chance: Random) -> list[T]:
    return chance.sample(items, len(items))
