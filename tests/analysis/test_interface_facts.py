"""What the facts of the interfaces add to a rate over the network: told where it is so."""

from dataclasses import replace

import pytest

from bottleneck.analysis import diagnose, interface_facts

G1 = 10**9


def changed(world, side, **facts):
    host = getattr(world, side)
    setattr(world, side, replace(host, interface=replace(host.interface, **facts)))


def evidence(world):
    return " ".join(diagnose(world.report()).copies[0].evidence)


def slow(empty_world, rate=11.8, back=11.79):
    """A path of that many MB/s, and back; no other ceiling near."""
    world = empty_world()
    world.tcp("pull", rate)
    world.tcp("push", back)
    world.copy("pull.cached", rate * 0.97, memory=rate * 0.99)
    return world


def test_a_slow_hop_both_ways_between_two_fast_ends_is_pointed_at(empty_world):
    told = evidence(slow(empty_world))
    assert (
        "11.8 MB/s both ways: a 100 Mbit/s hop between the hosts, though each interface claims "
        "1 Gbit/s" in told
    )


def test_a_slow_hop_in_one_direction_is_no_hop_both_ways(empty_world):
    told = evidence(slow(empty_world, back=117))
    assert "11.8 MB/s in this direction: a 100 Mbit/s hop" in told


def test_one_fast_end_alone_leaves_the_other_end_in_doubt(empty_world):
    world = slow(empty_world)
    changed(world, "server", rate_bits_per_second=10**8)
    told = evidence(world)
    assert "The client's interface enp3s0 claims 1 Gbit/s" in told
    assert "hop between" not in told


def test_a_card_that_could_more_than_it_negotiated_points_at_the_cable(empty_world):
    world = slow(empty_world)
    facts = {"autonegotiated": True, "able_bits_per_second": G1}
    changed(world, "server", rate_bits_per_second=10**8, partner_bits_per_second=G1, **facts)
    assert "offers 1 Gbit/s: look at the cable" in evidence(world)
    changed(world, "server", partner_bits_per_second=10**8)
    assert "offers no more than 100 Mbit/s" in evidence(world)
    changed(world, "server", partner_bits_per_second=None, autonegotiated=False)
    assert "is set to 100 Mbit/s by hand; it can 1 Gbit/s" in evidence(world)


@pytest.mark.parametrize(
    ("radio", "text"),
    [
        ({"bits_per_second": 433_300_000, "signal_dbm": -61}, "Wi-Fi at 433 Mbit/s, -61 dBm:"),
        ({"signal_dbm": -80}, "Wi-Fi at -80 dBm:"),
        ({}, "is Wi-Fi: half duplex"),
        ({"bits_per_second": "fast", "signal_dbm": True}, "is Wi-Fi: half duplex"),
    ],
)
def test_a_radio_link_is_told_with_what_is_known(empty_world, radio, text):
    world = slow(empty_world, 23, 22)
    changed(world, "client", kind="wifi", wifi=radio)
    assert text in evidence(world)


@pytest.mark.parametrize("kind", ["wireguard", "tun", "ppp", "xfrm"])
def test_a_vpn_is_told(empty_world, kind):
    world = slow(empty_world, 23, 22)
    changed(world, "client", kind=kind, virtual=True, name="vpn0")
    assert f"The client's interface vpn0 is a tunnel ({kind})" in evidence(world)


def test_a_bond_says_that_one_connection_has_one_port(world):
    world.copy("pull.cached", 114)
    plain = {"kind": "ethernet", "address": ""}
    ports = tuple(replace(world.server.interface, name=name, **plain) for name in ("a", "b"))
    changed(world, "server", kind="bond", virtual=True, bond_mode="802.3ad", lower=ports)
    assert "is a bond (802.3ad) of a and b: one connection has one of them." in evidence(world)
    changed(world, "server", bond_mode="balance-rr")
    assert "is a bond (balance-rr) of a and b." in evidence(world)


def test_the_senders_own_shaping_is_told_and_the_receivers_is_not(empty_world):
    world = slow(empty_world)
    shaped = {"qdisc": "tbf", "qdisc_rate_bytes_per_second": 12_500_000}
    changed(world, "server", **shaped)
    assert "is shaped to 100 Mbit/s by this host's own tbf" in evidence(world)
    changed(world, "server", qdisc="fq", qdisc_rate_bytes_per_second=None)
    changed(world, "client", **shaped)
    assert "is shaped" not in evidence(world)


def counted(world, counts):
    """The sentences of a copy during which these counters grew."""
    world.copy("pull.cached", 80, details={"interface_counts": counts})
    return " ".join(diagnose(world.report()).copies[0].evidence)


@pytest.mark.parametrize(
    ("counter", "text"),
    [
        ("rx_flow_control_xoff", "enp3s0 received 1,240 pause frames (flow control): what it is"),
        ("link_xoff_rx.nic", "enp3s0 received 1,240 pause frames"),
        ("pause_frames", "enp3s0 counted 1,240 pause frames (flow control)"),
        ("tx_pause_ctrl_phy", "enp3s0 sent 1,240 pause frames (flow control): it could not"),
        ("rx_missed_errors", "enp3s0 lost 1,240 packets on arrival: its ring was full"),
        ("rx_no_buffer_count", "enp3s0 lost 1,240 packets on arrival"),
        ("rx_crc_errors", "enp3s0 received 1,240 damaged frames: look at the cable"),
    ],
)
def test_what_was_counted_during_the_copy_is_told(world, counter, text):
    told = counted(world, {"server": {f"enp3s0 {counter}": 1240}})
    assert f"Meanwhile the server's interface {text}" in told


def test_the_same_frames_in_two_counters_are_not_added_up(world):
    both = {"enp3s0 rx_pause_ctrl_phy": 900, "enp3s0 rx_global_pause": 900}
    assert "received 900 pause frames" in counted(world, {"client": both})


@pytest.mark.parametrize(
    "counts",
    [
        {},
        {"server": {"enp3s0 rx_dropped": 12, "enp3s0 tx_fifo_errors": 3, "enp3s0 collisions": 4}},
        {"server": {"enp3s0 rx_missed_errors": 0}},
        {"server": {"enp3s0 rx_missed_errors": "many"}},
        {"server": 7},
        [],
    ],
)
def test_what_tells_nothing_of_the_path_is_silent(world, counts):
    assert "Meanwhile" not in counted(world, counts)


def test_a_host_without_facts_has_no_interface(world):
    world.client = None
    assert [side for side, _ in interface_facts.interfaces(world.report())] == ["server"]


def test_a_card_that_could_more_is_no_fault_where_nobody_knows_what_it_was_offered(empty_world):
    world = slow(empty_world)
    facts = {"autonegotiated": True, "able_bits_per_second": G1}
    changed(world, "server", rate_bits_per_second=10**8, partner_bits_per_second=None, **facts)
    told = evidence(world)
    assert "look at the cable" not in told
    assert "by hand" not in told
    assert "offers" not in told
