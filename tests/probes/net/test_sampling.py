"""Arrived bytes: counted by the kernel, whole only where nothing waits behind a hole."""

from __future__ import annotations

import socket
import struct

import pytest

from probes.net import sampling as arrivals
from probes.net.flow import Flow
from probes.net.sampling import Arrivals
from tests import living
from tests.living import connected

BUFFER_BYTES = 100_000


class FakeSocket:
    """A socket whose kernel figures the test sets."""

    def __init__(self, fileno):
        self._fileno = fileno
        self.received, self.out_of_order, self.queued = 0, 0, 0

    def fileno(self):
        return self._fileno

    def getsockopt(self, level, option, size):
        if (level, option) == (socket.IPPROTO_TCP, socket.TCP_INFO):
            info = bytearray(232)
            struct.pack_into("=Q", info, 128, self.received)
            struct.pack_into("=I", info, 224, self.out_of_order)
            return bytes(info)
        assert (level, option, size) == (socket.SOL_SOCKET, 55, 36)
        return struct.pack("=9I", self.queued, BUFFER_BYTES, *[0] * 7)


@pytest.fixture
def sock():
    """A Told socket with nothing unread."""
    with connected() as (one, _):
        yield FakeSocket(one.fileno())


def test_what_the_kernel_has_is_counted_read_or_not():
    with connected() as (one, other):
        flow = Flow([other])
        counting = Arrivals(flow)
        one.sendall(b"x" * 7000)
        assert other.recv(3000, socket.MSG_WAITALL)
        flow.totals[0] = 3000
        assert living.until(lambda: counting.count().moved_bytes >= 7000)
        count = counting.count()
    assert (count.moved_bytes, count.beyond_bytes, count.unread) == (7000, 0, (4000,))
    assert count.before_seconds <= count.after_seconds


def test_what_was_read_before_the_transfer_is_not_unread_payload():
    with connected() as (one, other):
        one.sendall(b"hello")
        assert other.recv(5, socket.MSG_WAITALL)
        assert Arrivals(Flow([other])).count().unread == (0,)


@pytest.mark.parametrize(
    "looks",
    [
        # a hole, what waits behind it at most, and that it is filled
        [(10, 0, 0, 0), (10, 1, 5000, 5000), (3000, 1, 0, 0)],
        # the first of two holes is filled: the count leaps, and nothing new is out of order
        [(0, 3, 9000, 9000), (4000, 3, 5000, 5000)],
        # a window further on no old hole is left, though something is unread
        [(0, 1, 5000, 5000), (BUFFER_BYTES - 1, 1, 5000, 5000), (BUFFER_BYTES, 1, 5000, 0)],
    ],
    ids=["filled", "filled in part", "a window later"],
)
def test_a_segment_out_of_order_makes_a_hole_until_nothing_waits_behind_one(sock, looks):
    counting = Arrivals(Flow([sock]))
    for sock.received, sock.out_of_order, sock.queued, beyond in looks:
        assert counting.count().beyond_bytes == beyond


def test_a_kernel_that_does_not_count_segments_out_of_order_has_no_holes(sock, monkeypatch):
    monkeypatch.setattr(arrivals.tcp_info, "raw", lambda _: struct.pack("=128xQ88x", 4711))
    assert Arrivals(Flow([sock])).count().beyond_bytes == 0


def test_a_system_without_the_kernels_count_has_the_applications_and_what_is_unread(monkeypatch):
    monkeypatch.setattr(arrivals.tcp_info, "raw", lambda _: b"")
    with connected() as (one, other):
        flow = Flow([other])
        counting = Arrivals(flow)
        one.sendall(b"x" * 500)
        flow.totals[0] = 1000
        assert living.until(lambda: counting.count().moved_bytes == 1500)


def test_a_count_that_never_becomes_whole_is_the_last_of_its_time(sock, clock):
    sock.out_of_order, sock.queued, sock.received = 1, 700, 42
    count = Arrivals(Flow([sock])).count_without_hole(0.02)
    assert (count.moved_bytes, count.beyond_bytes) == (42, 700)
    assert count.before_seconds == pytest.approx(1000.02, abs=0.005)


def test_what_the_kernel_gathers_for_the_reader_is_not_counted_as_left_by_it():
    with connected() as (one, other):
        other.sendall(b"." * 50_000)
        flow = Flow([one])
        flow.gathered = [30_000]
        sampling = arrivals.Sampling(flow)
        assert living.until(lambda: Arrivals(flow).count().unread == (50_000,))
        sampling.at_receiver(Arrivals(flow).count())
        assert sampling.receiver_details()["unread_bytes_median"] == 20_000
