"""Memory of a host: size and use, shortage, and the limit of data that wait to be written.

It is this host's or, with a lower limit there, this process's control group's. Sources: proc(5);
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
    """Returns the memory for this process: the host's, or its group's where that has less."""
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
    """Shortage counters of a host at one moment; None: not reported by its system."""

    swapped_in_bytes: Optional[int] = None
    swapped_out_bytes: Optional[int] = None
    dirty_limit_bytes: Optional[int] = None
    """Least unwritten data at which a writer to the device waits for the disk."""
    memory_waiting_seconds: Optional[float] = None
    """Time in which at least one task waited for memory: swapped out, or to be made free."""
    io_waiting_seconds: Optional[float] = None
    """Time in which at least one task waited for I/O, or was throttled at the dirty limit."""


def read_pressure(device: str | None, proc: Path = _PROC, sys: Path = _SYS) -> Pressure:
    """Reads the counters; device: kernel name of the one written to, for its own dirty limit."""
    pages = numbers(text(proc / "vmstat"))
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    values = {
        name: pages[key] * page_bytes if key in pages else None
        for name, key in (("in", "pswpin"), ("out", "pswpout"), ("limit", "nr_dirty_threshold"))
    }
    limits = [each for each in (values["limit"], _device_limit(device, sys)) if each is not None]
    return Pressure(
        swapped_in_bytes=values["in"],
        swapped_out_bytes=values["out"],
        dirty_limit_bytes=min(limits, default=None),
        memory_waiting_seconds=parse_some(text(proc / "pressure/memory")),
        io_waiting_seconds=parse_some(text(proc / "pressure/io")),
    )


def parse_some(pressure: str) -> float | None:
    """Returns seconds of the line `some` of a file in /proc/pressure; None: there is none."""
    match = _SOME.search(pressure)
    return int(match[1]) / 1e6 if match else None


def _device_limit(device: str | None, sys: Path) -> int | None:
    """Returns the strict dirty limit of one device, which ignores the others; or None."""
    if not device or "/" in device:
        return None
    folder = (sys / "class/block" / device).resolve()
    for each in (folder, folder.parent):  # a partition has its disk's
        limit = text(each / "bdi/max_bytes").strip()
        if limit.isdigit():
            return int(limit) if text(each / "bdi/strict_limit").strip() == "1" else None
    return None
