"""What a host counts, read at one moment: cores, the copy's processes, memory, interface, device.

Cheap (a few milliseconds), so that it may be read at both ends of a measured window; two
readings become a Usage. A plain record, so that it crosses the wire.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Dict, Iterable, List, Optional, Tuple

from probes.core.meaning import Address, Count, Text
from probes.core.records import Usage
from probes.core.stage import Unavailable
from probes.files import open_files
from probes.host import cgroup, interface
from probes.host.memory import Pressure, read_memory, read_pressure
from probes.system import processes
from probes.system.proc import CoreTimes, DeviceCounts, Memory, ProcessStat, ThreadTimes
from probes.system.processes import Account, ProcessTimes
from probes.system.reader import reader

_ACCOUNT = Account()
"""Of this process's readings."""


@dataclass(frozen=True)
class Watched:
    """What is counted beside cores and memory."""

    interface: Optional[Text] = None
    """Towards the peer."""
    folder_device: Optional[Text] = None
    """Kernel name of the block device under the folder."""
    file_server: bool = True
    """Whether a file server of this host carries the copy beside the agent's children."""
    server_pids: Tuple[Count, ...] = ()
    """More processes that carry it."""
    peer_address: Address = ""
    """The other host's IP address: of the file server's processes those that serve it count."""


@dataclass(frozen=True)
class Counters:
    """One moment of a host; None where the system does not tell."""

    clock_seconds: float
    """Monotonic, of this host alone."""
    cores: Tuple[CoreTimes, ...]
    """Those that the copy's processes may use."""
    processes: Tuple[ProcessTimes, ...]
    """Those that carry the copy."""
    threads: Tuple[ThreadTimes, ...]
    """Theirs."""
    other_cpu_seconds: float = 0.0
    """Of all other processes on these cores since this agent's first reading; kernel threads and
    our parents are not in it."""
    others_complete: bool = False
    """Whether every process of the machine could be seen."""
    quotas: Tuple[cgroup.Quota, ...] = ()
    """Those that hold for the copy's processes, each once."""
    quotas_visible: bool = False
    """Whether a quota would be seen: then none seen is none."""
    memory: Optional[Memory] = None
    traffic: Optional[Tuple[int, ...]] = None
    """Bytes sent and received by the interface."""
    interface_counts: Dict[str, int] = field(default_factory=dict)
    """Packets lost, errors of the cable, pause frames: see interface.counts."""
    device: Optional[DeviceCounts] = None
    pressure: Pressure = Pressure()


def read_counters(watched: Watched, agent_pid: int, account: Account = _ACCOUNT) -> Counters:
    """This host now; agent_pid is the process whose descendants carry the copy.

    account: what earlier readings left; by default this process's own.

    Errors: Unavailable where nobody tells of this host's processes.
    """
    host = reader()
    seen = host.processes()
    clock_seconds = time.monotonic()
    servers = set(watched.server_pids) & set(seen)
    if watched.file_server:
        servers |= _serving(seen, watched, agent_pid, account)
    untold = watched.file_server and not servers and bool(account.candidates)
    below = processes.descendants(seen, agent_pid)
    cores = host.cores()
    usable = usable_cores(servers | {agent_pid}, cores)
    ours = processes.ancestors(seen, agent_pid) | below
    account.take(watched, seen, clock_seconds, servers, ours, usable)
    carriers = below | account.living()
    quotas = {each.file: each for pid in servers | {agent_pid} for each in cgroup.quotas(pid)}
    return Counters(
        clock_seconds=clock_seconds,
        cores=tuple(cores[core] for core in sorted(usable & set(cores))),
        processes=_times(seen, below, agent_pid, account),
        threads=tuple(each for pid in sorted(carriers) for each in host.threads(pid)),
        other_cpu_seconds=account.other_cpu_seconds,
        others_complete=processes.sees_all(seen),
        quotas=tuple(quotas[file] for file in sorted(quotas)),
        quotas_visible=not untold
        and all(cgroup.shows_quotas(pid) for pid in servers | {agent_pid}),
        memory=read_memory(),
        traffic=host.traffic(watched.interface) if watched.interface else None,
        interface_counts=interface.counts(watched.interface) if watched.interface else {},
        device=host.devices().get(watched.folder_device) if watched.folder_device else None,
        pressure=read_pressure(watched.folder_device),
    )


