"""Finds the setting that keeps a socket's buffer small, and its remedy.

Sources: socket(7) for SO_RCVBUF, SO_SNDBUF and net.core; tcp(7) for tcp_rmem and tcp_wmem, whose
third value limits the kernel's own tuning; smb.conf(5) for socket options.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.evidence.details import Sockets
from bottleneck.text.units import size_text
from probes.core.records import HostFacts

PINNED_RATIO = 0.5
"""Least buffer / the kernel's maximum at which no program fixed the buffer."""
ROOM_RATIO = 2.0
"""Buffer over payload in flight: it includes the kernel's own overhead (tcp_adv_win_scale)."""


@dataclass(frozen=True)
class Kind:
    """One direction of a socket's buffer."""

    name: str
    cause: str
    option: str
    sysctl: str

    def size(self, sockets: Sockets) -> float | None:
        """Returns the buffer's size on a connection, bytes; None: not known."""
        return sockets.send_buffer_bytes if self is SEND else sockets.receive_buffer_bytes


RECEIVE = Kind("receive window", "receive-window", "SO_RCVBUF", "net.ipv4.tcp_rmem")
SEND = Kind("send buffer", "send-buffer", "SO_SNDBUF", "net.ipv4.tcp_wmem")
KINDS = {each.cause: each for each in (RECEIVE, SEND)}
"""Kinds by their cause."""


@dataclass(frozen=True)
class BufferSetting:
    """The setting that keeps a buffer small."""

    remedy: str
    """One imperative sentence without its full stop."""
    detail: str = ""
    """Place of the setting, as the part of a line; empty: not known."""


def limiting_setting(evidence: Evidence, cause: str, side: str) -> BufferSetting | None:
    """Returns the setting behind a buffer, with its needed value; None: the cause is no buffer.

    Without a value if the path needs no more than the present buffer.
    """
    kind, sockets = KINDS.get(cause), evidence.details.sockets
    if kind is None:
        return None
    if evidence.connection is not None and not sockets.sender_seen:
        sockets = evidence.connection.sockets
    window = sockets.peer_window_bytes_median or sockets.own_window_bytes_median
    size_now = sockets.send_buffer_bytes if kind is SEND else window
    trip = sockets.min_rtt_seconds or evidence.details.rtt_seconds
    needed = None if trip is None else _needed_bytes(evidence, trip)
    if needed is None or (size_now is not None and needed <= size_now):
        return _where(evidence, side, kind, sockets, None)
    fixed = _where(evidence, side, kind, sockets, round(ROOM_RATIO * needed))
    needs = f"This path needs a window of {size_text(needed)}, about half of the buffer"
    return replace(fixed, remedy=f"{fixed.remedy}. {needs}")


def _needed_bytes(evidence: Evidence, rtt_seconds: float) -> float | None:
    """Returns the bytes in flight of one connection that fills the path: rate times RTT.

    None: the path's rate is not known.
    """
    claimed = [
        host.interface.rate_bits_per_second / 8
        for host in (evidence.report.client, evidence.report.server)
        if host is not None
        and host.interface is not None
        and host.interface.rate_bits_per_second
        and not host.interface.virtual
    ]
    rate = evidence.path_rate or min(claimed, default=None)
    return None if rate is None else rate * rtt_seconds


def _where(
    evidence: Evidence, side: str, kind: Kind, sockets: Sockets, goal: int | None
) -> BufferSetting:
    if any(
        each.option == "socket options" and kind.option in each.value.upper()
        for each in evidence.smb_conf(side)
    ):
        return BufferSetting(
            f"Remove {kind.option} from `socket options` in the {side}'s smb.conf",
            "`socket options` in smb.conf",
        )
    limit, size = largest(evidence, side, kind), kind.size(sockets)
    if limit is not None and size is not None and size < PINNED_RATIO * limit:
        program = (sockets.process if side == "server" else None) or "the copy program"
        return BufferSetting(
            f"Remove the option {kind.option} that {program} seems to set on the {side}",
            f"seems set by {program}",
        )
    if limit is not None and goal is not None and goal <= limit:
        return BufferSetting(
            f"Find what limits the {kind.name} on the {side}: {kind.sysctl} allows {limit} there"
        )
    number = "" if goal is None else f" to {goal} bytes or more"
    now = "" if limit is None else f" (now {limit})"
    detail = "" if limit is None else f"limited by {kind.sysctl}"
    return BufferSetting(
        f"Raise the third value of `{kind.sysctl}` on the {side}{number}{now}", detail
    )


def largest(evidence: Evidence, side: str, kind: Kind) -> int | None:
    """Returns the kernel's largest buffer on a host, bytes; None: not known."""
    return grows_to(evidence.host(side), kind)


def grows_to(host: HostFacts | None, kind: Kind) -> int | None:
    """Returns the third value of a host's sysctl of a buffer, bytes; None: not known."""
    words = (host.socket_buffers.get(kind.sysctl, "") if host is not None else "").split()
    return int(words[2]) if len(words) == 3 and words[2].isdecimal() else None
