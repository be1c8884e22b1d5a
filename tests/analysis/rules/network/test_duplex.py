"""Half duplex: named where it keeps TCP below the link, silent beside other caps."""

from dataclasses import replace

import pytest

from bottleneck.analysis import diagnose

HALF = {"duplex": "half", "rate_bits_per_second": 10**8, "autonegotiated": False}


def changed(world, side, **facts):
    host = getattr(world, side)
    setattr(world, side, replace(host, interface=replace(host.interface, **facts)))


def made(empty_world, **sides):
    world = empty_world()
    for side in ("client", "server"):
        changed(world, side, **sides.get(side, {}))
        world.disk(side, "read", 500)
        world.disk(side, "write", 400)
    return world


def found(world):
    return diagnose(world.report()).copies[0]


# -- right where it is planted -----------------------------------------------------------------


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize(("copy", "rate"), [("pull.cached", 7.4), ("push.cached", 2.1)])
def test_a_half_duplex_card_is_named_on_its_side(empty_world, side, copy, rate):
    world = made(empty_world, **{side: HALF})
    world.tcp(copy[:4], (rate * 0.99, rate, rate * 1.01))
    world.copy(copy, (rate * 0.95, rate * 0.96, rate * 0.97))
    assert world.named() == ("network", side, "duplex")
    assert found(world).verdict.confidence >= 0.8
    assert "half duplex" in found(world).verdict.sentence
    told = "interface enp3s0 runs half duplex at 100 Mbit/s, without autonegotiation."
    assert f"The {side}'s {told}" in found(world).evidence
    assert found(world).advice[0].startswith(f"Full duplex on the {side}'s link")


def test_the_collisions_that_it_counts_are_told(empty_world):
    counts = {"collisions": 12345}
    world = made(empty_world, server={**HALF, "autonegotiated": True, "counts": counts})
    world.tcp("pull", 6.5)
    world.copy("pull.cached", 6.3)
    assert any(
        "with autonegotiation; it counts 12,345 collisions" in line
        for line in found(world).evidence
    )


def test_a_card_below_a_bridge_is_seen(empty_world):
    world = made(empty_world, server=HALF)
    below = replace(world.server.interface, kind="ethernet", address="")
    changed(world, "server", kind="bridge", virtual=True, lower=(below,), duplex=None)
    world.tcp("pull", 6.5)
    world.copy("pull.cached", 6.3)
    assert world.named() == ("network", "server", "duplex")


def test_both_ends_half_duplex_name_one_and_tell_both(empty_world):
    world = made(empty_world, client=HALF, server=HALF)
    world.tcp("pull", 6.5)
    world.copy("pull.cached", 6.3)
    assert world.named() == ("network", "client", "duplex")
    told = [line for line in found(world).evidence if "runs half duplex" in line]
    assert len(told) == 2


def test_without_tcp_alone_it_is_told_and_nobody_is_blamed(empty_world):
    world = made(empty_world, server=HALF)
    world.copy("pull.cached", 6.3)
    assert world.named()[0] == "unknown"
    assert any("runs half duplex" in line for line in found(world).evidence)


# -- silent where it is not --------------------------------------------------------------------


def test_full_duplex_is_silent(world):
    world.copy("pull.cached", 114)
    assert world.named() == ("network", "path", "link-rate")
    assert not any("duplex" in line for line in found(world).evidence)


def test_an_unknown_duplex_is_silent(empty_world):
    slow = {"duplex": None, "rate_bits_per_second": 10**8}
    world = made(empty_world, client=slow, server=slow)
    world.tcp("pull", 6.5)
    world.copy("pull.cached", 6.3)
    assert world.named() == ("network", "path", "link-rate")


def test_half_duplex_is_silent_where_the_disk_caps(empty_world):
    world = made(empty_world, server=HALF)
    world.entries = [e for e in world.entries if e[0].setting.get("side") != "server"]
    world.disk("server", "read", 3)
    world.disk("server", "write", 3)
    world.tcp("pull", 7.4)
    world.copy("pull.uncached", (2.85, 2.9, 2.92))
    assert world.named() == ("disk", "server", "read")


def test_half_duplex_that_costs_nothing_is_the_links_rate(empty_world):
    world = made(empty_world, server=HALF)
    world.tcp("pull", 11.7)
    world.copy("pull.cached", 11.4)
    assert world.named() == ("network", "path", "link-rate")
    assert any("runs half duplex" in line for line in found(world).evidence)


def test_a_virtual_card_that_says_half_is_silent(empty_world):
    world = made(empty_world, server={**HALF, "virtual": True, "kind": "veth"})
    world.tcp("pull", 6.5)
    world.copy("pull.cached", 6.3)
    assert world.named() == ("network", "path", "link-rate")


@pytest.mark.parametrize("kind", ["bond", "bridge"])
def test_one_of_several_cards_below_is_not_blamed(empty_world, kind):
    world = made(empty_world, server=HALF)
    half = replace(world.server.interface, kind="ethernet")
    full = replace(half, name="enp4s0", duplex="full", rate_bits_per_second=10**9)
    changed(world, "server", kind=kind, virtual=True, lower=(half, full), duplex=None)
    world.tcp("pull", 6.5)
    world.copy("pull.cached", 6.3)
    assert world.named() == ("network", "path", "link-rate")
    assert not any("duplex" in line for line in found(world).evidence)


def test_a_full_cpu_leaves_it_a_lower_bound(empty_world):
    world = made(empty_world, server=HALF)
    full = {"core_busy_ratios": (1.0, 0.98), "busiest_process_ratio": 0.97, "copy_cpu_seconds": 7.0}
    world.tcp("pull", 6.5, server=full)
    world.copy("pull.cached", 6.3, server=full)
    half = [c.standing for c in found(world).ceilings if c.cause == "duplex"]
    assert half == ["at-least"]


def test_a_half_duplex_card_that_carries_its_links_payload_holds_nothing(empty_world):
    """10.9 of 11.87 MB/s: no standard link's rate, and no collision was worth a word."""
    world = made(empty_world, server=HALF)
    world.tcp("pull", (10.8, 10.9, 11.0))
    world.copy("pull.cached", (10.6, 10.7, 10.8))
    assert world.named() != ("network", "server", "duplex")
