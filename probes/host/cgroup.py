"""Limits that control groups set on a process: CPU quota, its throttling, memory. v1 and v2.

The lowest limit of a group and its ancestors counts. Where the cgroup file system is not mounted
here (`ip netns exec` lays a fresh /sys) it is looked for through /proc/PID/root of init and of
this process's ancestors; where it is nowhere to be seen, everything is None.
"""

from __future__ import annotations

import functools
import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Iterator, NamedTuple, Optional

UNLIMITED_BYTES = 1 << 60
"""cgroup v1 writes "no limit" as the largest page-aligned signed number."""


class Mount(NamedTuple):
    """A cgroup hierarchy that can be read."""

    version: int
    controllers: frozenset[str]
    root: str
    """The group that the mount shows at its top."""
    point: str


class Membership(NamedTuple):
    """One line of /proc/PID/cgroup."""

    version: int
    controllers: frozenset[str]
    path: str


@dataclass(frozen=True)
class Quota:
    """A CPU quota on a group and what it did so far; None: the group does not tell."""

    group: str
    quota_cores: float
    periods: Optional[int]
    """Periods in which the group had work."""
    throttled_periods: Optional[int]


@dataclass(frozen=True)
class MemoryLimit:
    """The lowest memory limit of a group and its ancestors."""

    limit_bytes: int
    used_bytes: int
    """Without the page cache."""
    cached_bytes: int
    dirty_bytes: int
    """Dirty and under write-back."""


def parse_mounts(mountinfo: str) -> list[Mount]:
    """The cgroup mounts in /proc/PID/mountinfo (proc(5))."""
    found = []
    for line in mountinfo.splitlines():
        mount, _, source = line.partition(" - ")
        fields, kind = mount.split(), source.split()
        if len(fields) < 5 or len(kind) < 3 or kind[0] not in ("cgroup", "cgroup2"):
            continue
        version = 2 if kind[0] == "cgroup2" else 1
        options = frozenset(kind[2].split(",")) if version == 1 else frozenset[str]()
        found.append(Mount(version, options, _unescaped(fields[3]), _unescaped(fields[4])))
    return found


def parse_memberships(cgroup: str) -> list[Membership]:
    """The groups in /proc/PID/cgroup (cgroups(7))."""
    found = []
    for line in cgroup.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if path.startswith("/"):
            version = 2 if number == "0" and not controllers else 1
            found.append(Membership(version, frozenset(controllers.split(",")), path))
    return found


def folder_of(mount: Mount, membership: Membership) -> str | None:
    """Where the mount shows the group; None: it lies outside of what the mount shows."""
    group = PurePosixPath(membership.path)
    if ".." in group.parts or ".." in PurePosixPath(mount.root).parts:
        return None
    try:
        return str(PurePosixPath(mount.point) / group.relative_to(mount.root))
    except ValueError:
        return None


def parse_pairs(text: str) -> dict[str, int]:
    """`name number` lines, as of cpu.stat and memory.stat."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


def parse_cpu_max(text: str) -> float | None:
    """Cores of cgroup v2's cpu.max; None: "max"."""
    words = text.split()
    if len(words) != 2 or words[0] == "max":
        return None
    return int(words[0]) / int(words[1])


def quotas(pid: int) -> list[Quota]:
    """CPU quotas on the process's group and its ancestors, innermost first; empty: none seen."""
    found = []
    for version, folder in folders(pid, "cpu"):
        cores = _quota_cores(version, folder)
        if cores is None:
            continue
        counts = parse_pairs(_text(folder / "cpu.stat"))
        found.append(
            Quota(str(folder), cores, counts.get("nr_periods"), counts.get("nr_throttled"))
        )
    return found


def shows_quotas(pid: int) -> bool:
    """Whether a CPU quota on the process would be seen: its groups' own files can be read."""
    return any((folder / "cgroup.procs").exists() for _, folder in folders(pid, "cpu"))


def memory_limit(pid: int) -> MemoryLimit | None:
    """The lowest memory limit on the process and its group's use of it; None: no limit seen."""
    lowest = None
    for version, folder in folders(pid, "memory"):
        limit_name = "memory.max" if version == 2 else "memory.limit_in_bytes"
        used_name = "memory.current" if version == 2 else "memory.usage_in_bytes"
        limit, used = _text(folder / limit_name).strip(), _text(folder / used_name).strip()
        if not limit.isdigit() or not used.isdigit() or int(limit) >= UNLIMITED_BYTES:
            continue
        if lowest is not None and int(limit) >= lowest.limit_bytes:
            continue
        counts = parse_pairs(_text(folder / "memory.stat"))
        if version == 2:
            cached = counts.get("file", 0) - counts.get("shmem", 0)
            dirty = counts.get("file_dirty", 0) + counts.get("file_writeback", 0)
        else:
            cached = counts.get("total_cache", 0) - counts.get("total_shmem", 0)
            dirty = counts.get("total_dirty", 0) + counts.get("total_writeback", 0)
        cached = max(0, cached)
        lowest = MemoryLimit(int(limit), max(0, int(used) - cached), cached, dirty)
    return lowest


def _quota_cores(version: int, folder: Path) -> float | None:
    if version == 2:
        return parse_cpu_max(_text(folder / "cpu.max"))
    quota = _text(folder / "cpu.cfs_quota_us").strip()
    period = _text(folder / "cpu.cfs_period_us").strip()
    if not quota.isdigit() or not period.isdigit() or int(period) == 0:
        return None
    return int(quota) / int(period)


def folders(pid: int, controller: str) -> Iterator[tuple[int, Path]]:
    """The group's folder and its ancestors' within the mount, innermost first."""
    memberships = parse_memberships(_text(Path(f"/proc/{pid}/cgroup")))
    for mount in _mounts():
        if mount.version == 1 and controller not in mount.controllers:
            continue
        for membership in memberships:
            if membership.version != mount.version:
                continue
            if mount.version == 1 and controller not in membership.controllers:
                continue
            folder = folder_of(mount, membership)
            if folder is None:
                continue
            innermost = Path(folder)
            for each in (innermost, *innermost.parents):
                yield mount.version, each
                if str(each) == mount.point:
                    break


@functools.lru_cache(maxsize=1)
def _mounts() -> tuple[Mount, ...]:
    """Cgroup mounts of this process; else of init or of an ancestor in another mount namespace."""
    here = parse_mounts(_text(Path("/proc/self/mountinfo")))
    visible = tuple(mount for mount in here if Path(mount.point).is_dir())
    if visible:
        return visible
    for pid in (1, *_ancestors()):
        there = [
            mount._replace(point=f"/proc/{pid}/root{mount.point}")
            for mount in parse_mounts(_text(Path(f"/proc/{pid}/mountinfo")))
        ]
        reachable = tuple(mount for mount in there if os.access(mount.point, os.R_OK))
        if reachable:
            return reachable
    return ()


def _ancestors() -> Iterator[int]:
    pid = os.getppid()
    while pid > 1:
        yield pid
        parent = re.search(r"^PPid:\s+(\d+)", _text(Path(f"/proc/{pid}/status")), re.MULTILINE)
        pid = int(parent[1]) if parent else 0


def _text(path: Path) -> str:
    """The file's text; empty where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _unescaped(field: str) -> str:
    """Octal escapes of mountinfo (\\040 is a blank) undone."""
    return re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), field)
