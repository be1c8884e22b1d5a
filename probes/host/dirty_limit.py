"""How much written data the kernel lets wait in memory before it makes the writer wait."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple, Optional

from probes.host import cgroup

_VM = Path("/proc/sys/vm")
_MEMINFO = Path("/proc/meminfo")


class DirtyLimit(NamedTuple):
    """Limits of dirty memory, in bytes; a writer is slowed from half-way between the two."""

    background_bytes: int
    """The kernel begins to write."""
    limit_bytes: int
    """Writers wait for the disk."""


def read() -> Optional[DirtyLimit]:
    """The limits that hold for this process now; None where the system tells none.

    They follow the memory that is available, so they move. Source: sysctl/vm.rst (dirty_ratio,
    dirty_bytes), mm/page-writeback.c (domain_dirty_limits).
    """
    names = ("dirty_ratio", "dirty_bytes", "dirty_background_ratio", "dirty_background_bytes")
    told = {name: _number(_VM / name) for name in names}
    available = parse_available(_text(_MEMINFO))
    group = cgroup.memory_limit(os.getpid())
    if group is not None and available is not None:
        available = min(available, max(0, group.limit_bytes - group.used_bytes))
    return limits(told, available)


def limits(told: dict[str, Optional[int]], available_bytes: Optional[int]) -> Optional[DirtyLimit]:
    """The limits by the four settings of vm.dirty_*; pure. None: one is not known."""

    def limit(name: str) -> Optional[int]:
        fixed, ratio = told.get(f"{name}_bytes"), told.get(f"{name}_ratio")
        if fixed:
            return fixed
        if ratio is None or available_bytes is None:
            return None
        return available_bytes * ratio // 100

    background, most = limit("dirty_background"), limit("dirty")
    if background is None or most is None:
        return None
    # the kernel halves a background limit that is not below the other
    return DirtyLimit(background if background < most else most // 2, most)


def parse_available(meminfo: str) -> Optional[int]:
    """MemAvailable of /proc/meminfo (proc(5))."""
    for line in meminfo.splitlines():
        words = line.split()
        if words[:1] == ["MemAvailable:"] and words[1].isdigit():
            return int(words[1]) * 1024
    return None


def _number(path: Path) -> Optional[int]:
    text = _text(path).strip()
    return int(text) if text.isdigit() else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
