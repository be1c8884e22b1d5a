"""Connections are watched from beside them, in a child that ends when it is told to."""

import math
import os
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from probes.core.copy_trace import ThreadLook
from probes.sockets.sock_diag import Sockets
from probes.system.proc import ProcessStat
from probes.watch import socket_watch
from probes.watch.connection_track import LEAST_LOOKS, Connection, Track
from probes.watch.socket_watch import OWNER_SEARCHES, Setting, Watch, observe
from probes.watch.thread_states import Threads
from tests import living

PAYLOAD = 1 << 20

Watching = Callable[[Setting], AbstractContextManager[list[Connection]]]
ALWAYS = 0.0, math.inf
"""All of a watch's time."""


def has_arrived(sender: socket.socket) -> bool:
    """Whether all that the sender sent is acknowledged.

    Not by tcp_info's bytes_sent: what was sent once more is counted twice there.
    """
    return living.until(lambda: not living.unacknowledged_bytes(sender))


class Copy:
    """A connection within this host, and payload that goes from its server to its client."""

    def __init__(self, stack: ExitStack, address: str = "127.0.0.1") -> None:
        listener = stack.enter_context(socket.create_server(("0.0.0.0", 0)))
        self.port = listener.getsockname()[1]
        there = ("127.0.0.1", self.port)
        self.client = stack.enter_context(socket.create_connection(there, 5, (address, 0)))
        self.server = stack.enter_context(listener.accept()[0])

    def move(self, count: int = PAYLOAD) -> None:
        """Moves so many bytes, all of them read and acknowledged."""
        sending = threading.Thread(target=self.server.sendall, args=(bytes(count),))
        sending.start()
        while count:
            count -= len(self.client.recv(min(count, 1 << 18)))
        sending.join()
        assert has_arrived(self.server)


@pytest.fixture
def copy():
    with ExitStack() as stack:
        yield Copy(stack)


@contextmanager
def watch_links(setting: Setting) -> Iterator[list[Connection]]:
    """Watches while the block runs; the list holds its connections afterwards."""
    reading, writing = os.pipe()
    links: list[Connection] = []
    window: list[float] = []
    thread = threading.Thread(
        target=lambda: links.extend(observe(setting, reading, lambda: window or None).connections)
    )
    thread.start()
    try:
        yield links
        window += ALWAYS
    finally:
        os.close(writing)
        thread.join(living.GENEROUS_SECONDS)
        os.close(reading)
        assert not thread.is_alive()


@pytest.fixture
def looked_at(monkeypatch):
    """Waits until a watch has taken some looks more of as many connections."""
    taken: list[Track] = []
    take = Track.take
    monkeypatch.setattr(Track, "take", lambda *each: (take(*each), taken.append(each[0])))

    def wait(connections: int = 1) -> None:
        taken.clear()
        enough = 2 * LEAST_LOOKS
        assert living.until(
            lambda: sum(n >= enough for n in Counter(map(id, taken)).values()) >= connections
        )

    return wait


@pytest.mark.parametrize("serving", [True, False])
def test_each_end_of_a_copy_is_watched_by_its_side(copy, looked_at, serving):
    setting = Setting((copy.port,), serving, "127.0.0.1")
    with watch_links(setting) as connections:
        looked_at()
        copy.move()
        looked_at()
    (link,) = connections
    names = ["{} {}".format(*end.getsockname()) for end in (copy.server, copy.client)]
    assert [link.local, link.peer] == (names if serving else names[::-1])
    byte_counts = (PAYLOAD, 0) if serving else (0, PAYLOAD)
    assert (link.sent_bytes, link.received_bytes) == byte_counts
    assert link.sender is not None and link.receiver is not None
    buffer = (copy.server if serving else copy.client).getsockopt(
        socket.SOL_SOCKET, socket.SO_SNDBUF
    )
    assert link.send_buffer_bytes is not None and link.send_buffer_bytes <= buffer
    program = Path("/proc/self/comm").read_text().strip()
    assert link.process == (program if serving else None)


def test_a_connection_that_begins_and_ends_meanwhile_is_seen_with_its_program():
    """A search meets it while it is open: one that no search met has no program to name."""
    with ExitStack() as stack, Sockets() as sockets:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        watch = Watch(Setting(listener.getsockname()[1:], True, "127.0.0.1"), sockets)
        watch.look()
        with socket.create_connection(listener.getsockname()), listener.accept()[0] as server:
            server.sendall(b"." * 1000)
            assert has_arrived(server)
            watch.search_at = 0.0
            watch.look()
        watch.search_at = 0.0
        watch.look()
        (link,) = watch.connections(*ALWAYS)
    assert link.sent_bytes >= 1000
    assert link.process is not None


def test_a_connection_that_moved_next_to_nothing_is_not_told(copy, looked_at):
    with ExitStack() as stack:
        idle = Copy(stack)
        with watch_links(Setting((copy.port, idle.port), True, "127.0.0.1")) as connections:
            looked_at(2)
            copy.move()
            idle.move(1000)
    assert [each.local for each in connections] == [f"127.0.0.1 {copy.port}"]


