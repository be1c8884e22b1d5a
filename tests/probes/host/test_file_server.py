"""Which file-server processes serve us: by their connections, by namespace and by their start."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from probes.host import file_server, processes
from probes.host.processes import ProcessStat

HERE = Path(__file__).parent
AGENT = 9
PEER = "192.0.2.7"


def stat(pid, name="smbd", started=50):
    return ProcessStat(pid, name, 1, False, 1.0, 0.0, 1, started, 0)


def seen_of(*stats):
    return {each.pid: each for each in (stat(AGENT, "python3", 100), *stats)}


@pytest.fixture
def host(monkeypatch):
    """A host with sockets: `host(spaces={pid: n}, holds={pid: inodes}, peers={n: inodes})`."""

    def made(spaces, holds, peers):
        monkeypatch.setattr(file_server, "network_namespace", {AGENT: 1, **spaces}.get)
        monkeypatch.setattr(file_server, "sockets", lambda pid: holds.get(pid, set()))

        def connections(pid, name, address):
            return peers.get(spaces.get(pid), set()) if name == "tcp" else set()

        monkeypatch.setattr(file_server, "_connections", connections)

    return made


def test_file_servers_are_known_by_name():
    seen = seen_of(stat(1), stat(2, "smbd-notifyd"), stat(3, "nmbd"), stat(4, "ksmbd:445"))
    assert file_server.file_servers(seen) == {1, 2, 4}


def test_the_one_with_a_connection_to_the_peer_serves_it_and_no_other_clients(host):
    host({71: 1, 72: 1, 70: 1}, {71: {"5"}, 72: {"6"}, 70: {"4"}}, {1: {"5"}})
    seen = seen_of(stat(70, started=10), stat(71, started=120), stat(72, started=130))
    assert file_server.serving(seen, AGENT, PEER) == {71}


def test_the_peers_own_older_mount_is_another_copy(host):
    host({71: 1, 72: 1}, {71: {"5"}, 72: {"6"}}, {1: {"5", "6"}})
    seen = seen_of(stat(71, started=120), stat(72, started=20))
    assert file_server.serving(seen, AGENT, PEER) == {71}


def test_one_that_is_older_than_the_agent_serves_it_all_the_same(host):
    host({72: 1}, {72: {"6"}}, {1: {"6"}})
    assert file_server.serving(seen_of(stat(72, started=20)), AGENT, PEER) == {72}


def test_one_in_a_container_serves_the_peer_where_none_beside_the_agent_does(host):
    host({71: 2}, {71: {"5"}}, {2: {"5"}})
    assert file_server.serving(seen_of(stat(71, started=120)), AGENT, PEER) == {71}
    host({71: 2, 72: 1}, {71: {"5"}, 72: {"5"}}, {1: {"5"}, 2: {"5"}})
    seen = seen_of(stat(71, started=120), stat(72, started=120))
    assert file_server.serving(seen, AGENT, PEER) == {72}


def test_where_open_files_are_secret_those_that_began_after_the_agent_serve_us(host):
    host({71: 1, 72: 1, 73: 2, 74: None}, {}, {1: {"5"}})
    seen = seen_of(
        stat(71, started=120), stat(72, started=20), stat(73, started=120), stat(74, started=120)
    )
    assert file_server.serving(seen, AGENT, PEER) == {71}
    assert file_server.serving(seen, AGENT, "") == {71}


def test_a_namespace_that_cannot_be_seen_is_not_ours(host):
    host({74: None}, {}, {})
    assert file_server.serving(seen_of(stat(74, started=120)), AGENT, PEER) == set()


def test_established_connections_are_parsed_and_listeners_are_not():
    tcp = (HERE / "connections_tcp.txt").read_text()
    tcp6 = (HERE / "connections_tcp6.txt").read_text()
    assert file_server.parse_connections(tcp, "127.0.0.1") == {"211042"}
    assert file_server.parse_connections(tcp, "127.0.0.9") == set()
    assert file_server.parse_connections(tcp6, "127.0.0.1") == {"211088"}
    assert file_server.parse_connections(tcp6, "::ffff:127.0.0.1") == {"211088"}
    assert file_server.parse_connections(tcp6, "::1") == {"211090"}
    assert file_server.parse_connections(tcp6, "fe80::1%eth0") == set()
    assert file_server.parse_connections(tcp, "no address") == set()


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
        seen = processes.read_all()
        seen[child.pid] = seen[child.pid]._replace(name="smbd")
        only = {pid: seen[pid] for pid in (os.getpid(), child.pid)}
        assert file_server.serving(only, os.getpid(), "127.0.0.1") == {child.pid}
        older = {**only, child.pid: only[child.pid]._replace(started_ticks=1)}
        assert file_server.serving(older, os.getpid(), "127.0.0.1") == {child.pid}
        assert file_server.serving(older, os.getpid(), "127.0.0.9") == set()


def test_processes_side_by_side_share_a_network_namespace():
    own = file_server.network_namespace(os.getpid())
    assert own is not None
    assert own == file_server.network_namespace(os.getppid())
    assert file_server.network_namespace(2**22 + 1) is None
