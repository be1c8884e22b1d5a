"""What a report tells of one copy and of all that was moved beside it: what the rules read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import hardware_limits, model, steps
from bottleneck.analysis.evidence.details import Details, ServerSetting, Sockets
from bottleneck.analysis.load import hindrance, load
from bottleneck.analysis.steps import OWN, Copy, Found
from bottleneck.report.report import Report, median_run
from probes.core.records import HostFacts, Spread

FOREIGN_RATIO = 0.15
"""More bytes at the interface than the copy's own packets, from which on it is not our framing."""
LOSS_BASED = frozenset(
    (
        *("bic", "cubic", "highspeed", "htcp", "hybla", "illinois", "lp", "reno", "scalable"),
        *("veno", "westwood", "yeah"),
    )
)
"""Congestion controls that take a lost packet for a full link (net/ipv4/tcp_*.c)."""
STOPPED_RATIO = 0.1
"""Of its periods in which a quota stopped a disk's program, from which on it is what was measured.
"""
KEEPS_UP_RATIO = 0.25
"""Unread bytes over the window, and share of looks with much unread, of a reader that waits."""
QUEUED_RATIO = 1.3
"""Round trip under load over the shortest one, from which on a queue stands on the path."""
STANDING_SECONDS, FULL_RATIO, ALWAYS_RATIO, PAUSED_RATIO = 1e-3, 0.5, 0.9, 2.0
"""A queue that stands on the path: its wait; share of looks that found the send queue full, or
always; congestion window a round trip over the rate, above which the copy paused."""
BACKLOG_SEGMENTS = 4
"""Unsent at the sender: it had more to send than its congestion window let go."""
STEADY_FROM_RATIO = 1 / 3
"""Of a run's time, from which on its start is over."""
STEADY_GAIN_RATIO = 1.15
"""More than that a start does not take: a burst would be taken for the rate."""


@dataclass(frozen=True)
class Connection:
    """One TCP connection while it carried a step, as the kernels at its ends told of it."""

    step: Found
    """The step: a copy's own, or TCP alone with one stream in its direction."""
    sockets: Sockets
    is_own: bool
    """Whether it is the copy's own connection."""

    @property
    def control(self) -> str:
        """Name of the congestion control of its sender; empty: not known."""
        return self.sockets.congestion_control or self.step.details.congestion_control or ""

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


@dataclass(frozen=True)
class Evidence:
    """All that speaks of one copy."""

    report: Report
    copy: Copy

    @property
    def step(self) -> Found:
        """The step that made it; it is asked for of a copy that was made."""
        assert self.copy.step is not None
        return self.copy.step

    @property
    def rate(self) -> Spread:
        """At which it ran, bytes per second."""
        return self.step.rate

    @property
    def details(self) -> Details:
        """What its step told."""
        return self.step.details

    @property
    def sender(self) -> str:
        """The side that the bytes come from."""
        return self.copy.sender

    @property
    def receiver(self) -> str:
        """The side that the bytes go to."""
        return self.copy.receiver

    @property
    def by_client(self) -> bool:
        """Whether this tool's client made it."""
        return (self.copy.initiator, self.copy.engine) == ("client", OWN)

    @property
    def lone(self) -> bool:
        """Whether this tool's client made it and nobody looked at the server."""
        return self.by_client and self.report.server is None

    @property
    def other_dialects(self) -> Iterator[Evidence]:
        """The same copy as this tool's client made it over other dialects."""
        for copy in steps.copies(self.report):
            other = Evidence(self.report, copy)
            same = copy.name == self.copy.name and copy.dialect != self.copy.dialect
            if same and copy.step is not None and other.by_client:
                yield other

    @property
    def own_connection(self) -> Connection:
        """Its own connection, whoever saw it."""
        return Connection(self.step, self.details.sockets, is_own=True)

    @property
    def connection(self) -> Connection | None:
        """Its own as its sender saw it, else TCP alone between the same kernels; None: neither."""
        if self.copy.step is not None and self.details.sockets.sender_seen:
            return self.own_connection
        return None if self.copy.step is None else self.tcp_test

    def queues(self, always: bool = False) -> bool:
        """Whether its packets stand in a queue, with more behind them that has to wait.

        always: that its window a round trip carries no more either; a disk's bursts queue as well.
        """
        seen = self.connection
        told = self.details.sockets
        if seen is None or not seen.is_own or told.rtt_seconds_median is None:
            return False
        waited = told.rtt_seconds_median - (told.min_rtt_seconds or 0.0)
        backlog = seen.backlog and (told.unsent_bytes_median or 0.0) >= 1
        full = told.send_queue_full_ratio >= (ALWAYS_RATIO if always else FULL_RATIO)
        window = told.congestion_window_bytes_median or math.inf
        pauses = window > PAUSED_RATIO * self.rate.median * told.rtt_seconds_median
        stands = told.by == "network" and seen.queued and waited >= STANDING_SECONDS
        return stands and backlog and full and not (always and pauses)

    @property
    def tcp_test(self) -> Connection | None:
        """The fastest transfer of one stream in its direction; None: none was measured."""
        return one_stream(self.report, self.sender)

    @property
    def path_rate(self) -> float | None:
        """The most that TCP alone moved in its direction, bytes per second; None: not measured."""
        return path_rate(self.report, self.sender)

    @property
    def believed(self) -> list[Found]:
        """The tcp steps in its direction, without those whose rate is impossible."""
        return hardware_limits.believed(self.report, self.sender)

    @property
    def on_one_host(self) -> bool:
        """Whether the packets never leave the host."""
        return steps.on_one_host(self.report)

    def host(self, side: str) -> HostFacts | None:
        """A side's host; None: nobody told of it."""
        return host(self.report, side)

    def smb_conf(self, side: str) -> tuple[ServerSetting, ...]:
        """What the configuration of a side's file server says; empty: not known."""
        return steps.target_of(self.report).smb_conf if side == "server" else ()

    def looks_like(self, bytes_per_second: float) -> model.LinkMatch | None:
        """The standard link that a rate is the payload of, at the path's MTU; None: none is."""
        return model.looks_like(bytes_per_second, steps.mtu_bytes(self.report))


