"""Shaping on the way out: recorded qdiscs of Linux 6.18, and trees of them."""

import struct
from pathlib import Path

import pytest

from probes.host import qdisc, rtnetlink
from probes.host.qdisc import ROOT, Queue

RECORDED = Path(__file__).parent / "recorded"
V1, V0 = 3, 4
"""Indices in the recorded namespace: v1 has htb with one class, v0 tbf."""


def recorded(name: str) -> bytes:
    return bytes.fromhex((RECORDED / f"{name}.hex").read_text())


def queue(handle: int, parent: int, kind: str, rate: int | None = None, default: bool = False):
    return Queue(1, handle, parent, kind, rate, default)


def attribute(kind: int, value: bytes) -> bytes:
    whole = rtnetlink.ATTRIBUTE.pack(rtnetlink.ATTRIBUTE.size + len(value), kind) + value
    return whole + bytes(-len(whole) % 4)


def built(kind: str, options: bytes) -> bytes:
    """An RTM_NEWQDISC message for interface 1."""
    told = attribute(qdisc.TCA_KIND, kind.encode() + b"\0") + attribute(qdisc.TCA_OPTIONS, options)
    body = qdisc.BODY.pack(0, 1, 0x10000, ROOT, 0) + told
    length = rtnetlink.HEADER.size + len(body)
    return rtnetlink.HEADER.pack(length, qdisc.RTM_NEWQDISC, 2, 1, 0) + body


def test_a_recorded_tbf_tells_its_100_mbit():
    queues = qdisc.parse_queues(recorded("qdiscs_of_a_namespace"), V0)
    assert qdisc.shaping(queues, []) == ("tbf", 12_500_000)


def test_a_recorded_htb_lets_its_class_out_up_to_the_ceiling_of_20_mbit():
    queues = qdisc.parse_queues(recorded("qdiscs_of_a_namespace"), V1)
    classes = qdisc.parse_queues(recorded("classes_of_v1"), V1)
    assert qdisc.shaping(queues, classes) == ("htb", 2_500_000)


def test_another_interfaces_qdiscs_are_not_its_own():
    assert qdisc.parse_queues(recorded("qdiscs_of_a_namespace"), 99) == []


def test_netems_rate_stands_behind_its_fixed_part():
    options = bytes(24) + attribute(6, struct.pack("=Iiii", 1_250_000, 0, 0, 0))
    (found,) = qdisc.parse_queues(built("netem", options), 1)
    assert found.rate_bytes_per_second == 1_250_000


def test_a_rate_above_32_bits_stands_in_the_64_bit_attribute():
    narrow = attribute(1, struct.pack("=8xI24x", 0xFFFFFFFF))
    wide = attribute(4, struct.pack("=Q", 12_500_000_000))
    (found,) = qdisc.parse_queues(built("tbf", narrow + wide), 1)
    assert found.rate_bytes_per_second == 12_500_000_000
    (unlimited,) = qdisc.parse_queues(built("cake", attribute(2, bytes(8))), 1)
    assert unlimited.rate_bytes_per_second is None


def test_a_shaper_below_netem_counts():
    queues = [queue(0x10000, ROOT, "netem"), queue(0x20000, 0x10001, "tbf", 1000)]
    assert qdisc.shaping(queues, []) == ("netem", 1000)


@pytest.mark.parametrize("root", ["prio", "mq", "fq_codel", "hfsc"])
def test_a_shaper_below_a_qdisc_of_several_bands_shapes_only_a_part(root):
    queues = [queue(0x10000, ROOT, root), queue(0x20000, 0x10001, "tbf", 1000)]
    assert qdisc.shaping(queues, []) == (root, None)


def test_an_htb_that_lets_the_unclassified_past_shapes_only_a_part():
    classes = [queue(0x10010, ROOT, "htb", 1000)]
    assert qdisc.shaping([queue(0x10000, ROOT, "htb")], classes) == ("htb", None)
    assert qdisc.shaping([queue(0x10000, ROOT, "htb", default=True)], classes) == ("htb", 1000)
    assert qdisc.shaping([queue(0x10000, ROOT, "htb", default=True)], []) == ("htb", None)


def test_qdiscs_that_are_each_others_parents_end():
    queues = [queue(0x10000, ROOT, "tbf", 5), queue(0x10000, 0x10001, "tbf", 5)]
    assert qdisc.shaping(queues, []) == ("tbf", 5)
