"""The data port of a session: open to whoever knows its nonce, and to nobody else.

A meeting is one control connection, over which the request and what the responder saw travel, and
any number of data connections, which carry payload and nothing else. A connection that does not
present the session's nonce within two seconds is closed and counts for nothing; where the session's
peer is known, one from another host is closed at once.
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
from probes.net.callers import accepted
from probes.sockets.tcp_info import wait_at_most

CONNECT_SECONDS = 5.0
HELLO_SECONDS = 2.0
STALL_SECONDS = 10.0
"""A connection that carries nothing for so long has failed."""
MOST_CONNECTIONS = 64
"""Of one meeting."""
MOST_REQUEST_BYTES = 4096
MOST_TOLD_BYTES = 4 << 20
MOST_LEVELS, MOST_DIGITS = 16, 64
"""Of a message: arrays and objects inside each other, and characters of one number."""
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
    """What the initiator asked for, plain JSON values; not to be trusted beyond its own session."""
    unread: bytearray = field(default_factory=bytearray)
    """What came behind the last line that was heard."""

    def tell(self, told: Details) -> None:
        """One line to the other end."""
        self.control.sendall(json.dumps(told).encode() + b"\n")

    def hear(self, seconds: float) -> Details:
        """One line from the other end.

        Raises RuntimeError where that reports an error, EOFError where none comes in time.
        """
        line = _read_line(self.control, seconds, MOST_TOLD_BYTES, self.unread)
        try:
            told = _message(line)
        except ValueError as error:
            raise RuntimeError(f"invalid message from the responder: {error}") from None
        if "error" in told:
            raise RuntimeError(f"error from the responder: {told['error']}")
        return told

    def waits(self) -> bool:
        """Whether something of the other end's is there to be heard."""
        return b"\n" in self.unread or bool(select.select([self.control], [], [], 0)[0])

    def wait_for_close(self, seconds: float) -> None:
        """Until the other end has closed the control connection, at most so long."""
        with contextlib.suppress(OSError):
            self.control.settimeout(seconds)
            self.control.recv(1)

    def close(self) -> None:
        """Closes every connection."""
        for connection in (self.control, *self.connections):
            connection.close()


Serve = Callable[[Meeting], None]
"""The responder's half of one meeting; what it raises is told to the initiator."""


@contextmanager
def opened(address: str, serve: Serve, receive_buffer_bytes: int = 0) -> Iterator[Endpoint]:
    """Listens for one session; yields the port and the nonce that opens it.

    address: this host's own to listen on; empty, or not one of its own: every address.
    receive_buffer_bytes: SO_RCVBUF of each connection; 0: the system tunes it.
    """
    nonce = secrets.token_hex(16)
    listener = _listen(address, receive_buffer_bytes)
    waiting = _Waiting(nonce, serve)
    threading.Thread(target=_accept, args=(listener, waiting), daemon=True).start()
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
    """The initiator's half: connected, let in, the request told and confirmed.

    The buffers are SO_SNDBUF and SO_RCVBUF of the data connections; 0: the system tunes them.
    segment_bytes: the MSS that their SYNs tell, to which both ends keep; 0: the system's.

    Raises:
        Unavailable: the port cannot be reached.
        RuntimeError: the other end does not let us in.
    """
    number = secrets.randbits(32)
    options = {
        (socket.SOL_SOCKET, socket.SO_SNDBUF): send_buffer_bytes,
        (socket.SOL_SOCKET, socket.SO_RCVBUF): receive_buffer_bytes,
        (socket.IPPROTO_TCP, socket.TCP_MAXSEG): segment_bytes,
    }
    made: List[socket.socket] = []
    try:
        made.append(_connect(peer, number, _CONTROL, {}))
        made += [_connect(peer, number, index, options) for index in range(connections)]
        meeting = Meeting(made[0], made[1:], request)
        meeting.tell({"connections": connections, **request})
        read_exactly(meeting.control, 1, time.monotonic() + CONNECT_SECONDS)
    except (EOFError, ConnectionError):
        _close(made)
        raise RuntimeError(f"{peer.host}: the data connection was closed before its end") from None
    except BaseException:
        _close(made)
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
        family, _, _, _, where = socket.getaddrinfo(peer.host, peer.port, type=socket.SOCK_STREAM)[
            0
        ]
        connection = socket.socket(family, socket.SOCK_STREAM)
        connection.settimeout(CONNECT_SECONDS)
        # Before the connect: the window scale is told in the SYN.
        for (level, name), size_bytes in options.items():
            if size_bytes:
                connection.setsockopt(level, name, size_bytes)
        connection.connect(where)
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


def _listen(address: str, receive_buffer_bytes: int) -> socket.socket:
    if address:
        with contextlib.suppress(socket.gaierror):  # a link-local one has the client's zone
            family, _, _, _, where = socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)[0]
            listener = socket.socket(family, socket.SOCK_STREAM)
            try:
                listener.bind(where)
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
    # On the listener: what it accepts inherits it, and tells its window scale in the SYN's answer.
    if receive_buffer_bytes:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
    listener.listen(_BACKLOG)
    return listener


def _accept(listener: socket.socket, waiting: _Waiting) -> None:
    slots = threading.BoundedSemaphore(_MOST_WAITING)
    entering: Dict[socket.socket, bool] = {}
    for connection in accepted(listener):
        if not slots.acquire(blocking=False):
            # The one that has been silent for longest makes room; our own speaks at once.
            with contextlib.suppress(StopIteration, KeyError, OSError):  # it had just spoken
                oldest = next(iter(entering))
                del entering[oldest]
                oldest.shutdown(socket.SHUT_RDWR)
            slots.acquire()
        entering[connection] = True
        arguments = (connection, entering, slots, waiting)
        threading.Thread(target=_admit, args=arguments, daemon=True).start()


