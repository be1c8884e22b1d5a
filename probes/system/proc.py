"""Counters of cores, memory, interfaces, disks and processes from Linux' /proc; short /sys files.

Sources: proc(5); iostats.rst and sched-stats.rst of the kernel.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple, Union

from probes.system.platform import os

SECTOR_BYTES = 512
"""Sector of /proc/diskstats, whatever the device's own sectors are (iostats.rst)."""
TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
KERNEL_THREAD = 0x00200000
"""PF_KTHREAD in the flags of /proc/PID/stat (include/linux/sched.h)."""
LONGEST_NAME = 15
"""Characters of a process's name that the kernel stores (TASK_COMM_LEN)."""


@dataclass(frozen=True)
class CoreTimes:
    """Times of one core since boot; guest time is part of the user time."""

    core: int
    busy_seconds: float
    """Neither idle nor waiting for I/O; interrupts and stolen time included."""
    interrupt_seconds: float
    """irq and softirq."""
    stolen_seconds: float
    total_seconds: float


@dataclass(frozen=True)
class DeviceCounts:
    """Counters of one block device since boot."""

    reads: int
    read_bytes: int
    writes: int
    written_bytes: int
    busy_seconds: float
    """Time with I/O in flight (field 10 of iostats.rst)."""


@dataclass(frozen=True)
class Memory:
    """Memory at one moment, in bytes."""

    total_bytes: int
    used_bytes: int
    """Without the page cache; files of tmpfs are in use, they cannot be dropped."""
    cached_bytes: int
    """Page cache and reclaimable kernel memory."""
    dirty_bytes: Optional[int]
    """Dirty and under write-back; None: the system does not report it."""


class ProcessStat(NamedTuple):
    pid: int
    name: str
    parent: int
    kernel: bool
    cpu_seconds: float
    reaped_seconds: float
    """CPU time of its children that ended and were waited for."""
    started_ticks: int
    core: Optional[int]
    """Core that it ran on last; None: the system does not report it."""


@dataclass(frozen=True)
class ThreadTimes:
    """A thread of a process that carries the copy, at one moment."""

    thread: int
    cpu_seconds: float
    run_delay_seconds: Optional[float]
    """Time since its start in which it was ready and not run: other work, or a cgroup's quota."""


class ProcessIo(NamedTuple):
    """Bytes that a process read and wrote since it began."""

    read_bytes: int
    """Bytes asked for with read(2) and its kin, from files and sockets, cached or not."""
    written_bytes: int
    disk_read_bytes: int
    """Bytes fetched from disks for it."""
    disk_written_bytes: int
    """Bytes that it made dirty, to be written to disks."""


def cores() -> Dict[int, CoreTimes]:
    """Returns every core that is online, by number."""
    return parse_cores(text("/proc/stat"))


def waiting_cores() -> Dict[int, Tuple[float, float]]:
    """Returns by core of ours the seconds busy, and those idle with a task waiting for a disk."""
    usable = os.sched_getaffinity(0)
    times = parse_waiting_cores(text("/proc/stat"))
    return {core: each for core, each in times.items() if core in usable}


def memory() -> Optional[Memory]:
    """Returns the host's memory, whatever a control group allows of it."""
    return parse_memory(meminfo())


def meminfo() -> Dict[str, int]:
    """Returns /proc/meminfo's bytes by name."""
    return parse_meminfo(text("/proc/meminfo"))


def traffic(interface: str) -> Optional[Tuple[int, int]]:
    """Returns bytes sent and received by an interface; None: there is none of the name."""
    return parse_interface(text("/proc/net/dev"), interface)


def devices() -> Dict[str, DeviceCounts]:
    """Returns every block device by its kernel name."""
    return parse_devices(text("/proc/diskstats"))


def written_and_flushed(device: str) -> Optional[Tuple[int, Optional[int]]]:
    """Returns bytes written to a device and flushes of its cache since boot; None: no such device.

    Flushes are counted since Linux 5.5.
    """
    return parse_written_and_flushed(text("/proc/diskstats"), device)


