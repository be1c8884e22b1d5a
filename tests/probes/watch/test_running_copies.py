"""The copy that runs is found by its process, its other host, or as the busiest of all."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from probes.core.stage import Refused, Unavailable
from probes.files.open_files import Place
from probes.watch import running_copies
from probes.watch.running_copies import Running, busiest_server, find
from tests.living import FakeClock, connected, unacknowledged_bytes, until

NOBODY = 2**22 + 1


@contextmanager
def transfer() -> Iterator[tuple[tuple[str, int], tuple[str, int]]]:
    """A connection of this process that moves between two looks; its client's end and server's."""
    with connected() as (server, client):

        class Moving(FakeClock):
            def sleep(self, seconds: float) -> None:
                client.sendall(bytes(1 << 16))
                assert len(server.recv(1 << 16, socket.MSG_WAITALL)) == 1 << 16
                assert until(lambda: not unacknowledged_bytes(client))

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(running_copies, "time", Moving())
            yield client.getsockname(), server.getsockname()


def look(**changes: Any) -> Running:
    empty: dict[str, Any] = {"pid": 0, "address": "", "own_address": "", "own_port": 0}
    empty.update(peer_address="", peer_port=0, look_seconds=0.0)
    return find(**{**empty, **changes})


def test_a_process_is_found_with_its_connection():
    with transfer() as (client, server):
        running = look(pid=os.getpid())
    assert running.link is not None and os.getpid() in running.pids
    ends = {(running.link.own_address, running.link.own_port)}
    assert ends <= {client, server} and not running.link.kernel
    assert running.moved_bytes["sent_bytes"] + running.moved_bytes["received_bytes"] > 0


def test_the_other_end_is_found_by_the_addresses_that_were_told():
    with transfer() as (client, server):
        running = look(
            own_address=server[0], own_port=server[1], peer_address=client[0], peer_port=client[1]
        )
    assert running.link is not None
    assert (running.link.own_port, running.link.peer_port) == (server[1], client[1])
    assert running.moved_bytes["received_bytes"] > 0


def test_the_busiest_connection_is_the_copys(monkeypatch):
    """Without a process or a host to go by."""
    with transfer() as (client, server):
        monkeypatch.setattr(running_copies, "SMB_PORTS", (server[1],))
        monkeypatch.setattr(running_copies, "FILE_PORTS", (server[1],))
        running = look()
    assert running.link is not None and not running.link.serving
    assert (running.link.own_port, running.link.peer_port) == (client[1], server[1])
    assert running.program is not None


def test_a_host_with_a_connection_that_moves_is_found():
    with transfer():
        assert look(address="127.0.0.1").link is not None


def test_the_connection_of_a_fuse_mount_is_one_to_a_file_servers_port(monkeypatch):
    """Its mount names no address, and its socket is the daemon's: both move the copy's bytes."""
    mounted = Place("/mnt", False, "fuse.smbnetfs", None, True, None, 0, None)
    monkeypatch.setattr(running_copies, "_remotes", lambda family: [mounted])
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as program:
        with transfer() as (client, server):
            monkeypatch.setattr(running_copies, "SMB_PORTS", (server[1],))
            running = look(pid=program.pid)
        program.communicate(b"\n")
    assert running.link is not None and running.link.own_port == client[1]
    assert running.pids == (program.pid, os.getpid())


@pytest.mark.parametrize(
    ("earlier", "later", "busiest"),
    [
        ({7: 1.0, 8: 1.0, 9: 5.0}, {7: 1.5, 8: 1.01, 9: 5.0}, (7,)),
        ({7: 1.0, 8: 1.0}, {7: 1.5, 8: 1.3}, ()),
        ({7: 1.0}, {7: 1.0, 8: 9.0}, ()),
        ({7: 1.0, 8: 1.0}, {7: 1.001, 8: 1.0}, ()),
        ({}, {}, ()),
    ],
    ids=["one", "two", "new", "keepalive", "none"],
)
def test_the_file_servers_process_is_the_only_one_that_works(earlier, later, busiest):
    """Whoever is not root does not see whose socket is whose."""
    assert busiest_server(earlier, later) == busiest


def test_a_server_whose_sockets_are_not_to_be_seen_is_found_by_its_work(monkeypatch):
    seconds = iter(({7: 1.0, 8: 1.0}, {7: 1.4, 8: 1.0}))
    monkeypatch.setattr(running_copies, "server_seconds", lambda: next(seconds, {7: 1.0, 8: 1.0}))
    monkeypatch.setattr("probes.files.open_files.holders", lambda inode, pids: ())
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with transfer() as (client, server):
        ends = {"own_address": server[0], "own_port": server[1]}
        ends |= {"peer_address": client[0], "peer_port": client[1]}
        # Of a port that is no file server's its process is none.
        assert look(**ends).pids == ()
        seconds = iter(({7: 1.0, 8: 1.0}, {7: 1.4, 8: 1.0}))
        monkeypatch.setattr(running_copies, "SMB_PORTS", (server[1],))
        running = look(**ends)
    assert running.link is not None and running.link.serving and running.pids == (7,)


def test_a_connection_that_rests_is_no_copy(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        monkeypatch.setattr(running_copies, "SMB_PORTS", (port,))
        with socket.create_connection(listener.getsockname()):
            running = look()
    assert running.link is None and not any(running.moved_bytes.values())


def test_a_process_that_is_not_there_is_said_so():
    with pytest.raises(Refused) as refused:
        look(pid=NOBODY)
    assert refused.value.kind == "unreachable"


def test_another_users_process_needs_that_user(monkeypatch):
    def denied(pid: int) -> set[int]:
        raise PermissionError

    monkeypatch.setattr("probes.files.open_files.inodes", denied)
    with pytest.raises(Refused) as refused:
        look(pid=os.getpid())
    assert refused.value.kind == "permission" and "as root" in refused.value.text


def test_a_system_without_proc_cannot_tell(monkeypatch):
    monkeypatch.setattr("os.path.isdir", lambda path: False)
    with pytest.raises(Unavailable):
        look()
