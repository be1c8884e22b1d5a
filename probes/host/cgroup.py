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
from typing import Dict, Iterator, List, NamedTuple, Optional

from probes.core.records import Details
from probes.files import block
from probes.files.folders import parse_mountinfo
from probes.system.proc import Memory, is_visible, numbers, text, word

UNLIMITED_BYTES = 1 << 60
"""cgroup v1 writes "no limit" as the largest page-aligned signed number."""
ELSEWHERE = re.compile(r"^/proc/\d+/root")
"""What stands before a path that is read in another mount namespace."""


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

    file: str
    """That sets it, as its own host names it."""
    quota_cores: float
    periods: Optional[int]
    """Periods in which the group had work."""
    throttled_periods: Optional[int]


def parse_mounts(mountinfo: str) -> list[Mount]:
    """The cgroup mounts in /proc/PID/mountinfo (proc(5))."""
    found = []
    for each in parse_mountinfo(mountinfo):
        if each.filesystem in ("cgroup", "cgroup2"):
            version = 2 if each.filesystem == "cgroup2" else 1
            options = frozenset(each.options.split(",")) if version == 1 else frozenset[str]()
            found.append(Mount(version, options, each.root, each.point))
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
        counts = numbers(text(folder / "cpu.stat"))
        name = "cpu.max" if version == 2 else "cpu.cfs_quota_us"
        file = ELSEWHERE.sub("", str(folder / name))
        found.append(Quota(file, cores, counts.get("nr_periods"), counts.get("nr_throttled")))
    return found


def shows_quotas(pid: int) -> bool:
    """Whether a CPU quota on the process would be seen: its groups' own files can be read."""
    return any((folder / "cgroup.procs").exists() for _, folder in folders(pid, "cpu"))


def memory_limit(pid: int) -> Memory | None:
    """The lowest memory limit on the process and its group's use of it; None: no limit seen."""
    lowest = None
    for version, folder in folders(pid, "memory"):
        limit_name = "memory.max" if version == 2 else "memory.limit_in_bytes"
        used_name = "memory.current" if version == 2 else "memory.usage_in_bytes"
        limit, used = text(folder / limit_name).strip(), text(folder / used_name).strip()
        if not limit.isdigit() or not used.isdigit() or int(limit) >= UNLIMITED_BYTES:
            continue
        if lowest is not None and int(limit) >= lowest.total_bytes:
            continue
        counts = numbers(text(folder / "memory.stat"))
        if version == 2:
            cached = counts.get("file", 0) - counts.get("shmem", 0)
            dirty = counts.get("file_dirty", 0) + counts.get("file_writeback", 0)
        else:
            cached = counts.get("total_cache", 0) - counts.get("total_shmem", 0)
            dirty = counts.get("total_dirty", 0) + counts.get("total_writeback", 0)
        cached = max(0, cached)
        lowest = Memory(int(limit), max(0, int(used) - cached), cached, dirty)
    return lowest


def _quota_cores(version: int, folder: Path) -> float | None:
    if version == 2:
        return parse_cpu_max(text(folder / "cpu.max"))
    quota = text(folder / "cpu.cfs_quota_us").strip()
    period = text(folder / "cpu.cfs_period_us").strip()
    if not quota.isdigit() or not period.isdigit() or int(period) == 0:
        return None
    return int(quota) / int(period)


def folders(pid: int, controller: str) -> Iterator[tuple[int, Path]]:
    """The group's folder and its ancestors' within the mount, innermost first."""
    memberships = parse_memberships(text(Path(f"/proc/{pid}/cgroup")))
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
    here = parse_mounts(text(Path("/proc/self/mountinfo")))
    visible = tuple(mount for mount in here if Path(mount.point).is_dir())
    if visible:
        return visible
    for pid in (1, *_ancestors()):
        foreign = [
            mount._replace(point=f"/proc/{pid}/root{mount.point}")
            for mount in parse_mounts(text(Path(f"/proc/{pid}/mountinfo")))
        ]
        reachable = tuple(mount for mount in foreign if os.access(mount.point, os.R_OK))
        if reachable:
            return reachable
    return ()


def _ancestors() -> Iterator[int]:
    pid = os.getppid()
    while pid > 1:
        yield pid
        parent = re.search(r"^PPid:\s+(\d+)", text(Path(f"/proc/{pid}/status")), re.MULTILINE)
        pid = int(parent[1]) if parent else 0


V1_FILES = {
    "read_bytes_per_second": "blkio.throttle.read_bps_device",
    "write_bytes_per_second": "blkio.throttle.write_bps_device",
    "reads_per_second": "blkio.throttle.read_iops_device",
    "writes_per_second": "blkio.throttle.write_iops_device",
}
"""admin-guide/cgroup-v1/blkio-controller.rst."""
V2_FILE = "io.max"
V2_KEYS = {
    "rbps": "read_bytes_per_second",
    "wbps": "write_bytes_per_second",
    "riops": "reads_per_second",
    "wiops": "writes_per_second",
}
"""admin-guide/cgroup-v2.rst."""
LAYERS = 16
"""More devices below one another than anyone builds."""

_SYS = Path("/sys")


def io_limits(device: Optional[str], pid: int = 0) -> Optional[Details]:
    """The lowest limits that hold for a process (0: this one) on a device and those below it.

    device: its kernel name. Keys: read_bytes_per_second, write_bytes_per_second,
    reads_per_second, writes_per_second, each only where it is limited; group: the innermost
    control group that sets one of them. None: no limit is seen.

    v1 holds back buffered writes hardly ever: the kernel's own threads send them off.
    """
    numbers = _numbers(device) if device else []
    found: Details = {}
    for version, folder in folders(pid or os.getpid(), "blkio"):
        here = _of_group(version, folder)
        for number in numbers:
            for name, value in here.get(number, {}).items():
                found.setdefault("group", str(folder))
                found[name] = min(value, found.get(name, value))
    return found or None


def parse_v1(text: str) -> dict[str, int]:
    """`major:minor limit` lines of a blkio.throttle file; 0 is no limit."""
    return {device: limit for device, limit in numbers(text).items() if limit > 0}


def parse_v2(text: str) -> dict[str, dict[str, int]]:
    """Limits by device of io.max, as `8:16 rbps=2097152 wbps=max riops=max wiops=120`."""
    found = {}
    for line in text.splitlines():
        number, *words = line.split() or [""]
        pairs = (word.partition("=") for word in words)
        told = {
            V2_KEYS[key]: int(value)
            for key, _, value in pairs
            if key in V2_KEYS and value.isdigit()
        }
        if told:
            found[number] = told
    return found


def _of_group(version: int, folder: Path) -> Dict[str, Dict[str, int]]:
    """What one group sets, by device number."""
    if version == 2:
        return parse_v2(word(folder / V2_FILE) or "")
    found: Dict[str, Dict[str, int]] = {}
    for name, file in V1_FILES.items():
        for number, value in parse_v1(word(folder / file) or "").items():
            found.setdefault(number, {})[name] = value
    return found


def _numbers(device: str) -> List[str]:
    """Device numbers of a device's whole disk and of all below: limits are set on those."""
    waiting: List[str] = [device]
    found: List[str] = []
    while waiting and len(found) < LAYERS:
        name = waiting.pop(0)
        waiting += block.below(name, _SYS)
        folder = _SYS / "class/block" / name
        number = None if is_visible(folder / "partition") else word(folder / "dev")
        if number and number not in found:
            found.append(number)
    return found
