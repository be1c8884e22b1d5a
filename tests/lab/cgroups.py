"""Cgroup v1: a core, a CPU quota and memory for a host; rates and dirty data of a block device."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpuset", "cpu", "cpuacct")
QUOTA_PERIOD_SECONDS = 0.1
THROTTLES = {
    "read": ROOT / "blkio" / "blkio.throttle.read_bps_device",
    "write": ROOT / "blkio" / "blkio.throttle.write_bps_device",
}
"""The root group's own throttle: it is the only one that write-back obeys as well."""
MEMORY = ROOT / "memory"
"""Parent of the groups of hosts whose memory is limited; other hosts have no memory limit."""
BDI = Path("/sys/class/bdi")
"""Limits of a device's dirty data (Documentation/ABI/testing/sysfs-class-bdi)."""


@contextlib.contextmanager
def cpu_group(name: str, core: int, quota_ratio: float | None) -> Iterator[None]:
    """A group on one core, its CPU time limited to a share of it; its processes end with it."""
    folders = [ROOT / controller / name for controller in CONTROLLERS]
    try:
        for folder in folders:
            folder.mkdir(exist_ok=True)  # cpu and cpuacct may be one hierarchy
        cpuset, cpu, _ = folders
        (cpuset / "cpuset.cpus").write_text(str(core))
        (cpuset / "cpuset.mems").write_text((ROOT / "cpuset" / "cpuset.mems").read_text())
        if quota_ratio is not None:
            period = round(QUOTA_PERIOD_SECONDS * 1e6)
            (cpu / "cpu.cfs_period_us").write_text(str(period))
            (cpu / "cpu.cfs_quota_us").write_text(str(round(period * quota_ratio)))
        yield
    finally:
        remove_group(name)


@contextlib.contextmanager
def memory_group(name: str, limit_bytes: int) -> Iterator[Path]:
    """A group with so much memory, page cache included, and no swap; its processes end with it."""
    folder = MEMORY / name
    try:
        folder.mkdir(exist_ok=True)
        (folder / "memory.limit_in_bytes").write_text(str(limit_bytes))
        yield folder
    finally:
        remove_group(name)


def remove_group(name: str) -> None:
    """End the group's processes and remove it; a group that is not there is no error."""
    for root in (*(ROOT / controller for controller in CONTROLLERS), MEMORY):
        folder = root / name
        if folder.is_dir():
            _end_members(folder)
            folder.rmdir()


def _end_members(folder: Path) -> None:
    deadline = time.monotonic() + 10
    while members := (folder / "cgroup.procs").read_text().split():
        if time.monotonic() > deadline:
            raise RuntimeError(f"processes {' '.join(members)} of {folder} do not end")
        for member in members:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(member), signal.SIGKILL)
        time.sleep(0.02)


def throttle(device: str, rates: dict[str, int | None]) -> None:
    """Limit a block device, given as "major:minor", in bytes per second; None: no limit."""
    for verb, file in THROTTLES.items():
        file.write_text(f"{device} {rates[verb] or 0}")


def release(device: str) -> None:
    """Take a device's limits away; they outlive the loop device that they were set for."""
    throttle(device, {"read": None, "write": None})
    strict = BDI / device / "strict_limit"
    if strict.exists() and strict.read_text().strip() == "1":
        (BDI / device / "max_ratio").write_text("100")
        (BDI / device / "strict_limit").write_text("0")


def limit_dirty(device: str, most_bytes: int) -> None:
    """Let no more of a device's data, given as "major:minor", be dirty at a time."""
    (BDI / device / "strict_limit").write_text("1")
    (BDI / device / "max_bytes").write_text(str(most_bytes))


def call(*command: str | Path) -> str:
    """A program of the system's; what it prints."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
