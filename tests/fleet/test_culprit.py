"""Shared parts of slow pairs are named where the rates decide it, and nobody else is."""

import importlib.util
import sys
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest

from bottleneck.analysis.finding import Words
from bottleneck.fleet.culprit import MOST_EVIDENCE, PRIOR, VERDICT, judge
from bottleneck.fleet.records import Fleet, Node, Pair, Rate, Segment

ROOT = Path(__file__).parents[2]
USUAL = 100e6
SITE = Segment(Node("uplink", "site"), frozenset(f"pc{n}" for n in range(4)))
FLEET = Fleet(tuple(f"pc{n}" for n in range(12)), tuple(f"nas{n}" for n in range(4)), (SITE,))


def rated_pairs(slow, fleet=FLEET, left_out=(), verdict=None, spread=0.03, healthy=False):
    """All pairs; slow: by node the rate that it leaves."""
    chance = Random(5)
    for client in fleet.clients:
        for server in fleet.servers:
            pair = Pair(client, server)
            rate = min([USUAL, *(slow[node] for node in fleet.nodes(pair) if node in slow)])
            words, sure = (verdict, 0.9) if rate < USUAL and verdict else (None, 0.0)
            if pair not in left_out:
                yield Rate(pair, rate * chance.gauss(1, spread), words, sure, healthy)


def judge_all(slow, **options):
    fleet = options.get("fleet", FLEET)
    return judge(fleet, "pull.cached", list(rated_pairs(slow, **options)))


def culprits(slow, **options):
    return {each.node for each in judge_all(slow, **options).culprits}


NAS2, PC9, PC1 = Node("server", "nas2"), Node("client", "pc9"), Node("client", "pc1")


@pytest.mark.parametrize(
    "slow",
    [
        {},
        {NAS2: 11e6},
        {PC9: 50e6},
        {SITE.node: 40e6},
        {NAS2: 50e6, PC9: 30e6},
        {NAS2: 50e6, SITE.node: 50e6},
        {SITE.node: 50e6, PC1: 11e6},
    ],
    ids=str,
)
def test_what_is_slow_is_named_and_no_other(slow):
    assert culprits(slow) == slow.keys()


def test_a_culprit_has_its_rate_its_pairs_and_what_they_say_themselves():
    words = Words("network", "server", "link-rate")
    (culprit,) = judge_all({NAS2: 11e6}, verdict=words).culprits
    assert culprit.bytes_per_second == pytest.approx(11e6, rel=0.1)
    assert [pair.client for pair in culprit.slow] == sorted(FLEET.clients)
    assert culprit.measured == culprit.agreeing == 12
    assert culprit.verdict == words
    assert culprit.confidence > 0.9


def test_a_client_behind_a_slower_uplink_is_not_named():
    assert culprits({SITE.node: 30e6, PC1: 40e6}) == {SITE.node}


def test_two_that_have_the_same_pairs_are_undecided_and_no_pair_decides():
    site = Segment(Node("uplink", "attic"), frozenset(("pc9",)))
    fleet = Fleet(FLEET.clients, FLEET.servers, (site,))
    finding = judge_all({PC9: 20e6}, fleet=fleet)
    assert finding.culprits == ()
    (doubt,) = finding.undecided
    assert {doubt.node, *doubt.alternatives} == {PC9, site.node}
    assert doubt.measure is None and doubt.confidence <= 0.5


def test_the_pair_that_would_decide_is_told():
    """All that was measured of the site is one client of it."""
    left_out = [Pair(f"pc{n}", each) for n in (0, 2, 3) for each in FLEET.servers]
    finding = judge_all({PC1: 20e6}, left_out=left_out)
    (doubt,) = finding.undecided
    assert {doubt.node, *doubt.alternatives} == {PC1, SITE.node}
    assert doubt.measure is not None and doubt.measure.client in {"pc0", "pc2", "pc3"}


def test_the_pairs_own_verdicts_tell_a_client_from_its_uplink():
    left_out = [Pair(f"pc{n}", each) for n in (0, 2, 3) for each in FLEET.servers]
    words = Words("cpu", "client", "one-core")
    assert culprits({PC1: 20e6}, left_out=left_out, verdict=words) == {PC1}


