"""Rates that a card, a slot or a USB link cannot carry are not believed."""

from dataclasses import replace

import pytest

from bottleneck.analysis import hardware_limits

G1, G2_5, G10 = 10**9, 2_500_000_000, 10**10


def bound(world):
    limit = hardware_limits.physical_rate(world.report())
    return None if limit is None else limit.bytes_per_second


def card(world, **facts):
    """A card like the client's own, to lie below a bond or a VLAN."""
    plain = {"kind": "ethernet", "address": "", "virtual": False, "lower": ()}
    return replace(world.client.interface, **plain, **facts)


def tcp(world, verb, rate):
    """A transfer as it was measured, whatever the links claim."""
    setting = {"verb": verb, "streams": 1, "buffer_bytes": 262144, "seconds": 2.0}
    world.add("tcp", "client", setting, rate, {"limits": {"by": "network"}})


# -- the bound ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rate", "mtu", "payload"),
    [(G1, 1500, 118.66e6), (G1, 9000, 123.92e6), (10**8, 1500, 11.866e6), (G10, 1500, 1186.6e6)],
)
def test_a_link_carries_no_more_than_its_payload_at_its_mtu(empty_world, rate, mtu, payload):
    world = empty_world()
    for side in ("client", "server"):
        world.change_interface(side, rate_bits_per_second=rate, mtu_bytes=mtu)
    assert bound(world) == pytest.approx(payload, rel=1e-4)


def test_the_lower_of_both_ends_counts(empty_world):
    world = empty_world()
    world.change_interface("server", rate_bits_per_second=10**8)
    limit = hardware_limits.physical_rate(world.report())
    assert limit.what == "the server's 100 Mbit/s link"


def test_a_slot_and_a_usb_link_count_where_they_carry_less(empty_world):
    world = empty_world()
    world.change_interface(
        "client", rate_bits_per_second=G10, pcie={"lanes": 1, "bytes_per_second": 5e8}
    )
    world.change_interface("server", rate_bits_per_second=G10)
    assert bound(world) == 5e8
    world.change_interface("server", rate_bits_per_second=G1, usb_bits_per_second=480_000_000)
    assert bound(world) == 53.248e6


def test_a_vlans_tag_takes_its_part(empty_world):
    world = empty_world()
    untagged = bound(world)
    lower = (card(world),)
    world.change_interface(
        "client", kind="vlan", virtual=True, lower=lower, rate_bits_per_second=G1
    )
    assert bound(world) == pytest.approx(untagged * 1538 / 1542)


@pytest.mark.parametrize(("mode", "links"), [("802.3ad", 2), ("active-backup", 1), (None, 2)])
def test_a_bond_carries_what_its_ports_carry_together(empty_world, mode, links):
    world = empty_world()
    one = bound(world)
    for side in ("client", "server"):
        lower = (card(world), card(world))
        world.change_interface(side, kind="bond", bond_mode=mode, virtual=True, lower=lower)
    assert bound(world) == pytest.approx(links * one)


# -- what is no limit --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "facts",
    [
        {"virtual": True, "kind": "veth", "rate_bits_per_second": G10},
        {"virtual": True, "kind": "tun", "rate_bits_per_second": 10**7},
        {"virtual": True, "kind": "wireguard", "rate_bits_per_second": None},
        {"driver": "virtio_net", "rate_bits_per_second": 10**7},
        {"driver": "vmxnet3", "rate_bits_per_second": 10**7},
        {"driver": "rndis_host", "rate_bits_per_second": 10**7},
        {"kind": "wifi", "rate_bits_per_second": 10**7},
        {"virtual": None, "rate_bits_per_second": 10**7},
        {"rate_bits_per_second": None},
    ],
)
def test_what_a_virtual_card_or_a_radio_claims_bounds_nothing(empty_world, facts):
    world = empty_world()
    for side in ("client", "server"):
        world.change_interface(side, **facts)
    assert bound(world) is None


@pytest.mark.parametrize(
    ("virtual", "bounded"),
    [("kvm", False), ("docker on kvm", False), ("hypervisor", False), ("docker", True)]
    + [(None, True), ("lxc", True), ("something new", False)],
)
def test_a_guests_card_is_emulated_and_a_containers_is_real(empty_world, virtual, bounded):
    world = empty_world()
    world.client = replace(world.client, virtual=virtual)
    world.server = None
    assert (bound(world) is not None) is bounded


