"""Files of packets are read as they are meant, and lie in vain."""

import gzip
import io
import struct

import pytest

from bottleneck.captures.packets import CaptureError, is_capture, packets
from tests.captures.packet_files import block, interface, packet_block, pcap, section

RECORDS = [(1.25, b"first"), (2.5, b"second")]


def read(content):
    return [(e.seconds, e.link_type, e.data) for e in packets(io.BytesIO(content))]


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize(("magic", "ticks"), [(0xA1B2C3D4, 10**6), (0xA1B23C4D, 10**9)])
def test_pcap_of_both_byte_orders_and_resolutions(order, magic, ticks):
    content = pcap(RECORDS, order, magic, ticks, link=113)
    assert read(content) == [(1.25, 113, b"first"), (2.5, 113, b"second")]
    assert is_capture(content)


def test_a_packet_that_is_cut_off_ends_the_file():
    assert read(pcap(RECORDS)[:-3]) == [(1.25, 1, b"first")]
    assert read(section() + interface() + packet_block(10**6, b"first")[:-9]) == []


@pytest.mark.parametrize("order", "<>")
def test_pcapng_of_several_sections_and_interfaces_with_clocks_of_their_own(order):
    nanoseconds = struct.pack(order + "HHBxxx", 9, 1, 9)
    halves = struct.pack(order + "HHBxxx", 9, 1, 0x81)
    content = section(order) + interface(1, nanoseconds, order) + interface(101, halves, order)
    content += block(5, b"statistics..", order) + packet_block(5 * 10**9, b"first", 0, order)
    content += packet_block(7, b"second", 1, order) + section("<") + interface(276)
    content += packet_block(3 * 10**6, b"third") + packet_block(1, b"of no interface", 9)
    assert read(content) == [(5.0, 1, b"first"), (3.5, 101, b"second"), (3.0, 276, b"third")]


def test_gzip_is_unpacked_once():
    content = gzip.compress(pcap(RECORDS))
    assert read(content) == read(pcap(RECORDS))
    assert is_capture(content)
    with pytest.raises(CaptureError, match="within gzip"):
        read(gzip.compress(content))
    with pytest.raises(CaptureError, match="cannot be unpacked"):
        read(content[:-12])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"GIF89a", "neither pcap"),
        (b"", "neither pcap"),
        (pcap([])[:20], "its header is cut off"),
        (pcap([]) + struct.pack("<IIII", 0, 0, 1 << 31, 60), "a packet claims 2147483648 bytes"),
        (section() + block(6, b"", size=0xFFFFFFFC), "a block claims 4294967292 bytes"),
        (section() + block(6, b"1234", size=17), "a block claims 17 bytes"),
        (section() + interface() * 1025, "more than 1024 interfaces"),
    ],
)
def test_what_is_no_capture_or_claims_too_much_is_refused(content, why):
    with pytest.raises(CaptureError, match=why):
        read(content)


def test_gzip_from_a_pipe_is_refused():
    file = io.BytesIO(gzip.compress(pcap(RECORDS)))
    file.seekable = lambda: False
    with pytest.raises(CaptureError, match="from a pipe"):
        list(packets(file))
