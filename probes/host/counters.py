"""Counters of a host at one moment: cores, the copy's processes, memory, interface, device.

Reading takes a few milliseconds, so that it is possible at both ends of a measured window; two
readings become a Usage. A plain record, so that it crosses the wire.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Dict, Iterable, List, Optional, Tuple

from probes.core.field_types import Address, Count, Text
from probes.core.records import Usage
from probes.core.stage import Unavailable
from probes.files import open_files
from probes.host import cgroup, interface
from probes.host.memory import Pressure, read_memory, read_pressure
from probes.system import proc, processes
from probes.system.proc import CoreTimes, DeviceCounts, Memory, ProcessStat, ThreadTimes
from probes.system.processes import Account, ProcessTimes
from probes.system.reader import reader

_ACCOUNT = Account()
"""Account of this process's readings."""


@dataclass(frozen=True)
class CountedObjects:
    """Counted objects beside cores and memory."""

    interface: Optional[Text] = None
    """Interface towards the peer."""
    folder_device: Optional[Text] = None
    """Kernel name of the block device under the folder."""
    file_server: bool = True
    """Whether a file server of this host carries the copy beside the agent's children."""
    server_pids: Tuple[Count, ...] = ()
    """Further processes that carry the copy."""
    peer_address: Address = ""
    """The other host's IP address: of the file server's processes those that serve it count."""


@dataclass(frozen=True)
class Counters:
    """Counters of a host at one moment; None where the system does not report them."""

    clock_seconds: float
    """Monotonic clock of this host."""
    cores: Tuple[CoreTimes, ...]
    """Cores that the copy's processes may use."""
    processes: Tuple[ProcessTimes, ...]
    """Processes that carry the copy."""
    threads: Tuple[ThreadTimes, ...]
    """Threads of those processes."""
    other_cpu_seconds: float = 0.0
    """CPU time of all other processes on these cores since this agent's first reading, without
    kernel threads and our parents."""
    others_complete: bool = False
    """Whether every process of the machine was visible."""
    quotas: Tuple[cgroup.Quota, ...] = ()
    """Quotas on the copy's processes, each once."""
    quotas_visible: bool = False
    """Whether a quota would be visible; then an empty `quotas` means none."""
    memory: Optional[Memory] = None
    traffic: Optional[Tuple[int, ...]] = None
    """Bytes sent and received by the interface."""
    interface_counts: Dict[str, int] = field(default_factory=dict)
    """Packets lost, errors of the cable, pause frames: see interface.counts."""
    device: Optional[DeviceCounts] = None
    pressure: Pressure = Pressure()


def read_counters(watched: CountedObjects, agent_pid: int, account: Account = _ACCOUNT) -> Counters:
    """Reads this host's counters; agent_pid: the process whose descendants carry the copy.

    account: sums of earlier readings; by default this process's own.

    Errors: Unavailable where this host's processes are not visible.
    """
    host = reader()
    stats = host.processes()
    clock_seconds = time.monotonic()
    servers = set(watched.server_pids) & set(stats)
    if watched.file_server:
        servers |= _peer_servers(stats, watched, agent_pid, account)
    is_unknown = watched.file_server and not servers and bool(account.candidates)
    below = processes.descendants(stats, agent_pid)
    cores = host.cores()
    usable = usable_cores(servers | {agent_pid}, cores)
    ours = processes.ancestors(stats, agent_pid) | below
    account.take(watched, stats, clock_seconds, servers, ours, usable)
    carriers = below | account.living_servers()
    quotas = {each.file: each for pid in servers | {agent_pid} for each in cgroup.quotas(pid)}
    return Counters(
        clock_seconds=clock_seconds,
        cores=tuple(cores[core] for core in sorted(usable & set(cores))),
        processes=_times(stats, below, agent_pid, account),
        threads=tuple(each for pid in sorted(carriers) for each in host.threads(pid)),
        other_cpu_seconds=account.other_cpu_seconds,
        others_complete=processes.sees_all(stats),
        quotas=tuple(quotas[file] for file in sorted(quotas)),
        quotas_visible=not is_unknown
        and all(cgroup.shows_quotas(pid) for pid in servers | {agent_pid}),
        memory=read_memory(),
        traffic=host.traffic(watched.interface) if watched.interface else None,
        interface_counts=interface.counts(watched.interface) if watched.interface else {},
        device=host.devices().get(watched.folder_device) if watched.folder_device else None,
        pressure=read_pressure(watched.folder_device),
    )


