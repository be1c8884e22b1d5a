"""Connections are watched from beside them, in a child that ends when it is told to."""

import math
import os
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from probes.host import socket_watch, tcp_info
from probes.host.sock_diag import Seen, Sockets, parse
from probes.host.socket_watch import (
    BUSY_BYTES,
    IDLE_SECONDS,
    LEAST_LOOKS,
    MOST_LOOKS,
    Connection,
    Look,
    Setting,
    Track,
    Watch,
    observe,
)
from tests import living

PAYLOAD = 1 << 20

Watching = Callable[[Setting], AbstractContextManager[list[Connection]]]
ALWAYS = 0.0, math.inf
"""All of a watch's time."""


def arrived(sender: socket.socket) -> bool:
    """Whether all that it sent is acknowledged.

    Not by tcp_info's bytes_sent: what was sent once more is counted twice there.
    """
    return living.until(lambda: not tcp_info.unacknowledged_bytes(sender))


class Copy:
    """A connection within this host, and payload that goes from its server to its client."""

    def __init__(self, stack: ExitStack, address: str = "127.0.0.1") -> None:
        listener = stack.enter_context(socket.create_server(("0.0.0.0", 0)))
        self.port = listener.getsockname()[1]
        there = ("127.0.0.1", self.port)
        self.client = stack.enter_context(socket.create_connection(there, 5, (address, 0)))
        self.server = stack.enter_context(listener.accept()[0])

    def move(self, count: int = PAYLOAD) -> None:
        """So many bytes, all of them read and acknowledged."""
        sending = threading.Thread(target=self.server.sendall, args=(bytes(count),))
        sending.start()
        while count:
            count -= len(self.client.recv(min(count, 1 << 18)))
        sending.join()
        assert arrived(self.server)


@pytest.fixture
def copy():
    with ExitStack() as stack:
        yield Copy(stack)


@pytest.fixture
def watched():
    """Watches while the block runs; what was seen in it is in the list afterwards."""

    @contextmanager
    def watching(setting: Setting) -> Iterator[list[Connection]]:
        reading, writing = os.pipe()
        seen: list[Connection] = []
        window: list[float] = []
        thread = threading.Thread(
            target=lambda: seen.extend(observe(setting, reading, lambda: window or None))
        )
        thread.start()
        try:
            yield seen
            window += ALWAYS
        finally:
            os.close(writing)
            thread.join(living.GENEROUS_SECONDS)
            os.close(reading)
            assert not thread.is_alive()

    return watching


@pytest.fixture
def looked_at(monkeypatch):
    """Waits until a watch has taken some looks more of as many connections."""
    taken: list[Track] = []
    take = Track.take
    monkeypatch.setattr(Track, "take", lambda *told: (take(*told), taken.append(told[0])))

    def wait(connections: int = 1) -> None:
        taken.clear()
        enough = 2 * LEAST_LOOKS
        assert living.until(
            lambda: sum(n >= enough for n in Counter(map(id, taken)).values()) >= connections
        )

    return wait


@pytest.mark.parametrize("serving", [True, False])
def test_each_end_of_a_copy_is_watched_by_its_side(copy, watched, looked_at, serving):
    setting = Setting((copy.port,), serving, "127.0.0.1")
    with watched(setting) as seen:
        looked_at()
        copy.move()
        looked_at()
    (told,) = seen
    names = ["{} {}".format(*end.getsockname()) for end in (copy.server, copy.client)]
    assert [told.own, told.peer] == (names if serving else names[::-1])
    moved = (PAYLOAD, 0) if serving else (0, PAYLOAD)
    assert (told.sent_bytes, told.received_bytes) == moved
    assert told.sender is not None and told.receiver is not None
    buffer = (copy.server if serving else copy.client).getsockopt(
        socket.SOL_SOCKET, socket.SO_SNDBUF
    )
    assert told.send_buffer_bytes is not None and told.send_buffer_bytes <= buffer
    program = Path("/proc/self/comm").read_text().strip()
    assert told.process == (program if serving else None)


