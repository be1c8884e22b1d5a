"""One block device as a layer: what the kernel knows of it, from /sys/class/block.

Sources: Documentation/ABI/stable/sysfs-block, Documentation/admin-guide/md.rst and bcache.rst,
drivers/md/dm-sysfs.c (uuid), drivers/block/loop.c.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Dict, List

from probes.host import disk_bus
from probes.host.sysfs import there, word
from probes.records import Details

SECTOR_BYTES = 512
"""Of all sizes and starts in /sys, whatever the disk's own sector is."""
KIB = 1024
DM_KINDS = (("LVM-", "lvm"), ("CRYPT-", "dm-crypt"))
"""Beginnings of a dm device's uuid, by who made it."""
DM_TARGETS = (("mpath-", "multipath"), ("VDO-", "vdo"), ("DMRAID-", "dmraid"))
THIN_POOL = "-tpool"
VIRTUAL = (("nbd", "nbd"), ("rbd", "rbd"), ("drbd", "drbd"))
"""Disks that lie on another host, by their names."""
_UNITS = {"": 1, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def layer(name: str, sys_folder: Path) -> Details | None:
    """What is known of a block device; None: there is no such device, or /sys is not there."""
    folder = sys_folder / "class/block" / name
    if not name or "/" in name or not there(folder):
        return None
    kind = kind_of(name, folder)
    found: Details = {"name": name, "kind": kind}
    _put(found, "bytes", _scaled(word(folder / "size"), SECTOR_BYTES))
    if kind == "partition":
        _put(found, "offset_bytes", _scaled(word(folder / "start"), SECTOR_BYTES))
        return found
    found.update(_queue(folder / "queue"))
    more = {
        "disk": disk_bus.facts,
        "md": _md,
        "loop": _loop,
        "bcache": _bcache,
        "zram": _zram,
        "lvm": _dm,
        "dm-crypt": _dm,
        "dm": _dm,
    }.get(kind)
    if more is not None:
        found.update(more(folder))
    for beginning, transport in VIRTUAL:
        if kind == "disk" and re.fullmatch(beginning + r"\d+", name):
            found["transport"] = transport
    return found


def below(name: str, sys_folder: Path) -> List[str]:
    """Names of the devices right below: a partition's disk, the members of a RAID; sorted."""
    folder = sys_folder / "class/block" / name
    if there(folder / "partition"):
        return [folder.resolve().parent.name]
    return _names(folder / "slaves")


def kind_of(name: str, folder: Path) -> str:
    """One of the layers' kinds; what is nothing else is a disk."""
    if there(folder / "partition"):
        return "partition"
    if there(folder / "dm"):
        uuid = word(folder / "dm/uuid") or ""
        return next((kind for begin, kind in DM_KINDS if uuid.startswith(begin)), "dm")
    if there(folder / "md"):
        return "md"
    for kind in ("loop", "bcache", "zram"):
        if re.fullmatch(kind + r"\d+", name):
            return kind
    return "memory" if re.fullmatch(r"ram\d+", name) else "disk"


def chosen(text: str | None) -> str | None:
    """The word in brackets: mq-deadline of `none [mq-deadline] bfq`; without any, a lone word."""
    match = re.search(r"\[([^\]]+)\]", text or "")
    if match:
        return match[1]
    return text if text and len(text.split()) == 1 else None


def size_bytes(text: str | None) -> int | None:
    """Bytes of bcache's `4.0M` or `512k`."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([kMG]?)", text or "")
    return round(float(match[1]) * _UNITS[match[2]]) if match else None


def sync_ratio(text: str | None) -> float | None:
    """How far a RAID's resync is, of md/sync_completed's `123 / 456`; None: none runs."""
    match = re.fullmatch(r"(\d+) / (\d+)", text or "")
    return int(match[1]) / int(match[2]) if match and int(match[2]) else None


def _queue(folder: Path) -> Details:
    found: Details = {}
    rotational = word(folder / "rotational")
    _put(found, "rotational", None if rotational is None else rotational == "1")
    _put(found, "scheduler", chosen(word(folder / "scheduler")))
    _put(found, "read_ahead_bytes", _scaled(word(folder / "read_ahead_kb"), KIB))
    _put(found, "largest_request_bytes", _scaled(word(folder / "max_sectors_kb"), KIB))
    _put(found, "write_cache", word(folder / "write_cache"))
    discard = word(folder / "discard_max_bytes")
    _put(found, "discard", None if discard is None else discard != "0")
    return found


def _md(folder: Path) -> Details:
    found: Details = {"members": _names(folder / "slaves")}
    _put(found, "raid_level", word(folder / "md/level"))
    for name, key in (("raid_disks", "raid_disks"), ("degraded", "degraded_disks")):
        _put(found, key, _scaled(word(folder / "md" / name), 1))
    _put(found, "chunk_bytes", _scaled(word(folder / "md/chunk_size"), 1) or None)
    _put(found, "state", word(folder / "md/array_state"))
    _put(found, "sync_action", word(folder / "md/sync_action"))
    _put(found, "sync_bytes_per_second", _scaled(word(folder / "md/sync_speed"), KIB))
    _put(found, "sync_ratio", sync_ratio(word(folder / "md/sync_completed")))
    return found


def _dm(folder: Path) -> Details:
    found: Details = {"members": _names(folder / "slaves")}
    _put(found, "label", word(folder / "dm/name"))
    uuid = word(folder / "dm/uuid") or ""
    made_by = (name for begin, name in DM_TARGETS if uuid.startswith(begin))
    _put(found, "target", next(made_by, None))
    slaves = [word(folder / "slaves" / each / "dm/uuid") or "" for each in found["members"]]
    if any(each.endswith(THIN_POOL) for each in slaves):
        found["target"] = "thin"
    return found


def _loop(folder: Path) -> Details:
    found: Details = {}
    try:
        text = (folder / "loop/backing_file").read_bytes()
    except OSError:
        return found
    _put(found, "backing_file", os.fsdecode(text).rstrip("\n") or None)
    direct = word(folder / "loop/dio")
    _put(found, "direct", None if direct is None else direct == "1")
    _put(found, "offset_bytes", _scaled(word(folder / "loop/offset"), 1))
    return found


def _bcache(folder: Path) -> Details:
    found: Details = {"members": _names(folder / "slaves")}
    _put(found, "cache_mode", chosen(word(folder / "bcache/cache_mode")))
    _put(found, "state", word(folder / "bcache/state"))
    _put(found, "sequential_cutoff_bytes", size_bytes(word(folder / "bcache/sequential_cutoff")))
    return found


def _zram(folder: Path) -> Details:
    found: Details = {}
    _put(found, "compression", chosen(word(folder / "comp_algorithm")))
    return found


def _put(found: Dict[str, object], key: str, value: object) -> None:
    """What is not known is left out."""
    if value is not None:
        found[key] = value


def _scaled(text: str | None, unit: int) -> int | None:
    return int(text) * unit if text is not None and text.isdecimal() else None


def _names(folder: Path) -> List[str]:
    try:
        return sorted(each.name for each in folder.iterdir())
    except OSError:
        return []
