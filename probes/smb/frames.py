"""SMB messages on a TCP connection: 4 bytes of length, then the message (MS-SMB2 2.1).

One thread, one blocking socket, no copies: a reply goes straight into its final buffer, a request
is sent as separate header and payload.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import struct
import time
from collections.abc import Sequence

from probes.core.records import SMB_PORT, Endpoint
from probes.core.stage import Refused
from probes.smb.time_bins import REPLY, SEND, TimeBins
from probes.sockets import tcp_info
from probes.sockets.tcp_info import SILENT, WHOLE, keep_alive, send_parts, wait_at_most

KEEP_ALIVE, NEGATIVE = 0x85, 0x83
"""Types of a NetBIOS session's keep-alive, which carries nothing, and of a server's refusal to open
a session (RFC 1002 4.3.7, 4.3.4)."""
CONNECT_SECONDS = 5.0
HEAD_START_SECONDS = 0.5
"""Wait for one address before the next of the same host is tried; then all are tried longer."""
TICK_SECONDS = 1
"""Interval at which a blocked call checks the deadline."""
STALL_SECONDS = 10.0
"""Silence after which a peer that owes a reply has stalled."""
FRAME_SPARE_BYTES = 64 * 1024
"""Bytes that a message may have beyond the requested payload."""

SHORT_BYTES = 4096
"""A shorter message never waits for room in the socket."""
_LENGTH = struct.Struct(">I")
Buffer = bytes | bytearray | memoryview


class SmbError(RuntimeError):
    """The peer or the connection failed during a transfer; the text is one line."""


class DeadlinePassed(SmbError):
    """The absolute deadline passed."""


class ConnectionClosed(SmbError):
    """The peer closed or reset the connection."""


def prepare(sock: socket.socket) -> None:
    """Sets short kernel timeouts on a blocking socket: Python's would make MSG_WAITALL useless.

    SO_RCVBUF and SO_SNDBUF stay untouched, they would switch off the kernel's autotuning.
    """
    sock.settimeout(None)
    wait_at_most(sock, TICK_SECONDS)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # A slow server disk may close the window for seconds, a dead host for ever.
    keep_alive(sock, 5, 2, 3, 30_000)


class Wire:
    """Frames over one prepared socket, under one absolute deadline that the peer cannot extend."""

    def __init__(self, sock: socket.socket, frame_limit_bytes: int, host: str = "") -> None:
        self._sock, self._host = sock, host
        self._header = bytearray(4)
        self._header_view = memoryview(self._header)
        self._is_answered = False
        self.frame_limit_bytes = frame_limit_bytes
        """Longest message that is accepted."""
        self.deadline: float | None = None
        """time.monotonic() at which every call ends with DeadlinePassed."""
        self.times: TimeBins | None = None
        """Bins that get the time that passes here, if any."""
        self.heard = 0.0
        """Time at which the last message began to arrive (time.monotonic())."""
        self.patient = False
        """Whether silence until the deadline is no stall: the peer is busy with a flush."""

    def next_frame(self) -> int:
        """Receives the length of the next message, in bytes; skips keep-alives.

        Raises SmbError on anything that is no frame, or one beyond frame_limit_bytes.
        """
        began = time.monotonic()
        while True:
            self._look_at_deadline(began)
            self.receive(self._header_view)
            self.heard = now = time.monotonic()
            if self.times is not None:
                self.times.walls[REPLY] += now - began
            began = now
            length = int(_LENGTH.unpack(self._header)[0])
            if length >> 24 == KEEP_ALIVE and not length & 0xFFFFFF:
                continue
            if length >> 24 == NEGATIVE and not self._is_answered:
                text = "the server refuses this host (hosts allow, or a block list); allow it there"
                raise Refused("unreachable", f"{self._host}: negotiate: {text}")
            self._is_answered = True
            if length >> 24:
                raise SmbError("the server sent something that is not an SMB message")
            if length > self.frame_limit_bytes:
                raise SmbError(f"the server announced a message of {length} bytes, more than asked")
            return length

    def receive(self, view: memoryview) -> None:
        """Fills view from the socket."""
        filled, size, silent_since = 0, len(view), 0.0
        while filled < size:
            try:
                count = self._sock.recv_into(view[filled:] if filled else view, 0, WHOLE)
            except SILENT:
                silent_since = self._look_at_stall(silent_since, "sent nothing")
                continue
            except OSError as error:
                raise ConnectionClosed(f"the connection failed: {_reason(error)}") from error
            if count == 0:
                raise ConnectionClosed("the server closed the connection")
            filled += count
            if filled < size:
                self._look_at_deadline(time.monotonic())
                silent_since = 0.0

    def send(self, parts: Sequence[Buffer]) -> None:
        """Sends one frame made of parts; the 4 bytes of length are put in front."""
        length = sum(map(len, parts))
        pending: list[Buffer] = [_LENGTH.pack(length), *parts]
        remaining = length + 4
        began, silent_since = time.monotonic(), 0.0
        while True:
            try:
                count = send_parts(self._sock, pending)
            except SILENT:
                silent_since = self._look_at_stall(silent_since, "accepted nothing")
                continue
            except OSError as error:
                if not self._is_answered:
                    with contextlib.suppress(SmbError):
                        self.next_frame()  # a refusal that came before the close
                raise ConnectionClosed(f"the connection failed: {_reason(error)}") from error
            remaining -= count
            if not remaining:
                if self.times is not None and length > SHORT_BYTES:
                    self.times.walls[SEND] += time.monotonic() - began
                return
            self._look_at_deadline(time.monotonic())
            silent_since = 0.0
            pending = _skip_sent(pending, count)

    def _look_at_deadline(self, now: float) -> None:
        if self.deadline is not None and now > self.deadline:
            self._reset_on_close()
            raise DeadlinePassed("it ran out of time")

    def _look_at_stall(self, since: float, what: str) -> float:
        """Checks after a tick without bytes; returns the start of the silence (since; 0.0: new)."""
        now = time.monotonic()
        self._look_at_deadline(now)
        since = since or now - TICK_SECONDS
        if now - since > STALL_SECONDS and not (self.patient and self.deadline):
            end = f"{STALL_SECONDS:.0f} s{_stuck(self._sock)}"
            self._reset_on_close()
            raise SmbError(f"the server stalled: it {what} for {end}")
        return since

    def _reset_on_close(self) -> None:
        """Sets SO_LINGER: a FIN behind lost data never arrives, and the file would stay open."""
        with contextlib.suppress(OSError):
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _stuck(sock: socket.socket) -> str:
    """Returns the kernel's view of a stalled connection, as the end of a sentence."""
    try:
        figures = tcp_info.read(sock)
    except OSError:
        return ""
    if figures.get("rtos_in_a_row"):
        return "; TCP retransmits and nothing is acknowledged"
    return "; its TCP receive window is closed" if figures.get("peer_window_bytes") == 0 else ""


