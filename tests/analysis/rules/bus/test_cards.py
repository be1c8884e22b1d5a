"""Slots and USB links: named where a planted one caps the copy, silent beside other caps."""

from dataclasses import replace

import pytest

from bottleneck.analysis import diagnose

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
USB2, USB3 = 480_000_000, 5 * 10**9


def changed(world, side, **facts):
    host = getattr(world, side)
    setattr(world, side, replace(host, interface=replace(host.interface, **facts)))


def made(empty_world, rate, **server):
    """Two hosts with fast disks, the server's card with these facts."""
    world = empty_world()
    world.loopback("client", 4000)
    world.loopback("server", 4000)
    for side in ("client", "server"):
        changed(world, side, rate_bits_per_second=rate)
        world.disk(side, "read", 2500)
        world.disk(side, "write", 2000)
    changed(world, "server", **server)
    return world


def found(world):
    return diagnose(world.report()).copies[0]


# -- right where one is planted ----------------------------------------------------------------


@pytest.mark.parametrize("rate", [28, 33, 41])
@pytest.mark.parametrize("copy", ["pull.cached", "push.cached"])
def test_an_adapter_at_usb_2_is_named(empty_world, rate, copy):
    world = made(empty_world, G1, usb_bits_per_second=USB2, usb_version="2.00")
    world.tcp(copy[:4], (rate, rate * 1.01, rate * 1.02))
    world.copy(copy, (rate * 0.96, rate * 0.97, rate * 0.98), memory=rate * 0.99)
    assert world.named() == ("bus", "server", "usb")
    assert found(world).verdict.confidence >= 0.8
    assert "USB link (480 Mbit/s)" in found(world).verdict.sentence
    assert any("53.2 MB/s (426 Mbit/s) at the most" in line for line in found(world).evidence)
    assert "not on USB" in found(world).advice[0]


def test_a_usb_3_adapter_at_a_usb_2_port_is_told_to_move(empty_world):
    world = made(empty_world, G1, usb_bits_per_second=USB2, usb_version="2.10")
    world.tcp("pull", 38)
    world.copy("pull.cached", (36, 36.5, 37))
    assert world.named() == ("bus", "server", "usb")
    assert any("the port or the cable is USB 2" in line for line in found(world).evidence)
    assert found(world).advice[0].startswith("A USB 3 port")


def test_a_clients_adapter_is_the_clients(empty_world):
    world = made(empty_world, G1)
    changed(world, "client", usb_bits_per_second=USB2)
    world.tcp("pull", 38)
    world.copy("pull.cached", (36, 36.5, 37))
    assert world.named() == ("bus", "client", "usb")


@pytest.mark.parametrize("rate", [390, 420, 460])
def test_a_narrow_slot_is_named_with_what_the_card_could_use(empty_world, rate):
    world = made(empty_world, G10, pcie=SLOT)
    world.tcp("pull", (rate * 0.99, rate, rate * 1.01), streams=4)
    world.copy("pull.cached", (rate * 0.95, rate * 0.96, rate * 0.97))
    assert world.named() == ("bus", "server", "pcie")
    assert any("1 lane at 5 GT/s" in line for line in found(world).evidence)
    assert "4 lanes at 8 GT/s" in found(world).advice[0]
    link = [c for c in found(world).ceilings if c.cause == "link-rate"]
    assert [c.standing for c in link] == ["at-least"]


def test_a_5_gbit_adapter_is_held_by_its_usb_3_link(empty_world):
    world = made(empty_world, G5, usb_bits_per_second=USB3, usb_version="3.00")
    world.tcp("push", 430)
    world.copy("push.cached", (405, 410, 415))
    assert world.named() == ("bus", "server", "usb")


def test_without_an_agent_the_copy_to_memory_shows_the_clients_usb_2(empty_world):
    world = empty_world(agent=False)
    changed(world, "client", usb_bits_per_second=USB2)
    world.disk("client", "write", 500)
    world.copy("pull.cached", 33, memory=34)
    assert world.named() == ("bus", "client", "usb")
    assert found(world).verdict.confidence <= 0.8


def test_a_card_below_a_vlan_is_seen(empty_world):
    world = made(empty_world, G10, pcie=SLOT)
    below = replace(world.server.interface, kind="ethernet", address="")
    changed(world, "server", kind="vlan", vlan_id=7, virtual=True, lower=(below,), pcie={})
    world.tcp("pull", 430)
    world.copy("pull.cached", (410, 412, 415))
    assert world.named() == ("bus", "server", "pcie")


# -- silent where none is ----------------------------------------------------------------------


