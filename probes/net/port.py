"""The data port of a session: open to whoever knows its nonce, and to nobody else.

A meeting is one control connection, which carries the request and the responder's figures, and
any number of data connections, which carry payload and nothing else. A connection that does not
present the session's nonce within two seconds is closed; where the session's peer is known, one
from another host is closed at once.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import math
import secrets
import select
import socket
import struct
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Callable, Dict, Iterator, List, Optional, Tuple

from probes.core.records import Details, Endpoint
from probes.core.stage import Unavailable
from probes.net.peers import accept_peers
from probes.sockets.tcp_info import wait_at_most

CONNECT_SECONDS = 5.0
HELLO_SECONDS = 2.0
STALL_SECONDS = 10.0
"""Silence after which a connection has failed."""
MOST_CONNECTIONS = 64
"""Data connections of one meeting."""
MOST_REQUEST_BYTES = 4096
MOST_LINE_BYTES = 4 << 20
MOST_LEVELS, MOST_DIGITS = 16, 64
"""Limits of a message: nesting of arrays and objects, and characters of one number."""
_NO_BRACKETS = bytes(each for each in range(256) if each not in b"[]{}")
_HELLO = struct.Struct("!8s32sIH")
"""Magic, nonce, number of the meeting, index of the connection in it."""
_MAGIC = b"cb-data2"
_CONTROL = 0xFFFF
_MOST_WAITING = 16
_MOST_MEETINGS = 8
_BACKLOG = 4096


@dataclass
class Meeting:
    """The connections of one piece of work, at one end."""

    control: socket.socket
    connections: List[socket.socket]
    request: Details
    """The initiator's request, plain JSON values; not to be trusted beyond its own session."""
    unread: bytearray = field(default_factory=bytearray)
    """Bytes received after the last line that was read."""

    def tell(self, message: Details) -> None:
        """Sends a JSON line to the other end."""
        self.control.sendall(json.dumps(message).encode() + b"\n")

    def hear(self, seconds: float) -> Details:
        """Receives a JSON line from the other end.

        Raises RuntimeError where that reports an error, EOFError where none comes in time.
        """
        line = _read_line(self.control, seconds, MOST_LINE_BYTES, self.unread)
        try:
            message = _parse_message(line)
        except ValueError as error:
            raise RuntimeError(f"invalid message from the responder: {error}") from None
        if "error" in message:
            raise RuntimeError(f"error from the responder: {message['error']}")
        return message

    def waits(self) -> bool:
        """Whether something from the other end can be read."""
        return b"\n" in self.unread or bool(select.select([self.control], [], [], 0)[0])

    def wait_for_close(self, seconds: float) -> None:
        """Waits until the other end closes the control connection, at most so long."""
        with contextlib.suppress(OSError):
            self.control.settimeout(seconds)
            self.control.recv(1)

    def close(self) -> None:
        """Closes every connection."""
        for connection in (self.control, *self.connections):
            connection.close()


Serve = Callable[[Meeting], None]
"""The responder's half of one meeting; the initiator is told what it raises."""


@contextmanager
def listen(address: str, serve: Serve, receive_buffer_bytes: int = 0) -> Iterator[Endpoint]:
    """Listens for one session; yields the port and the nonce that opens it.

    address: one of this host's to listen on; empty, or not one of this host's: every address.
    receive_buffer_bytes: SO_RCVBUF of each connection; 0: the system tunes it.
    """
    nonce = secrets.token_hex(16)
    listener = _open_listener(address, receive_buffer_bytes)
    threading.Thread(target=_accept, args=(listener, _Waiting(nonce, serve)), daemon=True).start()
    try:
        yield Endpoint(host=address, port=listener.getsockname()[1], nonce=nonce)
    finally:
        close(listener)


