"""The ports of a session answer its peer alone, where it is known who that is."""

from __future__ import annotations

import secrets
import socket
from types import SimpleNamespace

import pytest

from bottleneck.agents import hosts
from bottleneck.agents.hosts import Host
from probes.core.records import Endpoint
from probes.net import peers, port
from probes.stages import tcp

OWN, PEER, OTHER = "127.0.0.1", "127.0.0.3", "127.0.0.4"


def is_let_in(host: Host, peer: str, caller: str) -> bool:
    """Whether the port of a transfer held for `peer` lets a caller in that knows the nonce."""
    setting = tcp.Setting(seconds=0.1, address=OWN)
    with host.hold("tcp", setting, Endpoint(host=peer), 30) as served:
        there = (OWN, served.port)
        with socket.create_connection(there, 20, source_address=(caller, 0)) as connection:
            hello = port._HELLO.pack(
                port._MAGIC, served.nonce.encode(), secrets.randbits(32), port._CONTROL
            )
            connection.sendall(hello + b'{"connections":0}\n')
            try:
                return connection.recv(1) != b""
            except ConnectionError:
                return False


@pytest.mark.parametrize("peer", [PEER, OTHER])
def test_one_over_ssh_knows_it_where_both_ends_see_the_same_address(peer: str) -> None:
    """Behind an address translation they do not, and the nonce decides."""
    with hosts.start_there(f"exec:env 'SSH_CONNECTION={PEER} 50000 {OWN} 22'") as host:
        assert is_let_in(host, peer, PEER)
        assert is_let_in(host, peer, "127.0.0.5") == (peer != PEER)


@pytest.mark.parametrize(
    ("address", "text"),
    [
        (("fe80::1", 445, 0, 1), "fe80::1%lo"),
        (("::ffff:10.0.0.1", 445, 0, 0), "10.0.0.1"),
        (("10.0.0.1", 445), "10.0.0.1"),
    ],
)
def test_the_other_end_of_a_connection_is_told_with_its_zone(address, text):
    assert peers.peer_address(SimpleNamespace(getpeername=lambda: address)) == text


def test_a_port_of_a_link_local_address_is_reached_by_this_hosts_zone(monkeypatch):
    def refusing(there, timeout):
        raise OSError(0, there[0])

    monkeypatch.setattr(peers, "in_own_zone", lambda host: f"{host}%lo")
    monkeypatch.setattr(socket, "create_connection", refusing)
    assert peers.reach("fe80::1", 445, 1.0) == "fe80::1%lo"


def test_a_port_opens_where_its_address_has_the_zone_of_another_host():
    with port.listen("fe80::1%elsewhere", lambda meeting: None) as peer:
        socket.create_connection(("127.0.0.1", peer.port), timeout=5.0).close()


def test_an_address_of_a_link_keeps_its_zone():
    """A name is looked up to four numbers, of which the last is the interface's."""
    lo = socket.if_nametoindex("lo")
    assert peers.zoned_address(("fe80::1", 445, 0, lo)) == "fe80::1%lo"
    assert peers.zoned_address(("::1", 445, 0, 0)) == "::1"
    assert peers.zoned_address(("10.0.0.1", 445)) == "10.0.0.1"
    assert peers.for_socket("fe80::1%lo", 445) == ("fe80::1", 445, 0, lo)
    assert peers.for_socket("10.0.0.1", 445) == ("10.0.0.1", 445)
