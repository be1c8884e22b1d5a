"""A copy that queues on a path far below what TCP moved there before shows a slower path."""

from __future__ import annotations

from dataclasses import replace

LINK, NOBODY = "network/path/link-rate", "unknown/inconclusive"
FULL = {"core_busy_ratios": (1.0, 1.0), "busiest_process_ratio": 0.99}


def test_a_shaper_above_what_a_full_core_let_tcp_move_is_raised_and_no_link_is_bought(empty_world):
    world = empty_world()
    shaper = {"qdisc": "tbf", "qdisc_rate_bytes_per_second": 25_000_000}
    world.client = replace(world.client, interface=replace(world.client.interface, **shaper))
    world.tcp("push", 22.0, server=FULL)
    world.copy("push.cached", 23.4)
    copy = world.diagnosis_of("push.cached")
    assert copy.verdict.cause == "link-rate" and "shaper" in copy.verdict.detail
    assert copy.advice[0].startswith("Raise or remove the 200 Mbit/s limit")


def test_a_burst_of_a_short_cell_does_not_refute_what_the_senders_shaper_lets_out(empty_world):
    world = empty_world()
    shaper = {"qdisc": "tbf", "qdisc_rate_bytes_per_second": 25_000_000}
    world.client = replace(world.client, interface=replace(world.client.interface, **shaper))
    world.tcp("push", 23.9)
    world.tcp("push", 23.9, streams=4)
    world.matrix("push", {(1 << 20, 4): 30.6, (1 << 20, 1): 22.0}, 0.002)
    world.copy("push.cached", 23.7)
    assert world.diagnosis_of("push.cached").verdict.words == LINK