def close(listener: socket.socket) -> None:
    """Closes a port: a thread that waits in accept would keep a merely closed one open."""
    with contextlib.suppress(OSError):
        listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def meet(
    peer: Endpoint,
    request: Details,
    connections: int,
    send_buffer_bytes: int = 0,
    receive_buffer_bytes: int = 0,
    segment_bytes: int = 0,
) -> Meeting:
    """Connects as the initiator, sends the request and awaits its confirmation.

    The buffers are SO_SNDBUF and SO_RCVBUF of the data connections; 0: the system tunes them.
    segment_bytes: the MSS that their SYNs announce, to which both ends keep; 0: the system's.

    Raises:
        Unavailable: the port cannot be reached.
        RuntimeError: the other end refuses the connection.
    """
    number = secrets.randbits(32)
    options = {
        (socket.SOL_SOCKET, socket.SO_SNDBUF): send_buffer_bytes,
        (socket.SOL_SOCKET, socket.SO_RCVBUF): receive_buffer_bytes,
        (socket.IPPROTO_TCP, socket.TCP_MAXSEG): segment_bytes,
    }
    sockets: List[socket.socket] = []
    try:
        sockets.append(_connect(peer, number, _CONTROL, {}))
        sockets += [_connect(peer, number, index, options) for index in range(connections)]
        meeting = Meeting(sockets[0], sockets[1:], request)
        meeting.tell({"connections": connections, **request})
        read_exactly(meeting.control, 1, time.monotonic() + CONNECT_SECONDS)
    except (EOFError, ConnectionError):
        _close(sockets)
        raise RuntimeError(f"{peer.host}: the data connection was closed before its end") from None
    except BaseException:
        _close(sockets)
        raise
    return meeting


def _close(connections: List[socket.socket]) -> None:
    for connection in connections:
        connection.close()


def _connect(
    peer: Endpoint, number: int, index: int, options: Dict[Tuple[int, int], int]
) -> socket.socket:
    connection: Optional[socket.socket] = None
    try:
        family, _, _, _, target = socket.getaddrinfo(peer.host, peer.port, type=socket.SOCK_STREAM)[
            0
        ]
        connection = socket.socket(family, socket.SOCK_STREAM)
        connection.settimeout(CONNECT_SECONDS)
        # Before the connect: the SYN announces the window scale.
        for (level, name), size_bytes in options.items():
            if size_bytes:
                connection.setsockopt(level, name, size_bytes)
        connection.connect(target)
        connection.sendall(_HELLO.pack(_MAGIC, peer.nonce.encode(), number, index))
    except OSError as error:
        if connection is not None:
            connection.close()
        why = "no answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
        raise Unavailable(
            f"{peer.host} port {peer.port} cannot be reached ({why}): "
            "a firewall blocks the session's data port"
        ) from None
    _prepare(connection)
    return connection


def _open_listener(address: str, receive_buffer_bytes: int) -> socket.socket:
    if address:
        with contextlib.suppress(socket.gaierror):  # a link-local one has the client's zone
            family, _, _, _, target = socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)[0]
            listener = socket.socket(family, socket.SOCK_STREAM)
            try:
                listener.bind(target)
            except OSError:
                # Behind an address translation the address that clients use is not the host's own.
                listener.close()
            else:
                return _waiting_for_calls(listener, receive_buffer_bytes)
    if socket.has_dualstack_ipv6():
        listener = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    else:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.bind(("", 0))
    return _waiting_for_calls(listener, receive_buffer_bytes)


def _waiting_for_calls(listener: socket.socket, receive_buffer_bytes: int) -> socket.socket:
    # On the listener: accepted connections inherit it, and the SYN-ACK announces the window scale.
    if receive_buffer_bytes:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
    listener.listen(_BACKLOG)
    return listener


def _accept(listener: socket.socket, waiting: _Waiting) -> None:
    slots = threading.BoundedSemaphore(_MOST_WAITING)
    entering: Dict[socket.socket, bool] = {}
    for connection in accept_peers(listener):
        if not slots.acquire(blocking=False):
            # The longest silent connection makes room; one of the session's speaks at once.
            with contextlib.suppress(StopIteration, KeyError, OSError):  # it has just spoken
                oldest = next(iter(entering))
                del entering[oldest]
                oldest.shutdown(socket.SHUT_RDWR)
            slots.acquire()
        entering[connection] = True
        arguments = (connection, entering, slots, waiting)
        threading.Thread(target=_admit, args=arguments, daemon=True).start()


@dataclass
class _PartialMeeting:
    """The connections of one meeting that have arrived so far."""

    control: Optional[socket.socket] = None
    request: Details = field(default_factory=dict)
    data: Dict[int, socket.socket] = field(default_factory=dict)

    def to_meeting(self) -> Optional[Meeting]:
        count = self.request.get("connections")
        if self.control is None or len(self.data) != count:
            return None
        return Meeting(self.control, [self.data[i] for i in range(count)], self.request)


