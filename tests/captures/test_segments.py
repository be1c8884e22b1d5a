"""Segments are found below their headers, whatever the card and the capture left of them."""

import struct

import pytest

from bottleneck.captures.packets import Packet
from bottleneck.captures.segments import MSS, SCALE, SYN, datagram_of, options_of, segment_of
from tests.captures.packet_files import CLIENT, SERVER, frame

WHOLE = frame(data=b"payload", seq=7, ack=9, window=321)
IP = WHOLE[14:]


def parsed(data, link_type=1, wire_bytes=None):
    packet = Packet(1.5, link_type, wire_bytes or len(data), data)
    return (datagram := datagram_of(packet)) and segment_of(packet, datagram)


@pytest.mark.parametrize(
    ("link_type", "header"),
    [
        (1, WHOLE[:14]),
        (1, bytes(12) + b"\x81\0\0\x05\x08\0"),
        (1, bytes(12) + b"\x88\xa8\0\x05\x81\0\0\x07\x08\0"),
        (113, bytes(16)),
        (276, bytes(20)),
        (101, b""),
        (0, bytes(4)),
    ],
)
def test_the_segment_is_the_same_below_every_link_header(link_type, header):
    segment = parsed(header + IP, link_type)
    assert (segment.source, segment.target, segment.seq, segment.ack) == (CLIENT, SERVER, 7, 9)
    assert (segment.window, segment.size, segment.data) == (321, 7, b"payload")


def test_sizes_are_those_on_the_wire_where_the_packet_was_cut():
    data = frame(data=bytes(1000))
    cut = parsed(data[:96], wire_bytes=len(data))
    assert (cut.size, len(cut.data)) == (1000, 96 - 54)
    # The card fills in the length of a packet that it cuts into segments.
    unfilled = data[:16] + b"\0\0" + data[18:96]
    assert parsed(unfilled, wire_bytes=len(data)).size == 1000
    assert parsed(frame(data=b"") + bytes(6)).size == 0


def test_ipv6_is_read():
    tcp = IP[20:]
    header = struct.pack(">IHBB", 6 << 28, len(tcp), 6, 64) + b"\x20" * 16 + b"\x30" * 16
    segment = parsed(bytes(12) + b"\x86\xdd" + header + tcp)
    assert (segment.source[0], segment.size) == (b"\x20" * 16, 7)


@pytest.mark.parametrize(
    ("data", "link_type"),
    [
        (WHOLE[:50], 1),
        (WHOLE[:12] + b"\x08\x06" + IP, 1),
        (WHOLE[:23] + b"\x11" + WHOLE[24:], 1),
        (WHOLE[:20] + b"\0\x01" + WHOLE[22:], 1),
        (WHOLE[:46] + b"\x30" + WHOLE[47:], 1),
        (WHOLE, 105),
    ],
    ids=["cut", "ARP", "UDP", "fragment", "short header", "Wi-Fi"],
)
def test_all_else_is_passed_over(data, link_type):
    assert parsed(data, link_type) is None


@pytest.mark.parametrize(("offset", "value"), [(9, b"\x11"), (6, b"\0\x01")])
def test_what_is_no_segment_counts_as_traffic(offset, value):
    data = WHOLE[: 14 + offset] + value + WHOLE[14 + offset + len(value) :]
    datagram = datagram_of(Packet(1.5, 1, len(data), data))
    assert (datagram.source, datagram.target, datagram.size) == (CLIENT[0], SERVER[0], 27)


def test_options_end_where_they_lie():
    options = b"\x02\x04\x05\xb4\x01\x03\x03\x07"
    segment = parsed(frame(flags=SYN, options=options))
    assert options_of(segment.options)[MSS] == b"\x05\xb4"
    assert options_of(segment.options)[SCALE] == b"\x07"
    assert options_of(b"\x08\x00\x01") == options_of(b"\x00\x02\x04") == {}
