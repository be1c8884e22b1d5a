"""Two readings of a host's counters into what it was busy with in between; pure."""

from __future__ import annotations

from probes.host.counters import Counters, QuotaCounts
from probes.records import Usage

OVERRUN_RATIO = 1.3
OVERRUN_SECONDS = 0.05
"""More CPU time than a quota allows, by which it is not the copy's: a burst is less."""


def usage(before: Counters, after: Counters) -> Usage:
    """What the host was busy with between two moments of its own clock.

    other_cpu_seconds is what other user processes used that could be seen. Where not all could be
    seen (a container, hidepid) it is at least the cores' busy time without interrupts and copy;
    then kernel threads are in it too. Kernel threads that work for the copy (write-back,
    encryption, RAID) are else in nobody's account, and so are this product's waiting parents.
    Time of a process that started and ended within the window is known in sum alone.
    """
    wall_seconds = after.clock_seconds - before.clock_seconds
    if wall_seconds <= 0:
        raise ValueError("two readings of one moment say nothing")
    busy, interrupt, stolen, total = _cores(before, after)
    ratios = tuple(min(1.0, used / whole) if whole > 0 else 0.0 for used, whole in busy)
    copy_seconds = _copy_seconds(before, after)
    then, now = before.pressure, after.pressure
    quotas = [
        each
        for each in after.quotas
        if copy_seconds <= OVERRUN_RATIO * each.quota_cores * wall_seconds + OVERRUN_SECONDS
    ]
    return Usage(
        wall_seconds=wall_seconds,
        core_busy_ratios=ratios,
        busiest_core_ratio=max(ratios, default=0.0),
        softirq_ratio=interrupt / total if total else 0.0,
        steal_ratio=stolen / total if total else 0.0,
        copy_cpu_seconds=copy_seconds,
        busiest_process_ratio=_busiest_seconds(before, after) / wall_seconds,
        other_cpu_seconds=_other_seconds(
            before, after, copy_seconds, sum(used for used, _ in busy), interrupt + stolen
        ),
        quota_cores=min((each.quota_cores for each in quotas), default=None),
        throttled_ratio=_throttled_ratio(before, after, quotas),
        run_delay_seconds=_run_delay_seconds(before, after),
        memory_total_bytes=after.memory_total_bytes,
        memory_used_bytes=after.memory_used_bytes,
        memory_cached_bytes=after.memory_cached_bytes,
        memory_dirty_bytes=after.memory_dirty_bytes,
        interface_sent_bytes=_grown(before.interface_sent_bytes, after.interface_sent_bytes),
        interface_received_bytes=_grown(
            before.interface_received_bytes, after.interface_received_bytes
        ),
        device_read_bytes=_grown(before.device_read_bytes, after.device_read_bytes),
        device_written_bytes=_grown(before.device_written_bytes, after.device_written_bytes),
        device_busy_ratio=_share(
            before.device_busy_seconds, after.device_busy_seconds, wall_seconds
        ),
        memory_dirty_limit_bytes=now.dirty_limit_bytes,
        swapped_in_bytes=_grown(then.swapped_in_bytes, now.swapped_in_bytes),
        swapped_out_bytes=_grown(then.swapped_out_bytes, now.swapped_out_bytes),
        memory_waiting_ratio=_share(
            then.memory_waiting_seconds, now.memory_waiting_seconds, wall_seconds
        ),
        io_waiting_ratio=_share(then.io_waiting_seconds, now.io_waiting_seconds, wall_seconds),
    )


def _cores(
    before: Counters, after: Counters
) -> tuple[tuple[tuple[float, float], ...], float, float, float]:
    """Per core (busy, whole) seconds; then interrupts, stolen and whole time of all of them."""
    earlier = {each.core: each for each in before.cores}
    pairs, interrupt, stolen, total = [], 0.0, 0.0, 0.0
    for each in after.cores:
        was = earlier.get(each.core)
        if was is None:
            continue  # it came online in between
        whole = max(0.0, each.total_seconds - was.total_seconds)
        pairs.append((max(0.0, each.busy_seconds - was.busy_seconds), whole))
        interrupt += max(0.0, each.interrupt_seconds - was.interrupt_seconds)
        stolen += max(0.0, each.stolen_seconds - was.stolen_seconds)
        total += whole
    return tuple(pairs), interrupt, stolen, total


