"""The same as proc.py tells, by psutil, where there is no /proc: Windows and macOS."""

from __future__ import annotations

import time
from typing import Any, Dict, List, Optional, Tuple

import psutil

from probes.core.records import InterfaceFacts
from probes.system.proc import (
    LONGEST_NAME,
    TICK_SECONDS,
    CoreTimes,
    DeviceCounts,
    Memory,
    Moved,
    ProcessStat,
    ThreadTimes,
)

OLDEST = (5, 6)
"""Before it some of what is read here is missing."""
if psutil.version_info[:2] < OLDEST:
    raise ImportError("psutil is too old")

LARGEST_MTU_BYTES = 65_536
"""A loopback of Windows claims 4 GiB."""
YOUNG_SECONDS = 10.0
"""A process that began since may still become another program without a tick of CPU time."""

_known: Dict[int, Tuple[Any, ProcessStat]] = {}
"""Each process and what was last told of it: asking for all of it each time costs three times
what it takes to see that it did nothing."""


def cores() -> Dict[int, CoreTimes]:
    """Every core, numbered in the order in which psutil lists them."""
    return {number: _core(number, each) for number, each in enumerate(psutil.cpu_times(True))}


def _core(number: int, times: Any) -> CoreTimes:
    interrupts = _sum(times, "interrupt")
    busy = _sum(times, "user", "nice", "system") + interrupts
    return CoreTimes(number, busy, interrupts, 0.0, busy + times.idle)


def _sum(told: Any, *names: str) -> float:
    """What the system tells of them."""
    return float(sum(getattr(told, name, 0.0) for name in names))


def memory() -> Optional[Memory]:
    """The host's memory, whatever a control group leaves of it."""
    told = psutil.virtual_memory()
    return Memory(told.total, told.used, getattr(told, "inactive", 0), None)


def traffic(interface: str) -> Optional[Tuple[int, int]]:
    """Bytes sent and received by an interface; None: there is none of the name."""
    told = psutil.net_io_counters(pernic=True, nowrap=False).get(interface)
    return (told.bytes_sent, told.bytes_recv) if told else None


def interface(address: str) -> Optional[InterfaceFacts]:
    """The interface with an address of this host, where no rtnetlink tells more of it; None: none.

    Its rate and duplex stay unknown: of a Windows card psutil reads 32 bits of the rate, which any
    tunnel claims too, and takes it for full duplex.
    """
    known = psutil.net_if_stats()
    for name, addresses in psutil.net_if_addrs().items():
        told = known.get(name)
        here = address in (each.address.partition("%")[0] for each in addresses)
        if here and told is not None and told.isup:
            mtu = told.mtu if 0 < told.mtu <= LARGEST_MTU_BYTES else None
            return InterfaceFacts(name, address, None, None, mtu, None, None)
    return None


def devices() -> Dict[str, DeviceCounts]:
    """Every block device by its kernel name; none where the system does not tell how busy it is."""
    try:
        told = psutil.disk_io_counters(perdisk=True, nowrap=False) or {}
    except (NotImplementedError, ValueError):
        return {}
    return {
        name: DeviceCounts(
            each.read_count,
            each.read_bytes,
            each.write_count,
            each.write_bytes,
            each.busy_time / 1e3,
        )
        for name, each in told.items()
        if hasattr(each, "busy_time")
    }


def processes() -> Dict[int, ProcessStat]:
    """Every process that can be seen; one that ends meanwhile is left out."""
    pids = psutil.pids()
    alive = set(pids)
    for pid in set(_known) - alive:
        del _known[pid]
    since = time.time() - YOUNG_SECONDS
    for pid in pids:
        try:
            _known[pid] = _looked_at(pid, alive, since)
        except (psutil.Error, OSError):
            _known.pop(pid, None)
    return {pid: each for pid, (_, each) in _known.items()}


def _looked_at(pid: int, alive: set[int], since: float) -> Tuple[Any, ProcessStat]:
    """A process now; what took no CPU time since it was looked at is what it was."""
    process, last = _known.get(pid, (None, None))
    if process is not None and last is not None:
        times = _times(process)
        idle = times == (last.cpu_seconds, last.reaped_seconds)
        if idle and last.parent in alive and process.create_time() < since:
            return process, last
        if process.is_running():
            return process, _stat(process, last.started_ticks)
    process = psutil.Process(pid)
    started = process.create_time() - psutil.boot_time()
    return process, _stat(process, round(started / TICK_SECONDS))


def _stat(process: Any, started_ticks: int) -> ProcessStat:
    with process.oneshot():
        own, reaped = _times(process)
        return ProcessStat(
            pid=process.pid,
            name=process.name()[:LONGEST_NAME],
            parent=process.ppid(),
            kernel=False,
            cpu_seconds=own,
            reaped_seconds=reaped,
            started_ticks=started_ticks,
            core=None,
        )


def _times(process: Any) -> Tuple[float, float]:
    """Its CPU time, and that of its children that ended and were waited for."""
    told = process.cpu_times()
    return told.user + told.system, _sum(told, "children_user", "children_system")


def threads(pid: int) -> List[ThreadTimes]:
    """Times of every thread of a process; empty where it ended meanwhile."""
    try:
        told = psutil.Process(pid).threads()
    except psutil.Error:
        return []
    return [ThreadTimes(each.id, each.user_time + each.system_time, None) for each in told]


def moved(pid: int) -> Optional[Moved]:
    """What a process moved; None: the system does not tell.

    Errors: ProcessLookupError where it is gone, PermissionError where it is another user's.
    """
    try:
        told = psutil.Process(pid).io_counters()
        return Moved(told.read_chars, told.write_chars, told.read_bytes, told.write_bytes)
    except psutil.NoSuchProcess:
        raise ProcessLookupError(f"process {pid} is gone") from None
    except psutil.AccessDenied:
        raise PermissionError(f"process {pid} is another user's") from None
    except (AttributeError, RuntimeError):
        return None