def test_a_connection_that_begins_and_ends_meanwhile_is_seen_with_its_program():
    """A search meets it while it is open: one that no search met has no program to name."""
    with ExitStack() as stack, Sockets() as sockets:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        watch = Watch(Setting(listener.getsockname()[1:], True, "127.0.0.1"), sockets)
        watch.look()
        with (
            socket.create_connection(listener.getsockname()),
            listener.accept()[0] as server,
        ):
            server.sendall(b"." * 1000)
            assert arrived(server)
            watch.search_at = 0.0
            watch.look()
        watch.search_at = 0.0
        watch.look()
        (told,) = watch.connections(*ALWAYS)
    assert told.sent_bytes >= 1000
    assert told.process is not None


def test_a_connection_that_moved_next_to_nothing_is_not_told(copy, watched, looked_at):
    with ExitStack() as stack:
        idle = Copy(stack)
        with watched(Setting((copy.port, idle.port), True, "127.0.0.1")) as seen:
            looked_at(2)
            copy.move()
            idle.move(1000)
    assert [each.own for each in seen] == [f"127.0.0.1 {copy.port}"]


def test_a_watch_ends_by_itself(copy):
    reading, writing = os.pipe()
    assert observe(Setting((copy.port,), True, "", 0.1), reading, lambda: None) == []
    os.close(writing)
    os.close(reading)


def test_a_peer_behind_a_translated_address_is_found_by_who_serves_it(copy):
    setting = Setting((copy.port,), True, "192.0.2.7")
    with Sockets() as sockets:
        serving = Watch(setting, sockets)
        serving.look()
        assert len(serving.tracks) == 1
        asking = Watch(replace(setting, serving=False), sockets)
        asking.look()
        assert not asking.tracks


def test_among_a_busy_servers_other_clients_none_is_taken_for_ours(monkeypatch):
    monkeypatch.setattr(socket_watch, "MOST_WATCHED", 3)
    with ExitStack() as stack:
        ports = tuple(Copy(stack).port for _ in range(4))
        with Sockets() as sockets:
            watch = Watch(Setting(ports, True, "192.0.2.7"), sockets)
            watch.look()
            assert not watch.tracks and not watch.search_all


def test_no_more_are_watched_than_can_be_looked_at(monkeypatch):
    monkeypatch.setattr(socket_watch, "MOST_WATCHED", 3)
    with ExitStack() as stack:
        ports = tuple(Copy(stack).port for _ in range(5))
        with Sockets() as sockets:
            watch = Watch(Setting(ports, True, "127.0.0.1"), sockets)
            watch.look()
            assert len(watch.tracks) == 3
            first = next(iter(watch.tracks.values()))
            first.moved_at -= 60
            first.idle = True
            watch.search_at = 0.0
            watch.look()
            # the one that moved nothing for a minute made room, and the new one may be an old one
            assert len(watch.tracks) == 3
            assert first not in watch.tracks.values()
            assert not any(track.fresh for track in watch.tracks.values())


def test_one_that_is_gone_is_not_asked_for_again(copy):
    with Sockets() as sockets:
        watch = Watch(Setting((copy.port,), False, "127.0.0.1"), sockets)
        watch.look()
        (track,) = watch.tracks.values()
        copy.client.close()
        copy.server.close()
        watch.search_at = math.inf
        watch.look()
        assert track.gone
        looks = len(track.looks)
        watch.look()
        assert len(track.looks) == looks


def test_a_new_connections_bytes_are_counted_from_its_beginning(copy):
    """It may have carried much before the search that finds it."""
    with ExitStack() as stack, Sockets() as sockets:
        watch = Watch(Setting((copy.port,), True, "127.0.0.1"), sockets)
        copy.move(3 * PAYLOAD)
        watch.look()
        (old,) = watch.tracks.values()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            watch.setting = replace(watch.setting, ports=(copy.port, listener.getsockname()[1]))
            stack.enter_context(socket.create_connection(listener.getsockname()))
            server = stack.enter_context(listener.accept()[0])
        server.sendall(b"." * 1000)
        assert arrived(server)
        watch.search_at = 0.0
        watch.look()
        (new,) = (track for track in watch.tracks.values() if track is not old)
        assert old.moved_bytes(*ALWAYS) == (0, 0)
        assert new.moved_bytes(*ALWAYS) == (1000, 0)


