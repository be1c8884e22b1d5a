"""Input of the rules: one copy of a report, and the other transfers of that report."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import hardware_limits, model, steps
from bottleneck.analysis.evidence.details import Details, ServerSetting, Sockets
from bottleneck.analysis.load import hindrance, load
from bottleneck.analysis.steps import OWN, Copy, MeasuredStep
from bottleneck.report.report import Report, median_run
from probes.core.records import HostFacts, Spread

FOREIGN_RATIO = 0.15
"""Least surplus of an interface's bytes over the copy's packets that is others' traffic."""
LOSS_BASED = frozenset(
    "bic cubic highspeed htcp hybla illinois lp reno scalable veno westwood yeah".split()
)
"""Congestion controls that take a lost packet for a full link (net/ipv4/tcp_*.c)."""
STOPPED_RATIO = 0.1
"""Least share of stopped quota periods at which a disk test measured the quota."""
KEEPS_UP_RATIO = 0.25
"""Reader that keeps up: most unread bytes over the window, most share of looks with many."""
QUEUED_RATIO = 1.3
"""Least loaded / shortest RTT at which a queue stands on the path."""
STANDING_SECONDS, FULL_RATIO, ALWAYS_RATIO, PAUSED_RATIO = 1e-3, 0.5, 0.9, 2.0
"""Queue on the path: least wait; least share of looks with a full send queue, and if always full;
least ratio of congestion window per RTT to the rate of a copy that paused."""
BACKLOG_SEGMENTS = 4
"""Unsent segments of a sender that has more to send than its congestion window allows."""
STEADY_FROM_RATIO = 1 / 3
"""Share of a run's time that counts as its start."""
STEADY_GAIN_RATIO = 1.15
"""Highest rate without the start over that with it; beyond, a burst is taken for the rate."""


@dataclass(frozen=True)
class Connection:
    """One TCP connection while it carried a step, as the kernels at its ends reported it."""

    step: MeasuredStep
    """A copy's own step, or TCP alone with one stream in its direction."""
    sockets: Sockets
    is_own: bool

    @property
    def control(self) -> str:
        """Name of the congestion control of its sender; empty: not known."""
        return self.sockets.congestion_control or self.step.details.congestion_control or ""

    @property
    def is_loss_based(self) -> bool:
        """Whether the sender slows down for each lost packet; False as well where unknown."""
        return self.control in LOSS_BASED

    @property
    def is_queued(self) -> bool:
        """Whether packets stood in a queue on the path: the link was full; or unknown."""
        rtt, min_rtt = self.sockets.rtt_seconds_median, self.sockets.min_rtt_seconds
        return rtt is None or min_rtt is None or rtt > QUEUED_RATIO * min_rtt

    @property
    def has_backlog(self) -> bool:
        """Whether the sender had more to send than its congestion window allowed."""
        segment = self.sockets.segment_bytes or 0.0
        return (self.sockets.unsent_bytes_median or 0.0) >= BACKLOG_SEGMENTS * segment

    @property
    def reader_waits(self) -> bool:
        """Whether the receiver was observed to read everything at once."""
        return self.keeps_up(self.sockets.peer_window_bytes_median)

    def keeps_up(self, window_bytes: float | None) -> bool:
        """Whether few bytes lay unread, compared with a window."""
        unread = self.sockets.unread_bytes_median
        if unread is None or window_bytes is None:
            return False
        return unread <= KEEPS_UP_RATIO * window_bytes and self.sockets.full_ratio <= KEEPS_UP_RATIO


