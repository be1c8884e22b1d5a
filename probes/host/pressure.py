"""How short a host is of memory and how long its tasks wait for it and for disks, since boot.

Sources: /proc/vmstat (mm/vmstat.c: pswpin and pswpout in pages, the dirty threshold as the kernel
has it now), /proc/pressure (Documentation/accounting/psi.rst), /sys/class/bdi
(Documentation/ABI/testing/sysfs-class-bdi).
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

_PROC = Path("/proc")
_SYS = Path("/sys")
_SOME = re.compile(r"^some .*\btotal=(\d+)", re.MULTILINE)


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


def read(device: str | None, proc: Path = _PROC, sys: Path = _SYS) -> Pressure:
    """This host now; device: kernel name of what is written to, for a dirty limit of its own."""
    pages = parse_vmstat(_text(proc / "vmstat"))
    page_bytes = os.sysconf("SC_PAGE_SIZE")
    told = {
        name: pages[key] * page_bytes if key in pages else None
        for name, key in (
            ("in", "pswpin"),
            ("out", "pswpout"),
            ("limit", "nr_dirty_threshold"),
        )
    }
    limits = [each for each in (told["limit"], _device_limit(device, sys)) if each is not None]
    return Pressure(
        swapped_in_bytes=told["in"],
        swapped_out_bytes=told["out"],
        dirty_limit_bytes=min(limits, default=None),
        memory_waiting_seconds=parse_some(_text(proc / "pressure/memory")),
        io_waiting_seconds=parse_some(_text(proc / "pressure/io")),
    )


def parse_vmstat(text: str) -> dict[str, int]:
    """Counts of /proc/vmstat by name."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def parse_some(text: str) -> float | None:
    """Seconds of the line `some` of a file in /proc/pressure; None: the kernel has none."""
    match = _SOME.search(text)
    return int(match[1]) / 1e6 if match else None


def _device_limit(device: str | None, sys: Path) -> int | None:
    """A dirty limit that holds for one device alone, whatever the others have."""
    if not device or "/" in device:
        return None
    folder = (sys / "class/block" / device).resolve()
    for each in (folder, folder.parent):  # a partition has its disk's
        most = _text(each / "bdi/max_bytes").strip()
        if most.isdigit():
            strict = _text(each / "bdi/strict_limit").strip() == "1"
            return int(most) if strict else None
    return None


def _text(path: Path) -> str:
    """The file's text; empty where it cannot be read."""
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
