"""The interface towards the peer: the kernel's own answer, and None for what is not told."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from probes.core import typed
from probes.core.records import InterfaceFacts
from probes.host import interface


@pytest.mark.parametrize(
    ("speed", "rate"),
    [
        ("1000", 10**9),
        ("100", 10**8),
        ("-1", None),
        ("0", None),
        ("4294967295", None),
        (None, None),
    ],
)
def test_a_rate_that_the_driver_does_not_know_is_none(speed, rate):
    assert interface.parse_rate(speed) == rate


def test_loopback_is_named_lo():
    facts = interface.interface_facts("127.0.0.1")
    assert (facts.name, facts.address, facts.rate_bits_per_second) == ("lo", "127.0.0.1", None)
    assert facts.mtu_bytes >= 1500


def test_no_address_is_no_interface():
    assert interface.interface_facts("not an address") is None


def test_without_rtnetlink_psutil_tells_the_same_of_name_address_and_mtu(monkeypatch):
    by_netlink = interface.interface_facts("127.0.0.1")
    monkeypatch.setattr(interface.rtnetlink, "FAMILY", None)
    facts = interface.interface_facts("127.0.0.1")
    assert facts == InterfaceFacts("lo", "127.0.0.1", None, None, by_netlink.mtu_bytes, None, None)
    monkeypatch.setattr(psutil, "net_if_stats", dict)
    assert interface.interface_facts("127.0.0.1") is None


FACTS_SCRIPT = """
import dataclasses, json, sys
from probes.host import interface
found = {toward: interface.interface_facts(toward) for toward in sys.argv[1:]}
print(json.dumps({toward: dataclasses.asdict(each) for toward, each in found.items() if each}))
"""


def namespace(lines: str, *toward: str):
    """Runs shell lines in a network namespace of its own; returns the facts towards addresses.

    The namespace keeps the machine's /sys, as `ip netns exec` without a mount namespace would.
    """
    if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("ip") is None:
        pytest.skip("network namespaces need root, unshare and ip")
    ended = subprocess.run(
        ["unshare", "-n", "sh", "-ec", f'{lines}\nexec "$0" -c "$1" {" ".join(toward)}']
        + [sys.executable, FACTS_SCRIPT],
        capture_output=True,
        text=True,
        timeout=30,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert ended.returncode == 0, ended.stderr
    facts_by_name = json.loads(ended.stdout)
    return [typed.record(InterfaceFacts, facts_by_name[each], each) for each in toward]


VETH_IN_A_BRIDGE = """
ip link add br0 type bridge
ip link add v0 type veth peer name v1
ip link set v0 master br0
ip addr add 10.1.1.1/24 dev br0
for each in br0 v0 v1; do ip link set $each up; done
"""


def test_a_bridge_tells_its_ports():
    (facts,) = namespace(VETH_IN_A_BRIDGE, "10.1.1.2")
    assert (facts.name, facts.kind, facts.address) == ("br0", "bridge", "10.1.1.1")
    assert [(each.name, each.kind, each.lower) for each in facts.lower] == [("v0", "veth", ())]
    assert facts.virtual is True
    assert facts.counts["rx_dropped"] >= 0
    assert facts.pcie == {}


def test_a_shaped_veth_with_a_small_mtu_tells_both():
    shaped = """
    ip link set v1 mtu 1400
    ip addr add 10.1.2.1/24 dev v1
    tc qdisc add dev v1 root tbf rate 100mbit burst 32k latency 50ms
    """
    (facts,) = namespace(VETH_IN_A_BRIDGE + shaped, "10.1.2.2")
    assert (facts.kind, facts.mtu_bytes) == ("veth", 1400)
    assert (facts.qdisc, facts.qdisc_rate_bytes_per_second) == ("tbf", 12_500_000)
    assert facts.lower == ()


def test_the_interface_is_that_of_the_zone_or_else_of_the_neighbour():
    """Each interface has a route to link-local addresses; another host's zone is none here."""
    lines = """
    ip link add v0 type veth peer name v1
    for each in v0 v1; do ip link set $each up; ip addr add fe80::$each/64 dev $each nodad; done
    tc qdisc add dev v1 root tbf rate 100mbit burst 32k latency 50ms
    ip neigh add fe80::9 lladdr 02:00:00:00:00:09 dev v1
    """.replace("::$each", "::${each#v}a")
    there = ("fe80::7%v0", "fe80::7%v1", "fe80::9", "fe80::9%elsewhere")
    interfaces = namespace(lines, *there)
    assert [each.name for each in interfaces] == ["v0", "v1", "v1", "v1"]
    assert [each.qdisc for each in interfaces[1:]] == ["tbf"] * 3


