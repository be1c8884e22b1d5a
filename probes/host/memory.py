"""Memory of a host: what it has, how short of it it is, and how much may wait there to be written.

Of this host or, where its limit is lower, of this process's control group. Sources: proc(5);
/proc/vmstat (mm/vmstat.c: pswpin and pswpout in pages, the dirty threshold as the kernel has it
now), /proc/pressure (Documentation/accounting/psi.rst), /sys/class/bdi
(Documentation/ABI/testing/sysfs-class-bdi).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from probes.core.stage import Unavailable
from probes.host import cgroup
from probes.system.platform import os
from probes.system.proc import Memory, numbers, text
from probes.system.reader import reader

_PROC = Path("/proc")
_SYS = Path("/sys")
_SOME = re.compile(r"^some .*\btotal=(\d+)", re.MULTILINE)


def read_memory() -> Optional[Memory]:
    """Memory that counts for this process: the host's, or its group's where that has less."""
    try:
        host = reader().memory()
    except Unavailable:
        host = None
    limit = cgroup.memory_limit(os.getpid())
    if limit is None or (host is not None and limit.total_bytes >= host.total_bytes):
        return host
    return limit


@dataclass(frozen=True)
class Pressure:
    """One moment of a host; None: its system does not tell."""

    swapped_in_bytes: Optional[int] = None
    swapped_out_bytes: Optional[int] = None
    dirty_limit_bytes: Optional[int] = None
    """Written data from which on a writer to the device waits for the disk."""
    memory_waiting_seconds: Optional[float] = None
    """Time in which at least one task waited for memory: swapped out, or to be made free."""
    io_waiting_seconds: Optional[float] = None
    """The same for I/O; a writer that is held at the dirty limit is one."""


def read_pressure(device: str | None, proc: Path = _PROC, sys: Path = _SYS) -> Pressure:
    """This host now; device: kernel name of what is written to, for a dirty limit of its own."""
    pages = numbers(text(proc / "vmstat"))
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    told = {
        name: pages[key] * page_bytes if key in pages else None
        for name, key in (("in", "pswpin"), ("out", "pswpout"), ("limit", "nr_dirty_threshold"))
    }
    limits = [each for each in (told["limit"], _device_limit(device, sys)) if each is not None]
    return Pressure(
        swapped_in_bytes=told["in"],
        swapped_out_bytes=told["out"],
        dirty_limit_bytes=min(limits, default=None),
        memory_waiting_seconds=parse_some(text(proc / "pressure/memory")),
        io_waiting_seconds=parse_some(text(proc / "pressure/io")),
    )


def parse_some(pressure: str) -> float | None:
    """Seconds of the line `some` of a file in /proc/pressure; None: the kernel has none."""
    match = _SOME.search(pressure)
    return int(match[1]) / 1e6 if match else None


def _device_limit(device: str | None, sys: Path) -> int | None:
    """A dirty limit that holds for one device alone, whatever the others have."""
    if not device or "/" in device:
        return None
    folder = (sys / "class/block" / device).resolve()
    for each in (folder, folder.parent):  # a partition has its disk's
        most = text(each / "bdi/max_bytes").strip()
        if most.isdigit():
            strict = text(each / "bdi/strict_limit").strip() == "1"
            return int(most) if strict else None
    return None
