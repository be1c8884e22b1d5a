#!/usr/bin/env python3
"""Counts how often `bottleneck fleet` names the right culprits in simulated fleets.

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
from bottleneck.fleet.records import Findings, Fleet, Node, Pair, Rate, Segment  # noqa: E402

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
    rates: dict[Node, float]
    """Bytes per second of each node."""
    faults: set[Node]

    def rate(self, pair: Pair, *, without: Node | None = None) -> float:
        return min(self.rates[each] for each in self.fleet.nodes(pair) if each != without)

    def pairs(self) -> list[Pair]:
        return [Pair(each, other) for each in self.fleet.clients for other in self.fleet.servers]

    def decidable(self) -> set[Node]:
        """Returns the faults without which some pair would be faster."""
        shows = {
            fault
            for fault in self.faults
            for pair in adaptive.pairs_through(self.fleet, fault)
            if self.rate(pair) < culprit.SLOW * min(USUAL, self.rate(pair, without=fault))
        }
        passed = {fault: set(adaptive.pairs_through(self.fleet, fault)) for fault in shows}
        return {
            fault
            for fault in shows
            if not any(
                set(adaptive.pairs_through(self.fleet, other)) == passed[fault]
                for other in self.rates.keys() - self.faults
            )
        }


def world(chance: Random, clients: int, servers: int, sites: int, kinds: Kinds) -> World:
    """Returns a fleet of that size with a fault of each kind."""
    names = tuple(f"pc{number}" for number in range(clients))
    stores = tuple(f"nas{number}" for number in range(servers))
    segments = tuple(
        Segment(Node("uplink", f"site{number}"), frozenset(names[number::sites]))
        for number in range(sites)
    )
    fleet = Fleet(names, stores, segments)
    rates = {Node("client", each): USUAL * chance.choice((1, 1, 1, 2.5)) for each in names}
    rates |= {Node("server", each): USUAL * chance.choice((1, 1, 2.5, 10)) for each in stores}
    rates |= {each.node: USUAL * 10 for each in segments}
    faults: set[Node] = set()
    for kind in kinds:
        fault = chance.choice([each for each in rates if each.kind == kind and each not in faults])
        rates[fault] = USUAL * 0.6 * chance.uniform(0.6, 1)
        faults.add(fault)
    return World(fleet, rates, faults)


def measured(
    truth: World, chance: Random, noise: float, missing: float, usual: float | None = USUAL
) -> tuple[Findings, int]:
    """Returns the finding and the number of tests that it took."""
    tests: Counter[Pair] = Counter()
    rates: list[Rate] = []
    pairs = timetable.first_pairs(truth.fleet, chance)
    while pairs:
        tests.update(pairs)
        for pair in pairs:
            if chance.random() >= missing:
                rate = truth.rate(pair) * max(0.05, chance.gauss(1, noise))
                rates.append(Rate(pair, rate))
        finding = culprit.judge(truth.fleet, "pull.cached", rates, usual)
        free = truth.fleet.most_tests - tests.total()
        dead = adaptive.dead_hosts(tests, (each.pair for each in rates))
        pairs = adaptive.next_pairs(truth.fleet, [finding], tests, free, dead)
    return finding, tests.total()


def row(
    clients: int, servers: int, sites: int, kinds: Kinds, options: argparse.Namespace
) -> dict[str, float]:
    """Returns shares of the fleets in percent, and the mean number of tests."""
    chance = Random(f"{options.seed} {clients} {kinds}")
    usual = None if options.rate_unknown else USUAL
    right = wrong = open_cases = decidable = tests = highest = 0
    for _ in range(options.fleets):
        fleet = world(chance, clients, servers, sites, kinds)
        finding, count = measured(fleet, chance, options.noise, options.missing, usual)
        culprits = {each.node for each in finding.culprits}
        doubted = {node for e in finding.undecided for node in (e.node, *e.alternatives)}
        shows = fleet.decidable()
        decidable += shows == fleet.faults
        right += shows == fleet.faults == culprits
        wrong += bool(culprits - fleet.faults)
        open_cases += shows == fleet.faults != culprits and fleet.faults <= culprits | doubted
        tests += count
        highest = max(highest, count)
    share = 100 / max(1, decidable)
    return {
        "decidable": decidable,
        "right": right * share,
        "told": open_cases * share,
        "wrong": 100 * wrong / options.fleets,
        "tests": tests / options.fleets,
        "most": highest,
    }


def scale(clients: int = 1000, servers: int = 50, sites: int = 40) -> None:
    """Prints seconds and memory of the largest fleet that the documentation promises."""
    chance = Random(1)
    fleet = world(chance, clients, servers, sites, ("server", "uplink", "client", "client"))
    began = time.perf_counter()
    rounds = timetable.rounds(fleet.fleet, timetable.all_pairs(fleet.fleet, chance))
    seconds = time.perf_counter() - began
    print(f"{clients} x {servers}, all pairs: {len(rounds)} rounds, {seconds:.1f} s")
    for choice, pairs in (
        ("at most 2 (N + M) tests", None),
        ("all pairs", fleet.pairs()),
    ):
        began = time.perf_counter()
        if pairs is None:
            finding, count = measured(fleet, chance, 0.1, 0.05)
        else:
            rates = [
                Rate(each, fleet.rate(each) * max(0.05, chance.gauss(1, 0.1))) for each in pairs
            ]
            finding, count = culprit.judge(fleet.fleet, "pull.cached", rates, USUAL), len(pairs)
        culprits = {each.node for each in finding.culprits}
        print(
            f"{clients} x {servers}, {choice}: {count} tests, {time.perf_counter() - began:.1f} s, "
            f"named {len(culprits & fleet.faults)} of {len(fleet.decidable())} decidable, "
            f"{len(culprits - fleet.faults)} wrong"
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
    options = parser.parse_args()
    if options.scale:
        scale()
        return
    print("| fleet | faults | tests, mean (most) | decidable | right | undecided | wrong |")
    print("|---|---|---|---|---|---|---|")
    for clients, servers, sites, kinds in ROWS:
        figures = row(clients, servers, sites, kinds, options)
        print(
            f"| {clients} x {servers} | {' + '.join(kinds) or 'none'} "
            f"| {figures['tests']:.0f} ({figures['most']:.0f}) | {figures['decidable']:.0f} "
            f"| {figures['right']:.1f}% | {figures['told']:.1f}% | {figures['wrong']:.2f}% |",
            flush=True,
        )


if __name__ == "__main__":
    main()