def host(report: Report, side: str) -> HostFacts | None:
    """A side's host; None: nobody told of it."""
    return report.client if side == "client" else report.server


def hindered(found: Found, side: str) -> str | None:
    """How a side's CPU may have set the rate of a step, in words; None: it did not."""
    seen = load(found.usage(side))
    if seen and found.step.stage == "disk" and (seen.throttled_ratio or 0.0) >= STOPPED_RATIO:
        return f"the {side}'s CPU quota was used up"
    if seen and found.step.stage in ("disk", "tcp") and seen.held_up:
        return f"the {side}'s CPU was fully used"
    return hindrance(seen, side)


def client_bound(found: Found) -> bool:
    """Whether the client's own CPU may have set the rate of a step."""
    return hindered(found, "client") is not None


# -- TCP alone ---------------------------------------------------------------------------------


def transfers(report: Report, sender: str) -> Iterator[Found]:
    """The tcp steps in which a side sends."""
    return (each for each in steps.measured(report, "tcp") if each.sender == sender)


def streams(found: Found) -> float:
    """How many connections a tcp step had."""
    return found.setting.streams or 1


def one_stream(report: Report, sender: str) -> Connection | None:
    """The fastest transfer of one stream from a side; None: none was measured."""
    best = steps.fastest(each for each in transfers(report, sender) if streams(each) == 1)
    if best is None or best.details.limits is None:
        return None
    return Connection(best, best.details.limits, is_own=False)


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


# -- SMB, as the client alone saw it -----------------------------------------------------------


def alike(report: Report, sender: str, initiator: str = "client") -> Iterator[Found]:
    """All that a side moved over SMB in one direction: copies, requests alone, security."""
    for stage in ("smb-copy", "smb-matrix", "smb-tax"):
        for found in steps.measured(report, stage):
            name = (found.setting.verb or found.setting.copy).split(".")
            verb = next((part for part in name if part in steps.VERBS), None)
            mine = verb and found.intact and found.step.initiator == initiator
            if mine and steps.sender(str(verb), initiator) == sender:
                yield found


def best_alike(report: Report, sender: str) -> Found | None:
    """The fastest of them; None: nothing was moved that way."""
    return max(alike(report, sender), key=steady_rate, default=None)


def steady_rate(found: Found) -> float:
    """Bytes per second without the start of a pull and the flush of a push.

    Never less than the step's own rate, and no more than a start explains.
    """
    rate, run = found.rate.median, median_run(found.outcome)
    steady = 0.0
    if "pull" in found.setting.copy:
        until = next(each for each in run if each.moved_bytes == run[-1].moved_bytes)
        start = STEADY_FROM_RATIO * until.elapsed_seconds
        since = next(each for each in run if each.elapsed_seconds >= start)
        seconds = until.elapsed_seconds - since.elapsed_seconds
        steady = (until.moved_bytes - since.moved_bytes) / seconds if seconds > 0 else 0.0
    elif "push" in found.setting.copy:
        steady = found.details.acknowledged_bytes_per_second or 0.0
    return max(rate, min(steady, STEADY_GAIN_RATIO * rate))


def diskless(report: Report, sender: str) -> Iterator[Found]:
    """What the client moved over SMB in one direction without a disk of its own."""
    for found in alike(report, sender):
        whole = found.step.stage != "smb-copy" or found.setting.end == "memory"
        if whole and hardware_limits.impossible(report, found) is None:
            yield found


def foreign_rate(report: Report, found: Found, sender: str) -> float | None:
    """Payload per second that others moved in the same direction during a step; None: none seen.

    The interface counts every byte with headers; what the step's own payload takes in full packets
    is known, the rest is somebody else's.
    """
    if steps.on_one_host(report):
        return None
    share = model.counted_efficiency(steps.mtu_bytes(report) or model.ETHERNET_MTU_BYTES)
    # What was sent twice is the step's own too.
    sockets = found.details.limits or found.details.sockets
    own_bytes = (found.moved_bytes + sockets.retransmitted_bytes) / share
    counts = []
    for usage, sends in ((found.usage(sender), True), (found.usage(steps.other(sender)), False)):
        if usage is not None and usage.wall_seconds > 0:
            counted = usage.interface_sent_bytes if sends else usage.interface_received_bytes
            counts.append((counted or 0, usage.wall_seconds))
    rates = [
        (counted - own_bytes) * share / wall
        for counted, wall in counts
        if counted > own_bytes * (1 + FOREIGN_RATIO)
    ]
    return max(rates, default=None)
