"""One block device as a layer: what the kernel knows of it, and how a whole disk is connected.

Sources: Documentation/ABI/stable/sysfs-block, Documentation/admin-guide/md.rst and bcache.rst,
drivers/md/dm-sysfs.c (uuid), drivers/block/loop.c; Documentation/ABI/testing/sysfs-ata,
sysfs-class-sas_phy (drivers/scsi/scsi_transport_sas.c), sysfs-bus-pci; ahci_host_caps in
drivers/ata/libahci.c and the AHCI specification 3.1.1 (ISS); ACS-3 IDENTIFY DEVICE word 76 in SAT's
VPD page 89h.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Callable, Dict, Iterable, List, Pattern

from probes.host import pci
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
        "disk": disk_facts,
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


SATA_GENERATIONS = {1: 1_500_000_000, 2: 3_000_000_000, 3: 6_000_000_000}
"""Bits per second on the wire; 8b/10b coding leaves a tenth of them as bytes."""
CAPS_ISS_SHIFT = 20
CAPS_ISS_MASK = 0xF
IDENTIFY_OFFSET = 60
"""Of IDENTIFY DEVICE data in VPD page 89h."""
IDENTIFY_SATA_WORD = 76
_ATA = re.compile(r"ata\d+")
_SAS_PORT = re.compile(r"port-\d+:\d+(:\d+)?")
_NVME = re.compile(r"nvme\d+")
_NVME_SUBSYSTEM = re.compile(r"nvme-subsys\d+")
_USB = re.compile(r"usb\d+")
_USB_INTERFACE = re.compile(r"\d+-[\d.]+:\d+\.\d+")
_PLAIN = (
    ("virtio", re.compile(r"virtio\d+")),
    ("mmc", re.compile(r"mmc\d+")),
    ("iscsi", re.compile(r"session\d+")),
    ("fc", re.compile(r"rport-\d+:.*")),
    ("xen", re.compile(r"vbd-\d+")),
    ("hyper-v", re.compile(r"VMBUS:.*|vmbus.*", re.IGNORECASE)),
)
"""Transports that tell no rate, by a folder on the way from the root to the disk."""


def disk_facts(folder: Path) -> Details:
    """Model, transport and link of the whole disk at /sys/class/block/NAME; what is known.

    link_bits_per_second on the wire; link_able_bits_per_second what disk and port both could,
    where both tell; usb_bits_per_second, usb_version, usb_driver (uas, usb-storage: one request
    at a time); pcie as probes/host/pci.py tells it.
    """
    node = folder.resolve()
    found: Details = {}
    model = word(folder / "device/model") or word(folder / "device/name")
    if model:
        found["model"] = model
    if _above(node, _USB):
        found.update(_usb(node))
    elif _above(node, _NVME_SUBSYSTEM) or _above(node, _NVME):
        found.update(_nvme(node))
    elif _above(node, _SAS_PORT):
        found.update(_sas(node))
    elif _above(node, _ATA):
        found.update(_sata(node))
    else:
        transport = next((name for name, pattern in _PLAIN if _above(node, pattern)), None)
        if transport is not None:
            found["transport"] = transport
    if "pcie" not in found:
        pcie = pci_link(node)
        if pcie:
            found["pcie"] = pcie
    return found


def sata_rate(text: str | None) -> int | None:
    """Bits per second of sata_spd: `6.0 Gbps`; None: `<unknown>`, as on an empty port."""
    return _gigabits(text, "Gbps")


def sas_rate(text: str | None) -> int | None:
    """Bits per second of negotiated_linkrate: `12.0 Gbit`; None: Unknown, Phy disabled ..."""
    return _gigabits(text, "Gbit")


def port_rate(caps: str | None) -> int | None:
    """The fastest that an AHCI controller can, of ahci_host_caps (hexadecimal); None: no AHCI."""
    try:
        return SATA_GENERATIONS.get(int(caps or "", 16) >> CAPS_ISS_SHIFT & CAPS_ISS_MASK)
    except ValueError:
        return None


def disk_rate(page: bytes) -> int | None:
    """The fastest SATA generation that a disk tells of, in VPD page 89h; None: it tells none."""
    at = IDENTIFY_OFFSET + 2 * IDENTIFY_SATA_WORD
    told = int.from_bytes(page[at : at + 2], "little") if len(page) >= at + 2 else 0
    if told in (0, 0xFFFF):
        return None
    able = [rate for bit, rate in SATA_GENERATIONS.items() if told >> bit & 1]
    return max(able, default=None)


def pci_link(node: Path) -> Dict[str, float]:
    """The PCI Express link of the nearest card above a device that has one; empty: none."""
    for each in node.parents:
        if pci.ADDRESS.fullmatch(each.name):
            found = pci.read_link(each.name, each.parent)
            if found:
                return found
    return {}


def _gigabits(text: str | None, unit: str) -> int | None:
    match = re.fullmatch(rf"(\d+(?:\.\d+)?) {unit}", text or "")
    return round(float(match[1]) * 1e9) if match else None


def _above(node: Path, pattern: Pattern[str]) -> Path | None:
    """The nearest folder above a device whose whole name fits."""
    return next((each for each in node.parents if pattern.fullmatch(each.name)), None)


def _sata(node: Path) -> Details:
    port = _above(node, _ATA)
    assert port is not None
    rates = _each(port.glob("link*/ata_link/link*/sata_spd"), sata_rate)
    # behind a port multiplier there is a link for each disk: which is whose is not told here
    if len(rates) != 1:
        return {"transport": "sata"} if rates else {"transport": "ata"}
    found: Details = {"transport": "sata", "link_bits_per_second": rates[0]}
    ports = _each(port.glob("host*/scsi_host/host*/ahci_host_caps"), port_rate)
    disk = disk_rate(_bytes(node / "device/vpd_pg89"))
    if disk is not None and len(ports) == 1:
        found["link_able_bits_per_second"] = min(disk, ports[0])
    return found


def _sas(node: Path) -> Details:
    port = _above(node, _SAS_PORT)
    assert port is not None
    rates = _each(port.glob("phy-*/sas_phy/phy-*/negotiated_linkrate"), sas_rate)
    found: Details = {"transport": "sas"}
    if rates:
        found["link_bits_per_second"] = sum(rates)
    return found


def _usb(node: Path) -> Details:
    found: Details = {"transport": "usb"}
    link = pci.read_usb(str(node / "device"))
    if link is not None:
        found["usb_bits_per_second"] = link.bits_per_second
        if link.version:
            found["usb_version"] = link.version
    interface = _above(node, _USB_INTERFACE)
    if interface is not None and there(interface / "driver"):
        found["usb_driver"] = (interface / "driver").resolve().name
    return found


def _nvme(node: Path) -> Details:
    """One controller above the disk, or, with multipath, those of its subsystem."""
    subsystem = _above(node, _NVME_SUBSYSTEM)
    within = subsystem or _above(node, _NVME)
    assert within is not None
    found: Details = {"transport": "nvme"}
    controllers = [within]
    if subsystem is not None:
        controllers = [
            each.resolve() for each in sorted(subsystem.iterdir()) if _NVME.fullmatch(each.name)
        ]
        found["paths"] = len(controllers)
    model = word(within / "model")
    if model:
        found["model"] = model
    carriers = {word(each / "transport") for each in controllers} - {None}
    if len(carriers) == 1 and carriers != {"pcie"}:
        found["nvme_transport"] = carriers.pop()
    links = [link for link in map(pci_link, controllers) if link]
    if links:
        found["pcie"] = min(links, key=lambda link: link["bytes_per_second"])
    return found


def _each(paths: Iterable[Path], parse: Callable[[str | None], int | None]) -> List[int]:
    return [rate for rate in (parse(word(each)) for each in sorted(paths)) if rate is not None]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
