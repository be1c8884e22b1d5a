"""A copy that queues on a path far below what TCP moved there before shows a slower path."""

from __future__ import annotations

from dataclasses import replace

import pytest

LINK, NOBODY = "network/path/link-rate", "unknown/inconclusive"
FULL = {"core_busy_ratios": (1.0, 1.0), "busiest_process_ratio": 0.99}
SLOWED = {
    "packets queue": (LINK, {}, {}),
    "none queues": (NOBODY, {"rtt_seconds_median": 0.0165}, {}),
    "its sender had nothing to send": (NOBODY, {"unsent_bytes_median": 0}, {}),
    "a disk takes it in bursts": (NOBODY, {"send_queue_full_ratio": 0.57}, {}),
    "a window that would carry more": (NOBODY, {"congestion_window_bytes_median": 1_500_000}, {}),
    "a full core delays what it answers": ("cpu/server/all-cores", {}, {"server": FULL}),
}


@pytest.mark.parametrize(("named", "seen", "loads"), SLOWED.values(), ids=SLOWED)
def test_a_path_that_became_slower_is_named_at_the_copys_own_rate(
    empty_world, sockets, named, seen, loads, says
):
    world = empty_world()
    world.tcp("push", 117.6)
    told = sockets(**{"by": "network", "send_queue_full_ratio": 0.94, **seen})
    world.copy("push.cached", 7.2, details={"sockets": told}, **loads)
    says(world, named)


@pytest.mark.parametrize(("after", "named"), [(False, LINK), (True, NOBODY)], ids=("no", "yes"))
def test_only_what_ran_after_it_shows_that_the_path_carries_more(
    empty_world, sockets, after, named, says
):
    world = empty_world()
    told = sockets(by="network", send_queue_full_ratio=0.94)
    world.tcp("push", 117.6)
    if not after:
        world.tcp("push", 117.6, streams=4)
    world.copy("push.cached", 7.2, details={"sockets": told})
    if after:
        world.tcp("push", 117.6, streams=4)
    says(world, named)


def test_a_shaper_above_what_a_full_core_let_tcp_move_is_raised_and_no_link_is_bought(empty_world):
    world = empty_world()
    shaper = {"qdisc": "tbf", "qdisc_rate_bytes_per_second": 25_000_000}
    world.client = replace(world.client, interface=replace(world.client.interface, **shaper))
    world.tcp("push", 22.0, server=FULL)
    world.copy("push.cached", 23.4)
    found = world.diagnosed("push.cached")
    assert found.verdict.cause == "link-rate" and "tbf" in found.verdict.detail
    assert found.advice[0].startswith("Raise or remove the 200 Mbit/s limit")


def test_a_burst_of_a_short_cell_does_not_refute_what_the_senders_shaper_lets_out(empty_world):
    world = empty_world()
    shaper = {"qdisc": "tbf", "qdisc_rate_bytes_per_second": 25_000_000}
    world.client = replace(world.client, interface=replace(world.client.interface, **shaper))
    world.tcp("push", 23.9)
    world.tcp("push", 23.9, streams=4)
    world.matrix("push", {(1 << 20, 4): 30.6, (1 << 20, 1): 22.0}, 0.002)
    world.copy("push.cached", 23.7)
    assert world.diagnosed("push.cached").verdict.words == LINK
