"""Lines over a TCP connection, each with its proof (bottleneck.seals), and bounds on all of it."""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Callable

from bottleneck import wire
from bottleneck.seals import PROOF_CHARACTERS, Seal
from probes.host.socket_timeouts import wait_at_most

WRITE_SECONDS = 20.0
"""How long the other end may leave what is sent to it unread."""
KEEPALIVE_SECONDS = 10
KEEPALIVE_TRIES = 4
"""A host that is gone without a word is noticed after this many times that long."""
SIGN = b"\n"
"""A line without words: the caller is there. Nobody is handed it."""
SIGN_SECONDS = 10.0
"""How often the caller sends one, whatever else it sends."""
SILENT_SECONDS = 60.0
"""Without a whole line for so long the caller is taken for gone, whatever TCP says."""
MOST_FRAME_BYTES = wire.MAX_LINE_BYTES + PROOF_CHARACTERS + 2


class Broken(Exception):
    """The connection cannot go on; the text says why."""


class Lines:
    """What arrives on a connection, line by line."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._unread = b""

    def line(self, longest: int, until: float | None = None) -> bytes | None:
        """The next line without its newline; None: the stream ended.

        until: by time.monotonic(), for the whole line. Raises Broken where it is longer or late.
        """
        searched = 0
        while True:
            end = self._unread.find(b"\n", searched)
            if 0 <= end <= longest:
                line, self._unread = self._unread[:end], self._unread[end + 1 :]
                return line
            if len(self._unread) > longest:
                raise Broken(f"a line of more than {longest} bytes")
            searched = len(self._unread)
            chunk = self._received(until)
            if not chunk:
                return None
            self._unread += chunk

    def _received(self, until: float | None) -> bytes:
        try:
            if until is not None:
                # And no timeout of the socket's: another thread may be sending on it.
                left = until - time.monotonic()
                if left <= 0 or not select.select([self.connection], [], [], left)[0]:
                    raise Broken("no whole line in time")
            return self.connection.recv(1 << 16)
        except OSError as error:
            raise Broken((error.strerror or str(error)).lower()) from None


def settle(connection: socket.socket) -> None:
    """Readies a connection whose two ends have proven themselves: quick, and noticing a loss."""
    connection.settimeout(None)
    # Sending alone: a coordinator may have nothing to ask for as long as a stage takes.
    wait_at_most(connection, WRITE_SECONDS, (socket.SO_SNDTIMEO,))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (
        ("TCP_KEEPIDLE", KEEPALIVE_SECONDS),
        ("TCP_KEEPINTVL", KEEPALIVE_SECONDS),
        ("TCP_KEEPCNT", KEEPALIVE_TRIES),
        ("TCP_USER_TIMEOUT", 1000 * KEEPALIVE_SECONDS * KEEPALIVE_TRIES),
    ):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def take_lines(
    lines: Lines,
    seal: Seal,
    pass_on: Callable[[bytes], object],
    silent_seconds: float | None = None,
) -> None:
    """Passes on what the other end sends, each line with its newline, until it sends no more.

    silent_seconds: how long it may take for a line; None: for ever. Signs of life are lines too,
    and are passed on to nobody. Raises Broken, and seals.Forged for a line that is not the other
    end's.
    """

    def until() -> float | None:
        return None if silent_seconds is None else time.monotonic() + silent_seconds

    while (frame := lines.line(MOST_FRAME_BYTES, until())) is not None:
        line = seal.opened(frame) + b"\n"
        if line != SIGN:
            pass_on(line)


def send_line(connection: socket.socket, seal: Seal, line: bytes) -> None:
    """Sends one line, given with its newline. Raises Broken."""
    try:
        connection.sendall(seal.sealed(line.removesuffix(b"\n")))
    except BlockingIOError:
        raise Broken(f"it read nothing for {WRITE_SECONDS:.0f} s") from None
    except OSError as error:
        raise Broken((error.strerror or str(error)).lower()) from None


def hang_up(connection: socket.socket, how: int = socket.SHUT_RDWR) -> None:
    """Ends a connection, or one direction of it, also where another thread waits in it."""
    with contextlib.suppress(OSError):
        connection.shutdown(how)
