"""Limits on a device's throughput that control groups set on a process: containers, services."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Dict, List, Optional

from probes.host import cgroup, sysfs
from probes.records import Details

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


def limits(device: Optional[str], pid: int = 0) -> Optional[Details]:
    """The lowest limits that hold for a process (0: this one) on a device and those below it.

    device: its kernel name. Keys: read_bytes_per_second, write_bytes_per_second,
    reads_per_second, writes_per_second, each only where it is limited; group: the innermost
    control group that sets one of them. None: no limit is seen.

    v1 holds back buffered writes hardly ever: the kernel's own threads send them off.
    """
    numbers = _numbers(device) if device else []
    found: Details = {}
    for version, folder in cgroup.folders(pid or os.getpid(), "blkio"):
        here = _of_group(version, folder)
        for number in numbers:
            for name, value in here.get(number, {}).items():
                found.setdefault("group", str(folder))
                found[name] = min(value, found.get(name, value))
    return found or None


def parse_v1(text: str) -> dict[str, int]:
    """`major:minor limit` lines of a blkio.throttle file; 0 is no limit."""
    pairs = (line.split() for line in text.splitlines())
    return {
        pair[0]: int(pair[1])
        for pair in pairs
        if len(pair) == 2 and pair[1].isdigit() and int(pair[1]) > 0
    }


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
        return parse_v2(sysfs.word(folder / V2_FILE) or "")
    found: Dict[str, Dict[str, int]] = {}
    for name, file in V1_FILES.items():
        for number, value in parse_v1(sysfs.word(folder / file) or "").items():
            found.setdefault(number, {})[name] = value
    return found


def _numbers(device: str) -> List[str]:
    """Device numbers of a device's whole disk and of all below: limits are set on those."""
    waiting = [_SYS / "class/block" / device]
    numbers: List[str] = []
    while waiting and len(numbers) < LAYERS:
        node = waiting.pop(0)
        if sysfs.there(node / "partition"):
            node = node.resolve().parent
        number = sysfs.word(node / "dev")
        if number and number not in numbers:
            numbers.append(number)
        slaves = node / "slaves"
        if sysfs.there(slaves):
            waiting += sorted(slaves.iterdir())
    return numbers
