"""Which setting keeps a socket's buffer small, and what to set instead.

Sources: socket(7) for SO_RCVBUF, SO_SNDBUF and net.core; tcp(7) for tcp_rmem and tcp_wmem, whose
third value ends the kernel's own tuning; smb.conf(5) for socket options.
"""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.evidence.details import Sockets
from bottleneck.units import size_text

PINNED_RATIO = 0.5
"""A buffer below this share of what the kernel would let it grow to was fixed by its program."""
ROOM_RATIO = 2.0
"""Buffer over payload in flight: the kernel counts its own overhead in it (tcp_adv_win_scale)."""


@dataclass(frozen=True)
class Kind:
    """One direction of a socket's buffer."""

    name: str
    option: str
    sysctl: str

    def size(self, sockets: Sockets) -> float | None:
        """How large it was on a connection; None: not told."""
        return sockets.send_buffer_bytes if self is SEND else sockets.receive_buffer_bytes


RECEIVE = Kind("receive window", "SO_RCVBUF", "net.ipv4.tcp_rmem")
SEND = Kind("send buffer", "SO_SNDBUF", "net.ipv4.tcp_wmem")


def remedy(
    given: Evidence,
    side: str,
    kind: Kind,
    sockets: Sockets,
    trip: float | None,
    held: float | None,
) -> str:
    """What lifts the limit, as the subject of a sentence: with the setting, and its number.

    held: what the buffer holds now, bytes; a path that needs no more than that is not told of.
    """
    needed = None if trip is None else _needed_bytes(given, trip)
    if needed is None or (held is not None and needed <= held):
        return f"A larger {kind.name} on the {side} ({_where(given, side, kind, sockets, None)})"
    where = _where(given, side, kind, sockets, round(ROOM_RATIO * needed))
    return f"A {kind.name} of {size_text(needed)} or more on the {side} ({where})"


def _needed_bytes(given: Evidence, rtt_seconds: float) -> float | None:
    """In flight where one connection fills the path: its rate times its round trip.

    None: nobody knows what the path carries.
    """
    claimed = [
        host.interface.rate_bits_per_second / 8
        for host in (given.report.client, given.report.server)
        if host is not None
        and host.interface is not None
        and host.interface.rate_bits_per_second
        and not host.interface.virtual
    ]
    rate = given.path_rate or min(claimed, default=None)
    return None if rate is None else rate * rtt_seconds


def _where(given: Evidence, side: str, kind: Kind, sockets: Sockets, wanted: int | None) -> str:
    if any(
        each.option == "socket options" and kind.option in each.value.upper()
        for each in given.smb_conf(side)
    ):
        return f"take {kind.option} out of the socket options in its smb.conf"
    most, size = largest(given, side, kind), kind.size(sockets)
    if most is not None and size is not None and size < PINNED_RATIO * most:
        program = (sockets.process if side == "server" else None) or "the program"
        return f"{program} there seems to fix it with {kind.option}: leave that out"
    number = "" if wanted is None else f": {wanted} or more"
    if most is None:
        return f"the third value of {kind.sysctl}{number}"
    if wanted is not None and wanted <= most:
        number = ""
    return f"the third value of {kind.sysctl} is {most} there{number}"


def largest(given: Evidence, side: str, kind: Kind) -> int | None:
    """The most that a host's kernel lets the buffer grow to, bytes; None: not told."""
    host = given.host(side)
    told = (host.socket_buffers.get(kind.sysctl, "") if host is not None else "").split()
    return int(told[2]) if len(told) == 3 and told[2].isdecimal() else None
