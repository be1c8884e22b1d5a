"""What became of numbered datagrams: lost, late, doubled, and how unevenly they came; pure."""

from __future__ import annotations

import errno
import hmac
import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Any, Optional, Tuple

from probes.core.records import Details
from probes.net.callers import plain
from probes.sockets.tcp_info import LINUX_OPTIONS, RECEIVING, SILENT, wait_at_most

HEADER = struct.Struct("!16sQQ")
"""Token of the meeting, number from 0, nanoseconds of the sender's own monotonic clock."""
MOST_DATAGRAMS = 1 << 24
"""Of one run: the receiver keeps a byte for each."""
JITTER_GAIN = 1 / 16
"""RFC 3550 section 6.4.1."""


@dataclass
class Tally:
    """The receiver's account of one run."""

    most: int
    """Numbers from 0 to most - 1 belong to it."""
    seen: bytearray = field(init=False)
    unique: int = 0
    doubled: int = 0
    late: int = 0
    """Of the unique ones those that came after one with a higher number (RFC 4737)."""
    expected: int = 0
    """The lowest number above all that came."""
    jitter_seconds: float = 0.0
    transit_ns: Optional[int] = None
    """Of the latest: by two clocks, so that only differences mean anything."""

    def __post_init__(self) -> None:
        if not 0 < self.most <= MOST_DATAGRAMS:
            raise ValueError(f"no such number of datagrams: {self.most}")
        self.seen = bytearray(self.most)

    def take(self, number: int, sent_ns: int, arrived_ns: int) -> bool:
        """One datagram; whether it is a new one of this run."""
        if number >= self.most:
            return False
        if self.seen[number]:
            self.doubled += 1
            return False
        self.seen[number] = 1
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
        """Length of the longest run of numbers in a row that never came, of so many sent."""
        return max(map(len, bytes(self.seen[:sent]).split(b"\1")), default=0)


def account(tally: Tally, sent: int, dropped: Optional[int]) -> Details:
    """What became of so many datagrams that were sent.

    dropped: by the receiver's own socket, which was read too slowly: they had passed the path, and
    are not its loss. None: the system does not tell, and lost_datagrams may hold some of them.

    Returns sent_datagrams, received_datagrams, lost_datagrams, loss_ratio (of those sent),
    reordered_datagrams, reordered_ratio (of those received), duplicate_datagrams, jitter_seconds
    (RFC 3550, at the end), receiver_dropped_datagrams where known, longest_gap_datagrams where no
    drop is mixed with it.
    """
    missing = max(0, sent - tally.unique)
    lost = missing - min(missing, dropped or 0)
    told: Details = {
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
        told["receiver_dropped_datagrams"] = dropped
    if not dropped:
        told["longest_gap_datagrams"] = tally.longest_gap(sent)
    return told


RECEIVE_BUFFER_BYTES = 8 << 20
WAIT_SECONDS = 0.02
"""Of one call that receives."""
HELLO = (1 << 64) - 1
"""The number of a datagram that only makes the way known."""
HELLO_INTERVAL_SECONDS = 0.05

# asm-generic/socket.h and linux/in.h, in6.h; Python 3.9 has no names for them
_SO_RCVBUFFORCE, _SO_TIMESTAMPNS, _SO_MEMINFO = 33, 35, 55
_DROPS_AT = 8  # SK_MEMINFO_DROPS of linux/sock_diag.h
_IP_MTU_DISCOVER, _IP_RECVERR, _IP_MTU = 10, 11, 14
_IPV6_MTU_DISCOVER, _IPV6_MTU, _IPV6_RECVERR = 23, 24, 25
_PMTUDISC_DO = 2
_TIMESPEC = struct.Struct("@ll")
_MOST_WAITED_NS = 1_000_000_000
"""In the socket; more is a clock that was set meanwhile."""


def beside(control: socket.socket) -> socket.socket:
    """A UDP socket at this end's address of a connection, on a port of its own."""
    family, own = _plain(control.family, control.getsockname())
    made = socket.socket(family, socket.SOCK_DGRAM)
    try:
        made.bind((own[0], 0, *own[2:]))
        if LINUX_OPTIONS:
            # past net.core.rmem_max where we may: else 3 ms of our own absence are drops
            try:
                made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, RECEIVE_BUFFER_BYTES)
            except OSError:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
            made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            _whole_and_reported(made)
        else:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        wait_at_most(made, WAIT_SECONDS, RECEIVING)
    except BaseException:
        made.close()
        raise
    return made


