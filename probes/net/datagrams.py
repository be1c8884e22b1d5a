"""Numbered UDP datagrams: sockets for them, and the account of loss, reordering and jitter."""

from __future__ import annotations

import errno
import hmac
import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Any, Optional, Tuple

from probes.core.records import Details
from probes.net.peers import plain
from probes.sockets.tcp_info import LINUX_OPTIONS, RECEIVING, SILENT, wait_at_most

HEADER = struct.Struct("!16sQQ")
"""Token of the meeting, number from 0, nanoseconds of the sender's own monotonic clock."""
MOST_DATAGRAMS = 1 << 24
"""Datagrams of one run at most: the receiver keeps a byte for each."""
JITTER_GAIN = 1 / 16
"""Weight of a new difference in the jitter (RFC 3550 section 6.4.1)."""


@dataclass
class Tally:
    """The receiver's account of one run."""

    planned: int
    """Datagrams of the run, numbered from 0."""
    arrivals: bytearray = field(init=False)
    unique: int = 0
    doubled: int = 0
    late: int = 0
    """Unique datagrams that came after one with a higher number (RFC 4737)."""
    expected: int = 0
    """One more than the highest number that came."""
    jitter_seconds: float = 0.0
    transit_ns: Optional[int] = None
    """Transit time of the latest; by two hosts' clocks, so only differences mean anything."""

    def __post_init__(self) -> None:
        if not 0 < self.planned <= MOST_DATAGRAMS:
            raise ValueError(f"no such number of datagrams: {self.planned}")
        self.arrivals = bytearray(self.planned)

    def take(self, number: int, sent_ns: int, arrived_ns: int) -> bool:
        """Counts one datagram; returns whether it is a new one of this run."""
        if number >= self.planned:
            return False
        if self.arrivals[number]:
            self.doubled += 1
            return False
        self.arrivals[number] = 1
        self.unique += 1
        if number >= self.expected:
            self.expected = number + 1
        else:
            self.late += 1
        transit_ns = arrived_ns - sent_ns
        if self.transit_ns is not None:
            difference = abs(transit_ns - self.transit_ns) / 1e9
            self.jitter_seconds += (difference - self.jitter_seconds) * JITTER_GAIN
        self.transit_ns = transit_ns
        return True

    def longest_gap(self, sent: int) -> int:
        """Returns the most consecutive numbers that never came, of so many sent."""
        return max(map(len, bytes(self.arrivals[:sent]).split(b"\1")), default=0)


def account(tally: Tally, sent: int, dropped: Optional[int]) -> Details:
    """Returns the figures of a run from the receiver's tally and the count of datagrams sent.

    dropped: datagrams that the receiver's own socket had no room for; they passed the path and are
    not its loss. None: the system does not tell, and lost_datagrams may hold some of them.

    Returns sent_datagrams, received_datagrams, lost_datagrams, loss_ratio (of those sent),
    reordered_datagrams, reordered_ratio (of those received), duplicate_datagrams, jitter_seconds
    (RFC 3550, at the end), receiver_dropped_datagrams where known, longest_gap_datagrams where no
    drop is mixed with it.
    """
    missing = max(0, sent - tally.unique)
    lost = missing - min(missing, dropped or 0)
    details: Details = {
        "sent_datagrams": sent,
        "received_datagrams": tally.unique,
        "lost_datagrams": lost,
        "loss_ratio": lost / sent if sent else 0.0,
        "reordered_datagrams": tally.late,
        "reordered_ratio": tally.late / tally.unique if tally.unique else 0.0,
        "duplicate_datagrams": tally.doubled,
        "jitter_seconds": tally.jitter_seconds,
    }
    if dropped is not None:
        details["receiver_dropped_datagrams"] = dropped
    if not dropped:
        details["longest_gap_datagrams"] = tally.longest_gap(sent)
    return details


RECEIVE_BUFFER_BYTES = 8 << 20
WAIT_SECONDS = 0.02
"""Timeout of one receiving call."""
HELLO = (1 << 64) - 1
"""Number of a datagram that carries nothing and opens the path through firewalls."""
HELLO_INTERVAL_SECONDS = 0.05

# asm-generic/socket.h and linux/in.h, in6.h; Python 3.9 has no names for them
_SO_RCVBUFFORCE, _SO_TIMESTAMPNS, _SO_MEMINFO = 33, 35, 55
_DROPS_AT = 8  # SK_MEMINFO_DROPS of linux/sock_diag.h
_IP_MTU_DISCOVER, _IP_RECVERR, _IP_MTU = 10, 11, 14
_IPV6_MTU_DISCOVER, _IPV6_MTU, _IPV6_RECVERR = 23, 24, 25
_PMTUDISC_DO = 2
_TIMESPEC = struct.Struct("@ll")
_MOST_WAITED_NS = 1_000_000_000
"""Longest wait in the socket; a longer one means that the wall clock was set."""


