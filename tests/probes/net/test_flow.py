"""The threads of a transfer: what they count, when they end, and that they wait to be let go."""

from __future__ import annotations

import select
import socket
import threading
from contextlib import contextmanager

import pytest

from probes.files import payload
from probes.net import flow as flows
from probes.net.flow import Flow
from tests import living

RING = payload.make_ring(b"flow")
SOON_SECONDS = living.GENEROUS_SECONDS


@contextmanager
def pairs(count):
    """Connected TCP sockets: those that send and those that receive."""
    pairs_open = []
    try:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            for _ in range(count):
                sender = socket.create_connection(listener.getsockname())
                pairs_open.append((sender, listener.accept()[0]))
        yield [one for one, _ in pairs_open], [other for _, other in pairs_open]
    finally:
        for each in (end for pair in pairs_open for end in pair):
            each.close()


def writable(connections):
    """Returns the connections whose socket has room."""
    return select.select([], connections, [], 0)[1]


def source(move, buffer_bytes):
    """Returns the source from which `move` takes its payload."""
    return RING if move is flows.send else flows.payload_file(RING, buffer_bytes)


def send_all(move, buffer_bytes, monkeypatch, streams=1):
    """Sends until each of `streams` connections has moved bytes; returns both flows, released."""
    clock = living.FakeClock()
    monkeypatch.setattr(flows, "time", clock)
    with pairs(streams) as (senders, receivers):
        sending, receiving = Flow(senders), Flow(receivers)
        receiving.start_threads(flows.receive, 1 << 16, streams == 1)
        sending.start_threads(move, source(move, buffer_bytes), buffer_bytes, clock.time + 1)
        assert living.until(lambda: all(sending.totals))
        clock.time += 1
        assert sending.ended.wait(SOON_SECONDS) and receiving.ended.wait(SOON_SECONDS)
        for each in (sending, receiving):
            each.released.set()
        return sending, receiving


@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("buffer_bytes", [512, 100_000, payload.LONGEST_BLOCK_BYTES])
@pytest.mark.parametrize("move", [flows.send, flows.send_file])
def test_what_is_sent_arrives_and_is_counted_alike_at_both_ends(
    move, buffer_bytes, streams, monkeypatch
):
    sending, receiving = send_all(move, buffer_bytes, monkeypatch, streams)
    assert sending.errors == receiving.errors == []
    assert sending.totals == receiving.totals
    for moved_bytes, calls in zip(sending.totals, sending.calls, strict=True):
        assert 0 < moved_bytes <= calls * buffer_bytes


@pytest.mark.parametrize(
    ("move", "period_bytes"), [(flows.send, flows.REGION_BYTES), (flows.send_file, 4_000_000)]
)
def test_the_payload_begins_again_only_beyond_what_a_compressor_looks_back(move, period_bytes):
    assert period_bytes > 64 << 10
    with pairs(1) as (senders, receivers):
        sending = Flow(senders)
        sending.start_threads(move, source(move, 1 << 16), 1 << 16, living.deadline_in())
        got = bytearray()
        while len(got) < 4 << 20:
            got += receivers[0].recv(1 << 16)
        sending.stop()
        assert sending.ended.wait(SOON_SECONDS)
        sending.released.set()
    pieces = [bytes(got[i : i + 64]) for i in range(0, period_bytes, 64)]
    assert len(set(pieces)) == len(pieces)


@pytest.mark.parametrize("move", [flows.send, flows.send_file])
@pytest.mark.long
def test_a_call_that_waits_for_a_receiver_ends_with_the_stop(move):
    with pairs(1) as (senders, receivers):
        sending = Flow(senders)
        size = payload.LONGEST_BLOCK_BYTES
        sending.start_threads(move, source(move, size), size, living.deadline_in(2.0))
        assert not sending.ended.wait(2.5)  # nobody reads: the first call is still in the kernel
        sending.stop(socket.SHUT_WR)
        assert sending.ended.wait(SOON_SECONDS)
        sending.released.set()
        assert sending.errors == []
        receivers[0].close()