def _peer_servers(
    stats: dict[int, ProcessStat], watched: CountedObjects, agent_pid: int, account: Account
) -> frozenset[int]:
    """Returns the file-server processes of the peer; searches again where any began or ended."""
    servers = frozenset((pid, stats[pid].started_ticks) for pid in open_files.file_servers(stats))
    is_current = account.serving and (account.watched, account.candidates) == (watched, servers)
    if not is_current:
        pids = open_files.servers_of_peer(stats, agent_pid, watched.peer_address)
        account.candidates, account.serving = servers, frozenset(pids)
    return account.serving


def _times(
    stats: dict[int, ProcessStat], below: set[int], agent_pid: int, account: Account
) -> tuple[ProcessTimes, ...]:
    """Returns the carriers' times; of the agent only those inherited from ended children."""
    by_process = dict(account.servers)
    for pid in below | ({agent_pid} & set(stats)):
        stat = stats[pid]
        times = processes.times_of(stat)
        if pid == agent_pid:
            times = replace(times, cpu_seconds=0.0)
        by_process[pid, stat.started_ticks] = times
    return tuple(by_process[key] for key in sorted(by_process))


def usable_cores(pids: Iterable[int], cores: Dict[int, CoreTimes]) -> set[int]:
    """Returns the cores that any of the processes may use (cpuset, sched_getaffinity(2))."""
    if not hasattr(os, "sched_getaffinity"):
        return set(cores)
    usable: set[int] = set()
    for pid in pids:
        # a process that ended meanwhile uses no core
        with contextlib.suppress(OSError):
            usable |= os.sched_getaffinity(pid)
    return usable


def read_cores() -> Optional[Dict[int, CoreTimes]]:
    """Reads the cores that this process may use, by number; None: not reported."""
    try:
        cores = reader().cores()
    except Unavailable:
        return None
    usable = usable_cores({0}, cores)
    return {core: each for core, each in cores.items() if core in usable}


def process_seconds(since: os.times_result) -> Dict[str, float]:
    """Returns this process's CPU time since then in user and system mode, in steps of 10 ms."""
    now = os.times()
    return {"user_seconds": now.user - since.user, "system_seconds": now.system - since.system}


def busy_cores(
    start: Optional[Dict[int, CoreTimes]], end: Optional[Dict[int, CoreTimes]]
) -> Optional[float]:
    """Returns how many of the cores were busy between two moments, in sum; None: not known.

    A core's busy share of its own ticks is at most 1. Time that the hypervisor gave to others is
    not this host's.
    """
    if start is None or end is None:
        return None
    busy = 0.0
    for core, now in end.items():
        old = start.get(core)
        total = now.total_seconds - old.total_seconds if old else 0.0
        if old is None or total <= 0:
            return None
        used = now.busy_seconds - old.busy_seconds - (now.stolen_seconds - old.stolen_seconds)
        busy += min(1.0, max(0.0, used / total))
    return busy


OVERRUN_RATIO = 1.3
OVERRUN_SECONDS = 0.05
"""Least CPU time beyond a quota that cannot be the copy's: a burst is less."""


