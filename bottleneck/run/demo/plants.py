"""Limits that a demo plants, the verdicts that must name them, and the host's requirements."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from bottleneck.analysis.finding import Words
from probes.host import cgroup


@dataclass(frozen=True)
class Plant:
    words: str
    """Limit in words, after "Test setup: "."""
    expected: Words
    bits_per_second: int | None = None
    """Shaped rate of the link, in both directions; None: it is not shaped."""
    delay_seconds: float = 0.0
    """Delay of the link, each way."""
    samba_options: tuple[str, ...] = ()
    reads_bytes_per_second: int | None = None
    """Limit of reads from the server's disk."""
    neighbours: int = 0
    """Busy processes on the server's only core."""
    size: str | None = None
    """File size, if the usual one takes too long or ends too soon; None: the usual one."""


PLANTS = {
    "link": Plant(
        "a link of 1 Gbit/s", Words("network", "path", "link-rate"), bits_per_second=10**9
    ),
    "disk": Plant(
        "the server's disk is limited to 25.0 MB/s for reads (cgroup)",
        Words("disk", "server", "read"),
        bits_per_second=10**9,
        reads_bytes_per_second=25_000_000,
        size="64MiB",
    ),
    "window": Plant(
        "a receive buffer of 64 KiB on the server, at an RTT of 5 ms",
        Words("tcp", "server", "receive-window"),
        bits_per_second=3 * 10**8,
        delay_seconds=0.0025,
        samba_options=("socket options = TCP_NODELAY SO_RCVBUF=32768",),
        size="8MiB",
    ),
    "cpu": Plant(
        "three busy processes on the server's only CPU core",
        Words("cpu", "server", "contention"),
        neighbours=3,
    ),
}


def cores(plant: Plant) -> tuple[set[int], set[int]]:
    """Returns the client's and the server's cores, separate if there are two."""
    cpus = sorted(os.sched_getaffinity(0))
    half = len(cpus) - 1 if plant.neighbours else (len(cpus) + 1) // 2
    return ({*cpus[:half]}, {*cpus[half:]}) if len(cpus) > 1 else ({*cpus}, {*cpus})


def trouble(plant: Plant) -> str:
    """Returns why this host does not allow a plant; empty: it does."""
    if plant.neighbours and len(os.sched_getaffinity(0)) < 2:
        return "needs two CPU cores"
    if plant.reads_bytes_per_second and (os.geteuid() or io_groups() is None):
        return "needs root and a cgroup that limits I/O"
    return ""


def io_groups() -> tuple[int, Path] | None:
    """Returns version and outermost folder of the cgroups that limit I/O; None: there are none."""
    for version, folder in reversed(list(cgroup.folders(os.getpid(), "blkio"))):
        file = folder / ("cgroup.subtree_control" if version == 2 else READS)
        if file.exists() and (version == 1 or "io" in file.read_text().split()):
            return version, folder
    return None


READS = cgroup.V1_FILES["read_bytes_per_second"]


def whole_disk(folder: Path) -> str | None:
    """Returns `major:minor` of a folder's disk; None: it has none, as in memory or on btrfs."""
    number = folder.stat().st_dev
    device = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    if (device / "partition").exists():
        device = device.parent
    file = device / "dev"
    return file.read_text().strip() if file.exists() else None
