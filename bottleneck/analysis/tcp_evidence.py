"""What the kernels at both ends told of a TCP connection: a copy's own, or that of a tcp step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bottleneck.analysis import steps
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


@dataclass(frozen=True)
class Connection:
    """One connection while it carried a step."""

    found: Found
    """The step: a copy's own, or TCP alone with one stream in its direction."""
    told: Any
    """The figures by name; those that are not known are absent."""
    own: bool
    """Whether it is the copy's own connection."""

    def figure(self, name: str) -> float | None:
        """A figure above zero; None: not known, or nothing."""
        return steps.positive(self.told, name)

    def share(self, name: str) -> float:
        """A figure that is 0 where it is not known: for thresholds that have to be passed."""
        return steps.amount(self.told, name) or 0.0

    @property
    def loss_based(self) -> bool:
        """Whether its sender slows down for each lost packet; False as well where unknown."""
        name = steps.word(self.told, "congestion_control")
        name = name or steps.word(self.found.outcome.details, "congestion_control")
        return name in LOSS_BASED

    @property
    def queued(self) -> bool:
        """Whether its own packets stood in a queue on the path: the link was full; or unknown."""
        rtt, least = self.figure("rtt_seconds_median"), self.figure("min_rtt_seconds")
        return rtt is None or least is None or rtt > QUEUED_RATIO * least

    @property
    def reader_waits(self) -> bool:
        """Whether its receiver was seen to take everything at once: the window is all it needs."""
        unread = steps.amount(self.told, "unread_bytes_median")
        window = self.figure("peer_window_bytes_median")
        if unread is None or window is None:
            return False
        full = self.share("full_ratio") > KEEPS_UP_RATIO
        return unread <= KEEPS_UP_RATIO * window and not full


def connection(report: Report, copy: Copy) -> Connection | None:
    """The copy's own connection as its sender saw it, else TCP alone between the same kernels.

    None: neither was seen.
    """
    if copy.made is None:
        return None
    details = copy.made.outcome.details
    if steps.flag(details, "sockets", "sender_seen"):
        return Connection(copy.made, details["sockets"], own=True)
    return alone(report, copy.sender)


def alone(report: Report, sender: str) -> Connection | None:
    """The fastest transfer of one stream from a side; None: none was measured."""
    best = max(
        (each for each in transfers(report, sender) if streams(each) == 1),
        key=lambda each: each.rate.median,
        default=None,
    )
    told = None if best is None else best.outcome.details.get("limits")
    return Connection(best, told, own=False) if best is not None and told else None


def transfers(report: Report, sender: str) -> Iterator[Found]:
    """The tcp steps in which a side sends."""
    for each in steps.measured(report, "tcp"):
        verb = steps.word(each.step.setting, "verb") or ""
        if steps.sender(verb, each.step.initiator) == sender:
            yield each


def streams(found: Found) -> float:
    """How many connections a tcp step had."""
    return steps.amount(found.step.setting, "streams") or 1


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