def open_beside(control: socket.socket) -> socket.socket:
    """Opens a UDP socket at this end's address of a connection, on a free port."""
    family, local = _plain(control.family, control.getsockname())
    udp = socket.socket(family, socket.SOCK_DGRAM)
    try:
        udp.bind((local[0], 0, *local[2:]))
        if LINUX_OPTIONS:
            # Beyond net.core.rmem_max where allowed: else 3 ms without a reader cause drops.
            try:
                udp.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
            except OSError:
                udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
            udp.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            _set_options(udp)
        else:
            udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        wait_at_most(udp, WAIT_SECONDS, RECEIVING)
    except BaseException:
        udp.close()
        raise
    return udp


def _set_options(udp: socket.socket) -> None:
    """Forbids fragments, and has a full queue of this host raise an error, not drop silently."""
    if udp.family == socket.AF_INET:
        udp.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _PMTUDISC_DO)
        udp.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)
    else:
        udp.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, _PMTUDISC_DO)
        udp.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVERR, 1)


def connect(udp: socket.socket, control: socket.socket, port: int) -> None:
    """Connects to a port at the connection's other end: nobody else is heard from then on."""
    _, other = _plain(control.family, control.getpeername())
    udp.connect((other[0], port, *other[2:]))


def largest_payload_bytes(udp: socket.socket) -> Optional[int]:
    """Returns the largest payload of one packet on a connected socket's route; None: unknown."""
    if not LINUX_OPTIONS:
        return None
    if udp.family == socket.AF_INET:
        return udp.getsockopt(socket.IPPROTO_IP, _IP_MTU) - 28
    return udp.getsockopt(socket.IPPROTO_IPV6, _IPV6_MTU) - 48


def count_drops(udp: socket.socket) -> Optional[int]:
    """Counts datagrams that the socket had no room for; None: the system does not tell.

    Source: SO_MEMINFO (Linux 4.12), the same counter as SO_RXQ_OVFL's.
    """
    if not LINUX_OPTIONS:
        return None
    try:
        raw = udp.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, 64)
    except OSError:
        return None
    if len(raw) < 4 * (_DROPS_AT + 1):
        return None
    return int(struct.unpack_from("=I", raw, 4 * _DROPS_AT)[0])


def receive(udp: socket.socket, buffer: bytearray) -> Tuple[int, int]:
    """Receives one datagram; returns its size and arrival in monotonic ns; (-1, 0): none came.

    The arrival is the kernel's, so that the scheduling of this process is not taken for jitter of
    the path. The kernel's stamp is of the wall clock: only the time passed since then is used.
    """
    try:
        size, extra, _, _ = udp.recvmsg_into([buffer], 64)
    except BlockingIOError:
        return -1, 0
    except ConnectionRefusedError:
        # An ICMP answer to what was sent before the other end listened.
        return -1, 0
    for level, kind, content in extra:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
            seconds, nanoseconds = _TIMESPEC.unpack_from(content)
            waited = time.time_ns() - seconds * 1_000_000_000 - nanoseconds
            return size, time.monotonic_ns() - min(max(waited, 0), _MOST_WAITED_NS)
    return size, time.monotonic_ns()


def send(udp: socket.socket, content: bytearray) -> bool:
    """Sends one datagram; returns whether this host's own queue took it.

    Raises RuntimeError where it does not fit into a packet, or nobody listens.
    """
    try:
        udp.send(content)
    except ConnectionRefusedError:
        raise RuntimeError("the datagrams are no longer received") from None
    except OSError as error:
        if error.errno in (errno.ENOBUFS, errno.EAGAIN):
            return False
        if error.errno == errno.EMSGSIZE:
            raise RuntimeError(f"{len(content)} bytes do not fit into a packet here") from None
        raise
    return True


def hello(token: bytes) -> bytes:
    """Returns the datagram that opens the path through firewalls in between."""
    return HEADER.pack(token, HELLO, 0)


def hear_hello(
    udp: socket.socket, control: socket.socket, token: bytes, seconds: float
) -> Optional[int]:
    """Returns the port from which the control connection's peer sent its hello; None: none came.

    Only that address is ever sent to: no stranger can have this host flood anybody.
    """
    _, other = _plain(control.family, control.getpeername())
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            content, sender = udp.recvfrom(2048)
        except (*SILENT, ConnectionRefusedError):
            continue
        if hmac.compare_digest(content, hello(token)) and sender[0] == other[0]:
            return int(sender[1])
    return None


def _plain(family: int, address: Tuple[Any, ...]) -> Tuple[int, Tuple[Any, ...]]:
    """Returns family and address, an IPv4-mapped one as IPv4 (RFC 4291 section 2.5.5.2)."""
    text = plain(address[0])
    return (family, address) if text == address[0] else (socket.AF_INET, (text, address[1]))