@dataclass
class _Waiting:
    """Collects the connections of each meeting."""

    nonce: str
    serve: Serve
    lock: threading.Lock = field(default_factory=threading.Lock)
    meetings: Dict[int, _PartialMeeting] = field(default_factory=dict)

    def add(
        self, number: int, index: int, connection: socket.socket, request: Optional[Details]
    ) -> Optional[Meeting]:
        """Adds a connection; returns the meeting once it is complete."""
        with self.lock:
            if number not in self.meetings and len(self.meetings) >= _MOST_MEETINGS:
                # Meetings that were never completed: the oldest makes room.
                oldest = self.meetings.pop(next(iter(self.meetings)))
                _close([each for each in (oldest.control, *oldest.data.values()) if each])
            gathered = self.meetings.setdefault(number, _PartialMeeting())
            if request is not None:
                gathered.control, gathered.request = connection, request
            else:
                gathered.data[index] = connection
            meeting = gathered.to_meeting()
            if meeting is not None:
                del self.meetings[number]
            return meeting


def _admit(
    connection: socket.socket,
    entering: Dict[socket.socket, bool],
    slots: threading.BoundedSemaphore,
    waiting: _Waiting,
) -> None:
    try:
        place = _read_hello(connection, waiting.nonce)
    except (OSError, EOFError):
        place = None
    finally:
        stays = entering.pop(connection, False)
        slots.release()
    if place is None or not stays:
        connection.close()
        return
    number, index = place
    request = None
    if index == _CONTROL:
        try:
            request = _parse_message(_read_line(connection, CONNECT_SECONDS, MOST_REQUEST_BYTES))
        except (OSError, EOFError, ValueError):
            connection.close()
            return
    _prepare(connection)
    meeting = waiting.add(number, index, connection, request)
    if meeting is not None:
        _serve(meeting, waiting.serve)


def _read_hello(connection: socket.socket, nonce: str) -> Optional[Tuple[int, int]]:
    """Returns the meeting's number and the connection's index in it; None: a stranger."""
    hello = read_exactly(connection, _HELLO.size, time.monotonic() + HELLO_SECONDS)
    magic, claimed, number, index = _HELLO.unpack(hello)
    is_valid = magic == _MAGIC and hmac.compare_digest(claimed, nonce.encode())
    return (number, index) if is_valid and (index < MOST_CONNECTIONS or index == _CONTROL) else None


def _serve(meeting: Meeting, serve: Serve) -> None:
    try:
        meeting.control.sendall(b"\n")
        serve(meeting)
    except Exception as error:
        # The initiator may have closed the connection.
        with contextlib.suppress(OSError):
            meeting.tell({"error": str(error) or type(error).__name__})
    finally:
        meeting.close()


def read_exactly(connection: socket.socket, size: int, deadline: float) -> bytes:
    """Reads so many bytes. Raises EOFError after the deadline, of time.monotonic()."""
    content = b""
    while len(content) < size:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise EOFError("too late")
        content += _receive_part(connection, size - len(content), remaining)
    return content


def _read_line(
    connection: socket.socket, seconds: float, most_bytes: int, buffer: Optional[bytearray] = None
) -> bytes:
    """Reads up to a line's end; buffer: bytes received before, and after it those that follow."""
    deadline = time.monotonic() + seconds
    buffer = bytearray() if buffer is None else buffer
    while b"\n" not in buffer:
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            raise EOFError("too late")
        if len(buffer) > most_bytes:
            raise EOFError("a line without end")
        buffer += _receive_part(connection, 65536, remaining)
    line = bytes(buffer[: buffer.index(b"\n") + 1])
    del buffer[: len(line)]
    return line


def _receive_part(connection: socket.socket, most_bytes: int, seconds: float) -> bytes:
    """Receives the next bytes. Raises EOFError where the other end closes, or after the time."""
    connection.settimeout(seconds)
    try:
        part = connection.recv(most_bytes)
    except socket.timeout:  # noqa: UP041  (another class before Python 3.10)
        raise EOFError("too late") from None
    if not part:
        raise EOFError("closed")
    return part


def _parse_message(line: bytes) -> Details:
    """Parses a line's object. Raises ValueError: none, nested too deep, or a number too long."""
    steps = (1 if each in b"[{" else -1 for each in line.translate(None, _NO_BRACKETS))
    if max(accumulate(steps), default=0) > MOST_LEVELS:
        raise ValueError("nested too deep")
    content = json.loads(line, parse_constant=_finite, parse_float=_finite, parse_int=_integer)
    if not isinstance(content, dict):
        raise ValueError("no object")
    return content


def _finite(text: str) -> float:
    if len(text) > MOST_DIGITS or not math.isfinite(float(text)):
        raise ValueError(f"{text[:20]} is no finite number of {MOST_DIGITS} characters")
    return float(text)


def _integer(text: str) -> int:
    return int(text) if _finite(text) else 0


def _prepare(connection: socket.socket) -> None:
    connection.settimeout(None)
    wait_at_most(connection, STALL_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
