"""The interfaces' facts beside a rate over the network: told where they explain it."""

from dataclasses import replace

import pytest

from bottleneck.analysis import hardware_limits
from tests.analysis.conftest import World

G1 = 10**9
LINK = "network/path/link-rate"


def slow(rate=11.8, back=11.79):
    world = World()
    world.tcp("pull", rate)
    world.tcp("push", back)
    world.copy("pull.cached", rate * 0.97, memory=rate * 0.99)
    return world


@pytest.mark.parametrize("back", [11.79, 117], ids=["both ways", "one way"])
def test_a_slow_hop_between_two_fast_ends_is_pointed_at(back, expect):
    expect(slow(back=back), LINK)


ABLE = {"rate_bits_per_second": 10**8, "autonegotiated": True, "able_bits_per_second": G1}
SHAPED = {"qdisc": "tbf", "qdisc_rate_bytes_per_second": 12_500_000}
SERVERS = {
    "one fast end alone leaves the other end in doubt": {"rate_bits_per_second": 10**8},
    "a card that was offered more points at the cable": {**ABLE, "partner_bits_per_second": G1},
    "one that was offered no more": {**ABLE, "partner_bits_per_second": 10**8},
    "one that is set by hand": {**ABLE, "autonegotiated": False},
    "one of which nobody knows what it was offered is no fault": ABLE,
    "the sender's own shaping is told": SHAPED,
    "a shaper of another rate": {"qdisc": "tbf", "qdisc_rate_bytes_per_second": 50_000_000},
    "a card at all that it can": {**ABLE, "able_bits_per_second": 10**8},
    "a card at another rate than the path's": {
        **{"rate_bits_per_second": G1, "able_bits_per_second": 10 * G1, "autonegotiated": False}
    },
    "a radio beside a standard link": {"kind": "wifi"},
}


@pytest.mark.parametrize("facts", SERVERS.values(), ids=SERVERS)
def test_what_the_servers_card_tells_is_told(facts, expect):
    world = slow()
    world.change_interface("server", **facts)
    expect(world, LINK)


CLIENTS = {
    "a radio": {**{"kind": "wifi", "wifi": {"bits_per_second": 433_300_000, "signal_dbm": -61}}},
    "its signal alone": {"kind": "wifi", "wifi": {"signal_dbm": -80}},
    "nothing of it": {"kind": "wifi", "wifi": {}},
    "strange": {"kind": "wifi", "wifi": {"bits_per_second": "fast", "signal_dbm": True}},
    **{kind: {"kind": kind, "virtual": True, "name": "vpn0"} for kind in ("wireguard", "xfrm")},
    "the receiver's shaping is not told": SHAPED,
}


@pytest.mark.parametrize("facts", CLIENTS.values(), ids=CLIENTS)
def test_what_the_clients_interface_is_is_told(facts, expect):
    world = slow(23, 22)
    world.change_interface("client", **facts)
    expect(world, LINK)


@pytest.mark.parametrize("mode", ["802.3ad", "balance-rr"])
def test_a_bond_says_whether_one_connection_has_one_port(world, mode, expect):
    world.copy("pull.cached", 114)
    plain = {"kind": "ethernet", "address": ""}
    ports = tuple(replace(world.server.interface, name=name, **plain) for name in ("a", "b"))
    world.change_interface("server", kind="bond", virtual=True, bond_mode=mode, lower=ports)
    expect(world, LINK)


COUNTS = {
    **{
        counter: {"server": {f"enp3s0 {counter}": 1240}}
        for counter in (
            "rx_flow_control_xoff link_xoff_rx.nic pause_frames tx_pause_ctrl_phy"
            " rx_missed_errors rx_no_buffer_count rx_crc_errors"
        ).split()
    },
    "the same frames in two counters are not added up": {
        "client": {"enp3s0 rx_pause_ctrl_phy": 900, "enp3s0 rx_global_pause": 900}
    },
    "what tells nothing of the path": {
        "server": {"enp3s0 rx_dropped": 12, "enp3s0 tx_fifo_errors": 3, "enp3s0 collisions": 4}
    },
    "none": {"server": {"enp3s0 rx_missed_errors": 0}},
    "a strange count": {"server": {"enp3s0 rx_missed_errors": "many"}},
    "a strange side": {"server": 7},
    "strange": [],
}


@pytest.mark.parametrize("counts", COUNTS.values(), ids=COUNTS)
def test_what_was_counted_during_the_copy_is_told(world, counts, expect):
    world.copy("pull.cached", 80, details={"interface_counts": counts})
    expect(world, "unknown/inconclusive")


def test_a_host_without_facts_has_no_interface(world):
    world.client = None
    assert [side for side, _ in hardware_limits.interfaces(world.report())] == ["server"]


@pytest.mark.parametrize(
    ("rate", "advised"),
    [
        (11.79, "Find the slowest hop, because both hosts' cards offer 1 Gbit/s."),
        (23.7, "Find the slowest hop, because both hosts' cards offer 1 Gbit/s."),
        (90, "Find the slowest hop, because 90.0 MB/s is not the rate of a standard link."),
        (108, "Use a 2.5 Gbit/s link."),
        (117.7, "Use a 2.5 Gbit/s link."),
    ],
)
def test_a_faster_link_is_advised_only_where_a_links_own_rate_was_reached(rate, advised):
    assert slow(rate, rate).diagnosis_of().advice[0].startswith(advised)
