"""What a host counts, read at one moment: cores, the copy's processes, memory, interface, device.

Cheap (a few milliseconds), so that it may be read at both ends of a measured window; two
readings become a Usage in usage.py. A plain record, so that it crosses the wire.
"""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, NamedTuple, Optional, Tuple

from probes.host import cgroup, file_server, interface, pressure, processes
from probes.host.account import Account
from probes.host.memory import read_memory
from probes.host.pressure import Pressure
from probes.host.processes import ProcessTimes, ThreadTimes

SECTOR_BYTES = 512
"""Of /proc/diskstats, whatever the device's own sectors are (iostats.rst)."""

_ACCOUNT = Account()
"""Of this process's readings."""


@dataclass(frozen=True)
class Watched:
    """What is counted beside cores and memory."""

    interface: Optional[str] = None
    """Towards the peer."""
    folder_device: Optional[str] = None
    """Kernel name of the block device under the folder."""
    file_server: bool = True
    """Whether a file server of this host carries the copy beside the agent's children."""
    server_pids: Tuple[int, ...] = ()
    """More processes that carry it."""
    peer_address: str = ""
    """The other host's IP address: of the file server's processes those that serve it count."""


@dataclass(frozen=True)
class CoreTimes:
    """One core since boot; guest time is part of the user time."""

    core: int
    busy_seconds: float
    """Neither idle nor waiting for I/O; interrupts and stolen time included."""
    interrupt_seconds: float
    """irq and softirq."""
    stolen_seconds: float
    total_seconds: float


@dataclass(frozen=True)
class QuotaCounts:
    """A CPU quota that holds for the copy's processes."""

    group: str
    quota_cores: float
    periods: Optional[int]
    throttled_periods: Optional[int]


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
    quotas: Tuple[QuotaCounts, ...] = ()
    quotas_visible: bool = False
    """Whether a quota would be seen: then none seen is none."""
    memory_total_bytes: Optional[int] = None
    memory_used_bytes: Optional[int] = None
    memory_cached_bytes: Optional[int] = None
    memory_dirty_bytes: Optional[int] = None
    interface_sent_bytes: Optional[int] = None
    interface_received_bytes: Optional[int] = None
    interface_counts: Dict[str, int] = field(default_factory=dict)
    """Packets lost, errors of the cable, pause frames: see interface.counts."""
    device_read_bytes: Optional[int] = None
    device_written_bytes: Optional[int] = None
    device_busy_seconds: Optional[float] = None
    pressure: Pressure = Pressure()


class DeviceCounts(NamedTuple):
    """One block device since boot."""

    read_bytes: int
    written_bytes: int
    busy_seconds: float
    """Time with I/O in flight (field 10 of iostats.rst)."""


def parse_cores(stat: str) -> dict[int, CoreTimes]:
    """The cores of /proc/stat (proc(5)) by number."""
    found = {}
    for line in stat.splitlines():
        name, *words = line.split()
        if not name.startswith("cpu") or not name[3:].isdigit() or len(words) < 7:
            continue
        times = [int(word) * processes.TICK_SECONDS for word in words[:8]]
        user, nice, system, idle, waiting, irq, softirq = times[:7]
        stolen = times[7] if len(times) > 7 else 0.0
        busy = user + nice + system + irq + softirq + stolen
        core = int(name[3:])
        found[core] = CoreTimes(core, busy, irq + softirq, stolen, busy + idle + waiting)
    return found


def parse_interface(net_dev: str, interface: str) -> tuple[int, int] | None:
    """Bytes sent and received by an interface in /proc/net/dev; None: not in it."""
    for line in net_dev.splitlines():
        name, colon, numbers = line.partition(":")
        fields = numbers.split()
        if colon and name.strip() == interface and len(fields) >= 9:
            return int(fields[8]), int(fields[0])
    return None


def parse_device(diskstats: str, device: str) -> DeviceCounts | None:
    """A block device in /proc/diskstats; None: not in it."""
    for line in diskstats.splitlines():
        fields = line.split()
        if len(fields) >= 13 and fields[2] == device:
            read, written = int(fields[5]), int(fields[9])
            return DeviceCounts(read * SECTOR_BYTES, written * SECTOR_BYTES, int(fields[12]) / 1e3)
    return None


def read_device(device: str | None) -> DeviceCounts | None:
    """What a block device has read and written since boot."""
    return parse_device(_text("/proc/diskstats"), device) if device else None


