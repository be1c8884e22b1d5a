"""One block device as a layer: its facts from the kernel.

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
"""Unit of all sizes and starts in /sys, whatever the disk's own sector is."""
DM_KINDS = (("LVM-", "lvm"), ("CRYPT-", "dm-crypt"))
"""Beginnings of a dm device's uuid, and the kinds of device."""
DM_TARGETS = (("mpath-", "multipath"), ("VDO-", "vdo"), ("DMRAID-", "dmraid"))
POOLS = {"-tpool": "thin", "-vpool": "vdo"}
"""End of the dm/uuid of the pool under a thin or deduplicated LVM volume (lvm2)."""
REMOTE = re.compile(r"(nbd|rbd|drbd)\d+")
"""Disks that lie on another host."""


def layer(name: str, sys_folder: Path) -> Details | None:
    """Returns the facts of a block device; None: there is no such device, or no /sys."""
    folder = sys_folder / "class/block" / name
    if not name or "/" in name or not is_visible(folder):
        return None
    kind = kind_of(name, folder)
    details: Details = {"name": name, "kind": kind}
    for key, file, parse in (*_SIZE, *_FILES.get(kind, ()), *(_QUEUE if kind != PART else ())):
        text = word(folder / file)
        value = None if text is None else parse(text)
        if value is not None:
            details[key] = value
    if kind in ("md", "bcache", "lvm", "dm-crypt", "dm"):
        details["members"] = sorted(names(folder / "slaves"))
    if kind in ("lvm", "dm-crypt", "dm"):
        slaves = (folder / "slaves" / each / "dm/uuid" for each in details["members"])
        for each in slaves:
            pool = POOLS.get((word(each) or "")[-6:])
            if pool:
                details["target"] = pool
    if kind == "loop":
        details.update(_backing_file(folder))
    if kind == "disk":
        details.update(bus.disk_facts(folder))
        remote = REMOTE.fullmatch(name)
        if remote:
            details["transport"] = remote[1]
    return details


def devices_below(name: str, sys_folder: Path) -> List[str]:
    """Returns the names of the devices right below (a partition's disk, RAID members), sorted."""
    folder = sys_folder / "class/block" / name
    if is_visible(folder / "partition"):
        return [folder.resolve().parent.name]
    return sorted(names(folder / "slaves"))


def kind_of(name: str, folder: Path) -> str:
    """Returns the kind of layer of a device; "disk" where it is no other."""
    if is_visible(folder / "partition"):
        return PART
    if is_visible(folder / "dm"):
        return _kind_by_prefix(word(folder / "dm/uuid") or "", DM_KINDS) or "dm"
    if is_visible(folder / "md"):
        return "md"
    match = re.fullmatch(r"(loop|bcache|zram|ram)\d+", name)
    if match:
        return "memory" if match[1] == "ram" else match[1]
    return "disk"


def bracketed_word(text: str) -> str | None:
    """Returns the word in brackets: mq-deadline of `none [mq-deadline] bfq`; else a lone word."""
    match = re.search(r"\[([^\]]+)\]", text)
    if match:
        return match[1]
    return text if len(text.split()) == 1 else None


def _times(unit: int) -> Callable[[str], int | None]:
    return lambda text: int(text) * unit if text.isdecimal() else None


def _kind_by_prefix(text: str, kinds: Tuple[Tuple[str, str], ...]) -> str | None:
    return next((name for begin, name in kinds if text.startswith(begin)), None)


def _backing_file(folder: Path) -> Details:
    try:
        text = os.fsdecode((folder / "loop/backing_file").read_bytes()).rstrip("\n")
    except OSError:
        return {}
    return {"backing_file": text} if text else {}


Facts = Tuple[Tuple[str, str, Callable[[str], object]], ...]
"""Key, file, and parser of the file's word for each fact; a parsed None is unknown."""
PART = "partition"
_SIZE: Facts = (("bytes", "size", _times(SECTOR_BYTES)),)
_QUEUE: Facts = (
    ("rotational", "queue/rotational", lambda text: text == "1"),
    ("scheduler", "queue/scheduler", bracketed_word),
    ("read_ahead_bytes", "queue/read_ahead_kb", _times(1024)),
    ("write_cache", "queue/write_cache", str),
)
_DM: Facts = (("target", "dm/uuid", lambda text: _kind_by_prefix(text, DM_TARGETS)),)
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
OPTIONS = ("--json", "-H", "-c", "-l", "selftest", "-n", "standby")
SELF_TEST_RUNS = range(240, 256)
"""Status of an ATA disk's self-test while it runs (ACS-3, SMART READ DATA, byte 363)."""
NOT_ASKED_BITS = 0b011
"""Exit status bits: the command line was wrong, or the device was not opened (or sleeps)."""


def read_smart(name: str) -> Details:
    """Returns the health of a disk by its kernel name: `passed`, SMART predicts no failure.

    `tests_itself`: a self-test is in progress; absent: none is.
    Empty: no smartctl, no right, no answer, or the disk sleeps.
    """
    node = "/dev/" + name.replace("!", "/")
    if os.geteuid() != 0 or not Path(node).is_block_device():
        return {}
    return parse_smart(tools.program_output(("smartctl", *OPTIONS, node), ANSWER_SECONDS))


def parse_smart(text: str) -> Details:
    """Returns the health in the output of smartctl with OPTIONS; never raises."""
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(answer, dict):
        return {}
    status, passed = _in(answer, "smartctl", "exit_status"), _in(answer, "smart_status", "passed")
    if type(status) is not int or status & NOT_ASKED_BITS or not isinstance(passed, bool):
        return {}
    ata = _in(answer, "ata_smart_data", "self_test", "status", "value")
    nvme = _in(answer, "nvme_self_test_log", "current_self_test_operation", "value")
    runs = type(ata) is int and ata in SELF_TEST_RUNS or type(nvme) is int and nvme > 0
    return {"passed": passed, **({"tests_itself": True} if runs else {})}


def _in(value: Any, *keys: str) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