def test_a_bridge_with_a_virtual_port_may_carry_anything(empty_world):
    world = empty_world()
    veth = replace(card(world), kind="veth", virtual=True)
    for side in ("client", "server"):
        world.change_interface(side, kind="bridge", virtual=True, lower=(card(world), veth))
    assert bound(world) is None
    for side in ("client", "server"):
        world.change_interface(side, kind="bridge", virtual=True, lower=(card(world),))
    assert bound(world) is not None


def test_two_cards_below_something_that_is_no_bond_bound_nothing(world):
    """Nobody knows which of them carries the bytes."""
    pair = (card(world, name="eth0"), card(world, name="eth1"))
    for side in ("client", "server"):
        world.change_interface(
            side, kind="macvlan", virtual=True, lower=pair, rate_bits_per_second=None
        )
    assert bound(world) is None


# -- what is not believed ----------------------------------------------------------------------

LINK, NOBODY = "network/path/link-rate", "unknown/inconclusive"
TRANSFERS = {
    "beyond the link": (NOBODY, (160,), 80),
    "a believable one beside it": (LINK, (160, 117.6), 112),
    "a full link": (LINK, (117.6,), 112),
    "within the tolerance": (LINK, (119.5,), 112),
}


@pytest.mark.parametrize(("cap", "rates", "copied"), TRANSFERS.values(), ids=TRANSFERS)
def test_a_tcp_rate_beyond_the_link_is_said_and_no_ceiling(empty_world, cap, rates, copied, expect):
    world = empty_world()
    for rate in rates:
        tcp(world, "pull", rate)
    world.copy("pull.cached", copied)
    expect(world, cap)


def test_a_copy_beyond_the_link_is_said(empty_world, expect):
    world = empty_world()
    gigabit = world.client, world.server
    world.copy("pull.cached", 240)
    world.client, world.server = gigabit
    expect(world, NOBODY)


def test_others_traffic_never_lifts_the_link_beyond_what_it_can(empty_world, expect):
    world = empty_world()
    counted = {"interface_sent_bytes": int(4 * 150e6)}
    received = {"interface_received_bytes": int(4 * 150e6)}
    world.tcp("push", 90, client=counted, server=received)
    world.copy("push.cached", 80)
    expect(world)
    links = [c for c in world.diagnosis_of().ceilings if c.cause == "link-rate"]
    assert links[0].bytes_per_second <= bound(world)


def test_rates_of_virtual_interfaces_are_believed(empty_world, expect):
    world = empty_world()
    for side in ("client", "server"):
        world.change_interface(side, virtual=True, kind="veth", rate_bits_per_second=G1)
    tcp(world, "pull", 4000)
    world.copy("pull.cached", 2000)
    expect(world)
    assert "not believed" not in " ".join(world.diagnosis_of().evidence)


def test_what_never_left_the_host_or_may_use_several_links_is_believed(empty_world, expect):
    world = empty_world()
    world.loopback("client", 5000)
    world.disk("client", "read", 3000)
    world.native("pull.cached", 230)
    expect(world)
    assert "not believed" not in " ".join(world.diagnosis_of().evidence)


def remarks_on_mount(world, **copy):
    """A push through a mount beside one at the rate of TCP; what was found of the former."""
    world.loopback("client", copy.pop("loopback", 1000))
    world.tcp("push", (23, 24, 25))
    world.copy("push.cached", copy.pop("ours", 23))
    world.native("push.uncached", (22, 23, 23))
    world.native("push.cached", **{"rate": (200, 208, 214), "filesystem": "fuse.rclone", **copy})
    return world.diagnosis_of("push.cached")


def test_a_mount_faster_than_tcp_acknowledged_into_its_cache(empty_world):
    copy = remarks_on_mount(world := empty_world())
    assert copy.verdict.key == ("unknown", None, "inconclusive")
    text = "24.0 MB/s the same way. Inferred: a cache of the mount (fuse.rclone) acknowledged"
    assert text in copy.verdict.sentence
    assert "//host/share as TARGET" in copy.advice[0]
    assert "The mount is a FUSE file system (rclone)" in " ".join(copy.evidence)
    # What the cache took in shows nothing of the path that the other copy used.
    assert world.verdict_key("push.uncached") == ("network", "path", "link-rate")


@pytest.mark.parametrize(
    "copy",
    [
        {"rate": (23, 26, 28)},
        {"options": "rw,multichannel"},
        {"loopback": 30},
        {"ours": 206},
        {"filesystem": "nfs4"},
    ],
)
def test_a_mount_within_noise_over_several_links_or_like_this_tool_is_believed(empty_world, copy):
    assert "Not credible" not in remarks_on_mount(empty_world(), **copy).verdict.sentence
