"""One block device as a layer: what the kernel knows of it.

Sources: Documentation/ABI/stable/sysfs-block, Documentation/admin-guide/md.rst and bcache.rst,
drivers/md/dm-sysfs.c (uuid), drivers/block/loop.c. A disk's own health by smartctl (smartmontools 7
and later): smartctl(8), --json, `-n standby` (a sleeping disk stays asleep), EXIT STATUS (a bit
mask: bits 0 to 2 are smartctl's own failures, bits 3 to 7 the disk's state); ataprint.cpp,
scsiprint.cpp, nvmeprint.cpp.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

from probes.core.records import Details
from probes.system import bus, tools
from probes.system.platform import os
from probes.system.proc import is_visible, names, word

SECTOR_BYTES = 512
"""Of all sizes and starts in /sys, whatever the disk's own sector is."""
DM_KINDS = (("LVM-", "lvm"), ("CRYPT-", "dm-crypt"))
"""Beginnings of a dm device's uuid, by who made it."""
DM_TARGETS = (("mpath-", "multipath"), ("VDO-", "vdo"), ("DMRAID-", "dmraid"))
POOLS = {"-tpool": "thin", "-vpool": "vdo"}
"""End of the dm/uuid of what lies under a thin or deduplicated LVM volume (lvm2)."""
REMOTE = re.compile(r"(nbd|rbd|drbd)\d+")
"""Disks that lie on another host."""


def layer(name: str, sys_folder: Path) -> Details | None:
    """What is known of a block device; None: there is no such device, or /sys is not there."""
    folder = sys_folder / "class/block" / name
    if not name or "/" in name or not is_visible(folder):
        return None
    kind = kind_of(name, folder)
    found: Details = {"name": name, "kind": kind}
    for key, file, parse in (*_SIZE, *_FILES.get(kind, ()), *(_QUEUE if kind != PART else ())):
        text = word(folder / file)
        value = None if text is None else parse(text)
        if value is not None:
            found[key] = value
    if kind in ("md", "bcache", "lvm", "dm-crypt", "dm"):
        found["members"] = sorted(names(folder / "slaves"))
    if kind in ("lvm", "dm-crypt", "dm"):
        slaves = (folder / "slaves" / each / "dm/uuid" for each in found["members"])
        for each in slaves:
            pool = POOLS.get((word(each) or "")[-6:])
            if pool:
                found["target"] = pool
    if kind == "loop":
        found.update(_backing_file(folder))
    if kind == "disk":
        found.update(bus.disk_facts(folder))
        remote = REMOTE.fullmatch(name)
        if remote:
            found["transport"] = remote[1]
    return found


def below(name: str, sys_folder: Path) -> List[str]:
    """Names of the devices right below: a partition's disk, the members of a RAID; sorted."""
    folder = sys_folder / "class/block" / name
    if is_visible(folder / "partition"):
        return [folder.resolve().parent.name]
    return sorted(names(folder / "slaves"))


def kind_of(name: str, folder: Path) -> str:
    """One of the layers' kinds; what is nothing else is a disk."""
    if is_visible(folder / "partition"):
        return PART
    if is_visible(folder / "dm"):
        return _beginning(word(folder / "dm/uuid") or "", DM_KINDS) or "dm"
    if is_visible(folder / "md"):
        return "md"
    match = re.fullmatch(r"(loop|bcache|zram|ram)\d+", name)
    if match:
        return "memory" if match[1] == "ram" else match[1]
    return "disk"


def chosen(text: str) -> str | None:
    """The word in brackets: mq-deadline of `none [mq-deadline] bfq`; without any, a lone word."""
    match = re.search(r"\[([^\]]+)\]", text)
    if match:
        return match[1]
    return text if len(text.split()) == 1 else None


def _times(unit: int) -> Callable[[str], int | None]:
    return lambda text: int(text) * unit if text.isdecimal() else None


def _beginning(text: str, known: Tuple[Tuple[str, str], ...]) -> str | None:
    return next((name for begin, name in known if text.startswith(begin)), None)


def _backing_file(folder: Path) -> Details:
    try:
        text = os.fsdecode((folder / "loop/backing_file").read_bytes()).rstrip("\n")
    except OSError:
        return {}
    return {"backing_file": text} if text else {}


Facts = Tuple[Tuple[str, str, Callable[[str], object]], ...]
"""Of each: its key, its file, and what its word means; None: that is not known."""
PART = "partition"
_SIZE: Facts = (("bytes", "size", _times(SECTOR_BYTES)),)
_QUEUE: Facts = (
    ("rotational", "queue/rotational", lambda text: text == "1"),
    ("scheduler", "queue/scheduler", chosen),
    ("read_ahead_bytes", "queue/read_ahead_kb", _times(1024)),
    ("write_cache", "queue/write_cache", str),
)
_DM: Facts = (("target", "dm/uuid", lambda text: _beginning(text, DM_TARGETS)),)
_FILES: Dict[str, Facts] = {
    PART: (("offset_bytes", "start", _times(SECTOR_BYTES)),),
    "md": (
        ("raid_level", "md/level", str),
        ("degraded_disks", "md/degraded", _times(1)),
        ("sync_action", "md/sync_action", str),
        ("sync_bytes_per_second", "md/sync_speed", _times(1024)),
    ),
    "lvm": _DM,
    "dm-crypt": _DM,
    "dm": _DM,
}


ANSWER_SECONDS = 5.0
OPTIONS = ("--json", "-H", "-n", "standby")
NOT_ASKED_BITS = 0b011
"""The command line was wrong, or the device was not opened (or sleeps)."""


def read_smart(name: str) -> Details:
    """Health of a whole disk by its kernel name: `passed`, whether SMART predicts no failure.

    Empty: no smartctl, no right, no answer, or the disk sleeps.
    """
    node = "/dev/" + name.replace("!", "/")
    if os.geteuid() != 0 or not Path(node).is_block_device():
        return {}
    return parse_smart(tools.printed(("smartctl", *OPTIONS, node), ANSWER_SECONDS))


def parse_smart(text: str) -> Details:
    """The same of what `smartctl --json -H -n standby` printed; never raises."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(told, dict):
        return {}
    status, passed = _in(told, "smartctl", "exit_status"), _in(told, "smart_status", "passed")
    if type(status) is not int or status & NOT_ASKED_BITS or not isinstance(passed, bool):
        return {}
    return {"passed": passed}


def _in(told: Any, *keys: str) -> Any:
    for key in keys:
        told = told.get(key) if isinstance(told, dict) else None
    return told
