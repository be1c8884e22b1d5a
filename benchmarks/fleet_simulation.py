#!/usr/bin/env python3
"""How often `bottleneck fleet` names the right culprits, in simulated fleets with known faults.

Usage: python benchmarks/fleet_simulation.py [--fleets 400] [--noise 0.1] [--missing 0.05]
                                             [--seed 7] [--rate-unknown] [--scale]

Each row is so many fleets. A fault leaves its pairs 36% to 60% of the usual rate; a quarter of the
healthy clients, and half of the servers, have faster links than usual. Each test has Gaussian
noise, and some give no report. The pairs are chosen as a real run does: two tests of each host,
then those that decide between suspects, at most 2 (N + M).

A fault is decidable where it takes at least a fifth from some pair beside all other faults (one
behind a slower uplink does not), and no other set of as few nodes has the same pairs. `right`:
exactly the decidable faults are named, as a share of the fleets in which all are decidable.
`wrong`: a node without a fault is named. The usual rate is given, as by --target-rate; with
`--rate-unknown` the median of the clients' best pairs stands for it. `--scale` judges and plans
1,000 clients x 50 servers.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bottleneck.fleet import adaptive, culprit, timetable  # noqa: E402
from bottleneck.fleet.records import Fleet, Found, Node, Pair, Seen, Segment  # noqa: E402

USUAL = 117e6
Kinds = tuple[str, ...]
ROWS: tuple[tuple[int, int, int, Kinds], ...] = (
    (12, 4, 3, ()),
    (12, 4, 3, ("client",)),
    (12, 4, 3, ("server",)),
    (12, 4, 3, ("uplink",)),
    (12, 4, 3, ("client", "server")),
    (12, 4, 3, ("client", "client")),
    (12, 4, 3, ("server", "server")),
    (12, 4, 3, ("uplink", "server")),
    (12, 4, 3, ("uplink", "client")),
    (100, 10, 8, ()),
    (100, 10, 8, ("server",)),
    (100, 10, 8, ("client", "client")),
    (100, 10, 8, ("uplink", "client")),
    (100, 10, 8, ("uplink", "server")),
)


@dataclass
class World:
    """A fleet with its true rates."""

    fleet: Fleet
    own: dict[Node, float]
    """Of each node, bytes per second."""
    faults: set[Node]

    def rate(self, pair: Pair, *, without: Node | None = None) -> float:
        return min(self.own[each] for each in self.fleet.nodes(pair) if each != without)

    def pairs(self) -> list[Pair]:
        return [Pair(each, other) for each in self.fleet.clients for other in self.fleet.servers]

    def decidable(self) -> set[Node]:
        """The faults that show: of each, whether some pair would be faster without it."""
        shows = {
            fault
            for fault in self.faults
            for pair in adaptive.passing(self.fleet, fault)
            if self.rate(pair) < culprit.SLOW * min(USUAL, self.rate(pair, without=fault))
        }
        passed = {fault: set(adaptive.passing(self.fleet, fault)) for fault in shows}
        return {
            fault
            for fault in shows
            if not any(
                set(adaptive.passing(self.fleet, other)) == passed[fault]
                for other in self.own.keys() - self.faults
            )
        }


def world(chance: Random, clients: int, servers: int, sites: int, kinds: Kinds) -> World:
    """A fleet of that size, with a fault of each kind."""
    names = tuple(f"pc{at}" for at in range(clients))
    stores = tuple(f"nas{at}" for at in range(servers))
    segments = tuple(
        Segment(Node("uplink", f"site{at}"), frozenset(names[at::sites])) for at in range(sites)
    )
    fleet = Fleet(names, stores, segments)
    own = {Node("client", each): USUAL * chance.choice((1, 1, 1, 2.5)) for each in names}
    own |= {Node("server", each): USUAL * chance.choice((1, 1, 2.5, 10)) for each in stores}
    own |= {each.node: USUAL * 10 for each in segments}
    faults: set[Node] = set()
    for kind in kinds:
        fault = chance.choice([each for each in own if each.kind == kind and each not in faults])
        own[fault] = USUAL * 0.6 * chance.uniform(0.6, 1)
        faults.add(fault)
    return World(fleet, own, faults)


def measured(
    of: World, chance: Random, noise: float, missing: float, usual: float | None = USUAL
) -> tuple[Found, int]:
    """What is found, and how many tests it took."""
    made: Counter[Pair] = Counter()
    seen: list[Seen] = []
    pairs = timetable.first_pairs(of.fleet, chance)
    while pairs:
        made.update(pairs)
        for pair in pairs:
            if chance.random() >= missing:
                rate = of.rate(pair) * max(0.05, chance.gauss(1, noise))
                seen.append(Seen(pair, rate))
        found = culprit.judge(of.fleet, "pull.cached", seen, usual)
        left = of.fleet.most_tests - made.total()
        dead = adaptive.dead_hosts(made, (each.pair for each in seen))
        pairs = adaptive.next_pairs(of.fleet, [found], made, left, dead)
    return found, made.total()


def row(
    clients: int, servers: int, sites: int, kinds: Kinds, asked: argparse.Namespace
) -> dict[str, float]:
    """Shares of the fleets, and the mean number of tests."""
    chance = Random(f"{asked.seed} {clients} {kinds}")
    usual = None if asked.rate_unknown else USUAL
    right = wrong = told = decidable = tests = most = 0
    for _ in range(asked.fleets):
        one = world(chance, clients, servers, sites, kinds)
        found, made = measured(one, chance, asked.noise, asked.missing, usual)
        named = {each.node for each in found.culprits}
        doubted = {node for e in found.undecided for node in (e.node, *e.alternatives)}
        shows = one.decidable()
        decidable += shows == one.faults
        right += shows == one.faults == named
        wrong += bool(named - one.faults)
        told += shows == one.faults != named and one.faults <= named | doubted
        tests += made
        most = max(most, made)
    share = 100 / max(1, decidable)
    return {
        "decidable": decidable,
        "right": right * share,
        "told": told * share,
        "wrong": 100 * wrong / asked.fleets,
        "tests": tests / asked.fleets,
        "most": most,
    }


def scale(clients: int = 1000, servers: int = 50, sites: int = 40) -> None:
    """Seconds and memory of the largest fleet that the documentation promises."""
    chance = Random(1)
    one = world(chance, clients, servers, sites, ("server", "uplink", "client", "client"))
    began = time.perf_counter()
    rounds = timetable.rounds(one.fleet, timetable.all_pairs(one.fleet, chance))
    seconds = time.perf_counter() - began
    print(f"{clients} x {servers}, all pairs: {len(rounds)} rounds, {seconds:.1f} s")
    for what, pairs in (
        ("at most 2 (N + M) tests", None),
        ("all pairs", one.pairs()),
    ):
        began = time.perf_counter()
        if pairs is None:
            found, made = measured(one, chance, 0.1, 0.05)
        else:
            seen = [Seen(each, one.rate(each) * max(0.05, chance.gauss(1, 0.1))) for each in pairs]
            found, made = culprit.judge(one.fleet, "pull.cached", seen, USUAL), len(pairs)
        named = {each.node for each in found.culprits}
        print(
            f"{clients} x {servers}, {what}: {made} tests, {time.perf_counter() - began:.1f} s, "
            f"named {len(named & one.faults)} of {len(one.decidable())} decidable, "
            f"{len(named - one.faults)} wrong"
        )
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"memory: {kilobytes / 1024:.0f} MiB")


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fleets", type=int, default=400)
    parser.add_argument("--noise", type=float, default=0.1)
    parser.add_argument("--missing", type=float, default=0.05)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--rate-unknown", action="store_true")
    parser.add_argument("--scale", action="store_true")
    asked = parser.parse_args()
    if asked.scale:
        scale()
        return
    print("| fleet | faults | tests, mean (most) | decidable | right | undecided | wrong |")
    print("|---|---|---|---|---|---|---|")
    for clients, servers, sites, kinds in ROWS:
        found = row(clients, servers, sites, kinds, asked)
        print(
            f"| {clients} x {servers} | {' + '.join(kinds) or 'none'} "
            f"| {found['tests']:.0f} ({found['most']:.0f}) | {found['decidable']:.0f} "
            f"| {found['right']:.1f}% | {found['told']:.1f}% | {found['wrong']:.2f}% |",
            flush=True,
        )


if __name__ == "__main__":
    main()