def _skip_sent(parts: list[Buffer], sent: int) -> list[Buffer]:
    rest: list[Buffer] = []
    for part in parts:
        if sent >= len(part):
            sent -= len(part)
            continue
        rest.append(memoryview(part)[sent:])
        sent = 0
    return rest


def _reason(error: OSError) -> str:
    return error.strerror.lower() if error.strerror else str(error)


NO_WAY = {
    errno.EINVAL: "the route to it is a blackhole",
    errno.EACCES: "the route to it is prohibited",
    errno.ENETUNREACH: "no route to it",
    errno.EHOSTUNREACH: "it is down, no route leads to it, or a firewall rejects it",
}
"""Meaning of an error of connect(2), by its number. Source: ip-route(8), route types."""


def first_to_answer(host: str, port: int) -> socket.socket:
    """Connects to the address of a host that answers; a dead one costs little time.

    Errors: those of socket.create_connection.
    """
    addresses = [each[4][0] for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    for address in addresses if len(addresses) > 1 else ():
        with contextlib.suppress(OSError):  # tried again, and longer
            connection = socket.create_connection((str(address), port), HEAD_START_SECONDS)
            connection.settimeout(CONNECT_SECONDS)
            return connection
    return socket.create_connection((host, port), CONNECT_SECONDS)


def connect(peer: Endpoint) -> socket.socket:
    """Opens a prepared TCP connection within CONNECT_SECONDS per address. Raises Refused."""
    host, port = peer.host, peer.port or SMB_PORT
    where = f"{host} port {port}"
    try:
        sock = first_to_answer(host, port)
    except socket.gaierror:
        text = f"{host}: connect: the name does not resolve; check it, or use an address"
    except TimeoutError:
        text = (
            f"{where}: connect: no answer within {CONNECT_SECONDS:.0f} s; check that the "
            "host is up and that no firewall drops the port"
        )
    except ConnectionRefusedError:
        text = f"{where}: connect: refused; check that the file server runs on this port"
    except OSError as error:
        why = NO_WAY.get(error.errno or 0)
        other = f"{error.strerror or error}".lower()
        text = f"{where}: connect: {why or other}; "
        text += f"see `ip route get {host}`" if why else "check the network"
    except UnicodeError:
        text = f"{host}: connect: not a host name; check it, or use an address"
    else:
        prepare(sock)
        return sock
    raise Refused("unreachable", text)