def _copy_seconds(before: Counters, after: Counters) -> float:
    """CPU time of the carriers, those that ended in between included.

    A child's time moves into its parent's account when it is waited for, so the sum over the
    tree grows by exactly what was used. Where a parent does not wait, the sum would shrink:
    then the ones alive at both moments are what is known.
    """
    earlier = {(each.pid, each.started_ticks): each for each in before.processes}
    whole = sum(each.cpu_seconds + each.reaped_seconds for each in after.processes)
    whole -= sum(each.cpu_seconds + each.reaped_seconds for each in before.processes)
    alive = 0.0
    for each in after.processes:
        was = earlier.get((each.pid, each.started_ticks))
        alive += each.cpu_seconds - (was.cpu_seconds if was else 0.0)
    # The accounts above are kept in ticks of 10 ms: under a small quota they see half of it.
    return max(0.0, whole, alive, sum(_threads_growth(before, after)))


def _threads_growth(before: Counters, after: Counters) -> list[float]:
    """CPU time of each thread alive at the end, by the scheduler's own nanoseconds."""
    earlier = {each.thread: each.cpu_seconds for each in before.threads}
    return [max(0.0, each.cpu_seconds - earlier.get(each.thread, 0.0)) for each in after.threads]


def _busiest_seconds(before: Counters, after: Counters) -> float:
    """CPU time of the busiest thread; children that ended in between count as one, in sum."""
    grown = _threads_growth(before, after)
    living = {(each.pid, each.started_ticks) for each in after.processes}
    known = {(each.pid, each.started_ticks): each for each in before.processes}
    ended = sum(
        each.cpu_seconds + each.reaped_seconds for key, each in known.items() if key not in living
    )
    reaped = 0.0
    for each in after.processes:
        was = known.get((each.pid, each.started_ticks))
        reaped += each.reaped_seconds - (was.reaped_seconds if was else 0.0)
    wall_seconds = after.clock_seconds - before.clock_seconds
    # no thread has more than one core; the accounts are kept in ticks
    return min(wall_seconds, max(0.0, reaped - ended, *grown))


def _other_seconds(
    before: Counters,
    after: Counters,
    copy_seconds: float,
    busy_seconds: float,
    interrupt_seconds: float,
) -> float:
    seen = after.other_cpu_seconds - before.other_cpu_seconds
    unseen = 0.0
    if not after.others_complete:
        unseen = busy_seconds - interrupt_seconds - copy_seconds
    return min(busy_seconds, max(0.0, seen, unseen))


def _throttled_ratio(before: Counters, after: Counters, quotas: list[QuotaCounts]) -> float | None:
    """Of the group that was stopped most; 0.0 where a quota would be seen and there is none."""
    if not quotas and after.quotas_visible:
        return 0.0
    earlier = {each.group: each for each in before.quotas}
    ratios = []
    for each in quotas:
        was = earlier.get(each.group)
        if was is None or None in (each.periods, each.throttled_periods):
            continue
        if was.periods is None or was.throttled_periods is None:
            continue
        assert each.periods is not None and each.throttled_periods is not None
        periods = each.periods - was.periods
        stopped = each.throttled_periods - was.throttled_periods
        ratios.append(min(1.0, max(0.0, stopped / periods)) if periods > 0 else 0.0)
    return max(ratios, default=None)


def _run_delay_seconds(before: Counters, after: Counters) -> float | None:
    """Over the threads that carry the copy and are alive at the end."""
    earlier = {each.thread: each.run_delay_seconds or 0.0 for each in before.threads}
    delays = [
        max(0.0, each.run_delay_seconds - earlier.get(each.thread, 0.0))
        for each in after.threads
        if each.run_delay_seconds is not None
    ]
    return sum(delays) if delays else None


def _share(before: float | None, after: float | None, wall_seconds: float) -> float | None:
    """How much of the window passed into an account of seconds."""
    if before is None or after is None:
        return None
    return min(1.0, max(0.0, after - before) / wall_seconds)


def _grown(before: int | None, after: int | None) -> int | None:
    """How much a counter grew; one that ran backwards was reset and tells nothing."""
    if before is None or after is None or after < before:
        return None
    return after - before