def test_a_macvlan_lies_on_its_interface_and_tun_and_tap_are_told_apart():
    lines_added = """
    ip link add link v1 name mv0 type macvlan
    ip addr add 10.1.3.1/24 dev mv0
    ip link set mv0 up
    ip tuntap add dev tun0 mode tun
    ip addr add 10.1.4.1/24 dev tun0
    ip link set tun0 up
    ip tuntap add dev tap0 mode tap
    ip addr add 10.1.5.1/24 dev tap0
    ip link set tap0 up
    """
    over = namespace(VETH_IN_A_BRIDGE + lines_added, "10.1.3.2", "10.1.4.2", "10.1.5.2")
    assert [each.kind for each in over] == ["macvlan", "tun", "tap"]
    assert [each.name for each in over[0].lower] == ["v1"]


def test_counts_of_an_interface_carry_its_name():
    counts = interface.counts("lo")
    assert counts["lo rx_dropped"] >= 0
    assert all(name.startswith("lo ") for name in counts)


def test_what_grew_is_told_and_nothing_else():
    earlier = {"a rx_dropped": 3, "a rx_missed_errors": 5, "a collisions": 9}
    later = {"a rx_dropped": 3, "a rx_missed_errors": 12, "a collisions": 0, "b rx_dropped": 4}
    assert interface.growth(earlier, later) == {"a rx_missed_errors": 7}


def test_facts_of_an_older_report_are_read_without_what_is_new():
    old = {
        "name": "enp3s0",
        "address": "192.168.1.20",
        "rate_bits_per_second": 10**9,
        "duplex": "full",
        "mtu_bytes": 1500,
        "driver": "r8169",
        "virtual": False,
    }
    facts = typed.record(InterfaceFacts, old, "interface")
    assert (facts.kind, facts.lower, facts.pause, facts.pcie) == (None, (), {}, {})


CONNECTED = """Connected to 02:00:5e:10:00:01 (on wlp2s0)
\tSSID: signal: -1 dBm
\tfreq: 5180
\tRX: 61247636 bytes (53462 packets)
\tTX: 2280327 bytes (16941 packets)
\tsignal: -61 dBm
\trx bitrate: 390.0 MBit/s VHT-MCS 4 80MHz VHT-NSS 2
\ttx bitrate: 433.3 MBit/s VHT-MCS 9 80MHz short GI VHT-NSS 1

\tbss flags:\tshort-slot-time
\tdtim period:\t2
\tbeacon int:\t100
"""
WIRELESS = """Inter-| sta-|   Quality        |   Discarded packets               | Missed | WE
 face | tus | link level noise |  nwid  crypt   frag  retry   misc | beacon | 22
wlp2s0: 0000   49.  -61.  -256        0      0      0      0      0        0
  wlp3: 0000   40.   80.  -256        0      0      0      0      0        0
  wlp4: 0000    0     0     0         0      0      0      0      0        0
"""


def test_iw_tells_both_rates_and_the_signal():
    assert interface.parse_iw(CONNECTED) == {
        "bits_per_second": 433_300_000,
        "received_bits_per_second": 390_000_000,
        "signal_dbm": -61,
    }


def test_a_signal_with_one_figure_an_antenna_is_read():
    assert interface.parse_iw("\tsignal: -53 [-55, -57] dBm\n") == {"signal_dbm": -53}


@pytest.mark.parametrize("text", ["Not connected.\n", "", "command failed: No such device (-19)"])
def test_without_a_connection_there_is_nothing(text):
    assert interface.parse_iw(text) == {}


def test_the_kernels_table_tells_the_signal_in_dbm():
    assert interface.parse_wireless(WIRELESS, "wlp2s0") == -61


@pytest.mark.parametrize("name", ["wlp3", "wlp4", "eth0", "face"])
def test_a_drivers_own_scale_is_no_dbm(name):
    assert interface.parse_wireless(WIRELESS, name) is None