CLIENT, SERVER = bytes([10, 0, 0, 1]), bytes([10, 0, 0, 2])
IDENTITY = struct.pack("!HH4s12x4s12x", 50000, 445, CLIENT, SERVER) + bytes(12)


def seen(sent: int = 0, received: int = 0, unread: int = 0, buffer: int = 87040) -> Seen:
    """A connection as the kernel tells of it, attributes and all."""
    info = bytearray(280)
    struct.pack_into("=QQ", info, 120, sent, received)
    told = {2: bytes(info), 4: b"cubic\0", 7: struct.pack("=9I", 0, 131072, 0, buffer, *[0] * 5)}
    raw = struct.pack("=BBBB48sIIIII", socket.AF_INET, 1, 0, 0, IDENTITY, 0, unread, 0, 0, 7)
    for kind, value in told.items():
        raw += struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)
    read = parse(raw)
    assert read is not None
    return read


def track(looks: Iterable[tuple[float, Seen]]) -> Track:
    found = None
    for now, each in looks:
        found = found or Track(each)
        found.find(now, each)
    assert found is not None
    return found


def test_bytes_are_those_between_the_looks_around_the_time():
    of = track((number / 10, seen(1000 * number, number)) for number in range(100))
    told = of.between(1.05, 2.05)
    assert (told.sent_bytes, told.received_bytes) == (11000, 11)
    assert told.looks == 10
    assert (told.own, told.peer) == ("10.0.0.1 50000", "10.0.0.2 445")


def test_a_time_that_begins_before_the_first_look_counts_from_it():
    of = track((number / 10, seen(1000 * number)) for number in range(5, 10))
    assert of.between(0.0, 99.0).sent_bytes == 4000


def test_too_few_looks_tell_of_the_bytes_but_not_of_who_limited():
    of = track((number, seen(1000 * number)) for number in range(50))
    few = of.between(10.5, 10.5 + LEAST_LOOKS - 1)
    assert (few.looks, few.sender, few.receiver) == (LEAST_LOOKS - 1, None, None)
    assert few.sent_bytes == 1000 * LEAST_LOOKS
    enough = of.between(10.5, 10.5 + LEAST_LOOKS)
    assert enough.sender is not None and enough.receiver is not None


@pytest.mark.long
def test_an_hour_is_kept_in_bounded_memory_from_its_beginning_to_its_end():
    of = track((number / 50, seen(number)) for number in range(180_000))
    assert MOST_LOOKS / 3 < len(of.looks) <= MOST_LOOKS
    assert of.looks[0] == Look(0.0, seen(0).raw)
    assert of.looks[-1].clock_seconds > 3590
    apart = {
        round(two.clock_seconds - one.clock_seconds, 3)
        for one, two in zip(of.looks[:-1], of.looks[1:], strict=True)
    }
    assert len(apart) == 1
    assert abs(of.between(900.0, 1800.0).sent_bytes - 45_000) < 500


def test_a_connection_is_idle_once_nothing_has_moved_for_a_while():
    looks = [(0.0, seen(1)), (10.0, seen(2)), (10.5, seen(2))]
    assert not track(looks).idle
    assert track([*looks, (10.0 + IDLE_SECONDS + 0.1, seen(2))]).idle


def test_a_connection_is_busy_where_it_moves_more_than_a_login():
    few = track([(0.0, seen(0)), (0.1, seen(5000, 6000))])
    assert not few.busy(0.1)
    many = track([(0.0, seen(0)), (0.1, seen(0, BUSY_BYTES))])
    assert many.busy(0.2)
    assert not many.busy(0.3 + IDLE_SECONDS)