def _serving(
    seen: dict[int, ProcessStat], watched: Watched, agent_pid: int, account: Account
) -> frozenset[int]:
    """The file-server processes that serve the peer; looked for anew where any began or ended."""
    candidates = frozenset((pid, seen[pid].started_ticks) for pid in open_files.file_servers(seen))
    known = account.serving and (account.watched, account.candidates) == (watched, candidates)
    if not known:
        found = open_files.serving(seen, agent_pid, watched.peer_address)
        account.candidates, account.serving = candidates, frozenset(found)
    return account.serving


def _times(
    seen: dict[int, ProcessStat], below: set[int], agent_pid: int, account: Account
) -> tuple[ProcessTimes, ...]:
    """The carriers' times; of the agent itself only what it inherited from children that ended."""
    found = dict(account.servers)
    for pid in below | ({agent_pid} & set(seen)):
        stat = seen[pid]
        times = processes.times_of(stat)
        if pid == agent_pid:
            times = replace(times, cpu_seconds=0.0)
        found[pid, stat.started_ticks] = times
    return tuple(found[key] for key in sorted(found))


def usable_cores(pids: Iterable[int], cores: Dict[int, CoreTimes]) -> set[int]:
    """Those that any of the processes may use by affinity and cpuset (sched_getaffinity(2))."""
    if not hasattr(os, "sched_getaffinity"):
        return set(cores)
    found: set[int] = set()
    for pid in pids:
        # a process that ended meanwhile uses no core
        with contextlib.suppress(OSError):
            found |= os.sched_getaffinity(pid)
    return found


def read_cores() -> Optional[Dict[int, CoreTimes]]:
    """The cores that this process may use, by number, now; None where the system does not tell."""
    try:
        cores = reader().cores()
    except Unavailable:
        return None
    usable = usable_cores({0}, cores)
    return {core: each for core, each in cores.items() if core in usable}


def process_seconds(since: os.times_result) -> Dict[str, float]:
    """CPU time of this process since then in user and in system mode, in steps of 10 ms."""
    now = os.times()
    return {"user_seconds": now.user - since.user, "system_seconds": now.system - since.system}


def busy_cores(
    before: Optional[Dict[int, CoreTimes]], after: Optional[Dict[int, CoreTimes]]
) -> Optional[float]:
    """How many of those cores were busy between two moments, by whomever; None: not known.

    A core's busy share of its own ticks is at most 1. What the hypervisor gave to somebody else is
    not this host's.
    """
    if before is None or after is None:
        return None
    busy = 0.0
    for core, now in after.items():
        was = before.get(core)
        whole = now.total_seconds - was.total_seconds if was else 0.0
        if was is None or whole <= 0:
            return None
        used = now.busy_seconds - was.busy_seconds - (now.stolen_seconds - was.stolen_seconds)
        busy += min(1.0, max(0.0, used / whole))
    return busy


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
    copy_seconds, all_busy = _copy_seconds(before, after), sum(used for used, _ in busy)
    memory = after.memory
    sent, received = zip(before.traffic or (None, None), after.traffic or (None, None))
    grown, ratio = partial(_grown_of, before, after), partial(_ratio_of, before, after)
    kept = [each for each in after.quotas if _kept(each, copy_seconds, wall_seconds)]
    stopped, held = _stopping(before, kept)
    return Usage(
        wall_seconds=wall_seconds,
        core_busy_ratios=ratios,
        busiest_core_ratio=max(ratios, default=0.0),
        softirq_ratio=interrupt / total if total else 0.0,
        steal_ratio=stolen / total if total else 0.0,
        copy_cpu_seconds=copy_seconds,
        busiest_process_ratio=_busiest_seconds(before, after) / wall_seconds,
        other_cpu_seconds=_other_seconds(before, after, copy_seconds, all_busy, interrupt + stolen),
        quota_cores=held.quota_cores if held else None,
        throttled_ratio=stopped if held or not after.quotas_visible else 0.0,
        run_delay_seconds=_run_delay_seconds(before, after),
        memory_total_bytes=memory.total_bytes if memory else None,
        memory_used_bytes=memory.used_bytes if memory else None,
        memory_dirty_bytes=memory.dirty_bytes if memory else None,
        interface_sent_bytes=_grown(sent[0], sent[1]),
        interface_received_bytes=_grown(received[0], received[1]),
        device_read_bytes=grown("device", "read_bytes"),
        device_written_bytes=grown("device", "written_bytes"),
        device_busy_ratio=ratio("device", "busy_seconds"),
        memory_dirty_limit_bytes=after.pressure.dirty_limit_bytes,
        swapped_in_bytes=grown("pressure", "swapped_in_bytes"),
        swapped_out_bytes=grown("pressure", "swapped_out_bytes"),
        memory_waiting_ratio=ratio("pressure", "memory_waiting_seconds"),
        io_waiting_ratio=ratio("pressure", "io_waiting_seconds"),
        quota_file=held.file if held else None,
        memory_cached_growth_bytes=_cached_growth_bytes(before, after),
    )