def test_what_went_before_a_stop_is_counted_to_the_byte():
    with pairs(1) as (senders, receivers):
        sending, receiving = Flow(senders), Flow(receivers)
        sending.start_threads(flows.send, RING, 512, living.deadline_in())
        assert living.until(lambda: not writable(senders))  # full in the midst of a group
        sending.stop(socket.SHUT_WR)
        receiving.start_threads(flows.receive, 1 << 16)
        assert sending.ended.wait(SOON_SECONDS) and receiving.ended.wait(SOON_SECONDS)
        for each in (sending, receiving):
            each.released.set()
    assert len(sending.errors) == 1  # it was stopped before its time
    assert sending.totals == receiving.totals


def test_a_connection_that_breaks_before_its_time_is_an_error_with_a_reason():
    with pairs(1) as (senders, receivers):
        sending = Flow(senders)
        sending.start_threads(flows.send, RING, 1 << 16, living.deadline_in())
        receivers[0].close()
        assert sending.ended.wait(SOON_SECONDS)
        sending.released.set()
    assert sending.errors and sending.error_text() == f": {sending.errors[0]}"


def test_the_first_end_is_told_before_the_last():
    with pairs(2) as (senders, receivers):
        receiving = Flow(receivers)
        receiving.start_threads(flows.receive, 1 << 16)
        senders[0].shutdown(socket.SHUT_WR)
        assert receiving.one_ended.wait(SOON_SECONDS) and not receiving.ended.is_set()
        senders[1].shutdown(socket.SHUT_WR)
        assert receiving.ended.wait(SOON_SECONDS)
        receiving.released.set()


def test_the_threads_stay_until_they_are_let_go():
    threads = set(threading.enumerate())
    with pairs(2) as (senders, receivers):
        receiving = Flow(receivers)
        receiving.start_threads(flows.receive, 1 << 16)
        for each in senders:
            each.shutdown(socket.SHUT_WR)
        assert receiving.ended.wait(SOON_SECONDS)
        ours = set(threading.enumerate()) - threads
        assert len(ours) == 2
        receiving.released.set()
        for each in ours:
            each.join(SOON_SECONDS)
            assert not each.is_alive()


def test_whatever_goes_wrong_in_a_thread_ends_the_flow():
    with pairs(1) as (_, receivers):
        receiving = Flow(receivers)

        def refuse(flow, index):
            raise MemoryError

        receiving.start_threads(refuse)
        assert receiving.ended.wait(SOON_SECONDS)
        receiving.released.set()
    assert receiving.error_text() == ": MemoryError"


def test_the_busiest_is_the_one_that_moved_most():
    with pairs(3) as (senders, _):
        flow = Flow(senders)
        flow.totals[:] = [5, 9, 7]
        assert flow.busiest == 1


def test_the_first_bytes_are_told_before_a_large_buffer_is_full():
    with pairs(1) as (senders, receivers):
        receiving = Flow(receivers)
        receiving.start_threads(flows.receive, 4 << 20)
        senders[0].sendall(b"first")
        assert living.until(lambda: receiving.totals == [5])
        senders[0].shutdown(socket.SHUT_WR)
        assert receiving.ended.wait(SOON_SECONDS)
        receiving.released.set()


@pytest.mark.parametrize(
    ("bytes_per_second", "expected"),
    [(125e6, 0), (400e6, 200_000), (40e9, flows.MOST_GATHERED_BYTES)],
)
def test_a_reader_is_woken_for_each_segment_unless_the_rate_is_high(bytes_per_second, expected):
    with pairs(1) as (_, receivers):
        receivers[0].setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
        room = receivers[0].getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        flow = Flow(receivers)
        flow.gather(bytes_per_second)
        assert flow.gathered == [min(expected, room // 8)]
        mark = receivers[0].getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT)
        assert mark == max(1, flow.gathered[0])


def test_what_is_gathered_is_neither_lost_nor_kept_back_at_the_end():
    with pairs(1) as (senders, receivers):
        receiving = Flow(receivers)
        receiving.gather(40e9)
        receiving.start_threads(flows.receive, 1 << 16)
        senders[0].sendall(b"less than the mark")
        senders[0].shutdown(socket.SHUT_WR)
        assert receiving.ended.wait(SOON_SECONDS)
        receiving.released.set()
        assert receiving.totals == [len(b"less than the mark")]
