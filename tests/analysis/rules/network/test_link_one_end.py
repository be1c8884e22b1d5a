"""Without an agent the link is read off copies that touch no disk, or off the client's queue."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bottleneck.analysis.diagnosis import diagnose
from probes.core.records import Sample

LINK, NOBODY = "network/path/link-rate", "unknown/inconclusive"
MB = 1e6


@pytest.fixture
def no_agent(empty_world):
    """A client of which nothing else is known, without an agent on the server."""
    return empty_world(agent=False)


def timed_copy(world, index, *samples):
    step, outcome = world.entries[index]
    run = tuple(Sample(seconds, int(size)) for seconds, size in samples)
    world.entries[index] = step, replace(outcome, runs=(run,))


# -- standard links ------------------------------------------------------------------------------


def test_requests_alone_show_the_link_where_the_copy_to_memory_fell_short(no_agent, expect):
    """A short copy loses some of its time to its start; requests on their own do not."""
    no_agent.matrix("pull", {(1 << 20, 8): 118.0}, 0.0002)
    no_agent.copy("pull.cached", (113, 114, 115), memory=112)
    expect(no_agent, LINK)


def test_a_copy_without_security_shows_it_too(no_agent, expect):
    no_agent.tax("push", "plain", 11.75)
    no_agent.copy("push.cached", (11.3, 11.4, 11.5))
    expect(no_agent, LINK)


def test_a_disk_that_happens_to_write_what_a_link_carries_is_no_sure_link(
    no_agent, sockets, expect
):
    """The client had nothing left to send, or the same path carried far more the other way."""
    idle = sockets(by="sender", receiver_seen=False)
    no_agent.copy("push.cached", (11.3, 11.4, 11.5), memory=11.7, details={"sockets": idle})
    expect(no_agent, LINK)
    no_agent.copy("pull.cached", (11.3, 11.4, 11.5), memory=11.7)
    no_agent.copy("push.uncached", (96, 97, 98), memory=97)
    expect(no_agent)
    pull = no_agent.diagnosis_of("pull.cached").verdict
    assert pull.component == "network" and pull.confidence <= 0.6


HERE = {"address": "10.0.0.2", "reached_from": "10.0.0.1"}
THERE = {"address": "10.1.0.2", "reached_from": "10.1.0.1"}
BRIDGE = {"address": "172.17.0.1", "reached_from": "172.17.0.1"}
WAYS = {
    "a tunnel": ("through vpn0, a tunnel (tun)", {"kind": "tun"}, ()),
    "another one": ("through vpn0, a tunnel (wireguard)", {"kind": "wireguard"}, ()),
    "a virtual machine's own card is none": (None, {"kind": "tap"}, ()),
    "by another card of the client": ("10.1.0.2 of the server by 10.1.0.1", {}, (HERE, THERE)),
    "the client's own card is that slow": pytest.param(
        None, {"rate_bits_per_second": 100_000_000}, (HERE, THERE)
    ),
    "by the same card": (None, {}, (HERE, {**THERE, "reached_from": "10.0.0.1"})),
    "both hosts have such a bridge": (None, {}, (HERE, BRIDGE)),
    "no route": (None, {}, (HERE, {**THERE, "reached_from": None})),
    "its own interface is not known": (None, None, (HERE, THERE)),
}


@pytest.mark.parametrize(("words", "card", "offered"), WAYS.values(), ids=WAYS)
def test_a_client_alone_cannot_see_whether_another_path_is_faster(no_agent, words, card, offered):
    rate = {"rate_bits_per_second": 10**10}
    link = replace(no_agent.client.interface, name="vpn0", address="10.0.0.1", **rate)
    link = None if card is None else replace(link, **card)
    no_agent.client = replace(no_agent.client, interface=link)
    no_agent.copy("push.cached", (11.3, 11.4, 11.5), memory=11.7)
    report = no_agent.report()
    report.target["interfaces"] = list(offered)
    copy = next(each for each in diagnose(report).copies if each.copy == "push.cached")
    assert copy.verdict.words == LINK
    doubts = [line for line in copy.evidence if "another path is faster" in line]
    assert (copy.verdict.confidence < 0.7, len(doubts)) == (words is not None, words is not None)
    assert words is None or words in doubts[0]


def test_the_start_of_a_pull_on_a_long_path_is_not_the_link(no_agent, expect):
    """10.8 MB/s on the whole, and 11.8 from its third reply on: 100 Mbit/s."""
    no_agent.copy("pull.cached", 10.8, memory=10.8)
    steps = [(0.0, 0), (0.16, 1e6), (0.34, 3e6), (0.54, 5.3e6), (0.69, 7.1e6), (0.77, 8.05e6)]
    timed_copy(no_agent, -2, *steps, (0.775, 8.05e6))
    expect(no_agent, LINK)


FULL = {"client": {"core_busy_ratios": (1.0, 1.0), "busiest_process_ratio": 0.99}}
UNSHOWN = {
    "a folder alone may show a disk": ((11.6, 11.7, 11.8), {}, ()),
    "another copy exceeds it": ((14.0, 14.5, 15.0), {"memory": 11.7}, ()),
    "it goes the other way": ((80, 81, 82), {}, ("pull", True)),
    "bytes that were altered": ((80, 81, 82), {}, ("push", False)),
    "a busy client": ((116, 117, 118), {"memory": 117.5, **FULL}, ()),
}


@pytest.mark.parametrize(("rates", "extra", "tax"), UNSHOWN.values(), ids=UNSHOWN)
def test_what_shows_no_link_claims_none(no_agent, rates, extra, tax, expect):
    if tax:
        no_agent.tax(tax[0], "plain", 117.5, hash_ok=tax[1])
    no_agent.copy("push.cached", rates, **extra)
    expect(no_agent)
    assert ("network", "path", "link-rate") not in no_agent.ceilings()


# -- what an agent would add ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "memory"), [("push.cached", None), ("pull.cached", None), ("push.cached", 117.5)]
)
def test_an_inconclusive_copy_says_what_an_agent_would_tell_of_it(no_agent, name, memory, expect):
    """The advice does not ask for what is known already."""
    no_agent.copy(name, (50, 51, 52), memory=memory)
    expect(no_agent, NOBODY)
    assert "It measures" in no_agent.diagnosis_of().advice[0]
