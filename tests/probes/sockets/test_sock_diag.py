"""The kernel tells of any program's TCP connections, at this moment."""

import errno
import os
import random
import socket
import struct
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from probes.core.stage import Unavailable
from probes.sockets import sock_diag, tcp_info
from probes.sockets.sock_diag import (
    SOCK_DIAG_BY_FAMILY,
    Memory,
    Socket,
    Sockets,
    ask_for,
    messages,
    parse,
    plain_address,
)
from tests.living import reset


class Pair(NamedTuple):
    """Both ends of a connection within this host."""

    client: socket.socket
    server: socket.socket

    @property
    def port(self) -> int:
        return int(self.server.getsockname()[1])


@pytest.fixture
def connect():
    """Connects to a listener of its own, from an address."""
    with ExitStack() as stack:

        def connect_pair(address: str = "127.0.0.1", listener: socket.socket | None = None) -> Pair:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            listening = listener or stack.enter_context(
                socket.create_server((address, 0), family=family)
            )
            there = (address, listening.getsockname()[1])
            client = stack.enter_context(socket.create_connection(there, 5, (address, 0)))
            server = stack.enter_context(listening.accept()[0])
            return Pair(client, server)

        yield connect_pair


@pytest.fixture
def sockets():
    with Sockets() as diag:
        yield diag


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_both_ends_of_a_connection_are_found_each_by_its_side(connect, sockets, address):
    pair = connect(address)
    for serving, ours, other in (
        (True, pair.server, pair.client),
        (False, pair.client, pair.server),
    ):
        (listed,) = sockets.find((pair.port,), address, serving)
        assert listed.local == ours.getsockname()[:2]
        assert listed.peer == other.getsockname()[:2]
        assert listed.inode == os.fstat(ours.fileno()).st_ino


def look(sockets, state):
    return sock_diag.parse(sockets.look_raw(sockets.question(state)))


def test_ipv4_in_an_ipv6_socket_is_found_by_its_ipv4_address(connect, sockets):
    with socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True) as both:
        pair = connect("127.0.0.1", both)
        assert pair.server.family == socket.AF_INET6
        (first,) = sockets.find((pair.port,), "127.0.0.1", True)
        assert first.local == ("127.0.0.1", pair.port)
        assert look(sockets, first).identity == first.identity


def test_connections_of_other_hosts_and_ports_are_left_out(connect, sockets):
    with socket.create_server(("0.0.0.0", 0)) as everywhere:
        ours = connect("127.0.0.1", everywhere)
        for number in range(20):
            connect(f"127.0.0.{2 + number}", everywhere)
        (listed,) = sockets.find((ours.port,), "127.0.0.1", True)
        assert listed.peer == ours.client.getsockname()
        assert len(sockets.find((ours.port,), "", True)) == 21
        assert sockets.find((ours.port,), "127.0.0.99", True) == []
        assert sockets.find((1,), "127.0.0.1", True) == []


def test_a_search_is_bounded(connect, sockets, monkeypatch):
    monkeypatch.setattr(sock_diag, "MOST_FOUND", 3)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        pairs = [connect("127.0.0.1", listener) for _ in range(5)]
        assert len(sockets.find((pairs[0].port,), "", True)) == 3
        # and the next question gets its own answer
        assert sockets.find((1,), "", True) == []


def test_a_look_tells_what_is_unread_and_what_is_unacknowledged(connect, sockets):
    pair = connect()
    (first,) = sockets.find((pair.port,), "127.0.0.1", False)
    pair.server.sendall(bytes(1000))
    now = look(sockets, first)
    assert (first.unread_bytes, now.unread_bytes) == (0, 1000)
    assert tcp_info.decode(now.info)["received_bytes"] == 1000
    pair.client.setblocking(False)
    with pytest.raises(BlockingIOError):
        while True:
            pair.client.send(bytes(1 << 16))
    full = look(sockets, first)
    assert full.unacknowledged_bytes > 0


def test_a_connection_that_is_gone_is_none_even_where_its_ports_are_used_again(sockets):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        where = listener.getsockname()
        # an address of this process alone: nobody takes the port while it is free
        mine = f"127.{1 + os.getpid() % 250}.{1 + os.getpid() // 250 % 250}.2"
        client = socket.create_connection(where, 5, (mine, 0))
        address = client.getsockname()
        server, _ = listener.accept()
        (first,) = sockets.find((where[1],), "127.0.0.1", False)
        for end in (client, server):
            # closed by a reset: nothing of it waits in the kernel
            reset(end)
        assert sockets.look_raw(sockets.question(first)) is None
        with socket.create_connection(where, 5, address), listener.accept()[0]:
            (again,) = sockets.find((where[1],), "127.0.0.1", False)
            assert (again.local, again.peer) == (first.local, first.peer)
            assert again.identity != first.identity
            assert sockets.look_raw(sockets.question(first)) is None


def test_a_kernel_that_refuses_is_unavailable_with_its_reason(monkeypatch):
    def refuse(*_: object) -> socket.socket:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(socket, "socket", refuse)
    with pytest.raises(Unavailable, match="Operation not permitted"):
        Sockets()


def test_a_question_that_the_kernel_does_not_know_is_unavailable_with_its_reason():
    with Sockets() as sockets, pytest.raises(Unavailable, match="Invalid argument"):
        sockets.look_raw(ask_for(1, 99))


def test_another_system_than_linux_is_unavailable(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(Unavailable, match="does not report"):
        Sockets()


RECORDED = Path(__file__).parents[1] / "recorded"


def answers(name: str) -> list[bytes]:
    """Returns the answer of the kernel (6.18) to one question, a part a read."""
    parts = (RECORDED / f"sock_diag_{name}.hex").read_text().split("\n\n")
    return [bytes.fromhex(part.replace("\n", "")) for part in parts if part.strip()]


def sockets_of(name: str) -> list[Socket | None]:
    sequence = struct.unpack_from("=I", answers(name)[0], 8)[0]
    each = [pair for answer in answers(name) for pair in messages(answer, sequence)]
    return [parse(payload) for kind, payload in each if kind == SOCK_DIAG_BY_FAMILY]


def test_a_recorded_answer_is_read_to_the_byte():
    (sock,) = sockets_of("search_ipv4")
    assert sock is not None
    assert (sock.local, sock.peer) == (("127.0.0.1", 46842), ("127.0.0.1", 37577))
    assert (sock.unread_bytes, sock.unacknowledged_bytes, sock.inode) == (1000, 0, 3281886)
    assert sock.congestion_control == "bbr"
    # the program asked for 8192, which the kernel doubles
    assert sock.memory == Memory(131072, 16384, queued_bytes=0)
    assert len(sock.info) == 280
    figures = tcp_info.decode(sock.info, little_endian=True)
    assert figures["received_bytes"] == 1000 and figures["acknowledged_bytes"] == 301


def test_a_garbled_answer_is_read_without_harm():
    chance = random.Random(47)
    for _ in range(3000):
        answer = bytearray(chance.choice(answers("search_ipv6")))
        for _ in range(chance.randrange(1, 40)):
            answer[chance.randrange(len(answer))] = chance.randrange(256)
        for _, payload in messages(bytes(answer), struct.unpack_from("=I", answer, 8)[0]):
            sock = parse(payload)
            if sock is not None:
                tcp_info.decode(sock.info)
                assert sock.local and sock.peer


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80::1"),
        ("nas", "None"),
        ("", "None"),
    ],
)
def test_an_address_is_read_in_each_of_its_forms(text, plain):
    assert str(plain_address(text)) == plain