def _whole_and_reported(made: socket.socket) -> None:
    """No fragments, and a queue of this host that is full is an error and no silent loss."""
    if made.family == socket.AF_INET:
        made.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _PMTUDISC_DO)
        made.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)
    else:
        made.setsockopt(socket.IPPROTO_IPV6, _IPV6_MTU_DISCOVER, _PMTUDISC_DO)
        made.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVERR, 1)


def connect(made: socket.socket, control: socket.socket, port: int) -> None:
    """To a port at the other end's address of the connection: nobody else is heard from then."""
    _, other = _plain(control.family, control.getpeername())
    made.connect((other[0], port, *other[2:]))


def largest_payload_bytes(made: socket.socket) -> Optional[int]:
    """What a datagram of a connected socket holds in one packet of its route; None: not told."""
    if not LINUX_OPTIONS:
        return None
    if made.family == socket.AF_INET:
        return made.getsockopt(socket.IPPROTO_IP, _IP_MTU) - 28
    return made.getsockopt(socket.IPPROTO_IPV6, _IPV6_MTU) - 48


def dropped(made: socket.socket) -> Optional[int]:
    """Datagrams that reached the socket and found no room in it; None: the system does not tell.

    Source: SO_MEMINFO (Linux 4.12), the same counter as SO_RXQ_OVFL's.
    """
    if not LINUX_OPTIONS:
        return None
    try:
        raw = made.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, 64)
    except OSError:
        return None
    if len(raw) < 4 * (_DROPS_AT + 1):
        return None
    return int(struct.unpack_from("=I", raw, 4 * _DROPS_AT)[0])


def receive(made: socket.socket, buffer: bytearray) -> Tuple[int, int]:
    """Size of one datagram, and when the kernel had it, monotonic ns; (-1, 0): none came.

    It is the kernel's moment, so that the scheduling of this process is not taken for the path's
    unevenness. Its stamp is by the wall clock, of which only the time since then is taken.
    """
    try:
        size, extra, _, _ = made.recvmsg_into([buffer], 64)
    except BlockingIOError:
        return -1, 0
    except ConnectionRefusedError:
        # told by ICMP of what was sent before the other end listened
        return -1, 0
    for level, kind, content in extra:
        if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
            seconds, nanoseconds = _TIMESPEC.unpack_from(content)
            waited = time.time_ns() - seconds * 1_000_000_000 - nanoseconds
            return size, time.monotonic_ns() - min(max(waited, 0), _MOST_WAITED_NS)
    return size, time.monotonic_ns()


def send(made: socket.socket, content: bytearray) -> bool:
    """Sends one datagram; whether this host's own queue took it.

    Raises RuntimeError where it does not fit into a packet, or nobody listens.
    """
    try:
        made.send(content)
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
    """The datagram that opens the way through what stands between."""
    return HEADER.pack(token, HELLO, 0)


def hear_hello(
    made: socket.socket, control: socket.socket, token: bytes, seconds: float
) -> Optional[int]:
    """The port that the control connection's other end says hello from; None: it did not come.

    Nothing is ever sent to another address than that one: no stranger can have us flood anybody.
    """
    _, other = _plain(control.family, control.getpeername())
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            content, sender = made.recvfrom(2048)
        except (*SILENT, ConnectionRefusedError):
            continue
        known = hmac.compare_digest(content, hello(token))
        if known and sender[0] == other[0]:
            return int(sender[1])
    return None


def _plain(family: int, address: Tuple[Any, ...]) -> Tuple[int, Tuple[Any, ...]]:
    """An address, of IPv4 where it only looks like IPv6 (RFC 4291 section 2.5.5.2)."""
    text = plain(address[0])
    return (family, address) if text == address[0] else (socket.AF_INET, (text, address[1]))
