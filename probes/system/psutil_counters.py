"""Counters as proc.py reads them, by psutil, where there is no /proc: Windows and macOS."""

from __future__ import annotations

import time
from typing import Any, Dict, List, Optional, Tuple

import psutil

from probes.core.records import InterfaceFacts
from probes.system import proc

OLDEST = (5, 6)
"""Oldest version of psutil that has all calls used here."""
if psutil.version_info[:2] < OLDEST:
    raise ImportError("psutil is too old")

LARGEST_MTU_BYTES = 65_536
"""A loopback of Windows claims 4 GiB."""
YOUNG_SECONDS = 10.0
"""Age below which a process may still become another program without a tick of CPU time."""

_processes: Dict[int, Tuple[Any, proc.ProcessStat]] = {}
"""Each process and its last state: reading all of it each time costs three times as much as seeing
that it did nothing."""


def cores() -> Dict[int, proc.CoreTimes]:
    """Returns every core, numbered in the order in which psutil lists them."""
    return {number: _core(number, each) for number, each in enumerate(psutil.cpu_times(True))}


def _core(number: int, times: Any) -> proc.CoreTimes:
    interrupts = _sum(times, "interrupt")
    busy = _sum(times, "user", "nice", "system") + interrupts
    return proc.CoreTimes(number, busy, interrupts, 0.0, busy + times.idle)


def _sum(counters: Any, *names: str) -> float:
    """Returns the sum of the counters that the system has."""
    return float(sum(getattr(counters, name, 0.0) for name in names))


def memory() -> Optional[proc.Memory]:
    """Returns the host's memory, whatever a control group allows of it."""
    figures = psutil.virtual_memory()
    return proc.Memory(figures.total, figures.used, getattr(figures, "inactive", 0), None)


def traffic(interface: str) -> Optional[Tuple[int, int]]:
    """Returns bytes sent and received by an interface; None: there is none of the name."""
    counters = psutil.net_io_counters(pernic=True, nowrap=False).get(interface)
    return (counters.bytes_sent, counters.bytes_recv) if counters else None


def interface(address: str) -> Optional[InterfaceFacts]:
    """Returns the interface with an address of this host, where there is no rtnetlink; or None.

    Its rate and duplex stay unknown: of a Windows card psutil reads 32 bits of the rate, which any
    tunnel claims too, and takes it for full duplex.
    """
    all_stats = psutil.net_if_stats()
    for name, addresses in psutil.net_if_addrs().items():
        stats = all_stats.get(name)
        has_address = address in (each.address.partition("%")[0] for each in addresses)
        if has_address and stats is not None and stats.isup:
            mtu = stats.mtu if 0 < stats.mtu <= LARGEST_MTU_BYTES else None
            return InterfaceFacts(name, address, None, None, mtu, None, None)
    return None


def devices() -> Dict[str, proc.DeviceCounts]:
    """Returns every block device by its kernel name; none where the busy time is not reported."""
    try:
        counters = psutil.disk_io_counters(perdisk=True, nowrap=False) or {}
    except (NotImplementedError, ValueError):
        return {}
    return {
        name: proc.DeviceCounts(
            each.read_count,
            each.read_bytes,
            each.write_count,
            each.write_bytes,
            each.busy_time / 1e3,
        )
        for name, each in counters.items()
        if hasattr(each, "busy_time")
    }


def processes() -> Dict[int, proc.ProcessStat]:
    """Returns every process that can be seen; one that ends meanwhile is left out."""
    pids = psutil.pids()
    alive = set(pids)
    for pid in set(_processes) - alive:
        del _processes[pid]
    since = time.time() - YOUNG_SECONDS
    for pid in pids:
        try:
            _processes[pid] = _looked_at(pid, alive, since)
        except (psutil.Error, OSError):
            _processes.pop(pid, None)
    return {pid: each for pid, (_, each) in _processes.items()}


def _looked_at(pid: int, alive: set[int], since: float) -> Tuple[Any, proc.ProcessStat]:
    """Returns a process's state; one without CPU time since the last look has the old state."""
    process, last = _processes.get(pid, (None, None))
    if process is not None and last is not None:
        idle = _times(process) == (last.cpu_seconds, last.reaped_seconds)
        if idle and last.parent in alive and process.create_time() < since:
            return process, last
        if process.is_running():
            return process, _stat(process, last.started_ticks)
    process = psutil.Process(pid)
    started = process.create_time() - psutil.boot_time()
    return process, _stat(process, round(started / proc.TICK_SECONDS))


def _stat(process: Any, started_ticks: int) -> proc.ProcessStat:
    with process.oneshot():
        cpu_seconds, reaped = _times(process)
        return proc.ProcessStat(
            pid=process.pid,
            name=process.name()[: proc.LONGEST_NAME],
            parent=process.ppid(),
            kernel=False,
            cpu_seconds=cpu_seconds,
            reaped_seconds=reaped,
            started_ticks=started_ticks,
            core=None,
        )


def _times(process: Any) -> Tuple[float, float]:
    """Returns its CPU time, and that of its children that ended and were waited for."""
    times = process.cpu_times()
    return times.user + times.system, _sum(times, "children_user", "children_system")


def threads(pid: int) -> List[proc.ThreadTimes]:
    """Returns times of every thread of a process; empty where it ended meanwhile."""
    try:
        times = psutil.Process(pid).threads()
    except psutil.Error:
        return []
    return [proc.ThreadTimes(each.id, each.user_time + each.system_time, None) for each in times]


def process_io(pid: int) -> Optional[proc.ProcessIo]:
    """Returns the bytes that a process read and wrote; None: the system does not report them.

    Errors: ProcessLookupError where it is gone, PermissionError where it is another user's.
    """
    try:
        counters = psutil.Process(pid).io_counters()
        return proc.ProcessIo(
            counters.read_chars, counters.write_chars, counters.read_bytes, counters.write_bytes
        )
    except psutil.NoSuchProcess:
        raise ProcessLookupError(f"process {pid} is gone") from None
    except psutil.AccessDenied:
        raise PermissionError(f"process {pid} is another user's") from None
    except (AttributeError, RuntimeError):
        return None
