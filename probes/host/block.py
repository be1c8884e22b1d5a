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

from probes.host import bus, tools
from probes.host.proc import names, there, word
from probes.host.system import os
from probes.records import Details

SECTOR_BYTES = 512
"""Of all sizes and starts in /sys, whatever the disk's own sector is."""
DM_KINDS = (("LVM-", "lvm"), ("CRYPT-", "dm-crypt"))
"""Beginnings of a dm device's uuid, by who made it."""
DM_TARGETS = (("mpath-", "multipath"), ("VDO-", "vdo"), ("DMRAID-", "dmraid"))
POOLS = {"-tpool": "thin", "-vpool": "vdo"}
"""End of the dm/uuid of what lies under a thin or deduplicated LVM volume (lvm2)."""
REMOTE = re.compile(r"(nbd|rbd|drbd)\d+")
"""Disks that lie on another host."""
_UNITS = {"": 1, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def layer(name: str, sys_folder: Path) -> Details | None:
    """What is known of a block device; None: there is no such device, or /sys is not there."""
    folder = sys_folder / "class/block" / name
    if not name or "/" in name or not there(folder):
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
    if there(folder / "partition"):
        return [folder.resolve().parent.name]
    return sorted(names(folder / "slaves"))


def kind_of(name: str, folder: Path) -> str:
    """One of the layers' kinds; what is nothing else is a disk."""
    if there(folder / "partition"):
        return PART
    if there(folder / "dm"):
        return _beginning(word(folder / "dm/uuid") or "", DM_KINDS) or "dm"
    if there(folder / "md"):
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


def size_bytes(text: str) -> int | None:
    """Bytes of bcache's `4.0M` or `512k`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kMG]?)", text)
    return round(float(match[1]) * _UNITS[match[2]]) if match else None


def sync_ratio(text: str) -> float | None:
    """How far a RAID's resync is, of md/sync_completed's `123 / 456`; None: none runs."""
    match = re.fullmatch(r"(\d+) / (\d+)", text)
    return int(match[1]) / int(match[2]) if match and int(match[2]) else None


def _times(unit: int) -> Callable[[str], int | None]:
    return lambda text: int(text) * unit if text.isdecimal() else None


def _is_one(text: str) -> bool:
    return text == "1"


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
    ("rotational", "queue/rotational", _is_one),
    ("scheduler", "queue/scheduler", chosen),
    ("read_ahead_bytes", "queue/read_ahead_kb", _times(1024)),
    ("largest_request_bytes", "queue/max_sectors_kb", _times(1024)),
    ("write_cache", "queue/write_cache", str),
    ("discard", "queue/discard_max_bytes", lambda text: text != "0"),
)
_DM: Facts = (
    ("label", "dm/name", str),
    ("target", "dm/uuid", lambda text: _beginning(text, DM_TARGETS)),
)
_FILES: Dict[str, Facts] = {
    PART: (("offset_bytes", "start", _times(SECTOR_BYTES)),),
    "md": (
        ("raid_level", "md/level", str),
        ("raid_disks", "md/raid_disks", _times(1)),
        ("degraded_disks", "md/degraded", _times(1)),
        ("chunk_bytes", "md/chunk_size", lambda text: _times(1)(text) or None),
        ("state", "md/array_state", str),
        ("sync_action", "md/sync_action", str),
        ("sync_bytes_per_second", "md/sync_speed", _times(1024)),
        ("sync_ratio", "md/sync_completed", sync_ratio),
    ),
    "lvm": _DM,
    "dm-crypt": _DM,
    "dm": _DM,
    "loop": (("direct", "loop/dio", _is_one), ("offset_bytes", "loop/offset", _times(1))),
    "bcache": (
        ("cache_mode", "bcache/cache_mode", chosen),
        ("state", "bcache/state", str),
        ("sequential_cutoff_bytes", "bcache/sequential_cutoff", size_bytes),
    ),
    "zram": (("compression", "comp_algorithm", chosen),),
}


ANSWER_SECONDS = 5.0
OPTIONS = ("--json", "-a", "-n", "standby")
_NVME_LOG = "nvme_smart_health_information_log"
_FIGURES: Tuple[Tuple[Any, ...], ...] = (
    ("temperature_celsius", 1, "temperature", "current"),
    ("power_on_seconds", 3600, "power_on_time", "hours"),
    ("rotations_per_minute", 1, "rotation_rate"),
    ("reallocated_sectors", 1, "scsi_grown_defect_list"),
    ("wear_ratio", 1, "scsi_percentage_used_endurance_indicator"),
    ("wear_ratio", 1, "endurance_used", "current_percent"),
    ("wear_ratio", 1, _NVME_LOG, "percentage_used"),
    ("media_errors", 1, _NVME_LOG, "media_errors"),
)
"""Key, unit and where it stands; of several the last that is told."""
NOT_ASKED_BITS = 0b011
"""The command line was wrong, or the device was not opened (or sleeps)."""
STATES = {3: "failing", 4: "below-threshold", 5: "was-below-threshold", 6: "errors-logged"}
"""By bit of the exit status; 7 (a self-test's errors) may be years old."""
ATTRIBUTES = {5: "reallocated_sectors", 197: "pending_sectors", 198: "uncorrectable_sectors"}
"""By number of the ATA attribute; the raw value counts."""
RAW_BITS = 0xFFFFFFFF
"""Of a raw value that count sectors; some disks keep other things above them."""


def read_smart(name: str) -> Details:
    """SMART of a whole disk by its kernel name; empty: no smartctl, no right, or no answer.

    passed, states (words), reallocated_sectors, pending_sectors, uncorrectable_sectors,
    temperature_celsius, power_on_seconds, wear_ratio (1.0: the endurance that was promised is used
    up), media_errors, rotations_per_minute; `asleep` alone where the disk sleeps. Serial numbers
    are left out.
    """
    node = "/dev/" + name.replace("!", "/")
    if os.geteuid() != 0 or not Path(node).is_block_device():
        return {}
    return parse_smart(tools.printed(("smartctl", *OPTIONS, node), ANSWER_SECONDS))


def parse_smart(text: str) -> Details:
    """The same of what `smartctl --json -a -n standby` printed; never raises."""
    try:
        told = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(told, dict):
        return {}
    status = _number(told, "smartctl", "exit_status")
    if status is None:
        return {}
    if int(status) & NOT_ASKED_BITS:
        return {"asleep": True} if _sleeps(told) else {}
    found: Details = {}
    passed = _in(told, "smart_status", "passed")
    if isinstance(passed, bool):
        found["passed"] = passed
    states = [word for bit, word in STATES.items() if int(status) >> bit & 1]
    if states:
        found["states"] = states
    for key, unit, *path in _FIGURES:
        value = _number(told, *path)
        if value is not None and (value or key != "rotations_per_minute"):
            found[key] = value / 100 if key == "wear_ratio" else value * unit
    table = _in(told, "ata_smart_attributes", "table")
    for row in table if isinstance(table, list) else ():
        number, raw = _number(row, "id"), _number(row, "raw", "value")
        if raw is not None and number in ATTRIBUTES:
            found[ATTRIBUTES[int(number)]] = int(raw) & RAW_BITS
    return found


def _sleeps(told: Details) -> bool:
    """smartctl tells it in a message: `Device is in STANDBY mode, exit(2)`."""
    messages = _in(told, "smartctl", "messages")
    texts = [_in(each, "string") for each in messages] if isinstance(messages, list) else []
    return any(isinstance(each, str) and each.startswith("Device is in S") for each in texts)


def _in(told: Any, *keys: str) -> Any:
    for key in keys:
        told = told.get(key) if isinstance(told, dict) else None
    return told


def _number(told: Any, *keys: str) -> float | None:
    value = _in(told, *keys)
    fits = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if fits and 0 <= value < float("inf") else None
