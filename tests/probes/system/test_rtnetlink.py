"""The kernel's own answer to where packets leave."""

import socket
import struct
from pathlib import Path

import pytest

from probes.net.peers import reach
from probes.system import rtnetlink
from probes.system.rtnetlink import HEADER, ROOT, Queue

TO_LOOPBACK = bytes.fromhex(
    "6800000018000000010000003512000002200000fe0000020002008008000f00fe000000080001007f000001"
    "0800040001000000080007007f000001080019000000000024000c0002000000f23f03000000000000000000"
    "00000000000000000000000000000000"
)


def test_an_error_and_a_truncated_answer_name_none():
    error = HEADER.pack(36, 2, 0, 1, 0) + bytes(20)
    assert rtnetlink.parse_route(error) is None
    for length in range(HEADER.size + rtnetlink.ROUTE.size):
        assert rtnetlink.parse_route(TO_LOOPBACK[:length]) is None


def test_a_request_carries_the_whole_address():
    assert socket.inet_aton("192.0.2.7") in rtnetlink.route_request("192.0.2.7")
    assert socket.inet_pton(socket.AF_INET6, "fe80::7") in rtnetlink.route_request("fe80::7%eth0")


def test_an_open_port_is_reached():
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert reach("127.0.0.1", server.getsockname()[1], 5.0) == ""


def test_a_closed_port_refuses():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert reach("127.0.0.1", bound.getsockname()[1], 5.0) == "refused"


def test_a_host_that_does_not_answer_is_waited_for_so_long(monkeypatch):
    def silent(address: object, timeout: float) -> None:
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", silent)
    assert reach("192.0.2.1", 445, 4.0) == "no answer within 4 s"


def test_a_name_that_does_not_resolve_is_told():
    assert reach("no-such-host.invalid", 445, 5.0) == "the name does not resolve"


def message(kind: int, body: bytes) -> bytes:
    packed = rtnetlink.HEADER.pack(rtnetlink.HEADER.size + len(body), kind, 0, 1, 0) + body
    return packed + bytes(-len(packed) % 4)


def attribute(kind: int, value: bytes) -> bytes:
    packed = rtnetlink.ATTRIBUTE.pack(rtnetlink.ATTRIBUTE.size + len(value), kind) + value
    return packed + bytes(-len(packed) % 4)


def test_messages_and_attributes_are_told_apart_by_their_padded_lengths():
    body = attribute(3, b"eth0\0") + attribute(4, b"\xdc\x05\0\0")
    parsed = list(rtnetlink.messages(message(16, body) + message(3, b"")))
    assert [kind for kind, _ in parsed] == [16, 3]
    attributes = rtnetlink.attributes(parsed[0][1])
    assert rtnetlink.text(attributes, 3) == "eth0"
    assert rtnetlink.number(attributes, 4) == 1500