def _cached_growth_bytes(before: Counters, after: Counters) -> Optional[int]:
    if before.memory is None or after.memory is None:
        return None
    return max(0, after.memory.cached_bytes - before.memory.cached_bytes)


def _kept(quota: cgroup.Quota, copy_seconds: float, wall_seconds: float) -> bool:
    """Whether the copy's CPU time fits into a quota: one that it exceeds is not the copy's."""
    return copy_seconds <= OVERRUN_RATIO * quota.quota_cores * wall_seconds + OVERRUN_SECONDS


def _both(before: Counters, after: Counters, record: str, name: str) -> List[Any]:
    return [getattr(getattr(each, record), name, None) for each in (before, after)]


def _grown_of(before: Counters, after: Counters, record: str, name: str) -> int | None:
    return _grown(*_both(before, after, record, name))


def _ratio_of(before: Counters, after: Counters, record: str, name: str) -> float | None:
    then, now = _both(before, after, record, name)
    if then is None or now is None:
        return None
    wall_seconds = after.clock_seconds - before.clock_seconds
    return min(1.0, max(0.0, float(now - then)) / wall_seconds)


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


def _stopping(
    before: Counters, quotas: list[cgroup.Quota]
) -> tuple[float | None, cgroup.Quota | None]:
    """The quota to raise, which stops its group most and is the smallest of those, and how much."""
    stops = [(_throttled_ratio(before, each), each) for each in quotas]
    return min(stops, key=lambda e: (-(e[0] or 0.0), e[1].quota_cores), default=(None, None))


def _throttled_ratio(before: Counters, quota: cgroup.Quota) -> float | None:
    """Share of its periods in which it stopped its group; None: not told."""
    was = next((each for each in before.quotas if each.file == quota.file), None)
    if was is None or was.periods is None or was.throttled_periods is None:
        return None
    if quota.periods is None or quota.throttled_periods is None:
        return None
    periods = quota.periods - was.periods
    stopped = quota.throttled_periods - was.throttled_periods
    return min(1.0, max(0.0, stopped / periods)) if periods > 0 else 0.0


def _run_delay_seconds(before: Counters, after: Counters) -> float | None:
    """Over the threads that carry the copy and are alive at the end."""
    earlier = {each.thread: each.run_delay_seconds or 0.0 for each in before.threads}
    delays = [
        max(0.0, each.run_delay_seconds - earlier.get(each.thread, 0.0))
        for each in after.threads
        if each.run_delay_seconds is not None
    ]
    return sum(delays) if delays else None


def _grown(before: int | None, after: int | None) -> int | None:
    """How much a counter grew; one that ran backwards was reset and tells nothing."""
    if before is None or after is None or after < before:
        return None
    return after - before
