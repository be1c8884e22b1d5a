"""A path with a delay takes its time, loses what is asked for, leaves no trace."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import delay
import pytest
from delay import DelayedPath, Line, delay_path, forward, missing

from tests.living import FakeClock

MIB = 1 << 20


@pytest.fixture(autouse=True)
def _needs_a_path() -> None:
    if lacks := missing():
        pytest.skip("not run: " + "; ".join(lacks))


@contextlib.contextmanager
def _connect(path: DelayedPath) -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection over it: the client's end and the server's."""
    with path.server.entered():
        listener = socket.create_server((path.server.address, 0))
    with path.client.entered():
        client = socket.create_connection(listener.getsockname())
    server, _ = listener.accept()
    with listener, client, server:
        yield client, server


def _transfer(client: socket.socket, server: socket.socket, content: bytes) -> bytes:
    sender = threading.Thread(target=client.sendall, args=(content,))
    sender.start()
    arrived = bytearray()
    while len(arrived) < len(content):
        arrived += server.recv(MIB)
    sender.join()
    return bytes(arrived)


@pytest.mark.long
def test_all_that_is_sent_arrives_in_order_and_no_earlier_than_the_delay() -> None:
    with delay_path(0.02) as path, _connect(path) as (client, server):
        began = time.monotonic()
        assert _transfer(client, server, b"?") == b"?"
        assert _transfer(server, client, b"!") == b"!"
        assert time.monotonic() - began >= path.round_trip_seconds
        content = os.urandom(8 * MIB)
        assert _transfer(client, server, content) == content


def test_a_planted_rate_is_not_exceeded(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that only the forwarder's waiting moves."""
    clock = FakeClock(0.0)
    times: list[float] = []
    taken, sender = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    taken.setblocking(False)

    def wait(*arguments: Any) -> None:
        if arguments[3] is None:
            raise EOFError
        clock.time += arguments[3]

    writing = SimpleNamespace(read=os.read, write=lambda *_: times.append(clock.time))
    for name, stands in (
        ("time", clock),
        ("select", SimpleNamespace(select=wait)),
        ("os", writing),
    ):
        monkeypatch.setattr(delay, name, stands)
    with taken, sender:
        for _ in range(20):
            sender.send(bytes(1000))
        with pytest.raises(EOFError):
            forward(taken.fileno(), 0, Line(0.001, bytes_per_second=20e3))
    assert times == pytest.approx([(number + 1) / 20 for number in range(20)])


def _arrivals(count: int, length: int, **poorer: Any) -> int:
    """Returns how many of that many datagrams sent in one go come out at the far end."""
    with delay_path(0.005, **poorer) as path, ExitStack() as stack:
        with path.server.entered():
            far = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            far.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * MIB)
            far.bind((path.server.address, 0))
        with path.client.entered():
            near = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        far.settimeout(0.3)
        for _ in range(20):  # the first ask for the neighbour's address, and some may be lost
            near.sendto(b"", far.getsockname())
            with contextlib.suppress(TimeoutError):
                far.recv(1)
                break
        for _ in range(count):
            near.sendto(bytes(length), far.getsockname())
        arrived = 0
        with contextlib.suppress(TimeoutError):
            while far.recv(length) is not None:
                arrived += 1
        return arrived


@pytest.mark.long
def test_packets_are_lost_at_about_the_planted_ratio_and_not_without_it() -> None:
    assert _arrivals(1000, 100) == 1000
    assert 700 < _arrivals(1000, 100, loss_ratio=0.2) < 900


@pytest.mark.long
def test_a_shallow_queue_drops_what_does_not_fit() -> None:
    rate = 1e6
    assert _arrivals(100, 1000, bytes_per_second=rate) == 100
    assert 15 < _arrivals(100, 1000, bytes_per_second=rate, queue_bytes=20_000) < 60


def test_a_queue_without_a_rate_is_refused() -> None:
    with pytest.raises(ValueError), delay_path(0.001, queue_bytes=20_000):
        pass


@pytest.mark.long
def test_packets_longer_than_what_passes_vanish_and_short_ones_pass() -> None:
    hole = {"mtu_bytes": 1500, "largest_bytes": 1300}
    assert _arrivals(10, 1300 - 28, **hole) == 10
    assert _arrivals(10, 1301 - 28, **hole) == 0


def test_segments_suit_the_devices_frames() -> None:
    with delay_path(0.001, mtu_bytes=1500) as path, _connect(path) as (client, _):
        segment = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
        assert segment == 1500 - 40 - 12  # IPv4, TCP, timestamps


def test_it_leaves_no_device_no_namespace_and_no_process() -> None:
    def children() -> str:
        return Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()

    def namespaces() -> set[str]:
        lines = subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True).stdout
        return {str(Path("/proc/thread-self/ns/net").readlink()), lines}

    earlier = namespaces(), children(), sorted(os.listdir("/proc/self/fd"))
    with pytest.raises(ZeroDivisionError), delay_path(0.001) as path, path.server.entered():
        assert namespaces() != earlier[0]
        raise ZeroDivisionError
    assert (namespaces(), children(), sorted(os.listdir("/proc/self/fd"))) == earlier
