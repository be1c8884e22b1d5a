"""A call on a socket waits as long as it was told, whatever the width of time_t."""

import socket
import struct
import sys

import pytest

from probes.host.tcp_info import BOTH, wait_at_most

LINUX = sys.platform.startswith("linux")
NEW_RECEIVING = 66
"""SO_RCVTIMEO of 32-bit hosts with a 64-bit time_t; 64-bit kernels know it as well."""


@pytest.fixture
def pair():
    one, other = socket.socketpair()
    with one, other:
        yield one, other


def told(connection, option):
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
    wait_at_most(one, 10.0, (NEW_RECEIVING,))
    assert struct.unpack("@qq", told(one, NEW_RECEIVING)) == (10, 0)
    assert told(one, socket.SO_RCVTIMEO) == struct.pack("@ll", 10, 0)


class Narrow:
    """A socket of a 32-bit host with a 32-bit time_t."""

    def __init__(self):
        self.options = {}

    def getsockopt(self, level, option, size):
        return bytes(8)

    def setsockopt(self, level, option, value):
        self.options[level, option] = value


def test_a_host_with_32_bits_gets_8_bytes():
    narrow = Narrow()
    wait_at_most(narrow, 10.25)
    expected = struct.pack("@ii", 10, 250_000)
    assert narrow.options == {(socket.SOL_SOCKET, option): expected for option in BOTH}


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_no_time_is_refused(pair, seconds):
    with pytest.raises(ValueError, match="no time"):
        wait_at_most(pair[0], seconds)
