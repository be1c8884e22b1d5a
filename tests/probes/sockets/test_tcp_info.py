"""tcp_info is decoded by the length that the kernel gave, never by its version.

recorded/tcp_info.txt: both ends of one connection whose receiver had stopped reading, after losses;
the 280 bytes of kernel 6.18 in hex, and what `ss -ti` of iproute2 6.1 said of it at that moment.
"""

import re
import socket
import struct
import sys
from pathlib import Path

import pytest

from probes.sockets import tcp_info
from probes.sockets.tcp_info import BOTH, wait_at_most
from tests.living import connected

RECORDED = (Path(__file__).parents[1] / "recorded" / "tcp_info.txt").read_text().splitlines()
SENDER, RECEIVER = (bytes.fromhex(line) for line in RECORDED[::2])
SS_TEXTS = dict(zip((SENDER, RECEIVER), RECORDED[1::2], strict=True))
IN_SS = (
    ("rto:", "rto_seconds", 1000),
    ("backoff:", "backoffs", 1),
    ("rtt:", "rtt_seconds", 1000),
    ("mss:", "segment_bytes", 1),
    ("pmtu:", "path_mtu_bytes", 1),
    ("cwnd:", "congestion_window_segments", 1),
    ("bytes_sent:", "sent_bytes", 1),
    ("bytes_retrans:", "retransmitted_bytes", 1),
    ("bytes_acked:", "acknowledged_bytes", 1),
    ("bytes_received:", "received_bytes", 1),
    ("dsack_dups:", "duplicates_reported", 1),
    ("rcv_rtt:", "receive_rtt_seconds", 1000),
    ("notsent:", "unsent_bytes", 1),
    ("minrtt:", "min_rtt_seconds", 1000),
    ("rcv_ooopack:", "out_of_order_segments", 1),
    ("snd_wnd:", "peer_window_bytes", 1),
)


def raw_of(connection):
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512)


def ss_figure(raw, word):
    match = re.search(rf"(?<![a-z_]){word}([0-9.]+)", SS_TEXTS[raw])
    return float(match[1]) if match else None


@pytest.mark.parametrize("raw", (SENDER, RECEIVER), ids=("sender", "receiver"))
def test_it_says_what_ss_says_of_the_same_connection(raw):
    info = tcp_info.decode(raw)
    compared = 0
    for word, name, scale in IN_SS:
        if (expected := ss_figure(raw, word)) is not None:
            assert info[name] * scale == pytest.approx(expected, abs=0.5 * scale / 1000), name
            compared += 1
    # in the milliseconds between the two looks
    assert info["busy_seconds"] * 1000 == pytest.approx(ss_figure(raw, "busy:"), abs=20)
    assert compared >= 9


def test_the_bytes_of_a_big_endian_machine_lie_the_other_way_round():
    swapped = struct.pack(">I", struct.unpack_from("<I", SENDER, 68)[0])
    foreign = SENDER[:68] + swapped
    assert tcp_info.decode(foreign, little_endian=False)["rtt_seconds"] == 0.020257


FIRST_BEYOND = {
    120: "acknowledged_bytes",
    168: "busy_seconds",
    200: "sent_bytes",
    224: "out_of_order_segments",
    232: "own_window_bytes",
}


@pytest.mark.parametrize("length", FIRST_BEYOND)
def test_an_older_kernels_answer_leaves_out_what_it_does_not_know(length):
    all_fields, info = tcp_info.decode(SENDER), tcp_info.decode(SENDER[:length])
    assert FIRST_BEYOND[length] in all_fields and FIRST_BEYOND[length] not in info
    assert info.items() < all_fields.items()
    assert info["rtt_seconds"] == 0.020257 and info["timestamps"] == 1


def test_what_the_kernel_does_not_know_is_absent_and_not_a_number():
    image = bytearray(SENDER)
    struct.pack_into("=I", image, 148, 0xFFFFFFFF)
    struct.pack_into("=I", image, 68, 0)
    info = tcp_info.decode(bytes(image))
    absent = tcp_info.decode(SENDER).keys() - info.keys()
    assert absent == {"min_rtt_seconds", "rtt_seconds"}


def test_of_a_listening_socket_the_state_alone_is_told():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert tcp_info.decode(raw_of(listener)) == {"state": tcp_info.LISTEN}


def test_a_live_connection_is_read():
    with connected() as (far, near):
        near.sendall(b"x" * 1000)
        far.recv(1, socket.MSG_PEEK)
        assert tcp_info.unread_bytes(far) == 1000
        assert tcp_info.unsent_bytes(near) == 0
        assert tcp_info.read(near)["segment_bytes"] > 0
        assert tcp_info.read(far)["received_bytes"] == 1000
        assert tcp_info.congestion_control(near)


def test_the_buffers_and_what_fills_them_are_read():
    with connected() as (far, near):
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 100_000)
        empty, granted = (tcp_info.read(near), near.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF))
        assert empty["send_buffer_bytes"] == granted and empty["send_queue_bytes"] == 0
        near.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                near.send(bytes(65536))
        assert tcp_info.read(near)["send_queue_bytes"] > granted * 2 / 3
        assert tcp_info.unread_bytes(far)


LINUX = sys.platform.startswith("linux")
SO_RCVTIMEO_NEW = 66
"""SO_RCVTIMEO of 32-bit hosts with a 64-bit time_t; 64-bit kernels know it as well."""


@pytest.fixture
def pair():
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def read_option(connection, option):
    return connection.getsockopt(socket.SOL_SOCKET, option, 64)


def test_a_blocking_call_comes_back_from_a_silent_peer(pair):
    one, _ = pair
    wait_at_most(one, 0.02)
    with pytest.raises(BlockingIOError):
        one.recv(1)
    with pytest.raises(BlockingIOError):
        while True:
            one.send(bytes(1 << 16))
    assert one.gettimeout() is None


def test_the_option_of_32_bit_hosts_with_a_64_bit_time_is_served(pair):
    if not LINUX:
        pytest.skip("NOT RUN: only Linux has it")
    one, _ = pair
    wait_at_most(one, 10.0, (SO_RCVTIMEO_NEW,))
    assert struct.unpack("@qq", read_option(one, SO_RCVTIMEO_NEW)) == (10, 0)
    assert read_option(one, socket.SO_RCVTIMEO) == struct.pack("@ll", 10, 0)


class Socket32:
    """A socket of a 32-bit host with a 32-bit time_t."""

    def __init__(self):
        self.options = {}

    def getsockopt(self, level, option, size):
        return bytes(8)

    def setsockopt(self, level, option, value):
        self.options[level, option] = value


def test_a_host_with_32_bits_gets_8_bytes():
    narrow = Socket32()
    wait_at_most(narrow, 10.25)
    expected = struct.pack("@ii", 10, 250_000)
    assert narrow.options == {(socket.SOL_SOCKET, option): expected for option in BOTH}


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_no_time_is_refused(pair, seconds):
    with pytest.raises(ValueError, match="no time"):
        wait_at_most(pair[0], seconds)
