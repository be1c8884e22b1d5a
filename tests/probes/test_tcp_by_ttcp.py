"""Classic ttcp at the other end: one connection, its bytes the payload, its close the end."""

import contextlib
import select
import socket
import struct
import threading
from functools import partial

import pytest

from probes import tcp_by_ttcp
from probes.net import flow
from probes.net.flow import Flow
from probes.records import Endpoint
from probes.stage import Unavailable
from tests import living


@pytest.fixture
def run(run_stage):
    """One run of the stage."""
    return partial(run_stage, tcp_by_ttcp)


@pytest.fixture
def clock(clock, monkeypatch):
    """The stage's too."""
    monkeypatch.setattr(tcp_by_ttcp, "time", clock)
    return clock


class Sink(threading.Thread):
    """What `ttcp -r -s` does: takes one connection, reads it to its end, closes."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.got = 0

    def run(self):
        connection, _ = self.listener.accept()
        with connection:
            while part := connection.recv(1 << 16):
                self.got += len(part)


def called(port):
    """A connection to a port, once somebody listens there."""
    made = []

    def answered():
        with contextlib.suppress(ConnectionRefusedError):
            made.append(socket.create_connection(("127.0.0.1", port)))
        return made

    assert living.until(answered)
    return made[0]


def source(port, moved):
    """What `ttcp -t -s` does: connects, sends its buffers, closes."""
    with called(port) as connection:
        for _ in range(moved // 8192):
            connection.sendall(b"\xaa" * 8192)


def test_a_push_is_what_the_sink_has_read(drained, clock):
    sink = Sink()
    sink.start()

    def until_more_has_come():
        setting = tcp_by_ttcp.Setting("push", 1, seconds=0.5)
        running = tcp_by_ttcp.initiate(setting, Endpoint(host="127.0.0.1", port=sink.port))
        yield next(running)
        enough = sink.got + (16 << 20)  # more than the buffers hold
        assert living.until(lambda: sink.got > enough)
        clock.time += setting.seconds
        return (yield from running)

    samples, details = drained(until_more_has_come())
    sink.join(living.GENEROUS_SECONDS)
    moved = [each.moved_bytes for each in samples]
    assert moved == sorted(moved)
    assert 0 < moved[-1] < sink.got
    assert details["engine"] == "ttcp"
    assert details["congestion_control"]


def test_a_pull_takes_what_that_host_sends(run):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    size = 8192 * 2048
    threading.Thread(target=source, args=(port, size), daemon=True).start()
    setting = tcp_by_ttcp.Setting("pull", 1, seconds=2.0)
    samples, _ = run(setting, Endpoint(host="127.0.0.1", port=port))
    assert samples[-1].moved_bytes == size


def leaving_early(listener, made, clock):
    """A receiver that takes little and then resets the connection, after the sender's time."""
    connection, _ = listener.accept()
    connection.recv(1 << 16)
    assert living.until(lambda: not select.select([], made[0].connections, [], 0)[1])
    clock.time += 1.0
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def test_what_waits_in_our_own_buffer_when_the_receiver_leaves_was_not_moved(
    run, clock, monkeypatch
):
    made = []
    monkeypatch.setattr(tcp_by_ttcp, "Flow", lambda each: made.append(Flow(each)) or made[0])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=leaving_early, args=(listener, made, clock), daemon=True).start()
        peer = Endpoint(host="127.0.0.1", port=listener.getsockname()[1])
        with pytest.raises(RuntimeError, match="before it had received all"):
            run(tcp_by_ttcp.Setting("push", seconds=0.2), peer)


def answering_for_ever(listener):
    """A receiver that never closes, and says something now and then."""
    connection, _ = listener.accept()
    with connection, contextlib.suppress(OSError):
        while True:
            connection.recv(1 << 20)
            connection.sendall(b"x")


def test_a_receiver_that_talks_for_ever_extends_nothing(run, monkeypatch):
    clock = living.FakeClock(step=0.05)
    for module in (tcp_by_ttcp, flow):
        monkeypatch.setattr(module, "time", clock)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=answering_for_ever, args=(listener,), daemon=True).start()
        peer = Endpoint(host="127.0.0.1", port=listener.getsockname()[1])
        with pytest.raises(RuntimeError, match="did not end after the last byte"):
            run(tcp_by_ttcp.Setting("push", seconds=0.2), peer)


@pytest.mark.parametrize(("verb", "remedy"), [("push", "ttcp -r -s"), ("pull", "ttcp -t -s")])
def test_nobody_there_or_who_calls_is_a_reason_with_a_remedy(run, monkeypatch, verb, remedy):
    monkeypatch.setattr(tcp_by_ttcp, "CALL_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unavailable, match=remedy):
        run(tcp_by_ttcp.Setting(verb), Endpoint(host="127.0.0.1", port=port))


def turned_away(port, clock):
    """Calls, is closed without a word, and calls once more when the time is over."""
    with called(port) as connection:
        assert connection.recv(1) == b""
    clock.time += living.GENEROUS_SECONDS
    with contextlib.suppress(OSError):
        socket.create_connection(("127.0.0.1", port)).close()


def test_a_caller_from_elsewhere_is_not_taken(run, clock, monkeypatch):
    monkeypatch.setattr(tcp_by_ttcp, "CALL_SECONDS", living.GENEROUS_SECONDS)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    threading.Thread(target=turned_away, args=(port, clock), daemon=True).start()
    with pytest.raises(Unavailable, match="no connection from 127.0.0.9"):
        run(tcp_by_ttcp.Setting("pull"), Endpoint(host="127.0.0.9", port=port))


def test_several_streams_are_not_its_affair(run):
    with pytest.raises(Unavailable, match="one stream"):
        run(tcp_by_ttcp.Setting("push", 4), Endpoint(host="127.0.0.1"))
