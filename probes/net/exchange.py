"""Messages and their answers: n bytes out in one write, 4 bytes back, and the time that it takes.

A message is 8 bytes that tell its length and n bytes of payload. The next is sent when the last is
answered, so that the time is a whole round trip.
"""

from __future__ import annotations

import socket
import struct
import time

from probes.host import payload

LENGTH = struct.Struct("!Q")
ANSWER = b"here"
MOST_MESSAGE_BYTES = 32_000_000
PART_BYTES = 1 << 20


def message(ring: memoryview, size: int) -> bytearray:
    """A message of so many bytes of payload, ready to be sent in one write."""
    made = bytearray(LENGTH.pack(size))
    while len(made) < LENGTH.size + size:
        left = LENGTH.size + size - len(made)
        made += payload.block(ring, len(made), min(left, payload.LONGEST_BLOCK_BYTES))
    return made


def exchange(connection: socket.socket, sent: bytearray) -> float:
    """Sends a message and waits for its answer; seconds. Raises EOFError or OSError."""
    began = time.monotonic()
    connection.sendall(sent)
    await_answer(connection)
    return time.monotonic() - began


def exchange_in_two(connection: socket.socket, sent: bytearray) -> float:
    """The same as a program does it that writes the head and the body apart; see exchange."""
    body = memoryview(sent)
    began = time.monotonic()
    connection.sendall(body[: LENGTH.size])
    connection.sendall(body[LENGTH.size :])
    await_answer(connection)
    return time.monotonic() - began


def await_answer(connection: socket.socket) -> None:
    """Waits for the answer to a message. Raises EOFError where another comes, or the end."""
    got = connection.recv(len(ANSWER))
    while got != ANSWER:
        more = connection.recv(len(ANSWER) - len(got)) if len(got) < len(ANSWER) else b""
        if not more:
            raise EOFError("no answer to a message")
        got += more


def answer(connection: socket.socket) -> None:
    """Answers each message until the other end closes.

    Raises ValueError for a message of more than MOST_MESSAGE_BYTES, OSError where one stops short.
    """
    buffer = memoryview(bytearray(PART_BYTES))
    while True:
        got = connection.recv_into(buffer)
        while 0 < got < LENGTH.size:
            more = connection.recv_into(buffer[got:])
            got = got + more if more else 0
        if not got:
            return
        (size,) = LENGTH.unpack_from(buffer)
        if size > MOST_MESSAGE_BYTES:
            raise ValueError(f"a message has at most {MOST_MESSAGE_BYTES} bytes, not {size}")
        left = LENGTH.size + size - got
        while left > 0:
            got = connection.recv_into(buffer, min(left, PART_BYTES))
            if not got:
                return
            left -= got
        connection.sendall(ANSWER)
