"""Slots and USB links: named where a planted one caps the copy, silent beside other caps."""

from dataclasses import replace

import pytest

from tests.analysis.conftest import World

G1, G2_5, G5, G10 = 10**9, 2_500_000_000, 5 * 10**9, 10**10
SLOT = {
    "lanes": 1.0,
    "transfers_per_second": 5e9,
    "bytes_per_second": 5e8,
    "able_lanes": 4.0,
    "able_transfers_per_second": 8e9,
    "able_bytes_per_second": 3.938e9,
}
"""PCI Express 2.0 with one lane, under a card that could use four of 3.0."""
ALL_USED = {"able_lanes": 1.0, "able_transfers_per_second": 5e9, "able_bytes_per_second": 5e8}
USB2, USB3 = 480_000_000, 5 * 10**9
ON_USB2 = {"usb_bits_per_second": USB2, "usb_version": "2.00"}
LINK = "network/path/link-rate"


def make_world(rate, **server):
    world = World()
    world.loopback("client", 4000)
    world.loopback("server", 4000)
    for side in ("client", "server"):
        world.change_interface(side, rate_bits_per_second=rate)
        world.disk(side, "read", 2500)
        world.disk(side, "write", 2000)
    world.change_interface("server", **server)
    return world


def add_tcp(world, rate, verb="pull", streams=1, **loads):
    world.tcp(verb, (rate, rate * 1.01, rate * 1.02), streams=streams, **loads)
    copied = (rate * 0.96, rate * 0.97, rate * 0.98)
    world.copy(f"{verb}.cached", copied, memory=rate * 0.99, **loads)


FULL = {
    "an adapter at USB 2": ("usb", G1, 28, "pull", ON_USB2),
    "a faster one": ("usb", G1, 33, "push", ON_USB2),
    "as fast as controllers are": ("usb", G1, 41, "pull", ON_USB2),
    "a USB 3 adapter at a USB 2 port is told to move": pytest.param(
        "usb", G1, 38, "pull", {**ON_USB2, "usb_version": "2.10"}
    ),
    "a 5 Gbit/s adapter at USB 3": pytest.param(
        "usb", G5, 430, "push", {"usb_bits_per_second": USB3, "usb_version": "3.00"}
    ),
    "a narrow slot, with what the card could use": ("pcie", G10, 390, "pull", {"pcie": SLOT}),
    "a slot nearer to what it can": ("pcie", G10, 460, "pull", {"pcie": SLOT}),
    "one that gives all that the card can use takes another card": pytest.param(
        "pcie", G10, 420, "pull", {"pcie": {**SLOT, **ALL_USED}}
    ),
}


@pytest.mark.parametrize(("cause", "link", "rate", "verb", "card"), FULL.values(), ids=FULL)
def test_a_slot_or_a_usb_link_that_is_full_is_named(cause, link, rate, verb, card, expect):
    world = make_world(link, **card)
    add_tcp(world, rate, verb, 4 if cause == "pcie" else 1)
    expect(world, f"bus/server/{cause}")


def test_a_clients_adapter_is_the_clients_with_an_agent_and_without(no_agent, expect):
    world = make_world(G1)
    world.change_interface("client", usb_bits_per_second=USB2)
    add_tcp(world, 38)
    expect(world, "bus/client/usb")
    no_agent.change_interface("client", usb_bits_per_second=USB2)
    no_agent.copy("pull.cached", 33, memory=34)
    expect(no_agent, "bus/client/usb")


@pytest.mark.parametrize(("kind", "cards"), [("vlan", 1), ("bond", 2)])
def test_a_card_below_is_seen_where_it_is_the_only_one(kind, cards, expect):
    world = make_world(G10, pcie=SLOT)
    below = replace(world.server.interface, kind="ethernet", address="")
    world.change_interface("server", kind=kind, virtual=True, lower=(below,) * cards, pcie={})
    add_tcp(world, 430)
    expect(world, "bus/server/pcie" if cards == 1 else LINK)


# -- silent where none is ----------------------------------------------------------------------


def test_a_narrow_slot_is_silent_where_the_disk_caps(expect):
    world = make_world(G10, pcie=SLOT)
    world.forget("disk", side="server")
    world.disk("server", "read", 150)
    world.disk("server", "write", 140)
    world.tcp("pull", 430)
    world.copy("pull.uncached", (140, 142, 145))
    expect(world, "disk/server/read")


def usb(bits):
    return {"usb_bits_per_second": bits, "usb_version": "3.20"}


WIDE = {"lanes": 4.0, "transfers_per_second": 8e9, "bytes_per_second": 3.938e9}
NARROW = {**SLOT, "transfers_per_second": 2.5e9, "bytes_per_second": 2.5e8}
ENOUGH = {
    "USB 3 under a gigabit": (G1, 117.7, usb(USB3)),
    "USB 3 under 2.5 Gbit/s": (G2_5, 294, usb(USB3)),
    "10 Gbit/s of USB": (G1, 117.7, usb(10**10)),
    "USB 2 under 100 Mbit/s": (10**8, 11.77, usb(USB2)),
    "a far slower path than USB 2": (G1, 15, ON_USB2),
    "USB 1 that nobody knows the bulk rate of": (G1, 117.7, usb(1_500_000)),
    "a slot as wide as the card": (G10, 1177, {"pcie": WIDE}),
    "a narrow slot that a gigabit card does not need": (G1, 117.6, {"pcie": NARROW}),
    **{
        f"the rate of a link of {rate} MB/s is that link's whatever the slot": pytest.param(
            G10, rate, {"pcie": SLOT}
        )
        for rate in (11.77, 117.7, 294)
    },
}


@pytest.mark.parametrize(("link", "rate", "card"), ENOUGH.values(), ids=ENOUGH)
def test_a_slot_or_a_usb_link_that_carries_the_link_is_silent(link, rate, card, expect):
    world = make_world(link, **card)
    add_tcp(world, rate)
    expect(world, LINK)


def test_a_guests_slot_is_emulated_and_silent(expect):
    world = make_world(G10, pcie=SLOT)
    world.server = replace(world.server, virtual="kvm")
    add_tcp(world, 430)
    expect(world, LINK)


def test_a_full_cpu_beside_usb_2_leaves_the_usb_a_lower_bound(expect):
    world = make_world(G1, **ON_USB2)
    full = {"core_busy_ratios": (1.0, 0.98), "busiest_process_ratio": 0.97, "copy_cpu_seconds": 7.0}
    add_tcp(world, 30, server=full)
    expect(world)
    assert world.verdict_key()[0] == "cpu"
    standings = [each.standing for each in world.diagnosis_of().ceilings if each.component == "bus"]
    assert standings == ["at-least"]
