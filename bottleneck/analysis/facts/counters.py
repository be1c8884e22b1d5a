"""BUSY facts of a copy without a trace: from counters over the whole copy.

CPU time and the wait for a core, the last flush, and the connection's limit by both kernels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from bottleneck.analysis import steps
from bottleneck.analysis.facts.record import BUSY, COSTS, NETWORK, Fact, Level, Part
from bottleneck.analysis.rules.cpu.cores import load_of
from bottleneck.analysis.rules.memory.swap import swaps
from bottleneck.analysis.steps import Copy, MeasuredStep
from bottleneck.report.report import Report
from probes.core.records import SIDES, Usage

ERROR_RATIO = 0.15
"""Error of a utilization that comes from counters, and not from looks at single moments."""
FAR_SECONDS = 2e-3
"""Least RTT at which a usual number of bytes in flight may be too small."""
LONG_FLUSH_RATIO = 0.15
"""Share of the copy's time that a last flush takes where the disk lagged behind before it, too."""
KERNELS_RATIO = 0.7
"""Assumed utilization of a part of the connection that both kernels name as its limit."""
UNREAD_RATIO = 0.25
"""Unread bytes over the window, and share of looks with many of them, of a slow reader."""
ARRIVED_RATIO = 1.25
"""Least ratio of acknowledged to durable rate at which the last flush waited for the disk alone."""
LEAST_WAIT_SECONDS, LEAST_TRIPS = 0.01, 10.0
LITTLE_BYTES = 64 << 10
MOSTLY_OTHERS_RATIO = 0.5
IN_FLIGHT_RATIO, IO_WAIT_RATIO = 0.5, 0.3
"""Share of time with I/O in flight of a disk that is at work whatever else is known; most share in
which a task waited for I/O, of a disk that is believed to be idle."""
LEAST_COST_RATIO = 0.02
"""Share of a CPU that a copy has to take, to show where that CPU would be full."""
SELDOM_RATIO = 0.1
"""Most share of a push's time in a last flush that had nothing to write."""
IN_TURN = ("network", "receive-window", "send-buffer")


def counter_facts(report: Report, copy: Copy) -> tuple[Fact, ...]:
    """Returns the facts of a step's counters; empty: the copy was not made, or none counted."""
    step = copy.step
    if step is None:
        return ()
    facts = [each for side in ("client", "server") for each in cpu_counted(report, step, side)]
    facts += _flush(copy, step)
    return (*facts, *_connection(copy, step), *_idle(copy, step, facts))


def cpu_counted(report: Report, step: MeasuredStep, side: str) -> tuple[Fact, ...]:
    """Returns the time in which a side's CPU ran the copy or kept it waiting for a core."""
    usage = step.usage(side)
    if usage is None or not usage.core_busy_ratios or usage.wall_seconds <= 0:
        return ()
    # The busiest of several processes carries the copy: the wait is divided by their run time.
    run = usage.busiest_process_ratio
    total = usage.copy_cpu_seconds / usage.wall_seconds
    wait = (usage.run_delay_seconds or 0.0) / usage.wall_seconds
    share = run + wait * min(1.0, run / total) if total > 0 else run
    interrupts = usage.softirq_ratio * len(usage.core_busy_ratios)
    load = load_of(report, step, side)
    if load is not None and load.is_crowded and load.waiting_ratio is None:
        # Whether the copy waits for cores that others fill is not known.
        return ()
    full = load.all_cores_ratio if load is not None and load.is_full else 0.0
    if load is not None and load.is_starved:
        full = run + (load.waiting_ratio or 0.0)
    stopped, swapping = usage.throttled_ratio or 0.0, memory_wait(usage)
    share = min(1.0, max(share, stopped, interrupts, full, swapping))
    return (_rough(("cpu", side), share, f"ran or waited for a core for {share:.0%} of the time"),)


def is_seen_at_work(step: MeasuredStep, side: str) -> bool:
    """Whether counters show a disk at work in most of a step's time."""
    usage = step.usage(side)
    return usage is not None and (usage.device_busy_ratio or 0.0) >= IN_FLIGHT_RATIO


def disk_counted(report: Report, copy: Copy, side: str) -> tuple[Fact, ...]:
    """Returns the time in which a disk had work, where --metrics counted it on the server."""
    usage = None if copy.step is None or report.server is not None else copy.step.usage(side)
    if usage is None or usage.device_busy_ratio is None or side == "client":
        return ()
    use, waiting = usage.device_busy_ratio, usage.io_waiting_ratio
    if use < IN_FLIGHT_RATIO and (waiting is None or waiting > IO_WAIT_RATIO):
        # A limit before the device, as of a cgroup, holds I/O back that is not in flight yet.
        return ()
    return (_rough(("disk", side), use, f"had I/O in flight for {use:.0%} of the time"),)


