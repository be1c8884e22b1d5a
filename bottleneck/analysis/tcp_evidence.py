"""What the kernels at both ends told of a TCP connection: a copy's own, or that of a tcp step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.evidence.details import Sockets
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report

LOSS_BASED = frozenset(
    (
        *("bic", "cubic", "highspeed", "htcp", "hybla", "illinois", "lp", "reno", "scalable"),
        *("veno", "westwood", "yeah"),
    )
)
"""Congestion controls that take a lost packet for a full link (net/ipv4/tcp_*.c)."""
KEEPS_UP_RATIO = 0.25
"""Unread bytes over the window, and share of looks with much unread, of a reader that waits."""
QUEUED_RATIO = 1.3
"""Round trip under load over the shortest one, from which on a queue stands on the path."""
BACKLOG_SEGMENTS = 4
"""Unsent at the sender: it had more to send than its congestion window let go."""


@dataclass(frozen=True)
class Connection:
    """One connection while it carried a step."""

    found: Found
    """The step: a copy's own, or TCP alone with one stream in its direction."""
    sockets: Sockets
    own: bool
    """Whether it is the copy's own connection."""

    @property
    def whose(self) -> str:
        """As the subject of a sentence."""
        return "The copy's own connection" if self.own else "TCP alone"

    @property
    def control(self) -> str:
        """Name of the congestion control of its sender; empty: not known."""
        return self.sockets.congestion_control or self.found.details.congestion_control or ""

    @property
    def loss_based(self) -> bool:
        """Whether its sender slows down for each lost packet; False as well where unknown."""
        return self.control in LOSS_BASED

    @property
    def queued(self) -> bool:
        """Whether its own packets stood in a queue on the path: the link was full; or unknown."""
        rtt, least = self.sockets.rtt_seconds_median, self.sockets.min_rtt_seconds
        return rtt is None or least is None or rtt > QUEUED_RATIO * least

    @property
    def backlog(self) -> bool:
        """Whether its sender had more to send than its congestion window let go."""
        segment = self.sockets.segment_bytes or 0.0
        return (self.sockets.unsent_bytes_median or 0.0) >= BACKLOG_SEGMENTS * segment

    @property
    def reader_waits(self) -> bool:
        """Whether its receiver was seen to take everything at once: the window is all it needs."""
        return self.keeps_up(self.sockets.peer_window_bytes_median)

    def keeps_up(self, window_bytes: float | None) -> bool:
        """Whether little lay unread beside a window."""
        unread = self.sockets.unread_bytes_median
        if unread is None or window_bytes is None:
            return False
        return unread <= KEEPS_UP_RATIO * window_bytes and self.sockets.full_ratio <= KEEPS_UP_RATIO


def own(made: Found) -> Connection:
    """A copy's own connection, whoever saw it."""
    return Connection(made, made.details.sockets, own=True)


def connection(report: Report, copy: Copy) -> Connection | None:
    """The copy's own connection as its sender saw it, else TCP alone between the same kernels.

    None: neither was seen.
    """
    if copy.made is None:
        return None
    seen = own(copy.made)
    return seen if seen.sockets.sender_seen else alone(report, copy.sender)


def alone(report: Report, sender: str) -> Connection | None:
    """The fastest transfer of one stream from a side; None: none was measured."""
    best = steps.fastest(each for each in transfers(report, sender) if streams(each) == 1)
    if best is None or best.details.limits is None:
        return None
    return Connection(best, best.details.limits, own=False)


def transfers(report: Report, sender: str) -> Iterator[Found]:
    """The tcp steps in which a side sends."""
    return (each for each in steps.measured(report, "tcp") if each.sender == sender)


def streams(found: Found) -> float:
    """How many connections a tcp step had."""
    return found.setting.streams or 1


def path_rate(report: Report, sender: str) -> float | None:
    """The most that TCP alone moved from a side, with however many streams; None: not measured."""
    return max((each.rate.median for each in transfers(report, sender)), default=None)


def streams_gain(report: Report, sender: str) -> float | None:
    """Rate of several streams over that of one; None: they were not both measured."""
    by_streams: dict[bool, float] = {}
    for each in transfers(report, sender):
        many = streams(each) > 1
        by_streams[many] = max(by_streams.get(many, 0.0), each.rate.median)
    return by_streams[True] / by_streams[False] if len(by_streams) == 2 else None


def needed_bytes(report: Report, sender: str, rtt_seconds: float) -> float | None:
    """In flight where one connection fills the path: its rate times its round trip.

    None: nobody knows what the path carries.
    """
    carried = path_rate(report, sender)
    claimed = [
        host.interface.rate_bits_per_second / 8
        for host in (report.client, report.server)
        if host is not None
        and host.interface is not None
        and host.interface.rate_bits_per_second
        and not host.interface.virtual
    ]
    rate = carried or min(claimed, default=None)
    return None if rate is None else rate * rtt_seconds
