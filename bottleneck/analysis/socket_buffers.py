"""Which setting keeps a socket's buffer small, and what to set instead.

Sources: socket(7) for SO_RCVBUF, SO_SNDBUF and net.core; tcp(7) for tcp_rmem and tcp_wmem, whose
third value ends the kernel's own tuning; smb.conf(5) for socket options.
"""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck.analysis.evidence.details import Sockets
from bottleneck.analysis.steps import target_of
from bottleneck.analysis.tcp_evidence import needed_bytes
from bottleneck.report import Report
from bottleneck.reports.units import size_text

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
    report: Report,
    side: str,
    sender: str,
    kind: Kind,
    sockets: Sockets,
    trip: float | None,
    held: float | None,
) -> str:
    """What lifts the limit, as the subject of a sentence: with the setting, and its number.

    held: what the buffer holds now, bytes; a path that needs no more than that is not told of.
    """
    needed = None if trip is None else needed_bytes(report, sender, trip)
    if needed is None or (held is not None and needed <= held):
        return f"A larger {kind.name} on the {side} ({_where(report, side, kind, sockets, None)})"
    where = _where(report, side, kind, sockets, round(ROOM_RATIO * needed))
    return f"A {kind.name} of {size_text(needed)} or more on the {side} ({where})"


def _where(report: Report, side: str, kind: Kind, sockets: Sockets, wanted: int | None) -> str:
    if side == "server" and in_smb_conf(report, kind.option):
        return f"take {kind.option} out of the socket options in its smb.conf"
    most, size = largest(report, side, kind), kind.size(sockets)
    if most is not None and size is not None and size < PINNED_RATIO * most:
        program = (sockets.process if side == "server" else None) or "the program"
        return f"{program} there seems to fix it with {kind.option}: leave that out"
    number = "" if wanted is None else f": {wanted} or more"
    if most is None:
        return f"the third value of {kind.sysctl}{number}"
    if wanted is not None and wanted <= most:
        number = ""
    return f"the third value of {kind.sysctl} is {most} there{number}"


def in_smb_conf(report: Report, option: str) -> bool:
    """Whether the file server's configuration fixes a buffer, as far as its agent could tell."""
    return any(
        each.option == "socket options" and option in each.value.upper()
        for each in target_of(report).smb_conf
    )


def largest(report: Report, side: str, kind: Kind) -> int | None:
    """The most that a host's kernel lets the buffer grow to, bytes; None: not told."""
    host = report.client if side == "client" else report.server
    told = (host.socket_buffers.get(kind.sysctl, "") if host is not None else "").split()
    return int(told[2]) if len(told) == 3 and told[2].isdecimal() else None
