"""What Linux tells in /proc of cores, memory, interfaces, disks and processes; files of few words.

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
"""Of /proc/diskstats, whatever the device's own sectors are (iostats.rst)."""
TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
KERNEL_THREAD = 0x00200000
"""PF_KTHREAD in the flags of /proc/PID/stat (include/linux/sched.h)."""
LONGEST_NAME = 15
"""Of a process, as the kernel keeps it (TASK_COMM_LEN)."""


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
class DeviceCounts:
    """One block device since boot."""

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
    """Dirty and under write-back; None: the system does not tell."""


class ProcessStat(NamedTuple):
    """One process."""

    pid: int
    name: str
    parent: int
    kernel: bool
    cpu_seconds: float
    reaped_seconds: float
    """CPU time of its children that ended and were waited for."""
    started_ticks: int
    core: Optional[int]
    """Where it ran last; None: the system does not tell."""


@dataclass(frozen=True)
class ThreadTimes:
    """A thread of a process that carries the copy, at one moment."""

    thread: int
    cpu_seconds: float
    run_delay_seconds: Optional[float]
    """Ready to run and not let, since its start: other work, or its cgroup's quota."""


class Moved(NamedTuple):
    """What a process moved since it began, bytes."""

    read_bytes: int
    """Asked for with read(2) and its kin, from files and sockets alike, cached or not."""
    written_bytes: int
    disk_read_bytes: int
    """Fetched from disks for it."""
    disk_written_bytes: int
    """Made dirty by it, to be written to disks."""


def cores() -> Dict[int, CoreTimes]:
    """Every core that is online, by number."""
    return parse_cores(text("/proc/stat"))


def waiting_cores() -> Dict[int, Tuple[float, float]]:
    """Seconds that each core was busy, and idle with a task that waited for a disk.

    Of the cores that this process may use.
    """
    usable = os.sched_getaffinity(0)
    told = parse_waiting_cores(text("/proc/stat"))
    return {core: each for core, each in told.items() if core in usable}


def memory() -> Optional[Memory]:
    """The host's memory, whatever a control group leaves of it."""
    return parse_memory(meminfo())


def meminfo() -> Dict[str, int]:
    """Bytes by name, as the kernel keeps them of its memory."""
    return parse_meminfo(text("/proc/meminfo"))


def traffic(interface: str) -> Optional[Tuple[int, int]]:
    """Bytes sent and received by an interface; None: there is none of the name."""
    return parse_interface(text("/proc/net/dev"), interface)


def devices() -> Dict[str, DeviceCounts]:
    """Every block device by its kernel name."""
    return parse_devices(text("/proc/diskstats"))


def written_and_flushed(device: str) -> Optional[Tuple[int, Optional[int]]]:
    """Bytes written to a device and flushes of its cache, since boot; None: there is none.

    Flushes are counted since Linux 5.5.
    """
    return parse_written_and_flushed(text("/proc/diskstats"), device)


def ticks_now() -> int:
    """By the clock of ProcessStat.started_ticks; 0 where this system has none."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return int(time.clock_gettime(clock) / TICK_SECONDS) if clock is not None else 0


def processes() -> Dict[int, ProcessStat]:
    """Every process that can be seen; one that ends meanwhile is left out."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        stat = parse_stat(text(f"/proc/{name}/stat"))
        if stat is not None:
            found[stat.pid] = stat
    return found


def threads(pid: int) -> List[ThreadTimes]:
    """Times of every thread of a process; empty where it ended meanwhile."""
    found = []
    for thread in names(f"/proc/{pid}/task"):
        told = parse_schedstat(text(f"/proc/{pid}/task/{thread}/schedstat"))
        if told is not None:
            found.append(ThreadTimes(int(thread), told[0], told[1]))
            continue
        # a kernel without CONFIG_SCHED_INFO knows the CPU time alone
        own = parse_stat(text(f"/proc/{pid}/task/{thread}/stat"))
        if own is not None:
            found.append(ThreadTimes(int(thread), own.cpu_seconds, None))
    return found


def moved(pid: int) -> Optional[Moved]:
    """What a process moved; None: the system does not tell.

    Errors: ProcessLookupError where it is gone, PermissionError where it is another user's.
    """
    try:
        with open(f"/proc/{pid}/io", encoding="ascii") as file:  # noqa: PTH123 - a tenth of Path's time
            return parse_io(file.read())
    except FileNotFoundError:
        raise ProcessLookupError(f"process {pid} is gone") from None