@dataclass
class _Gathered:
    """What has come of one meeting so far."""

    control: Optional[socket.socket] = None
    request: Details = field(default_factory=dict)
    data: Dict[int, socket.socket] = field(default_factory=dict)

    def whole(self) -> Optional[Meeting]:
        count = self.request.get("connections")
        if self.control is None or len(self.data) != count:
            return None
        return Meeting(self.control, [self.data[i] for i in range(count)], self.request)


@dataclass
class _Waiting:
    """Gathers the connections of each meeting."""

    nonce: str
    serve: Serve
    lock: threading.Lock = field(default_factory=threading.Lock)
    meetings: Dict[int, _Gathered] = field(default_factory=dict)

    def add(
        self, number: int, index: int, connection: socket.socket, request: Optional[Details]
    ) -> Optional[Meeting]:
        """Takes a connection; with the last one, the whole meeting."""
        with self.lock:
            if number not in self.meetings and len(self.meetings) >= _MOST_MEETINGS:
                # Meetings that were never completed: the oldest makes room.
                left = self.meetings.pop(next(iter(self.meetings)))
                _close([each for each in (left.control, *left.data.values()) if each])
            gathered = self.meetings.setdefault(number, _Gathered())
            if request is not None:
                gathered.control, gathered.request = connection, request
            else:
                gathered.data[index] = connection
            meeting = gathered.whole()
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
        found = _hello(connection, waiting.nonce)
    except (OSError, EOFError):
        found = None
    finally:
        stays = entering.pop(connection, False)
        slots.release()
    if found is None or not stays:
        connection.close()
        return
    number, index = found
    request = None
    if index == _CONTROL:
        try:
            request = _message(_read_line(connection, CONNECT_SECONDS, MOST_REQUEST_BYTES))
        except (OSError, EOFError, ValueError):
            connection.close()
            return
    _prepare(connection)
    meeting = waiting.add(number, index, connection, request)
    if meeting is not None:
        _serve(meeting, waiting.serve)


def _hello(connection: socket.socket, nonce: str) -> Optional[Tuple[int, int]]:
    """The meeting's number and the connection's in it; None: a stranger."""
    hello = read_exactly(connection, _HELLO.size, time.monotonic() + HELLO_SECONDS)
    magic, told, number, index = _HELLO.unpack(hello)
    known = magic == _MAGIC and hmac.compare_digest(told, nonce.encode())
    return (number, index) if known and (index < MOST_CONNECTIONS or index == _CONTROL) else None


def _serve(meeting: Meeting, serve: Serve) -> None:
    try:
        meeting.control.sendall(b"\n")
        serve(meeting)
    except Exception as error:
        # The initiator may be gone, and with it whoever would want to know.
        with contextlib.suppress(OSError):
            meeting.tell({"error": str(error) or type(error).__name__})
    finally:
        meeting.close()


def read_exactly(connection: socket.socket, size: int, deadline: float) -> bytes:
    """So many bytes. Raises EOFError where they are not there by then, of time.monotonic()."""
    got = b""
    while len(got) < size:
        left = deadline - time.monotonic()
        if left <= 0:
            raise EOFError("too late")
        got += _received(connection, size - len(got), left)
    return got


def _read_line(
    connection: socket.socket, seconds: float, most_bytes: int, got: Optional[bytearray] = None
) -> bytes:
    """Up to a line's end; got: what came of it before, and keeps what follows it."""
    deadline = time.monotonic() + seconds
    got = bytearray() if got is None else got
    while b"\n" not in got:
        left = deadline - time.monotonic()
        if left <= 0:
            raise EOFError("too late")
        if len(got) > most_bytes:
            raise EOFError("a line without end")
        got += _received(connection, 65536, left)
    line = bytes(got[: got.index(b"\n") + 1])
    del got[: len(line)]
    return line


def _received(connection: socket.socket, most_bytes: int, seconds: float) -> bytes:
    """What comes next. Raises EOFError where the other end closes, or nothing comes in time."""
    connection.settimeout(seconds)
    try:
        part = connection.recv(most_bytes)
    except socket.timeout:  # noqa: UP041  (another class before Python 3.10)
        raise EOFError("too late") from None
    if not part:
        raise EOFError("closed")
    return part


def _message(line: bytes) -> Details:
    """The object in a line. Raises ValueError: none, nested too deep, or a number too long."""
    steps = (1 if each in b"[{" else -1 for each in line.translate(None, _NO_BRACKETS))
    if max(accumulate(steps), default=0) > MOST_LEVELS:
        raise ValueError("nested too deep")
    told = json.loads(line, parse_constant=_finite, parse_float=_finite, parse_int=_whole)
    if not isinstance(told, dict):
        raise ValueError("no object")
    return told


def _finite(text: str) -> float:
    if len(text) > MOST_DIGITS or not math.isfinite(float(text)):
        raise ValueError(f"{text[:20]} is no finite number of {MOST_DIGITS} characters")
    return float(text)


def _whole(text: str) -> int:
    return int(text) if _finite(text) else 0


def _prepare(connection: socket.socket) -> None:
    connection.settimeout(None)
    wait_at_most(connection, STALL_SECONDS)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
