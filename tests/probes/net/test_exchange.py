"""Messages and answers: whole at any length, for whoever knows the token and for nobody else."""

from __future__ import annotations

import contextlib
import secrets
import socket
import threading
from collections.abc import Iterator

import pytest

from probes.files import payload
from probes.net import exchange, port, warm
from probes.net.warm import Cold
from tests import living

RING = payload.make_ring(b"exchange")


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection, and its far end."""
    with living.connected() as (far, near):
        for each in (near, far):
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            each.settimeout(living.GENEROUS_SECONDS)
        yield near, far
        near.close()
        for each in threading.enumerate():
            if each.name == "answers":  # it ends with the stream, and must not lose its end before
                each.join(living.GENEROUS_SECONDS)


def start_answers(far):
    thread = threading.Thread(target=exchange.answer, args=(far,), name="answers", daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("size", [0, 1, 7, 1000, 1 << 20, 9_000_000])
def test_a_message_of_any_length_is_answered_once_it_is_there(pair, size):
    near, far = pair
    thread = start_answers(far)
    sent = exchange.message(RING, size)
    assert len(sent) == exchange.LENGTH.size + size
    assert all(exchange.exchange(near, sent) > 0 for _ in range(3))
    assert exchange.exchange_in_two(near, sent) > 0
    near.close()
    thread.join(living.GENEROUS_SECONDS)
    assert not thread.is_alive()


def test_no_answer_comes_before_the_last_byte(pair):
    near, far = pair
    got, before_the_answer = [], []

    class Noted:
        def recv_into(self, *arguments):
            got.append(far.recv_into(*arguments))
            return got[-1]

        def sendall(self, content):
            before_the_answer.append(sum(got))
            far.sendall(content)

    start_answers(Noted())
    sent = exchange.message(RING, 3000)
    for number in range(10):  # its header arrives in parts
        near.sendall(sent[number : number + 1])
        assert living.until(lambda number=number: sum(got) == number + 1)
    near.sendall(sent[10:])
    assert near.recv(4) == exchange.ANSWER
    assert before_the_answer == [len(sent)]


def test_a_message_that_is_too_long_is_refused(pair):
    near, far = pair
    near.sendall(exchange.LENGTH.pack(exchange.MOST_MESSAGE_BYTES + 1))
    with pytest.raises(ValueError, match="at most"):
        exchange.answer(far)


@pytest.mark.parametrize("answer", [b"", b"he", b"gone"])
def test_another_answer_is_none(pair, answer):
    near, far = pair
    far.sendall(answer)
    far.shutdown(socket.SHUT_WR)
    with pytest.raises(EOFError):
        exchange.exchange(near, exchange.message(RING, 1))


@pytest.mark.long
@pytest.mark.parametrize("round_trips", [0, 1, 2])
def test_a_cold_connection_carries_so_many_messages_and_ends(pair, round_trips):
    near, _ = pair
    with warm.accept_cold(near) as (number, token):
        end = Cold("127.0.0.1", number, token.encode())
        for _ in range(20):  # more than there are threads
            assert end.seconds(exchange.message(RING, 100_000), round_trips) > 0
    with pytest.raises(OSError):
        end.seconds(exchange.message(RING, 1), 1)


@pytest.mark.long
def test_a_stranger_gets_no_answer_and_keeps_nobody_out(pair):
    near, _ = pair
    with warm.accept_cold(near) as (number, token):
        silent = [socket.create_connection(("127.0.0.1", number)) for _ in range(40)]
        for each in silent[:12]:
            each.sendall(b"a")  # more than there are threads, and no token
        with socket.create_connection(("127.0.0.1", number)) as guess:
            guess.sendall(secrets.token_hex(16).encode() + exchange.message(RING, 1))
            guess.settimeout(port.HELLO_SECONDS + 5)
            try:
                got = guess.recv(1)
            except ConnectionResetError:
                got = b""
            assert got == b""
        assert Cold("127.0.0.1", number, token.encode()).seconds(exchange.message(RING, 1), 1) > 0
        silent[0].settimeout(port.HELLO_SECONDS + 5)
        with contextlib.suppress(ConnectionResetError):
            assert silent[0].recv(1) == b""
        for each in silent:
            each.close()