def read_counters(watched: Watched, agent_pid: int, account: Account = _ACCOUNT) -> Counters:
    """This host now; agent_pid is the process whose descendants carry the copy.

    account: what earlier readings left; by default this process's own.

    Errors: Unavailable on a system without /proc and without psutil.
    """
    if not Path("/proc/stat").exists():
        from probes.host import elsewhere

        return elsewhere.read_counters(watched, agent_pid)
    seen = processes.read_all()
    clock_seconds = time.monotonic()
    servers = set(watched.server_pids) & set(seen)
    if watched.file_server:
        servers |= _serving(seen, watched, agent_pid, account)
    untold = watched.file_server and not servers and bool(account.candidates)
    below = processes.descendants(seen, agent_pid)
    usable = _usable_cores(servers | {agent_pid})
    cores = parse_cores(_text("/proc/stat"))
    ours = processes.ancestors(seen, agent_pid) | below
    account.take(watched, seen, clock_seconds, servers, ours, usable)
    carriers = below | account.living()
    memory = read_memory()
    traffic = None
    if watched.interface:
        traffic = parse_interface(_text("/proc/net/dev"), watched.interface)
    device = read_device(watched.folder_device)
    return Counters(
        clock_seconds=clock_seconds,
        cores=tuple(cores[core] for core in sorted(usable & set(cores))),
        processes=_times(seen, below, agent_pid, account),
        threads=tuple(
            each for pid in sorted(carriers) for each in processes.thread_times(seen[pid])
        ),
        other_cpu_seconds=account.other_cpu_seconds,
        others_complete=processes.sees_all(seen),
        quotas=_quotas(servers | {agent_pid}),
        quotas_visible=not untold
        and all(cgroup.shows_quotas(pid) for pid in servers | {agent_pid}),
        memory_total_bytes=memory.total_bytes if memory else None,
        memory_used_bytes=memory.used_bytes if memory else None,
        memory_cached_bytes=memory.cached_bytes if memory else None,
        memory_dirty_bytes=memory.dirty_bytes if memory else None,
        interface_sent_bytes=traffic[0] if traffic else None,
        interface_received_bytes=traffic[1] if traffic else None,
        interface_counts=interface.counts(watched.interface) if watched.interface else {},
        device_read_bytes=device.read_bytes if device else None,
        device_written_bytes=device.written_bytes if device else None,
        device_busy_seconds=device.busy_seconds if device else None,
        pressure=pressure.read(watched.folder_device),
    )


def _serving(
    seen: dict[int, processes.ProcessStat], watched: Watched, agent_pid: int, account: Account
) -> frozenset[int]:
    """The file-server processes that serve the peer; looked for anew where any began or ended."""
    candidates = frozenset((pid, seen[pid].started_ticks) for pid in file_server.file_servers(seen))
    known = account.serving and (account.watched, account.candidates) == (watched, candidates)
    if not known:
        found = file_server.serving(seen, agent_pid, watched.peer_address)
        account.candidates, account.serving = candidates, frozenset(found)
    return account.serving


def _times(
    seen: dict[int, processes.ProcessStat], below: set[int], agent_pid: int, account: Account
) -> tuple[ProcessTimes, ...]:
    """The carriers' times; of the agent itself only what it inherited from children that ended."""
    found = dict(account.servers)
    for pid in below | ({agent_pid} & set(seen)):
        stat = seen[pid]
        own = 0.0 if pid == agent_pid else stat.cpu_seconds
        found[pid, stat.started_ticks] = ProcessTimes(
            pid, stat.started_ticks, own, stat.reaped_seconds
        )
    return tuple(found[key] for key in sorted(found))


def _usable_cores(pids: set[int]) -> set[int]:
    """Cores that any of the processes may use by affinity and cpuset; sched_getaffinity(2)."""
    found: set[int] = set()
    for pid in pids:
        # a process that ended meanwhile uses no core
        with contextlib.suppress(OSError):
            found |= os.sched_getaffinity(pid)
    return found


def _quotas(pids: set[int]) -> tuple[QuotaCounts, ...]:
    """The quotas on the processes' groups, each once."""
    found = {}
    for pid in pids:
        for each in cgroup.quotas(pid):
            found[each.group] = QuotaCounts(
                each.group, each.quota_cores, each.periods, each.throttled_periods
            )
    return tuple(found[group] for group in sorted(found))


def _text(path: str) -> str:
    """A file of /proc; empty where it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