def test_one_slow_pair_is_told_and_no_host_is_named():
    pairs = [
        Rate(each.pair, 20e6) if each.pair == Pair("pc5", "nas1") else each
        for each in rated_pairs({})
    ]
    finding = judge(FLEET, "pull.cached", pairs)
    assert finding.culprits == () and finding.unexplained == (Pair("pc5", "nas1"),)
    assert finding.slow == finding.unexplained and finding.measured == 48


@pytest.mark.parametrize(
    ("runs", "servers"), [(10, ("nas0", "nas1")), (4, ("nas0",))], ids=["one-fast", "alone"]
)
def test_repeats_of_one_slow_pair_blame_nobody(runs, servers):
    """c0 with nas0 is slow in each run; with nas1 it is fast, or nothing else is known of it."""
    others = [Rate(Pair(f"c{pc}", f"nas{nas}"), USUAL) for pc in range(1, 6) for nas in range(3)]
    rates = [Rate(Pair("c0", each), USUAL) for each in servers[1:]]
    pairs = [*others, *rates, *[Rate(Pair("c0", "nas0"), 20e6)] * runs]
    fleet = Fleet(tuple(f"c{index}" for index in range(6)), ("nas0", "nas1", "nas2"))
    finding = judge(fleet, "pull.cached", pairs)
    assert finding.culprits == () and finding.unexplained == (Pair("c0", "nas0"),)


def test_one_slow_pair_is_too_little_whatever_it_names_itself():
    assert MOST_EVIDENCE + VERDICT < PRIOR


def test_two_slow_pairs_of_a_client_are_enough_in_a_small_fleet():
    fleet = Fleet(FLEET.clients, FLEET.servers[:2])
    assert culprits({PC9: 20e6}, fleet=fleet) == {PC9}


def test_one_slow_run_of_many_is_no_slow_pair():
    pairs = [*rated_pairs({})] * 2 + [Rate(Pair("pc1", each), 9e6) for each in FLEET.servers]
    finding = judge(FLEET, "pull.cached", pairs)
    assert finding.slow == () and finding.measured == 48


def test_a_pair_whose_own_diagnosis_finds_no_fault_is_not_slow():
    """Clients with a slower link than most are none, where they use all of it."""
    finding = judge_all({Node("client", f"pc{index}"): 40e6 for index in range(5)}, healthy=True)
    assert finding.slow == () == finding.culprits


def test_what_a_healthy_pair_has_can_be_given():
    """All are slow alike: only a rate that is expected shows it, and one server explains it."""
    fleet = Fleet(FLEET.clients, ("nas0",))
    everybody = list(rated_pairs({Node("server", "nas0"): 11e6}, fleet=fleet))
    assert judge(fleet, "pull.cached", everybody).slow == ()
    finding = judge(fleet, "pull.cached", everybody, USUAL)
    assert [each.node for each in finding.culprits] == [Node("server", "nas0")]


def test_one_old_fast_report_does_not_clear_a_server():
    pairs = [
        Rate(each.pair, USUAL) if each.pair == Pair("pc5", "nas2") else each
        for each in rated_pairs({NAS2: 11e6})
    ]
    (culprit,) = judge(FLEET, "pull.cached", pairs).culprits
    assert culprit.node == NAS2 and len(culprit.slow) == 11


def test_a_rate_of_nothing_is_slow_and_breaks_nothing():
    pairs = [Rate(e.pair, 0.0) if e.pair.server == "nas2" else e for e in rated_pairs({})]
    assert {each.node for each in judge(FLEET, "pull.cached", pairs).culprits} == {NAS2}


@pytest.fixture(scope="module")
def simulation():
    spec = importlib.util.spec_from_file_location(
        "fleet_simulation", ROOT / "benchmarks" / "fleet_simulation.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kinds", [(), ("server",), ("uplink",), ("client", "server")], ids=str)
def test_the_simulation_finds_what_it_injects(simulation, kinds):
    settings = SimpleNamespace(fleets=12, noise=0.1, missing=0.05, seed=7, rate_unknown=False)
    row = simulation.row(12, 4, 3, kinds, settings)
    assert row["wrong"] == 0 and row["right"] >= 90 and row["most"] <= 2 * (12 + 4)


def test_a_large_fleet_is_judged(simulation, capsys):
    simulation.scale(100, 10, 8)
    assert "named 4 of 4 decidable, 0 wrong" in capsys.readouterr().out