def test_what_is_cut_off_is_left_out():
    both = message(16, attribute(3, b"eth0\0")) + message(16, attribute(3, b"eth1\0"))
    for length in range(len(both)):
        parsed = [rtnetlink.attributes(body) for _, body in rtnetlink.messages(both[:length])]
        assert parsed == [{3: b"eth0\0"}] * (length >= len(both) // 2)


RECORDED = Path(__file__).parents[1] / "recorded"


def recording(name: str) -> bytes:
    return bytes.fromhex((RECORDED / f"{name}.hex").read_text())


def newlink(
    index: int, name: str, kind: str = "", data: bytes = b"", hardware: int = 1, **refs: int
):
    """An RTM_NEWLINK message; refs: `below` and `master`, indices of other interfaces."""
    parts = attribute(rtnetlink.IFNAME, name.encode() + b"\0")
    parts += attribute(rtnetlink.MTU, struct.pack("=I", 1500))
    if kind:
        info = attribute(rtnetlink.INFO_KIND, kind.encode() + b"\0")
        parts += attribute(0x8000 | rtnetlink.LINKINFO, info + attribute(rtnetlink.INFO_DATA, data))
    for word, number in (("below", rtnetlink.LINK), ("master", rtnetlink.MASTER)):
        if word in refs:
            parts += attribute(number, struct.pack("=I", refs[word]))
    body = rtnetlink.BODY.pack(0, hardware, index, 0, 0) + parts
    length = rtnetlink.HEADER.size + len(body)
    return rtnetlink.HEADER.pack(length, rtnetlink.RTM_NEWLINK, 2, 1, 0) + body


VLAN_ON_A_BOND = b"".join(
    (
        newlink(2, "enp3s0", master=4),
        newlink(3, "enp4s0", master=4),
        newlink(4, "bond0", "bond", attribute(rtnetlink.BOND_MODE, b"\4")),
        newlink(5, "bond0.7", "vlan", attribute(rtnetlink.VLAN_ID, b"\7\0"), below=4),
    )
)


def test_a_recorded_list_names_every_interface_and_its_kind():
    links = rtnetlink.parse_links(recording("links_of_a_namespace"))
    assert [(each.name, each.kind) for each in links] == [
        ("lo", "loopback"),
        ("br0", "bridge"),
        ("v1", "veth"),
        ("v0", "veth"),
        ("tun0", "tun"),
        ("tap0", "tap"),
        ("mv0", "macvlan"),
    ]
    assert {each.name: each.qdisc for each in links}["v0"] == "tbf"
    assert links[0].mtu_bytes == 65536
    assert links[3].counts["rx_dropped"] == 0


def test_what_lies_below_is_the_ports_and_the_real_interface_and_never_a_veths_other_end():
    links = rtnetlink.parse_links(recording("links_of_a_namespace"))
    below = {each.name: [one.name for one in rtnetlink.lower(each, links)] for each in links}
    assert below == {
        "lo": [],
        "br0": ["v0"],
        "v1": [],
        "v0": [],
        "tun0": [],
        "tap0": [],
        "mv0": ["v1"],
    }


def test_a_vlan_on_a_bond_on_two_cards_is_walked_down_to_the_cards():
    links = rtnetlink.parse_links(VLAN_ON_A_BOND)
    vlan = links[-1]
    assert (vlan.kind, vlan.vlan_id) == ("vlan", 7)
    (bond,) = rtnetlink.lower(vlan, links)
    assert (bond.kind, bond.bond_mode) == ("bond", "802.3ad")
    assert [each.name for each in rtnetlink.lower(bond, links)] == ["enp3s0", "enp4s0"]


def test_an_interface_whose_lower_one_is_in_another_namespace_has_none_below():
    elsewhere = attribute(rtnetlink.LINK_NETNSID, b"\0\0\0\0")
    message = newlink(5, "eth0", "macvlan", below=2)
    linked = message + elsewhere
    linked = rtnetlink.HEADER.pack(len(linked), rtnetlink.RTM_NEWLINK, 2, 1, 0) + linked[16:]
    links = rtnetlink.parse_links(newlink(2, "enp3s0") + linked)
    assert rtnetlink.lower(links[1], links) == []


V1, V0 = 3, 4
"""Indices in the recorded namespace: v1 has htb with one class, v0 tbf."""


def queue(handle: int, parent: int, kind: str, rate: int | None = None, default: bool = False):
    return Queue(handle, parent, kind, rate, default)


def built_of_qdisc(kind: str, options: bytes) -> bytes:
    """An RTM_NEWQDISC message for interface 1."""
    parts = attribute(rtnetlink.TCA_KIND, kind.encode() + b"\0") + attribute(
        rtnetlink.TCA_OPTIONS, options
    )
    body = rtnetlink.QUEUE_BODY.pack(0, 1, 0x10000, ROOT, 0) + parts
    length = rtnetlink.HEADER.size + len(body)
    return rtnetlink.HEADER.pack(length, rtnetlink.RTM_NEWQDISC, 2, 1, 0) + body


def test_a_recorded_tbf_tells_its_100_mbit():
    queues = rtnetlink.parse_queues(recording("qdiscs_of_a_namespace"), V0)
    assert rtnetlink.shape_of(queues, []) == ("tbf", 12_500_000)


def test_a_recorded_htb_lets_its_class_out_up_to_the_ceiling_of_20_mbit():
    queues = rtnetlink.parse_queues(recording("qdiscs_of_a_namespace"), V1)
    classes = rtnetlink.parse_queues(recording("classes_of_v1"), V1)
    assert rtnetlink.shape_of(queues, classes) == ("htb", 2_500_000)


def test_netems_rate_stands_behind_its_fixed_part():
    options = bytes(24) + attribute(6, struct.pack("=Iiii", 1_250_000, 0, 0, 0))
    (queue,) = rtnetlink.parse_queues(built_of_qdisc("netem", options), 1)
    assert queue.rate_bytes_per_second == 1_250_000


def test_a_rate_above_32_bits_stands_in_the_64_bit_attribute():
    narrow = attribute(1, struct.pack("=8xI24x", 0xFFFFFFFF))
    wide = attribute(4, struct.pack("=Q", 12_500_000_000))
    (queue,) = rtnetlink.parse_queues(built_of_qdisc("tbf", narrow + wide), 1)
    assert queue.rate_bytes_per_second == 12_500_000_000
    (unlimited,) = rtnetlink.parse_queues(built_of_qdisc("cake", attribute(2, bytes(8))), 1)
    assert unlimited.rate_bytes_per_second is None


def test_a_shaper_below_netem_counts():
    queues = [queue(0x10000, ROOT, "netem"), queue(0x20000, 0x10001, "tbf", 1000)]
    assert rtnetlink.shape_of(queues, []) == ("netem", 1000)


@pytest.mark.parametrize("root", ["prio", "mq", "fq_codel", "hfsc"])
def test_a_shaper_below_a_qdisc_of_several_bands_shapes_only_a_part(root):
    queues = [queue(0x10000, ROOT, root), queue(0x20000, 0x10001, "tbf", 1000)]
    assert rtnetlink.shape_of(queues, []) == (root, None)


def test_an_htb_that_lets_the_unclassified_past_shapes_only_a_part():
    classes = [queue(0x10010, ROOT, "htb", 1000)]
    assert rtnetlink.shape_of([queue(0x10000, ROOT, "htb")], classes) == ("htb", None)
    assert rtnetlink.shape_of([queue(0x10000, ROOT, "htb", default=True)], classes) == ("htb", 1000)
    assert rtnetlink.shape_of([queue(0x10000, ROOT, "htb", default=True)], []) == ("htb", None)


def test_qdiscs_that_are_each_others_parents_end():
    queues = [queue(0x10000, ROOT, "tbf", 5), queue(0x10000, 0x10001, "tbf", 5)]
    assert rtnetlink.shape_of(queues, []) == ("tbf", 5)
