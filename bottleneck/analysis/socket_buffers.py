"""Which setting keeps a socket's buffer small, and what to set instead.

Sources: socket(7) for SO_RCVBUF, SO_SNDBUF and net.core; tcp(7) for tcp_rmem and tcp_wmem, whose
third value ends the kernel's own tuning; smb.conf(5) for socket options.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.evidence.details import Sockets
from bottleneck.text.units import size_text
from probes.core.records import HostFacts

PINNED_RATIO = 0.5
"""A buffer below this share of what the kernel would let it grow to was fixed by its program."""
ROOM_RATIO = 2.0
"""Buffer over payload in flight: the kernel counts its own overhead in it (tcp_adv_win_scale)."""


@dataclass(frozen=True)
class Kind:
    """One direction of a socket's buffer."""

    name: str
    cause: str
    option: str
    sysctl: str

    def size(self, sockets: Sockets) -> float | None:
        """How large it was on a connection; None: not told."""
        return sockets.send_buffer_bytes if self is SEND else sockets.receive_buffer_bytes


RECEIVE = Kind("receive window", "receive-window", "SO_RCVBUF", "net.ipv4.tcp_rmem")
SEND = Kind("send buffer", "send-buffer", "SO_SNDBUF", "net.ipv4.tcp_wmem")
KINDS = {each.cause: each for each in (RECEIVE, SEND)}
"""By the cause that one is."""


@dataclass(frozen=True)
class Fixed:
    """The setting that keeps a buffer small."""

    remedy: str
    """What to do, as one imperative sentence without its full stop."""
    detail: str = ""
    """Where it is set, as the part of a line; empty: not known."""


def limiting(given: Evidence, cause: str, side: str) -> Fixed | None:
    """Returns the setting behind a buffer, with its number; None: the cause is no buffer.

    A path that needs no more than the buffer holds now gets no number.
    """
    kind, sockets = KINDS.get(cause), given.details.sockets
    if kind is None:
        return None
    if given.connection is not None and not sockets.sender_seen:
        sockets = given.connection.sockets
    window = sockets.peer_window_bytes_median or sockets.own_window_bytes_median
    size_now = sockets.send_buffer_bytes if kind is SEND else window
    trip = sockets.min_rtt_seconds or given.details.rtt_seconds
    needed = None if trip is None else _needed_bytes(given, trip)
    if needed is None or (size_now is not None and needed <= size_now):
        return _where(given, side, kind, sockets, None)
    found = _where(given, side, kind, sockets, round(ROOM_RATIO * needed))
    needs = f"This path needs a window of {size_text(needed)}, about half of the buffer"
    return replace(found, remedy=f"{found.remedy}. {needs}")


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


def _where(given: Evidence, side: str, kind: Kind, sockets: Sockets, wanted: int | None) -> Fixed:
    if any(
        each.option == "socket options" and kind.option in each.value.upper()
        for each in given.smb_conf(side)
    ):
        return Fixed(
            f"Remove {kind.option} from `socket options` in the {side}'s smb.conf",
            "`socket options` in smb.conf",
        )
    most, size = largest(given, side, kind), kind.size(sockets)
    if most is not None and size is not None and size < PINNED_RATIO * most:
        program = (sockets.process if side == "server" else None) or "the copy program"
        return Fixed(
            f"Remove the option {kind.option} that {program} seems to set on the {side}",
            f"seems set by {program}",
        )
    if most is not None and wanted is not None and wanted <= most:
        return Fixed(
            f"Find what limits the {kind.name} on the {side}: {kind.sysctl} allows {most} there"
        )
    number = "" if wanted is None else f" to {wanted} bytes or more"
    now, detail = (f" (now {most})", f"limited by {kind.sysctl}") if most is not None else ("", "")
    return Fixed(f"Raise the third value of `{kind.sysctl}` on the {side}{number}{now}", detail)


def largest(given: Evidence, side: str, kind: Kind) -> int | None:
    """The most that a host's kernel lets the buffer grow to, bytes; None: not told."""
    return grows_to(given.host(side), kind)


def grows_to(host: HostFacts | None, kind: Kind) -> int | None:
    """Returns the third value of a host's sysctl of a buffer, bytes; None: not told."""
    told = (host.socket_buffers.get(kind.sysctl, "") if host is not None else "").split()
    return int(told[2]) if len(told) == 3 and told[2].isdecimal() else None