def usage(start: Counters, end: Counters) -> Usage:
    """Returns the use of the host's resources between two moments of its own clock.

    other_cpu_seconds is the CPU time of other visible user processes. Where not all are visible (a
    container, hidepid) it is at least the cores' busy time without interrupts and copy, kernel
    threads included. Otherwise kernel threads that work for the copy (write-back, encryption, RAID)
    count nowhere, nor do this product's waiting parents. The time of a process that started and
    ended within the window is known in sum alone.
    """
    wall_seconds = end.clock_seconds - start.clock_seconds
    if wall_seconds <= 0:
        raise ValueError("two readings of one moment say nothing")
    busy, interrupt, stolen, total = _cores(start, end)
    ratios = tuple(min(1.0, used / length) if length > 0 else 0.0 for used, length in busy)
    copy_seconds, all_busy = _copy_seconds(start, end), sum(used for used, _ in busy)
    memory = end.memory
    sent, received = zip(start.traffic or (None, None), end.traffic or (None, None))
    grown, ratio = partial(_grown_of, start, end), partial(_ratio_of, start, end)
    quotas = [each for each in end.quotas if _fits(each, copy_seconds, wall_seconds)]
    stopped, quota = _tightest_quota(start, quotas)
    return Usage(
        wall_seconds=wall_seconds,
        core_busy_ratios=ratios,
        busiest_core_ratio=max(ratios, default=0.0),
        softirq_ratio=interrupt / total if total else 0.0,
        steal_ratio=stolen / total if total else 0.0,
        copy_cpu_seconds=copy_seconds,
        busiest_process_ratio=_busiest_seconds(start, end) / wall_seconds,
        other_cpu_seconds=_other_seconds(start, end, copy_seconds, all_busy, interrupt + stolen),
        quota_cores=quota.quota_cores if quota else None,
        throttled_ratio=stopped if quota or not end.quotas_visible else 0.0,
        run_delay_seconds=_run_delay_seconds(start, end),
        memory_total_bytes=memory.total_bytes if memory else None,
        memory_used_bytes=memory.used_bytes if memory else None,
        memory_dirty_bytes=memory.dirty_bytes if memory else None,
        interface_sent_bytes=proc.counter_growth(sent[0], sent[1]),
        interface_received_bytes=proc.counter_growth(received[0], received[1]),
        device_read_bytes=grown("device", "read_bytes"),
        device_written_bytes=grown("device", "written_bytes"),
        device_busy_ratio=ratio("device", "busy_seconds"),
        memory_dirty_limit_bytes=end.pressure.dirty_limit_bytes,
        swapped_in_bytes=grown("pressure", "swapped_in_bytes"),
        swapped_out_bytes=grown("pressure", "swapped_out_bytes"),
        memory_waiting_ratio=ratio("pressure", "memory_waiting_seconds"),
        io_waiting_ratio=ratio("pressure", "io_waiting_seconds"),
        quota_file=quota.file if quota else None,
        memory_cached_growth_bytes=_cached_growth_bytes(start, end),
    )


def _cached_growth_bytes(start: Counters, end: Counters) -> Optional[int]:
    if start.memory is None or end.memory is None:
        return None
    return max(0, end.memory.cached_bytes - start.memory.cached_bytes)


def _fits(quota: cgroup.Quota, copy_seconds: float, wall_seconds: float) -> bool:
    """Whether the copy's CPU time fits into a quota; one that it exceeds is not the copy's."""
    return copy_seconds <= OVERRUN_RATIO * quota.quota_cores * wall_seconds + OVERRUN_SECONDS


def _both(start: Counters, end: Counters, record: str, name: str) -> List[Any]:
    return [getattr(getattr(each, record), name, None) for each in (start, end)]


def _grown_of(start: Counters, end: Counters, record: str, name: str) -> int | None:
    return proc.counter_growth(*_both(start, end, record, name))


def _ratio_of(start: Counters, end: Counters, record: str, name: str) -> float | None:
    then, now = _both(start, end, record, name)
    if then is None or now is None:
        return None
    return min(1.0, max(0.0, float(now - then)) / (end.clock_seconds - start.clock_seconds))


def _cores(
    start: Counters, end: Counters
) -> tuple[tuple[tuple[float, float], ...], float, float, float]:
    """Returns (busy, total) seconds per core; interrupts, stolen and total time of all cores."""
    earlier = {each.core: each for each in start.cores}
    pairs, interrupt, stolen, total = [], 0.0, 0.0, 0.0
    for each in end.cores:
        old = earlier.get(each.core)
        if old is None:
            continue  # it came online in between
        length = max(0.0, each.total_seconds - old.total_seconds)
        pairs.append((max(0.0, each.busy_seconds - old.busy_seconds), length))
        interrupt += max(0.0, each.interrupt_seconds - old.interrupt_seconds)
        stolen += max(0.0, each.stolen_seconds - old.stolen_seconds)
        total += length
    return tuple(pairs), interrupt, stolen, total