@dataclass(frozen=True)
class Evidence:
    """One copy, and the report that it is part of."""

    report: Report
    copy: Copy

    @property
    def step(self) -> MeasuredStep:
        """Step that made the copy; only for a copy that was made."""
        assert self.copy.step is not None
        return self.copy.step

    @property
    def rate(self) -> Spread:
        return self.step.rate

    @property
    def details(self) -> Details:
        return self.step.details

    @property
    def sender(self) -> str:
        return self.copy.sender

    @property
    def receiver(self) -> str:
        return self.copy.receiver

    @property
    def is_by_client(self) -> bool:
        """Whether this tool's client made the copy."""
        return (self.copy.initiator, self.copy.engine) == ("client", OWN)

    @property
    def sees_client_only(self) -> bool:
        """Whether this tool's client made the copy and the server was not observed."""
        return self.is_by_client and self.report.server is None

    @property
    def other_dialects(self) -> Iterator[Evidence]:
        """Copies of the same name by this tool's client over other dialects."""
        for copy in steps.copies(self.report):
            other = Evidence(self.report, copy)
            same = copy.name == self.copy.name and copy.dialect != self.copy.dialect
            if same and copy.step is not None and other.is_by_client:
                yield other

    @property
    def connection(self) -> Connection | None:
        """Its own by its sender's kernel, else TCP alone between the same hosts; None: neither."""
        if self.copy.step is not None and self.details.sockets.sender_seen:
            return Connection(self.step, self.details.sockets, is_own=True)
        return None if self.copy.step is None else one_stream(self.report, self.sender)

    def queues(self, always: bool = False) -> bool:
        """Whether the copy's packets stand in a queue on the path while more wait at the sender.

        always: whether its window per round trip may allow no more; a disk's bursts queue as well.
        """
        connection = self.connection
        sockets = self.details.sockets
        if connection is None or not connection.is_own or sockets.rtt_seconds_median is None:
            return False
        waited = sockets.rtt_seconds_median - (sockets.min_rtt_seconds or 0.0)
        backlog = connection.has_backlog and (sockets.unsent_bytes_median or 0.0) >= 1
        full = sockets.send_queue_full_ratio >= (ALWAYS_RATIO if always else FULL_RATIO)
        window = sockets.congestion_window_bytes_median or math.inf
        pauses = window > PAUSED_RATIO * self.rate.median * sockets.rtt_seconds_median
        stands = sockets.by == "network" and connection.is_queued and waited >= STANDING_SECONDS
        return stands and backlog and full and not (always and pauses)

    @property
    def path_rate(self) -> float | None:
        """Highest rate of TCP alone in its direction, bytes per second; None: not measured."""
        tests = transfers(self.report, self.sender)
        return max((each.rate.median for each in tests), default=None)

    @property
    def believed_steps(self) -> list[MeasuredStep]:
        """The tcp steps in the copy's direction, without those whose rate is impossible."""
        return hardware_limits.believed_steps(self.report, self.sender)

    def host(self, side: str) -> HostFacts | None:
        """Returns the facts of a side's host; None: not known."""
        return host(self.report, side)

    def smb_conf(self, side: str) -> tuple[ServerSetting, ...]:
        """Returns the settings of a side's file server; empty: not known."""
        return steps.target_of(self.report).smb_conf if side == "server" else ()

    def looks_like(self, bytes_per_second: float) -> model.LinkMatch | None:
        """Returns the standard link whose payload a rate is, at the path's MTU; None: none."""
        return model.looks_like(bytes_per_second, steps.mtu_bytes(self.report))


def host(report: Report, side: str) -> HostFacts | None:
    """Returns the facts of a side's host; None: not known."""
    return report.client if side == "client" else report.server


def hindrance_text(step: MeasuredStep, side: str) -> str | None:
    """Returns in words why a side's CPU may have set the rate of a step; None: it did not."""
    cpu = load(step.usage(side))
    if cpu and step.plan.stage == "disk" and (cpu.throttled_ratio or 0.0) >= STOPPED_RATIO:
        return f"the {side}'s CPU quota was used up"
    if cpu and step.plan.stage in ("disk", "tcp") and cpu.is_held_up:
        return f"the {side}'s CPU was fully used"
    return hindrance(cpu, side)


def is_client_bound(step: MeasuredStep) -> bool:
    """Whether the client's own CPU may have set the rate of a step."""
    return hindrance_text(step, "client") is not None


# -- TCP alone ---------------------------------------------------------------------------------


def transfers(report: Report, sender: str) -> Iterator[MeasuredStep]:
    """Yields the tcp steps in which a side sends."""
    return (each for each in steps.measured_steps(report, "tcp") if each.sender == sender)


