"""Whose port it is."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from probes.host.listeners import listeners, parse_listeners, sockets

DATA = Path(__file__).parent


def test_listeners_are_read_from_the_kernel_s_tables() -> None:
    """Recorded: listeners on 0.0.0.0:14701, 127.0.0.1:14702 (with a client), ::1 and [::]."""
    table = (DATA / "proc_net_tcp.txt").read_text()
    assert parse_listeners(table, "127.0.0.1", 14702) == {"46096"}
    assert parse_listeners(table, "127.0.0.2", 14702) == set()
    assert parse_listeners(table, "127.0.0.1", 14701) == {"46095"}
    assert parse_listeners(table, "127.0.0.1", 14703) == set()
    table = (DATA / "proc_net_tcp6.txt").read_text()
    assert parse_listeners(table, "::1", 14703) == {"46097"}
    assert parse_listeners(table, "::2", 14703) == set()
    assert parse_listeners(table, "::2", 14704) == {"46098"}
    assert parse_listeners(table, "127.0.0.1", 14704) == {"46098"}


def test_a_socket_of_this_process_is_found_only_while_it_listens() -> None:
    with socket.socket() as own:
        own.bind(("127.0.0.1", 0))
        port = own.getsockname()[1]
        assert listeners("127.0.0.1", port) == set()
        own.listen()
        found = listeners("127.0.0.1", port)
        assert len(found) == 1
        assert found <= sockets(os.getpid())
    assert not found & sockets(os.getpid())


def test_a_process_that_is_gone_holds_no_sockets() -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    assert sockets(child) == set()