def ticks_now() -> int:
    """Returns the time by the clock of ProcessStat.started_ticks; 0: this system has none."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return int(time.clock_gettime(clock) / TICK_SECONDS) if clock is not None else 0


def processes() -> Dict[int, ProcessStat]:
    """Returns every process that can be seen; one that ends meanwhile is left out."""
    stats = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        stat = parse_stat(text(f"/proc/{name}/stat"))
        if stat is not None:
            stats[stat.pid] = stat
    return stats


def threads(pid: int) -> List[ThreadTimes]:
    """Returns times of every thread of a process; empty where it ended meanwhile."""
    times = []
    for thread in names(f"/proc/{pid}/task"):
        seconds = parse_schedstat(text(f"/proc/{pid}/task/{thread}/schedstat"))
        if seconds is not None:
            times.append(ThreadTimes(int(thread), seconds[0], seconds[1]))
            continue
        # a kernel without CONFIG_SCHED_INFO knows the CPU time alone
        stat = parse_stat(text(f"/proc/{pid}/task/{thread}/stat"))
        if stat is not None:
            times.append(ThreadTimes(int(thread), stat.cpu_seconds, None))
    return times


def process_io(pid: int) -> Optional[ProcessIo]:
    """Returns the bytes that a process read and wrote; None: the system does not report them.

    Errors: ProcessLookupError where it is gone, PermissionError where it is another user's.
    """
    try:
        with open(f"/proc/{pid}/io", encoding="ascii") as file:  # noqa: PTH123 - a tenth of Path's time
            return parse_io(file.read())
    except FileNotFoundError:
        raise ProcessLookupError(f"process {pid} is gone") from None


def counter_growth(start: Optional[int], end: Optional[int]) -> Optional[int]:
    """Returns the growth of a counter; None: one is missing, or it ran backwards (a reset)."""
    return None if start is None or end is None or end < start else end - start


def parse_cores(stat: str) -> Dict[int, CoreTimes]:
    """Returns the cores of /proc/stat by number."""
    by_core = {}
    for line in stat.splitlines():
        name, *words = line.split()
        if not name.startswith("cpu") or not name[3:].isdigit() or len(words) < 7:
            continue
        times = [int(word) * TICK_SECONDS for word in words[:8]]
        user, nice, system, idle, waiting, irq, softirq = times[:7]
        stolen = times[7] if len(times) > 7 else 0.0
        busy = user + nice + system + irq + softirq + stolen
        core = int(name[3:])
        by_core[core] = CoreTimes(core, busy, irq + softirq, stolen, busy + idle + waiting)
    return by_core


def parse_waiting_cores(stat: str) -> Dict[int, Tuple[float, float]]:
    """Returns by core the busy seconds and those idle waiting for a disk, of /proc/stat."""
    by_core = {}
    for name, *words in map(str.split, stat.splitlines()):
        if name.startswith("cpu") and name[3:].isdigit() and len(words) >= 7:
            times = [int(word) * TICK_SECONDS for word in words[:8]]
            _, _, _, idle, waiting, *_ = times
            by_core[int(name[3:])] = sum(times) - idle - waiting, waiting
    return by_core


def parse_meminfo(meminfo: str) -> Dict[str, int]:
    """Returns bytes of /proc/meminfo by name."""
    kibibytes = numbers(meminfo.replace(" kB", ""), ":")
    return {name: value * 1024 for name, value in kibibytes.items()}


def parse_memory(meminfo: Dict[str, int]) -> Optional[Memory]:
    """Returns the memory from /proc/meminfo's values; None: a line that is needed is missing."""
    if not {"MemTotal", "MemFree", "Cached", "Dirty", "Writeback"} <= set(meminfo):
        return None
    cached = meminfo["Cached"] - meminfo.get("Shmem", 0)
    cached += meminfo.get("Buffers", 0) + meminfo.get("SReclaimable", 0)
    return Memory(
        total_bytes=meminfo["MemTotal"],
        used_bytes=max(0, meminfo["MemTotal"] - meminfo["MemFree"] - cached),
        cached_bytes=max(0, cached),
        dirty_bytes=meminfo["Dirty"] + meminfo["Writeback"],
    )


