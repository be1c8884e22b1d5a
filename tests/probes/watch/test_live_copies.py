"""All copies of a host are told apart by their connections, each with its rate and programs."""

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from probes.core.stage import Refused
from probes.sockets.sock_diag import Sockets
from probes.watch import live_copies, running_copies
from probes.watch.live_copies import QUIET_SECONDS, CopyFilter, LiveCopy, watch
from tests.living import FakeClock

NOBODY = 2**22 + 1
SENT = 1 << 18


@dataclass
class Pair:
    """Both ends of a connection on this host, the server's port being the listener's."""

    client: socket.socket
    server: socket.socket

    def push(self) -> None:
        self.client.sendall(bytes(SENT))
        self.server.recv(SENT, socket.MSG_WAITALL)

    def pull(self) -> None:
        self.server.sendall(bytes(SENT))
        self.client.recv(SENT, socket.MSG_WAITALL)


@dataclass
class Host:
    """A host's connections, and the watch of them."""

    pairs: list[Pair]
    live: live_copies._Live
    clock: FakeClock

    def second(self) -> tuple[LiveCopy, ...]:
        """Returns the copies after one second, with a search and a look at each copy before."""
        self.clock.time += 1.0
        target = self.live.target
        programs = running_copies.candidates(
            self.live.sockets, target, *running_copies.family_of(target.pid)
        )
        self.live.search(self.clock.now(), programs)
        for each in self.live.copies.values():
            each.watch.once()
        return self.live.snapshots(self.clock.now())


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    clock = FakeClock()
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        pairs = []
        for _ in range(2):
            client = stack.enter_context(socket.create_connection(listener.getsockname()))
            pairs.append(Pair(client, stack.enter_context(listener.accept()[0])))
        ports = (listener.getsockname()[1],)
        for name in ("SMB_PORTS", "FILE_PORTS"):
            monkeypatch.setattr(running_copies, name, ports)
        for module in (running_copies, live_copies, live_copies.Watch.once.__globals__):
            if isinstance(module, dict):
                monkeypatch.setitem(module, "time", clock)
            else:
                monkeypatch.setattr(module, "time", clock)
        sockets = stack.enter_context(Sockets())
        yield Host(pairs, live_copies._Live(sockets, CopyFilter()), clock)


def test_each_connection_that_moves_is_a_copy_with_its_way_rate_and_program(host: Host) -> None:
    assert host.second() == ()
    for _ in range(3):
        host.pairs[0].push()
        host.pairs[1].pull()
        copies = host.second()
    by_port = {each.running.link.own_port: each for each in copies if each.running.link}
    ends = [each.client.getsockname()[1] for each in host.pairs]
    assert by_port.keys() == set(ends)
    pushed, pulled = (by_port[each] for each in ends)
    assert (
        pushed.running.moved_bytes["sent_bytes"]
        == pulled.running.moved_bytes["received_bytes"]
        == SENT
    )
    assert os.getpid() in pushed.running.pids
    assert not pushed.running.link.serving


def test_of_several_copies_each_has_its_turn_to_be_told_whole(host: Host) -> None:
    host.second()
    turns: list[tuple[bool, ...]] = []
    for _ in range(6):
        for each in host.pairs:
            each.push()
        turns.append(tuple(each.observed is not None for each in host.second()))
    assert all(sum(each) == 1 for each in turns)
    assert {(True, False), (False, True)} <= set(turns)


def test_a_copy_that_rests_or_has_ended_is_shown_no_more(host: Host) -> None:
    host.second()
    for _ in range(3):
        for each in host.pairs:
            each.push()
        copies = host.second()
    assert len(copies) == 2
    host.pairs[0].server.close()
    host.pairs[0].client.close()
    host.pairs[1].push()
    assert len(host.second()) == 1
    for _ in range(int(QUIET_SECONDS) + 1):
        copies = host.second()
    assert copies == ()


def test_what_ends_while_its_programs_are_looked_for_is_no_copy(host: Host) -> None:
    host.second()
    pair = host.pairs[0]
    pair.push()

    def ending(**arguments: object) -> object:
        pair.server.close()
        pair.client.close()
        return running_copies.Running(None, (), None, None, None, {})

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(running_copies, "find", lambda *arguments, **options: ending())
        assert host.second() == ()


def test_a_slow_copy_stays_and_what_was_forgotten_holds_no_descriptor(host: Host) -> None:
    host.second()
    descriptors = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        host.pairs[0].push()
        host.second()
    for _ in range(12):
        host.pairs[0].client.sendall(bytes(1 << 15))
        host.pairs[0].server.recv(1 << 15, socket.MSG_WAITALL)
        assert len(host.second()) == 1
    assert len(os.listdir("/proc/self/fd")) > descriptors
    for _ in range(int(QUIET_SECONDS) + 1):
        copies = host.second()
    assert copies == ()
    assert len(os.listdir("/proc/self/fd")) == descriptors


def test_a_copy_that_lasts_for_days_keeps_few_looks(host: Host) -> None:
    host.second()
    for _ in range(2):
        host.pairs[0].push()
        host.second()
    (copy,) = host.live.copies.values()
    for _ in range(3000):
        copy.watch.once()
    copy.track.every = 64
    host.pairs[0].push()
    host.second()
    assert len(copy.track.looks) <= live_copies.KEPT_LOOKS and copy.track.every == 1


def test_a_process_that_is_none_is_refused() -> None:
    reading, writing = os.pipe()
    try:
        with pytest.raises(Refused, match="not found"):
            watch(lambda copies, unlisted, used: None, reading, NOBODY, "")
    finally:
        os.close(reading)
        os.close(writing)


def test_a_watch_tells_until_its_descriptor_can_be_read() -> None:
    reading, writing = os.pipe()
    reports: list[tuple[LiveCopy, ...]] = []

    def tell(copies: tuple[LiveCopy, ...], unlisted: int, cpu_seconds: float) -> None:
        reports.append(copies)
        assert cpu_seconds >= 0
        os.close(writing)

    try:
        watch(tell, reading, 0, "127.0.0.1")
    finally:
        os.close(reading)
    assert len(reports) == 1
