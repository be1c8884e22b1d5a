"""What has arrived: counted by the kernel, whole only where nothing waits behind a hole."""

from __future__ import annotations

import socket
import struct
import time
from contextlib import contextmanager

import pytest

from probes.net import sampling as arrivals
from probes.net.flow import Flow
from probes.net.sampling import Arrivals

BUFFER_BYTES = 100_000


class Told:
    """A socket whose kernel says what the test tells it to."""

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
def told():
    """One such socket, with nothing unread."""
    with connected() as (one, _):
        yield Told(one.fileno())


@contextmanager
def connected():
    """Both ends of a real connection."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as one,
    ):
        other, _ = listener.accept()
        with other:
            yield one, other


def test_what_the_kernel_has_is_counted_read_or_not():
    with connected() as (one, other):
        flow = Flow([other])
        counting = Arrivals(flow)
        one.sendall(b"x" * 7000)
        assert other.recv(3000, socket.MSG_WAITALL)
        flow.moved[0] = 3000
        while (count := counting.count()).moved_bytes < 7000:
            pass
    assert (count.moved_bytes, count.beyond_bytes, count.unread) == (7000, 0, (4000,))
    assert count.before_seconds <= count.after_seconds


def test_what_was_read_before_the_transfer_is_not_unread_payload():
    with connected() as (one, other):
        one.sendall(b"hello")
        assert other.recv(5, socket.MSG_WAITALL)
        assert Arrivals(Flow([other])).count().unread == (0,)


def test_a_segment_out_of_order_makes_a_hole_and_what_waits_behind_it_a_most(told):
    counting = Arrivals(Flow([told]))
    told.received = 10
    assert counting.count().beyond_bytes == 0
    told.out_of_order, told.queued = 1, 5000
    assert counting.count().beyond_bytes == 5000
    told.received, told.queued = 3000, 0
    assert counting.count().beyond_bytes == 0


def test_a_hole_that_is_filled_in_part_is_still_one(told):
    counting = Arrivals(Flow([told]))
    told.out_of_order, told.queued = 3, 9000
    counting.count()
    # the first of two holes is filled: the count leaps, and nothing new is out of order
    told.received, told.queued = 4000, 5000
    assert counting.count().beyond_bytes == 5000


def test_a_window_further_on_no_old_hole_is_left_though_something_is_unread(told):
    counting = Arrivals(Flow([told]))
    told.out_of_order, told.queued = 1, 5000
    counting.count()
    told.received = BUFFER_BYTES - 1
    assert counting.count().beyond_bytes > 0
    told.received = BUFFER_BYTES
    assert counting.count().beyond_bytes == 0


def test_a_kernel_that_does_not_count_segments_out_of_order_has_no_holes(told, monkeypatch):
    monkeypatch.setattr(arrivals, "raw_info", lambda _: struct.pack("=128xQ88x", 4711))
    assert Arrivals(Flow([told])).count().beyond_bytes == 0


def test_a_system_without_the_kernels_count_has_the_applications_and_what_is_unread(monkeypatch):
    monkeypatch.setattr(arrivals, "raw_info", lambda _: b"")
    with connected() as (one, other):
        flow = Flow([other])
        counting = Arrivals(flow)
        one.sendall(b"x" * 500)
        flow.moved[0] = 1000
        while counting.count().moved_bytes < 1500:
            pass
        assert counting.count().moved_bytes == 1500


def test_a_count_that_never_becomes_whole_is_the_last_of_its_time(told):
    told.out_of_order, told.queued, told.received = 1, 700, 42
    count = Arrivals(Flow([told])).whole(0.02)
    assert (count.moved_bytes, count.beyond_bytes) == (42, 700)


def test_what_the_kernel_gathers_for_the_reader_is_not_counted_as_left_by_it():
    with connected() as (one, other):
        other.sendall(b"." * 50_000)
        flow = Flow([one])
        flow.gathered = [30_000]
        seen = arrivals.Sampling(flow)
        until = time.monotonic() + 10
        while (count := Arrivals(flow).count()).unread != (50_000,):
            assert time.monotonic() < until
        seen.at_receiver(count)
        assert seen.of_receiver()["unread_bytes_median"] == 20_000