def parse_cores(stat: str) -> Dict[int, CoreTimes]:
    """The cores of /proc/stat by number."""
    found = {}
    for line in stat.splitlines():
        name, *words = line.split()
        if not name.startswith("cpu") or not name[3:].isdigit() or len(words) < 7:
            continue
        times = [int(word) * TICK_SECONDS for word in words[:8]]
        user, nice, system, idle, waiting, irq, softirq = times[:7]
        stolen = times[7] if len(times) > 7 else 0.0
        busy = user + nice + system + irq + softirq + stolen
        core = int(name[3:])
        found[core] = CoreTimes(core, busy, irq + softirq, stolen, busy + idle + waiting)
    return found


def parse_waiting_cores(stat: str) -> Dict[int, Tuple[float, float]]:
    """The same of /proc/stat."""
    found = {}
    for name, *words in map(str.split, stat.splitlines()):
        if name.startswith("cpu") and name[3:].isdigit() and len(words) >= 7:
            times = [int(word) * TICK_SECONDS for word in words[:8]]
            _, _, _, idle, waiting, *_ = times
            found[int(name[3:])] = sum(times) - idle - waiting, waiting
    return found


def parse_meminfo(meminfo: str) -> Dict[str, int]:
    """Bytes of /proc/meminfo by name."""
    told = numbers(meminfo.replace(" kB", ""), ":")
    return {name: value * 1024 for name, value in told.items()}


def parse_memory(told: Dict[str, int]) -> Optional[Memory]:
    """Memory of what /proc/meminfo tells; None: a line that is needed is missing."""
    if not {"MemTotal", "MemFree", "Cached", "Dirty", "Writeback"} <= set(told):
        return None
    cached = told["Cached"] - told.get("Shmem", 0)
    cached += told.get("Buffers", 0) + told.get("SReclaimable", 0)
    return Memory(
        total_bytes=told["MemTotal"],
        used_bytes=max(0, told["MemTotal"] - told["MemFree"] - cached),
        cached_bytes=max(0, cached),
        dirty_bytes=told["Dirty"] + told["Writeback"],
    )


def parse_interface(net_dev: str, interface: str) -> Optional[Tuple[int, int]]:
    """Bytes sent and received by an interface in /proc/net/dev; None: not in it."""
    for line in net_dev.splitlines():
        name, colon, numbers = line.partition(":")
        fields = numbers.split()
        if colon and name.strip() == interface and len(fields) >= 9:
            return int(fields[8]), int(fields[0])
    return None


def parse_devices(diskstats: str) -> Dict[str, DeviceCounts]:
    """The block devices of /proc/diskstats."""
    found = {}
    for line in diskstats.splitlines():
        fields = line.split()
        if len(fields) >= 13:
            reads, read, writes, written, busy = (int(fields[at]) for at in (3, 5, 7, 9, 12))
            found[fields[2]] = DeviceCounts(
                reads, read * SECTOR_BYTES, writes, written * SECTOR_BYTES, busy / 1e3
            )
    return found


def parse_written_and_flushed(diskstats: str, device: str) -> Optional[Tuple[int, Optional[int]]]:
    """The same of /proc/diskstats."""
    for fields in map(str.split, diskstats.splitlines()):
        if len(fields) > 9 and fields[2] == device:
            flushes = int(fields[18]) if len(fields) > 18 else None
            return int(fields[9]) * SECTOR_BYTES, flushes
    return None


def parse_stat(line: str) -> Optional[ProcessStat]:
    """One /proc/PID/stat; None: no such line. The name may hold blanks and parentheses."""
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
    """CPU seconds and run delay seconds of a /proc/PID/schedstat."""
    words = line.split()
    if len(words) < 2:
        return None
    return int(words[0]) / 1e9, int(words[1]) / 1e9


def parse_io(io: str) -> Optional[Moved]:
    """One /proc/PID/io; None: it is empty or no such file."""
    told = numbers(io, ":")
    try:
        return Moved(told["rchar"], told["wchar"], told["read_bytes"], told["write_bytes"])
    except KeyError:
        return None


def names(folder: Union[str, Path]) -> List[str]:
    """What is in a folder; nothing where it is not there, or not for us."""
    with contextlib.suppress(OSError):
        return os.listdir(folder)
    return []


def text(path: Union[str, Path]) -> str:
    """A file of /proc or /sys; empty where it is not there, or not for us, or its process ended."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - a tenth of Path's time
            return file.read()
    except OSError:
        return ""


def word(path: Path) -> Optional[str]:
    """A file's only word; None: not there, or the driver refuses (EINVAL without a link)."""
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None


def there(path: Path) -> bool:
    """Whether a file or folder is there and may be seen."""
    try:
        return path.exists()
    except OSError:
        return False


def numbers(told: str, separator: Optional[str] = None) -> Dict[str, int]:
    """Lines of a name and a whole number, as in /proc and control groups; others are left out."""
    pairs = (line.split(separator, 1) for line in told.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].strip().isdigit()}