def _copy_seconds(start: Counters, end: Counters) -> float:
    """Returns the CPU time of the carriers, those that ended in between included.

    A child's time moves to its parent when it is waited for, so the sum over the tree grows by
    exactly the used time. Where a parent does not wait, the sum would shrink: then only processes
    alive at both moments count.
    """
    earlier = {(each.pid, each.started_ticks): each for each in start.processes}
    growth = sum(each.cpu_seconds + each.reaped_seconds for each in end.processes)
    growth -= sum(each.cpu_seconds + each.reaped_seconds for each in start.processes)
    alive = 0.0
    for each in end.processes:
        old = earlier.get((each.pid, each.started_ticks))
        alive += each.cpu_seconds - (old.cpu_seconds if old else 0.0)
    # The times above are in ticks of 10 ms: under a small quota they miss half of it.
    return max(0.0, growth, alive, sum(_threads_growth(start, end)))


def _threads_growth(start: Counters, end: Counters) -> list[float]:
    """Returns the CPU time of each thread alive at the end, by the scheduler's nanoseconds."""
    earlier = {each.thread: each.cpu_seconds for each in start.threads}
    return [max(0.0, each.cpu_seconds - earlier.get(each.thread, 0.0)) for each in end.threads]


def _busiest_seconds(start: Counters, end: Counters) -> float:
    """Returns the CPU time of the busiest thread; children that ended count as one, in sum."""
    grown = _threads_growth(start, end)
    living = {(each.pid, each.started_ticks) for each in end.processes}
    earlier = {(each.pid, each.started_ticks): each for each in start.processes}
    ended = sum(e.cpu_seconds + e.reaped_seconds for key, e in earlier.items() if key not in living)
    reaped = 0.0
    for each in end.processes:
        old = earlier.get((each.pid, each.started_ticks))
        reaped += each.reaped_seconds - (old.reaped_seconds if old else 0.0)
    wall_seconds = end.clock_seconds - start.clock_seconds
    # no thread uses more than one core; the times are in ticks
    return min(wall_seconds, max(0.0, reaped - ended, *grown))


def _other_seconds(
    start: Counters,
    end: Counters,
    copy_seconds: float,
    busy_seconds: float,
    interrupt_seconds: float,
) -> float:
    counted = end.other_cpu_seconds - start.other_cpu_seconds
    hidden = busy_seconds - interrupt_seconds - copy_seconds if not end.others_complete else 0.0
    return min(busy_seconds, max(0.0, counted, hidden))


def _tightest_quota(
    start: Counters, quotas: list[cgroup.Quota]
) -> tuple[float | None, cgroup.Quota | None]:
    """Returns the ratio and the quota that stops its group most, the smallest of equals."""
    stops = [(_throttled_ratio(start, each), each) for each in quotas]
    return min(stops, key=lambda e: (-(e[0] or 0.0), e[1].quota_cores), default=(None, None))


def _throttled_ratio(start: Counters, quota: cgroup.Quota) -> float | None:
    """Returns the share of its periods in which it stopped its group; None: not reported."""
    old = next((each for each in start.quotas if each.file == quota.file), None)
    if old is None or old.periods is None or old.throttled_periods is None:
        return None
    if quota.periods is None or quota.throttled_periods is None:
        return None
    periods = quota.periods - old.periods
    stopped = quota.throttled_periods - old.throttled_periods
    return min(1.0, max(0.0, stopped / periods)) if periods > 0 else 0.0


def _run_delay_seconds(start: Counters, end: Counters) -> float | None:
    """Returns the run delay of the copy's threads that are alive at the end, in sum."""
    earlier = {each.thread: each.run_delay_seconds or 0.0 for each in start.threads}
    delays = [
        max(0.0, each.run_delay_seconds - earlier.get(each.thread, 0.0))
        for each in end.threads
        if each.run_delay_seconds is not None
    ]
    return sum(delays) if delays else None
