"""A socket's program is named where this user may see it."""

import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from probes.files import open_files
from probes.files.open_files import (
    ESTABLISHED,
    LISTENS,
    OTHER_END,
    OWN_END,
    listeners,
    owners,
    parse_table,
    sockets,
)
from probes.system.proc import ProcessStat
from probes.system.reader import reader
from tests.living import FakeClock


def test_a_search_for_owners_is_bounded(monkeypatch):
    """However many processes there are."""
    monkeypatch.setattr(open_files, "SEARCH_SECONDS", -1.0)
    with socket.socket() as sock:
        assert owners({os.fstat(sock.fileno()).st_ino}) == {}


def test_a_process_with_many_sockets_is_not_read_to_its_end(monkeypatch):
    """The time is over while its files are read."""
    monkeypatch.setattr(open_files, "SEARCH_SECONDS", 20.0)
    monkeypatch.setattr(open_files, "time", FakeClock(step=1.0))
    real = os.listdir
    mine = [str(os.getpid())]
    monkeypatch.setattr(os, "listdir", lambda path: mine if path == "/proc" else real(path))
    with ExitStack() as stack:
        for _ in range(200):
            inode = os.fstat(stack.enter_context(socket.socket()).fileno()).st_ino
        assert owners({inode}) == {}


DATA = Path(__file__).parent


def inodes_at(table, address, port):
    ours = open_files._printed_forms(address) | open_files.ANY_ADDRESS
    return parse_table(table, OWN_END, LISTENS, ours, port)


def peers_of(table, address):
    return parse_table(table, OTHER_END, ESTABLISHED, open_files._printed_forms(address))


def test_listeners_are_read_from_the_kernel_s_tables():
    """Recorded: listeners on 0.0.0.0:14701, 127.0.0.1:14702 (with a client), ::1 and [::]."""
    table = (DATA / "proc_net_tcp.txt").read_text()
    assert inodes_at(table, "127.0.0.1", 14702) == {46096}
    assert inodes_at(table, "127.0.0.2", 14702) == set()
    assert inodes_at(table, "127.0.0.1", 14701) == {46095}
    assert inodes_at(table, "127.0.0.1", 14703) == set()
    table = (DATA / "proc_net_tcp6.txt").read_text()
    assert inodes_at(table, "::1", 14703) == {46097}
    assert inodes_at(table, "::2", 14703) == set()
    assert inodes_at(table, "::2", 14704) == {46098}
    assert inodes_at(table, "127.0.0.1", 14704) == {46098}


def test_a_socket_of_this_process_is_found_only_while_it_listens():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        assert listeners("127.0.0.1", port) == set()
        sock.listen()
        inodes = listeners("127.0.0.1", port)
        assert len(inodes) == 1
        assert inodes <= sockets(os.getpid())
    assert not inodes & sockets(os.getpid())


def test_a_process_that_is_gone_holds_no_sockets():
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert sockets(child) == set()


HERE = Path(__file__).parent
AGENT = 9
PEER = "192.0.2.7"


def stat(pid, name="smbd", started=50):
    return ProcessStat(pid, name, 1, False, 1.0, 0.0, started, 0)


def seen_of(*stats):
    return {each.pid: each for each in (stat(AGENT, "python3", 100), *stats)}


@pytest.fixture
def host(monkeypatch):
    """A host with sockets: `host(spaces={pid: n}, holds={pid: inodes}, peers={n: inodes})`."""

    def set_up(spaces, holds, peers):
        monkeypatch.setattr(open_files, "network_namespace", {AGENT: 1, **spaces}.get)
        monkeypatch.setattr(open_files, "sockets", lambda pid: holds.get(pid, set()))

        def connections(pid, name, address):
            return peers.get(spaces.get(pid), set()) if name == "tcp" else set()

        monkeypatch.setattr(open_files, "_connections", connections)

    return set_up


def test_the_one_with_a_connection_to_the_peer_serves_it_and_no_other_clients(host):
    host({71: 1, 72: 1, 70: 1}, {71: {5}, 72: {6}, 70: {4}}, {1: {5}})
    processes = seen_of(stat(70, started=10), stat(71, started=120), stat(72, started=130))
    assert open_files.servers_of_peer(processes, AGENT, PEER) == {71}


def test_the_peers_own_older_mount_is_another_copy(host):
    host({71: 1, 72: 1}, {71: {5}, 72: {6}}, {1: {"5", "6"}})
    processes = seen_of(stat(71, started=120), stat(72, started=20))
    assert open_files.servers_of_peer(processes, AGENT, PEER) == {71}


def test_one_in_a_container_serves_the_peer_where_none_beside_the_agent_does(host):
    host({71: 2}, {71: {5}}, {2: {5}})
    assert open_files.servers_of_peer(seen_of(stat(71, started=120)), AGENT, PEER) == {71}
    host({71: 2, 72: 1}, {71: {5}, 72: {5}}, {1: {5}, 2: {5}})
    processes = seen_of(stat(71, started=120), stat(72, started=120))
    assert open_files.servers_of_peer(processes, AGENT, PEER) == {72}


def test_where_open_files_are_secret_those_that_began_after_the_agent_serve_us(host):
    host({71: 1, 72: 1, 73: 2, 74: None}, {}, {1: {5}})
    processes = seen_of(
        stat(71, started=120), stat(72, started=20), stat(73, started=120), stat(74, started=120)
    )
    assert open_files.servers_of_peer(processes, AGENT, PEER) == {71}
    assert open_files.servers_of_peer(processes, AGENT, "") == {71}


def test_established_connections_are_parsed_and_listeners_are_not():
    tcp = (HERE / "connections_tcp.txt").read_text()
    tcp6 = (HERE / "connections_tcp6.txt").read_text()
    assert peers_of(tcp, "127.0.0.1") == {211042}
    assert peers_of(tcp, "127.0.0.9") == set()
    assert peers_of(tcp6, "127.0.0.1") == {211088}
    assert peers_of(tcp6, "::ffff:127.0.0.1") == {211088}
    assert peers_of(tcp6, "::1") == {211090}
    assert peers_of(tcp6, "fe80::1%eth0") == set()
    assert peers_of(tcp, "no address") == set()


def test_a_real_connection_is_found_with_the_process_that_holds_it():
    code = (
        "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1])));"
        "print(flush=True); sys.stdin.read()"
    )
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        subprocess.Popen(
            [sys.executable, "-c", code, str(server.getsockname()[1])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as child,
    ):
        assert child.stdout is not None
        child.stdout.readline()
        processes = reader().processes()
        processes[child.pid] = processes[child.pid]._replace(name="smbd")
        only = {pid: processes[pid] for pid in (os.getpid(), child.pid)}
        assert open_files.servers_of_peer(only, os.getpid(), "127.0.0.1") == {child.pid}
        older = {**only, child.pid: only[child.pid]._replace(started_ticks=1)}
        assert open_files.servers_of_peer(older, os.getpid(), "127.0.0.1") == {child.pid}
        assert open_files.servers_of_peer(older, os.getpid(), "127.0.0.9") == set()