def test_a_watch_ends_by_itself(copy):
    reading, writing = os.pipe()
    assert observe(Setting((copy.port,), True, "", 0.1), reading, lambda: None).connections == ()
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
        assert track.has_ended
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
        assert has_arrived(server)
        watch.search_at = 0.0
        watch.look()
        (new,) = (track for track in watch.tracks.values() if track is not old)
        assert old.moved_bytes(*ALWAYS) == (0, 0)
        assert new.moved_bytes(*ALWAYS) == (1000, 0)


def test_a_servers_threads_and_counters_are_looked_at_beside_its_connection(copy, monkeypatch):
    pid = os.getpid()
    monkeypatch.setattr(socket_watch, "servers_of_peer", lambda *_: {pid})
    reading, writing = os.pipe()
    os.close(writing)
    with Sockets() as sockets, closing(Threads()) as threads:
        watch = Watch(Setting((copy.port,), True, "127.0.0.1"), sockets, threads)
        watch.look()
        copy.move()
        watch.search_at = 0.0
        watch.run(reading)
        watch.run(reading)
    os.close(reading)
    observed = watch.observations(*ALWAYS)
    assert len(observed.threads) >= 2
    (connection,) = observed.connections
    assert connection.rows and observed.counts
    assert all(isinstance(row, ThreadLook) for row in observed.threads)


def stat(pid: int, started: int, kernel: bool = False) -> ProcessStat:
    return ProcessStat(pid, "smbd", 1, kernel, 0.0, 0.0, started, None)


@pytest.mark.parametrize(
    ("stats", "server"),
    [
        ([stat(5, 10)], {5}),
        ([stat(5, 10), stat(6, 2000)], {6}),  # the other one serves somebody else
        ([stat(5, 10), stat(6, 20)], set()),
        ([stat(5, 10, kernel=True)], set()),
    ],
)
def test_of_several_servers_the_one_that_began_with_the_copy_is_its(monkeypatch, stats, server):
    processes = {each.pid: each for each in stats}
    monkeypatch.setattr(socket_watch, "servers_of_peer", lambda *_: set(processes))
    with Sockets() as sockets:
        watch = Watch(Setting((445,), True, "127.0.0.1"), sockets, began_ticks=1000)
    assert watch._find_server(processes) == server


def test_a_server_that_is_not_there_yet_is_looked_for_some_times(copy, monkeypatch):
    searches: list[int] = []
    monkeypatch.setattr(socket_watch, "servers_of_peer", lambda *_: searches.append(1) or set())
    with Sockets() as sockets:
        watch = Watch(Setting((copy.port,), True, "127.0.0.1"), sockets)
        watch.look()
        for _ in range(5):
            copy.move()
            watch.search_at = 0.0
            watch.look()
    assert len(searches) == OWNER_SEARCHES


def test_a_host_that_serves_nothing_has_no_threads_to_look_at(copy):
    with Sockets() as sockets:
        watch = Watch(Setting((copy.port,), False, "127.0.0.1"), sockets)
        watch.look()
    assert watch.observations(*ALWAYS).threads == ()


def run_twice(watch: Watch, between: Callable[[], None]) -> None:
    """Runs a watch before and after some work, and lets it end."""
    reading, writing = os.pipe()
    os.close(writing)
    for work in (between, lambda: None):
        for _ in range(LEAST_LOOKS):
            watch.run(reading)
        work()
    for _ in range(LEAST_LOOKS):
        watch.run(reading)
    os.close(reading)


def test_of_a_copy_that_others_make_its_own_connection_and_its_programs_are_watched(copy):
    """Other connections to that port are not watched, and no file server is looked for."""
    ends = copy.client.getsockname()[1], copy.port
    other = socket.create_connection(("127.0.0.1", copy.port))
    with other, Sockets() as sockets, closing(Threads()) as threads:
        setting = Setting((copy.port,), False, "127.0.0.1", ends=ends, pids=(os.getpid(),))
        watch = Watch(setting, sockets, threads)
        run_twice(watch, copy.move)
    observed = watch.observations(*ALWAYS)
    assert [each.local for each in observed.connections] == [f"127.0.0.1 {ends[0]}"]
    assert observed.connections[0].received_bytes == PAYLOAD
    assert len(observed.threads) > 2 and len(observed.bins) > 1
    assert observed.io_looks[0][1:] == (0, 0, 0, 0) and len(observed.io_looks) > 2


def test_a_copy_between_folders_of_this_host_has_no_connection(tmp_path):
    with closing(Threads()) as threads:
        watch = Watch(Setting((), False, pids=(os.getpid(),)), None, threads)
        run_twice(watch, lambda: (tmp_path / "file").write_bytes(bytes(1 << 20)) and None)
    copy = watch.observations(*ALWAYS)
    assert copy.connections == () and (copy.io_looks[-1][2] or 0) >= 1 << 20 and copy.threads
