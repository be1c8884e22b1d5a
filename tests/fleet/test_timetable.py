"""No two tests of a round share a host or an uplink, and the rounds are as few as they can be."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from bottleneck.fleet import adaptive, timetable
from bottleneck.fleet.records import FIRST_TESTS, Culprit, Findings, Fleet, Node, Pair, Segment


def fleet(clients, servers, sites=0):
    names = tuple(f"pc{index}" for index in range(clients))
    stores = tuple(f"nas{index}" for index in range(servers))
    segments = (
        Segment(Node("uplink", f"site{index}"), frozenset(names[index::sites]))
        for index in range(sites)
    )
    return Fleet(names, stores, tuple(segments))


SIZES = [(1, 1), (1, 4), (12, 1), (12, 4), (4, 12), (5, 5), (7, 3)]


@pytest.mark.parametrize("sites", [0, 3])
@pytest.mark.parametrize("size", SIZES)
def test_no_two_tests_of_a_round_meet_and_each_pair_is_in_one(size, sites):
    of = fleet(*size, sites)
    pairs = timetable.all_pairs(of, Random(1))
    rounds = timetable.rounds(of, pairs)
    assert Counter(pair for each in rounds for pair in each) == Counter(pairs)
    assert len(set(pairs)) == len(pairs) == size[0] * size[1]
    for each in rounds:
        used = Counter(node for pair in each for node in of.exclusive(pair))
        assert max(used.values()) == 1
    if not sites:
        assert len(rounds) == max(size)


@pytest.mark.parametrize("size", SIZES)
def test_each_host_is_measured_twice_at_first_with_different_partners(size):
    of = fleet(*size)
    pairs = timetable.first_pairs(of, Random(2))
    assert len(set(pairs)) == len(pairs) <= of.most_tests
    for node in of.hosts:
        partners = len(of.servers if node.kind == "client" else of.clients)
        mine = [pair for pair in pairs if node.name in pair]
        assert len(mine) >= min(FIRST_TESTS, partners)


def test_the_order_is_the_callers_chance():
    of = fleet(12, 4)
    assert timetable.all_pairs(of, Random(1)) == timetable.all_pairs(of, Random(1))
    assert timetable.all_pairs(of, Random(1)) != timetable.all_pairs(of, Random(2))


def test_an_uplink_is_passed_with_one_end_inside_and_a_switch_with_any():
    inside = frozenset(("pc0", "nas0"))
    uplink, switch = Segment(Node("uplink", "a"), inside), Segment(Node("switch", "b"), inside)
    of = Fleet(("pc0", "pc1"), ("nas0", "nas1"), (uplink, switch))
    assert of.nodes(Pair("pc0", "nas0"))[2:] == (switch.node,)
    assert of.nodes(Pair("pc0", "nas1"))[2:] == (uplink.node, switch.node)
    assert of.nodes(Pair("pc1", "nas1"))[2:] == ()
    # A switch carries all its ports at the same time; an uplink does not.
    assert switch.node not in of.exclusive(Pair("pc0", "nas1"))


def doubt(node, *alternatives):
    return Culprit(node, 1e7, 0.4, (), 2, alternatives=alternatives)


def finding(*undecided, untested=()):
    return Findings("pull.cached", 1e8, 0.1, (), undecided, (), untested, (), 0)


def test_what_decides_passes_one_of_two_suspects():
    of = fleet(6, 3, 2)
    client, uplink = Node("client", "pc0"), Node("uplink", "site0")
    pairs = adaptive.next_pairs(of, [finding(doubt(client, uplink))], Counter(), 10)
    assert pairs and not [pair for pair in pairs if pair.client == "pc0"]
    assert all(uplink in of.nodes(pair) for pair in pairs)


def test_a_suspect_is_measured_with_what_is_new_and_not_suspected_itself():
    of = fleet(4, 4)
    counts = Counter([Pair("pc0", "nas0"), Pair("pc0", "nas1")])
    doubts = finding(doubt(Node("client", "pc0")), doubt(Node("server", "nas3")))
    pairs = adaptive.next_pairs(of, [doubts], counts, 10)
    assert pairs[0] == Pair("pc0", "nas2")
    assert Pair("pc0", "nas3") not in pairs


def test_a_host_without_a_report_is_tried_no_more():
    of = fleet(3, 2)
    counts = Counter({Pair("pc0", "nas0"): 2, Pair("pc0", "nas1"): 1, Pair("pc1", "nas0"): 1})
    dead = adaptive.dead_hosts(counts, [Pair("pc1", "nas0")])
    assert dead == {"pc0"}
    untested = (Node("client", "pc0"), Node("client", "pc2"))
    pairs = adaptive.next_pairs(of, [finding(untested=untested)], counts, 10, dead)
    assert [pair.client for pair in pairs] == ["pc2"]


def test_a_fast_pair_is_not_measured_again():
    of = fleet(3, 1)
    counts = Counter(timetable.all_pairs(of, Random(1)))
    assert adaptive.next_pairs(of, [finding(untested=of.hosts)], counts, 10) == []
    slow = replace(finding(untested=of.hosts), unexplained=(Pair("pc1", "nas0"),))
    assert Pair("pc1", "nas0") in adaptive.next_pairs(of, [slow], counts, 10)


def test_several_copies_doubts_of_a_host_are_one_and_none_of_a_host_that_one_of_them_names():
    of, doubted = fleet(3, 3), doubt(Node("client", "pc0"))
    once = adaptive.next_pairs(of, [finding(doubted)], Counter(), 10)
    assert once and adaptive.next_pairs(of, [finding(doubted)] * 2, Counter(), 10) == once
    known_culprit = replace(finding(), culprits=(doubted,))
    assert adaptive.next_pairs(of, [finding(doubted), known_culprit], Counter(), 10) == []


def test_no_more_are_asked_for_than_are_left():
    of = fleet(8, 4)
    doubts = finding(*(doubt(node) for node in of.hosts), untested=of.hosts)
    assert len(adaptive.next_pairs(of, [doubts], Counter(), 5)) == 5
    for at_most in (0, -6):
        assert adaptive.next_pairs(of, [doubts], Counter(), at_most) == []
        assert adaptive.next_pairs(of, [finding(untested=of.hosts)], Counter(), at_most) == []