def cost_facts(
    report: Report, step: MeasuredStep, others: Mapping[str | None, float]
) -> Iterator[Fact]:
    """Yields the rate at which each CPU would be full, by the time that the copy takes of it.

    others: others' share of the bytes at each side's interface, of its interrupts as well.
    """
    for side in SIDES:
        load, usage = load_of(report, step, side), step.usage(side)
        if load is None or usage is None:
            continue
        foreign = others.get(side, 0.0)
        interrupts = (1 - foreign) * usage.softirq_ratio
        one_core = max(load.process_ratio, min(load.one_core_ratio, interrupts * load.cores))
        cost = max(one_core, load.copy_ratio - foreign * usage.softirq_ratio)
        if not load.is_deprived and not foreign and load.others_ratio < MOSTLY_OTHERS_RATIO:
            # Time that no process accounts for, as of a kernel's threads, is the copy's.
            free = max(LEAST_COST_RATIO, 1 - load.others_ratio)
            cost = max(cost, (load.all_cores_ratio - load.others_ratio) / free)
        if cost > LEAST_COST_RATIO:
            scale, rate = 1 / min(1.0, cost), step.rate
            level = Level(rate.low * scale, rate.median * scale, rate.high * scale)
            yield Fact(("cpu", side), COSTS, level, "its load scaled up", (step.index,))


def memory_wait(usage: Usage) -> float:
    """Returns the share of the time in which a host that swaps waited for memory."""
    return min(1.0, usage.memory_waiting_ratio or 0.0) if swaps(usage) else 0.0


def _flush(copy: Copy, step: MeasuredStep) -> Iterator[Fact]:
    """Yields the receiver's disk by the last flush: earlier ones wait for the path as well."""
    flush = step.details.flush_seconds or 0.0
    came, rate = step.details.acknowledged_bytes_per_second, step.rate.median
    # If the bytes had not arrived, the last flush waited for the path as well.
    has_arrived = (
        came is None or came >= ARRIVED_RATIO * rate or flush < LONG_FLUSH_RATIO * step.seconds
    )
    # A server that forces each write to its disk has nothing to flush at the end.
    if step.seconds > 0 and flush and has_arrived and not writes_wait(step):
        share = min(1.0, flush / step.seconds)
        use = share if share < LONG_FLUSH_RATIO else (1 + share) / 2
        yield _rough(("disk", copy.receiver), use, f"its last flush took {share:.0%} of the time")


def writes_wait(step: MeasuredStep) -> bool:
    """Whether requests of a push wait for the server, whose kernel has received all bytes."""
    details = step.details
    is_sent = (details.sockets.unsent_bytes_median or 0.0) <= LITTLE_BYTES
    wait, trip = details.request_seconds_median or 0.0, details.rtt_seconds or 0.0
    is_long = wait >= max(LEAST_WAIT_SECONDS, LEAST_TRIPS * trip)
    is_durable = (details.flush_seconds or 0.0) <= SELDOM_RATIO * step.seconds
    return details.sockets.by == "sender" and is_sent and is_long and is_durable


def _connection(copy: Copy, step: MeasuredStep) -> Iterator[Fact]:
    """Yields the component that limits the connection, if the kernels at its ends agree."""
    by = step.details.sockets.by
    parts: dict[str | None, tuple[Part, ...]] = {
        "network": (NETWORK,),
        "receive-window": (("tcp", copy.receiver),),
        "send-buffer": (("tcp", copy.sender),),
        "receiver": (("cpu", copy.receiver), ("disk", copy.receiver)),
        "sender": (("cpu", copy.sender), ("disk", copy.sender)),
    }
    share = KERNELS_RATIO if by in IN_TURN else KERNELS_RATIO / 2
    if by in ("receiver", "sender"):
        yield _rough(NETWORK, 0.0, f"was not what the {by} waited for, by its kernels' queues")
    for part in parts.get(by, ()):
        yield _rough(part, share, f"limited the connection, by its kernels' queues ({by})")


def reads_slowly(step: MeasuredStep, window_bytes: float) -> bool:
    """Whether many of the bytes that arrived wait to be read."""
    counts = step.details.sockets
    unread = counts.unread_bytes_median or 0.0
    return unread > UNREAD_RATIO * window_bytes or counts.full_ratio > UNREAD_RATIO


def _idle(copy: Copy, step: MeasuredStep, facts: list[Fact]) -> Iterator[Fact]:
    """Yields, on a far path, the time in which no CPU and no disk worked: a wait for replies.

    The bytes in flight meanwhile may as well wait in the path.
    """
    trip = step.details.sockets.min_rtt_seconds or step.details.rtt_seconds or 0.0
    cores = [each for each in facts if each.part[0] == "cpu"]
    window = step.details.sockets.peer_window_bytes_median or math.inf
    is_named = step.details.sockets.by in IN_TURN or reads_slowly(step, window)
    if trip >= FAR_SECONDS and not is_named and len(cores) == 2:
        idle = 1 - max(each.level.median for each in facts)
        words = f"waited for replies for {idle:.0%} of the time"
        yield _rough(("smb", steps.other(copy.initiator)), idle, words)
        yield _rough(NETWORK, idle, words)


def _rough(part: Part, use: float, words: str) -> Fact:
    level = Level(max(0.0, use - ERROR_RATIO), use, min(1.0, use + ERROR_RATIO))
    return Fact(part, BUSY, level, words)
