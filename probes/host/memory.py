"""Memory of this host or, where its limit is lower, of this process's control group."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from probes.host import cgroup


class Memory(NamedTuple):
    """Memory at one moment, in bytes."""

    total_bytes: int
    used_bytes: int
    """Without the page cache; files of tmpfs are in use, they cannot be dropped."""
    cached_bytes: int
    """Page cache and reclaimable kernel memory."""
    dirty_bytes: int
    """Dirty and under write-back."""


def parse_meminfo(text: str) -> Memory | None:
    """Memory of /proc/meminfo (proc(5)); None: a line that is needed is missing."""
    told = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        words = value.split()
        if words and words[0].isdigit():
            told[name] = int(words[0]) * 1024
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


def read_memory() -> Memory | None:
    """Memory that counts for this process: the host's, or its group's where that has less."""
    try:
        text = Path("/proc/meminfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    host = parse_meminfo(text)
    limit = cgroup.memory_limit(os.getpid())
    if limit is None or (host is not None and limit.limit_bytes >= host.total_bytes):
        return host
    return Memory(limit.limit_bytes, limit.used_bytes, limit.cached_bytes, limit.dirty_bytes)
