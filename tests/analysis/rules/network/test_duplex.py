"""Half duplex: named where it keeps TCP below the link, silent beside other caps."""

from dataclasses import replace

import pytest

from tests.analysis.conftest import World

HALF = {"duplex": "half", "rate_bits_per_second": 10**8, "autonegotiated": False}
LINK, SERVER = "network/path/link-rate", "network/server/duplex"


def make_world(**sides):
    world = World()
    for side in ("client", "server"):
        world.change_interface(side, **sides.get(side, {}))
        world.disk(side, "read", 500)
        world.disk(side, "write", 400)
    return world


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize(("copy", "rate"), [("pull.cached", 7.4), ("push.cached", 2.1)])
def test_a_half_duplex_card_is_named_on_its_side(side, copy, rate, expect):
    world = make_world(**{side: HALF})
    world.tcp(copy[:4], (rate * 0.99, rate, rate * 1.01))
    world.copy(copy, (rate * 0.95, rate * 0.96, rate * 0.97))
    expect(world, f"network/{side}/duplex")


SLOW = {"duplex": None, "rate_bits_per_second": 10**8}
CARDS = {
    "the collisions that it counts are told": pytest.param(
        SERVER, {"server": {**HALF, "autonegotiated": True, "counts": {"collisions": 12345}}}
    ),
    "both ends: one is named and both are told": pytest.param(
        "network/client/duplex", {"client": HALF, "server": HALF}
    ),
    "an unknown duplex": (LINK, {"client": SLOW, "server": SLOW}),
    "a virtual card that says half": (LINK, {"server": {**HALF, "virtual": True, "kind": "veth"}}),
}


@pytest.mark.parametrize(("cap", "cards"), CARDS.values(), ids=CARDS)
def test_what_the_cards_say_is_told(cap, cards, expect):
    world = make_world(**cards)
    world.tcp("pull", 6.5)
    world.copy("pull.cached", 6.3)
    expect(world, cap)


BELOW = {"kind": "ethernet", "address": ""}
FULL = {**BELOW, "name": "enp4s0", "duplex": "full", "rate_bits_per_second": 10**9}


@pytest.mark.parametrize(
    ("cap", "kind", "below"),
    [(SERVER, "bridge", [BELOW]), (LINK, "bond", [BELOW, FULL]), (LINK, "bridge", [BELOW, FULL])],
)
def test_one_card_below_is_seen_and_of_several_none_is_blamed(cap, kind, below, expect):
    world = make_world(server=HALF)
    cards = tuple(replace(world.server.interface, **each) for each in below)
    world.change_interface("server", kind=kind, virtual=True, lower=cards, duplex=None)
    world.tcp("pull", 6.5)
    world.copy("pull.cached", 6.3)
    expect(world, cap)


def test_without_tcp_alone_it_is_told_and_nobody_is_blamed(expect):
    world = make_world(server=HALF)
    world.copy("pull.cached", 6.3)
    expect(world, "unknown/inconclusive")


# -- silent where it is not --------------------------------------------------------------------


def test_full_duplex_is_silent(world, expect):
    world.copy("pull.cached", 114)
    expect(world, LINK)


def test_half_duplex_is_silent_where_the_disk_caps(expect):
    world = make_world(server=HALF)
    world.forget("disk", side="server")
    world.disk("server", "read", 3)
    world.disk("server", "write", 3)
    world.tcp("pull", 7.4)
    world.copy("pull.uncached", (2.85, 2.9, 2.92))
    expect(world, "disk/server/read")


@pytest.mark.parametrize("rate", [11.7, 10.9], ids=["a standard rate", "none"])
def test_half_duplex_that_costs_nothing_is_the_links_rate(rate, expect):
    """10.9 of 11.87 MB/s: no standard link's rate, and no collision was worth a word."""
    world = make_world(server=HALF)
    world.tcp("pull", (0.99 * rate, rate, 1.01 * rate))
    world.copy("pull.cached", (0.96 * rate, 0.97 * rate, 0.98 * rate))
    expect(world, LINK)


def test_a_full_cpu_leaves_it_a_lower_bound(expect):
    world = make_world(server=HALF)
    full = {"core_busy_ratios": (1.0, 0.98), "busiest_process_ratio": 0.97, "copy_cpu_seconds": 7.0}
    world.tcp("pull", 6.5, server=full)
    world.copy("pull.cached", 6.3, server=full)
    expect(world)
    standing = [each.standing for each in world.diagnosis_of().ceilings if each.cause == "duplex"]
    assert standing == ["at-least"]
