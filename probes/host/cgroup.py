"""Limits that control groups set on a process: CPU quota, its throttling, memory. v1 and v2.

The lowest limit of a group and its ancestors counts. Where the cgroup file system is not mounted
here (`ip netns exec` mounts a fresh /sys) it is read through /proc/PID/root of init and of this
process's ancestors; where none is visible, everything is None.
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
"""Prefix of a path that is read in another mount namespace."""


class Mount(NamedTuple):
    """A cgroup hierarchy that can be read."""

    version: int
    controllers: frozenset[str]
    root: str
    """Group that the mount shows at its top."""
    point: str


class Membership(NamedTuple):
    """One line of /proc/PID/cgroup."""

    version: int
    controllers: frozenset[str]
    path: str


@dataclass(frozen=True)
class Quota:
    """A CPU quota on a group and its effect so far; None: the group does not report it."""

    file: str
    """File that sets it, by its own host's path."""
    quota_cores: float
    periods: Optional[int]
    """Periods in which the group had work."""
    throttled_periods: Optional[int]


def parse_mounts(mountinfo: str) -> list[Mount]:
    """Returns the cgroup mounts in /proc/PID/mountinfo (proc(5))."""
    mounts = []
    for each in parse_mountinfo(mountinfo):
        if each.filesystem in ("cgroup", "cgroup2"):
            version = 2 if each.filesystem == "cgroup2" else 1
            options = frozenset(each.options.split(",")) if version == 1 else frozenset[str]()
            mounts.append(Mount(version, options, each.root, each.point))
    return mounts


def parse_memberships(cgroup: str) -> list[Membership]:
    """Returns the groups in /proc/PID/cgroup (cgroups(7))."""
    groups = []
    for line in cgroup.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if path.startswith("/"):
            version = 2 if number == "0" and not controllers else 1
            groups.append(Membership(version, frozenset(controllers.split(",")), path))
    return groups


def folder_of(mount: Mount, membership: Membership) -> str | None:
    """Returns the group's folder in the mount; None: the mount does not show the group."""
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
    """Returns the CPU quotas on a process's group and its ancestors, innermost first."""
    results = []
    for version, folder in folders(pid, "cpu"):
        cores = _quota_cores(version, folder)
        if cores is None:
            continue
        counts = numbers(text(folder / "cpu.stat"))
        name = "cpu.max" if version == 2 else "cpu.cfs_quota_us"
        file = ELSEWHERE.sub("", str(folder / name))
        results.append(Quota(file, cores, counts.get("nr_periods"), counts.get("nr_throttled")))
    return results


def shows_quotas(pid: int) -> bool:
    """Whether a CPU quota on the process would be visible: its groups' files can be read."""
    return any((folder / "cgroup.procs").exists() for _, folder in folders(pid, "cpu"))


def memory_limit(pid: int) -> Memory | None:
    """Returns the lowest memory limit on the process and its group's use; None: no limit seen."""
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
    """Yields the group's folder and its ancestors' within the mount, innermost first."""
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
    """Returns the cgroup mounts of this process, else of init or an ancestor's mount namespace."""
    mounts = parse_mounts(text(Path("/proc/self/mountinfo")))
    visible = tuple(mount for mount in mounts if Path(mount.point).is_dir())
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
"""Files of the limits of v1 (admin-guide/cgroup-v1/blkio-controller.rst)."""
V2_FILE = "io.max"
V2_KEYS = {
    "rbps": "read_bytes_per_second",
    "wbps": "write_bytes_per_second",
    "riops": "reads_per_second",
    "wiops": "writes_per_second",
}
"""Keys of the limits in V2_FILE (admin-guide/cgroup-v2.rst)."""
LAYERS = 16
"""Limit of devices below one another, more than anyone builds."""

_SYS = Path("/sys")


def io_limits(device: Optional[str], pid: int = 0) -> Optional[Details]:
    """Returns the lowest limits of a process (0: this one) on a device and those below it.

    device: its kernel name. Keys: read_bytes_per_second, write_bytes_per_second,
    reads_per_second, writes_per_second, each only where it is limited; group: the innermost
    control group that sets one of them. None: no limit is seen.

    v1 rarely limits buffered writes: the kernel's own threads submit them.
    """
    numbers = _numbers(device) if device else []
    limits: Details = {}
    for version, folder in folders(pid or os.getpid(), "blkio"):
        group_limits = _group_limits(version, folder)
        for number in numbers:
            for name, value in group_limits.get(number, {}).items():
                limits.setdefault("group", str(folder))
                limits[name] = min(value, limits.get(name, value))
    return limits or None


def parse_v1(text: str) -> dict[str, int]:
    """Parses the `major:minor limit` lines of a blkio.throttle file; 0 is no limit."""
    return {device: limit for device, limit in numbers(text).items() if limit > 0}


def parse_v2(text: str) -> dict[str, dict[str, int]]:
    """Parses io.max's limits by device, as `8:16 rbps=2097152 wbps=max riops=max wiops=120`."""
    by_device = {}
    for line in text.splitlines():
        number, *words = line.split() or [""]
        pairs = (word.partition("=") for word in words)
        limits = {
            V2_KEYS[key]: int(value)
            for key, _, value in pairs
            if key in V2_KEYS and value.isdigit()
        }
        if limits:
            by_device[number] = limits
    return by_device


def _group_limits(version: int, folder: Path) -> Dict[str, Dict[str, int]]:
    """Returns the limits of one group, by device number."""
    if version == 2:
        return parse_v2(word(folder / V2_FILE) or "")
    by_device: Dict[str, Dict[str, int]] = {}
    for name, file in V1_FILES.items():
        for number, value in parse_v1(word(folder / file) or "").items():
            by_device.setdefault(number, {})[name] = value
    return by_device


def _numbers(device: str) -> List[str]:
    """Returns the device numbers of a device's disk and all below: limits are set on those."""
    waiting: List[str] = [device]
    numbers: List[str] = []
    while waiting and len(numbers) < LAYERS:
        name = waiting.pop(0)
        waiting += block.devices_below(name, _SYS)
        folder = _SYS / "class/block" / name
        number = None if is_visible(folder / "partition") else word(folder / "dev")
        if number and number not in numbers:
            numbers.append(number)
    return numbers