def parse_interface(net_dev: str, interface: str) -> Optional[Tuple[int, int]]:
    """Returns bytes sent and received by an interface in /proc/net/dev; None: not in it."""
    for line in net_dev.splitlines():
        name, colon, numbers = line.partition(":")
        fields = numbers.split()
        if colon and name.strip() == interface and len(fields) >= 9:
            return int(fields[8]), int(fields[0])
    return None


def parse_devices(diskstats: str) -> Dict[str, DeviceCounts]:
    """Returns the block devices of /proc/diskstats."""
    counts = {}
    for line in diskstats.splitlines():
        fields = line.split()
        if len(fields) >= 13:
            reads, read, writes, written, busy = (int(fields[index]) for index in (3, 5, 7, 9, 12))
            counts[fields[2]] = DeviceCounts(
                reads, read * SECTOR_BYTES, writes, written * SECTOR_BYTES, busy / 1e3
            )
    return counts


def parse_written_and_flushed(diskstats: str, device: str) -> Optional[Tuple[int, Optional[int]]]:
    """Returns bytes written and flushes of a device in /proc/diskstats; None: not in it."""
    for fields in map(str.split, diskstats.splitlines()):
        if len(fields) > 9 and fields[2] == device:
            flushes = int(fields[18]) if len(fields) > 18 else None
            return int(fields[9]) * SECTOR_BYTES, flushes
    return None


def parse_stat(line: str) -> Optional[ProcessStat]:
    """Parses a /proc/PID/stat; None: malformed. The name may hold blanks and parentheses."""
    head, _, tail = line.rpartition(")")
    pid, _, name = head.partition("(")
    fields = tail.split()
    if len(fields) < 37:
        return None
    return ProcessStat(
        pid=int(pid),
        name=name[:LONGEST_NAME],
        parent=int(fields[1]),
        kernel=bool(int(fields[6]) & KERNEL_THREAD),
        cpu_seconds=(int(fields[11]) + int(fields[12])) * TICK_SECONDS,
        reaped_seconds=(int(fields[13]) + int(fields[14])) * TICK_SECONDS,
        started_ticks=int(fields[19]),
        core=int(fields[36]),
    )


def parse_schedstat(line: str) -> Optional[Tuple[float, float]]:
    """Returns CPU seconds and run delay seconds of a /proc/PID/schedstat."""
    words = line.split()
    if len(words) < 2:
        return None
    return int(words[0]) / 1e9, int(words[1]) / 1e9


def parse_io(io: str) -> Optional[ProcessIo]:
    """Parses a /proc/PID/io; None: it is empty or no such file."""
    counts = numbers(io, ":")
    try:
        return ProcessIo(
            counts["rchar"], counts["wchar"], counts["read_bytes"], counts["write_bytes"]
        )
    except KeyError:
        return None


def names(folder: Union[str, Path]) -> List[str]:
    """Returns the names in a folder; none where it does not exist or is not readable."""
    with contextlib.suppress(OSError):
        return os.listdir(folder)
    return []


def text(path: Union[str, Path]) -> str:
    """Reads a file of /proc or /sys; empty: missing, not readable, or its process ended."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - a tenth of Path's time
            return file.read()
    except OSError:
        return ""


def word(path: Path) -> Optional[str]:
    """Reads a file's only word; None: missing, or the driver refuses (EINVAL without a link)."""
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None


def is_visible(path: Path) -> bool:
    """Whether a file or folder exists and may be seen."""
    try:
        return path.exists()
    except OSError:
        return False


def numbers(content: str, separator: Optional[str] = None) -> Dict[str, int]:
    """Returns the whole numbers of lines `NAME NUMBER`, as in /proc and control groups."""
    pairs = (line.split(separator, 1) for line in content.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].strip().isdigit()}