def streams(step: MeasuredStep) -> float:
    """Returns the number of connections of a tcp step."""
    return step.setting.streams or 1


def one_stream(report: Report, sender: str) -> Connection | None:
    """Returns the fastest transfer of one stream from a side; None: none was measured."""
    best = steps.fastest(each for each in transfers(report, sender) if streams(each) == 1)
    if best is None or best.details.limits is None:
        return None
    return Connection(best, best.details.limits, is_own=False)


def streams_gain(report: Report, sender: str) -> float | None:
    """Returns the rate of several streams over that of one; None: not both were measured."""
    by_streams: dict[bool, float] = {}
    for each in transfers(report, sender):
        many = streams(each) > 1
        by_streams[many] = max(by_streams.get(many, 0.0), each.rate.median)
    return by_streams[True] / by_streams[False] if len(by_streams) == 2 else None


# -- SMB, as one initiator saw it --------------------------------------------------------------


def smb_steps(report: Report, sender: str, initiator: str = "client") -> Iterator[MeasuredStep]:
    """Yields the intact SMB steps in one direction: copies, requests alone, security."""
    for stage in ("smb-copy", "smb-matrix", "smb-tax"):
        for step in steps.measured_steps(report, stage):
            name = (step.setting.verb or step.setting.copy).split(".")
            verb = next((part for part in name if part in steps.VERBS), None)
            is_usable = verb and step.is_intact and step.plan.initiator == initiator
            if is_usable and steps.sender(str(verb), initiator) == sender:
                yield step


def best_smb_step(report: Report, sender: str) -> MeasuredStep | None:
    """Returns the fastest SMB step in one direction; None: there is none."""
    return max(smb_steps(report, sender), key=steady_rate, default=None)


def steady_rate(step: MeasuredStep) -> float:
    """Returns the bytes per second without the start of a pull or the flush of a push.

    It is not less than the step's own rate, and no more than a start explains.
    """
    rate, run = step.rate.median, median_run(step.outcome)
    steady = 0.0
    if "pull" in step.setting.copy:
        until = next(each for each in run if each.moved_bytes == run[-1].moved_bytes)
        start = STEADY_FROM_RATIO * until.elapsed_seconds
        since = next(each for each in run if each.elapsed_seconds >= start)
        seconds = until.elapsed_seconds - since.elapsed_seconds
        steady = (until.moved_bytes - since.moved_bytes) / seconds if seconds > 0 else 0.0
    elif "push" in step.setting.copy:
        steady = step.details.acknowledged_bytes_per_second or 0.0
    return max(rate, min(steady, STEADY_GAIN_RATIO * rate))


def diskless(report: Report, sender: str) -> Iterator[MeasuredStep]:
    """Yields the client's SMB steps in one direction that use no disk of its own."""
    for step in smb_steps(report, sender):
        is_diskless = step.plan.stage != "smb-copy" or step.setting.end == "memory"
        if is_diskless and hardware_limits.impossible(report, step) is None:
            yield step


def foreign_rate(report: Report, step: MeasuredStep, sender: str) -> float | None:
    """Returns others' payload per second in the same direction during a step; None: none seen.

    The interface counts every byte with headers; the bytes of the step's own full packets are
    computed from its payload, and the rest are others'.
    """
    if steps.on_one_host(report):
        return None
    share = model.counted_efficiency(steps.mtu_bytes(report) or model.ETHERNET_MTU_BYTES)
    # Retransmitted bytes are the step's own, too.
    sockets = step.details.limits or step.details.sockets
    own_bytes = (step.moved_bytes + sockets.retransmitted_bytes) / share
    counts = []
    for usage, sends in ((step.usage(sender), True), (step.usage(steps.other(sender)), False)):
        if usage is not None and usage.wall_seconds > 0:
            counted = usage.interface_sent_bytes if sends else usage.interface_received_bytes
            counts.append((counted or 0, usage.wall_seconds))
    rates = [
        (counted - own_bytes) * share / wall
        for counted, wall in counts
        if counted > own_bytes * (1 + FOREIGN_RATIO)
    ]
    return max(rates, default=None)