def test_a_narrow_slot_is_silent_where_the_disk_caps(empty_world):
    world = made(empty_world, G10, pcie=SLOT)
    world.entries = [e for e in world.entries if e[0].setting.get("side") != "server"]
    world.disk("server", "read", 150)
    world.disk("server", "write", 140)
    world.tcp("pull", 430)
    world.copy("pull.uncached", (140, 142, 145))
    assert world.named() == ("disk", "server", "read")
    assert (found(world).next.component, found(world).next.cause) == ("bus", "pcie")


@pytest.mark.parametrize(("rate", "bits"), [(G1, USB3), (G2_5, USB3), (G1, 10**10), (10**8, USB2)])
def test_usb_that_carries_the_link_is_silent(empty_world, rate, bits):
    world = made(empty_world, rate, usb_bits_per_second=bits, usb_version="3.20")
    payload = rate / 8e6 * 0.9415
    world.tcp("pull", payload)
    world.copy("pull.cached", payload * 0.97)
    assert world.named() == ("network", "path", "link-rate")
    assert not [c for c in found(world).ceilings if c.component == "bus"]


def test_a_slot_as_wide_as_the_card_is_silent(empty_world):
    wide = {"lanes": 4.0, "transfers_per_second": 8e9, "bytes_per_second": 3.938e9}
    world = made(empty_world, G10, pcie=wide)
    world.tcp("pull", 1177)
    world.copy("pull.cached", 1100)
    assert not [c for c in found(world).ceilings if c.component == "bus"]


def test_a_narrow_slot_that_a_gigabit_card_does_not_need_is_silent(empty_world):
    narrow = {**SLOT, "transfers_per_second": 2.5e9, "bytes_per_second": 2.5e8}
    world = made(empty_world, G1, pcie=narrow)
    world.tcp("pull", 117.6)
    world.copy("pull.cached", 114)
    assert world.named() == ("network", "path", "link-rate")
    assert not [c for c in found(world).ceilings if c.component == "bus"]


@pytest.mark.parametrize("rate", [11.77, 117.7, 294])
def test_a_standard_links_rate_is_that_links_whatever_the_slot(empty_world, rate):
    world = made(empty_world, G10, pcie=SLOT)
    world.tcp("pull", rate)
    world.copy("pull.cached", rate * 0.97)
    assert world.named() == ("network", "path", "link-rate")


def test_a_far_slower_path_is_not_blamed_on_usb_2(empty_world):
    world = made(empty_world, G1, usb_bits_per_second=USB2)
    world.tcp("pull", (14.8, 15, 15.1))
    world.copy("pull.cached", (14.2, 14.4, 14.5))
    assert world.named() == ("network", "path", "link-rate")


def test_two_cards_in_a_bond_are_silent(empty_world):
    world = made(empty_world, G10, pcie=SLOT)
    below = replace(world.server.interface, kind="ethernet", address="")
    changed(world, "server", kind="bond", virtual=True, lower=(below, below), pcie={})
    world.tcp("pull", 430)
    world.copy("pull.cached", 415)
    assert not [c for c in found(world).ceilings if c.component == "bus"]


def test_a_guests_slot_is_emulated_and_silent(empty_world):
    world = made(empty_world, G10, pcie=SLOT)
    world.server = replace(world.server, virtual="kvm")
    world.tcp("pull", 430)
    world.copy("pull.cached", 415)
    assert not [c for c in found(world).ceilings if c.component == "bus"]


def test_a_full_cpu_beside_usb_2_leaves_the_usb_a_lower_bound(empty_world):
    world = made(empty_world, G1, usb_bits_per_second=USB2)
    full = {"core_busy_ratios": (1.0, 0.98), "busiest_process_ratio": 0.97, "copy_cpu_seconds": 7.0}
    world.tcp("pull", 30, server=full)
    world.copy("pull.cached", 29, server=full)
    standings = [c.standing for c in found(world).ceilings if c.component == "bus"]
    assert standings == ["at-least"]
    assert world.named()[0] == "cpu"


def test_a_slot_that_gives_all_that_the_card_can_use_takes_another_card(empty_world):
    full = {**SLOT, "able_lanes": 1.0, "able_transfers_per_second": 5e9}
    world = made(empty_world, G10, pcie={**full, "able_bytes_per_second": 5e8})
    world.tcp("pull", (416, 420, 424), streams=4)
    world.copy("pull.cached", (399, 403, 407))
    assert world.named() == ("bus", "server", "pcie")
    assert not any("could use" in line for line in found(world).evidence)
    assert (
        found(world)
        .advice[0]
        .startswith("A card on the server with more PCI Express lanes, or faster ones")
    )
