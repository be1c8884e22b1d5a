"""The stack under a folder, layer by layer: file system, RAID, encryption, partition, disk, bus.

All is read from mountinfo and /sys, without disk I/O (only SMART asks the disk, on request). Work
of a file system on its own disks: zpool-status(8); btrfs-progs' cmds/scrub.c, which rewrites its
status file every 5 s; Documentation/ABI/testing/sysfs-fs-btrfs.
"""

from __future__ import annotations

import re
import stat
import time
from pathlib import Path
from typing import Any, Iterator, List, Sequence, Set

from probes.core.lenient import amount
from probes.core.records import Details, HostSetting
from probes.files import block, folders
from probes.system import tools
from probes.system.platform import os
from probes.system.proc import is_visible, word

MOST_LAYERS = 32
"""Limit of layers, reached by a RAID of many disks; further ones add nothing."""
MEMORY_FILESYSTEMS = ("tmpfs", "ramfs", "devtmpfs", "hugetlbfs")
NETWORK_FILESYSTEMS = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "ceph", "afs", "lustre", "beegfs")
    + ("glusterfs", "ncpfs", "orangefs", "pvfs2")
)


def layers(path: str, ask_smart: bool = False) -> List[Details]:
    """Returns the layers below a folder, top first; empty where the system reports none.

    Each layer has `name` and `kind` (filesystem, partition, disk, loop, lvm, dm-crypt, dm, md,
    bcache, zram, network, fuse, memory) and further facts; unknown ones are absent. The layers
    below a loop device's file or an overlay's upper folder follow it.
    ask_smart: also `smart` of each disk, by smartctl (up to 5 s each; never wakes a disk).
    """
    return _add_smart(Walk(folders.mounts()).folder(path), ask_smart)


def device_layers(name: str, ask_smart: bool = False) -> List[Details]:
    """Returns the layers of a block device, by kernel name (sda1) or node; follows links."""
    return _add_smart(Walk(folders.mounts()).device(kernel_name(name)), ask_smart)


def kernel_name(device: str) -> str:
    """Returns the kernel name of a block device's node; a kernel name is returned unchanged."""
    if "/" not in device:
        return device
    try:
        node = Path(device).stat()
        if not stat.S_ISBLK(node.st_mode):
            return ""
        number = f"{os.major(node.st_rdev)}:{os.minor(node.st_rdev)}"
        return (folders.SYS / "dev/block" / number).resolve(strict=True).name
    except OSError:
        return ""


def _add_smart(stack: List[Details], ask_smart: bool) -> List[Details]:
    for layer in stack:
        smart = block.read_smart(layer["name"]) if ask_smart and layer["kind"] == "disk" else {}
        if smart:
            layer["smart"] = smart
    return stack


class Walk:
    """One way down a stack, which visits no place twice.

    mounts: the mounts of folders; sys_folder: /sys, or a recorded copy.
    """

    def __init__(self, mounts: Sequence[folders.MountEntry], sys_folder: Path = folders.SYS):
        self._mounts = list(mounts)
        self._sys = sys_folder
        self._layers: List[Details] = []
        self._visited: Set[str] = set()

    def folder(self, path: str) -> List[Details]:
        """Returns the layers with the mount that shows the folder, and those below."""
        entry = folders.mount_of(os.path.realpath(path), self._mounts)
        if entry is None or not self._enter(f"mount {entry.point}"):
            return self._layers
        device = folders.device_of(entry, self._sys)
        layer = filesystem_layer(entry)
        below = [] if device is None else [device]
        work = zfs_work(entry.source) if entry.filesystem == "zfs" else None
        for each in self._sys.glob(f"fs/btrfs/*/devices/{device}"):
            below = sorted(member.name for member in each.parent.iterdir())
            if len(below) > 1:
                layer["members"] = below
            work = btrfs_work(each.parent.parent)
        if work:
            layer["work"] = work
        self._layers.append(layer)
        for name in below:
            self.device(name)
        upper = entry.option_values.get("upperdir") if entry.filesystem == "overlay" else None
        if upper is not None and is_visible(Path(upper)):
            self.folder(upper)
        return self._layers

    def device(self, name: str) -> List[Details]:
        """Returns the layers with a block device, and those below."""
        layer = block.layer(name, self._sys) if self._enter(name) else None
        if layer is None:
            return self._layers
        self._layers.append(layer)
        for each in block.devices_below(name, self._sys):
            self.device(each)
        backing = layer.get("backing_file")
        if backing and is_visible(Path(backing)):
            self.folder(backing)
        return self._layers

    def _enter(self, place: str) -> bool:
        if place in self._visited or len(self._layers) >= MOST_LAYERS:
            return False
        self._visited.add(place)
        return True


def filesystem_layer(entry: folders.MountEntry) -> Details:
    """Returns a mount as a layer; `host`: a network file system's server (no user, no path)."""
    filesystem = entry.filesystem
    details: Details = {"name": filesystem, "kind": "filesystem", "filesystem": filesystem}
    if filesystem in MEMORY_FILESYSTEMS:
        details["kind"] = "memory"
    elif filesystem in NETWORK_FILESYSTEMS:
        details["kind"] = "network"
        host = source_host(entry.source)
        if host:
            details["host"] = host
    elif filesystem in ("fuse", "fuseblk") or filesystem.startswith("fuse."):
        details["kind"] = "fuse"
    if entry.options:
        details["mount_options"] = entry.options
    return details


def source_host(source: str) -> str:
    """Returns the server of a mount's source: `nas` of nas:/media and //nas/media; empty: none."""
    if source.startswith("//"):
        return source[2:].partition("/")[0]
    host, colon, _ = source.partition(":/")
    return host.strip("[]") if colon else ""


ANSWER_SECONDS = 5.0
BTRFS_STATUS = Path("/var/lib/btrfs")
OPERATIONS = ("balance", "device remove", "device replace", "resize")
"""Operations that move data; a paused one does not."""
STALE_SECONDS = 60.0
"""Age of a scrub's status file from which on the scrub has ended without a word."""
_ZFS = re.compile(r"^\s*scan: (scrub|resilver)(?: \(.*\))? in progress", re.MULTILINE)
_BTRFS = re.compile(r"\|canceled:0\|finished:0$", re.MULTILINE)


def zfs_work(source: str) -> str | None:
    """Returns what the pool of a data set does: scrub, resilver; None: nothing, or not known."""
    pool = source.partition("/")[0]
    if not pool or pool.startswith("-"):
        return None
    return parse_zpool(tools.program_output(("zpool", "status", pool), ANSWER_SECONDS))


def parse_zpool(text: str) -> str | None:
    """Returns the scan that `zpool status` tells to be in progress."""
    match = _ZFS.search(text)
    return match[1] if match else None


def btrfs_work(
    folder: Path, status_folder: Path = BTRFS_STATUS, now: float | None = None
) -> str | None:
    """Returns what a btrfs does: scrub, or as the kernel names it: balance, device replace ...

    folder: /sys/fs/btrfs/UUID; now: the time of day, seconds since 1970; None: nothing, or unknown.
    """
    operation = word(folder / "exclusive_operation")
    if operation in OPERATIONS:
        return operation
    status = status_folder / f"scrub.status.{folder.name}"
    try:
        age = (time.time() if now is None else now) - status.stat().st_mtime
        is_running = bool(_BTRFS.search(status.read_text("utf-8", "replace")))
    except OSError:
        return None
    return "scrub" if is_running and age < STALE_SECONDS else None


USB_2_BITS_PER_SECOND = 480_000_000
ATTACHED = ("sata", "sas")
"""Transports with the disk's own write_cache; RAID cards and USB bridges report their own."""
NARROW_RATIO = 0.9
"""Share of the highest rate below which a link is narrow; above it is rounding."""
PROGRESS_COMMANDS = {"zfs": "zpool status", "btrfs": "btrfs scrub status, btrfs balance status"}
"""Commands that show the work of a file system for itself."""
RESYNCS = ("resync", "recover", "check", "repair", "reshape")


def costly(layers: Sequence[Details]) -> Iterator[HostSetting]:
    """Yields the settings of `layers(folder)` that cost throughput, top first; never raises."""
    for layer in layers:
        for option, value, why, remedy in _layer_rows(layer):
            yield HostSetting(option, value, why, remedy)


def _layer_rows(layer: Details) -> Iterator[tuple[str, str, str, str]]:
    name = str(layer.get("name"))
    yield from _mount_rows(name, layer)
    if layer.get("kind") == "md":
        yield from _raid_rows(name, layer)
    if layer.get("kind") == "disk":
        yield from _disk_rows(name, layer)
        yield from _link_rows(name, layer)


def _mount_rows(name: str, layer: Details) -> Iterator[tuple[str, str, str, str]]:
    work = layer.get("work")
    if work:
        remedy = f"measure again when it has finished ({PROGRESS_COMMANDS[name]})"
        yield f"{name} below the folder", str(work), "it keeps the disks busy", remedy
    options = str(layer.get("mount_options") or "").split(",")
    if "sync" in options:
        why = "each write is synchronous: it waits until the disk has stored the data"
        yield f"mount option of {name}", "sync", why, "mount without sync (async is the default)"
    if "dirsync" in options:
        why = "creating or removing a file waits for the disk, which slows small files down"
        yield f"mount option of {name}", "dirsync", why, "mount without dirsync"


def _raid_rows(name: str, layer: Details) -> Iterator[tuple[str, str, str, str]]:
    level = str(layer.get("raid_level") or "RAID")
    missing = amount(layer.get("degraded_disks"))
    if missing:
        why = "each read of the missing disk's data needs all other disks"
        if level in ("raid1", "raid10"):
            why = "there are fewer disks to read from"
        remedy = f"replace the missing disk (mdadm --detail /dev/{name} shows which it is)"
        yield f"{level} {name}", f"degraded by {missing:.0f}", why, remedy
    action = layer.get("sync_action")
    if action in RESYNCS:
        rate = amount(layer.get("sync_bytes_per_second"))
        rate_text = f" at {rate / 1e6:.0f} MB/s" if rate else ""
        why = "it keeps all disks of the RAID busy"
        remedy = "measure again when it has finished (see /proc/mdstat)"
        yield f"{level} {name}", f"{action}{rate_text}", why, remedy


def _disk_rows(name: str, layer: Details) -> Iterator[tuple[str, str, str, str]]:
    attached = layer.get("transport") in ATTACHED
    if attached and layer.get("rotational") is True and layer.get("write_cache") == "write through":
        why = "each write waits for the rotation of the disk"
        remedy = f"run hdparm -W1 /dev/{name} (a power cut then loses the last writes)"
        if layer["transport"] == "sas":
            remedy = f"run sdparm --set=WCE /dev/{name} (a power cut then loses the last writes)"
        yield f"write cache of {name}", "off", why, remedy
    smart = layer.get("smart")
    if isinstance(smart, dict) and smart.get("passed") is False:
        why = "SMART predicts a failure; such disks repeat many reads"
        yield f"health of {name}", "failing", why, "back up its data, then replace it"
    if isinstance(smart, dict) and smart.get("tests_itself"):
        remedy = f"measure again when it has finished (smartctl -c /dev/{name})"
        yield f"self-test of {name}", "in progress", "its reads compete with the copy's", remedy


def _link_rows(name: str, layer: Details) -> Iterator[tuple[str, str, str, str]]:
    usb = amount(layer.get("usb_bits_per_second"))
    if usb and usb <= USB_2_BITS_PER_SECOND:
        why = "USB 2 carries at most about 40 MB/s, whatever the disk"
        remedy = "use a USB 3 port, cable and enclosure"
        yield f"USB of {name}", f"{usb / 1e6:.0f} Mbit/s", why, remedy
    rate = amount(layer.get("link_bits_per_second"))
    able = amount(layer.get("link_able_bits_per_second"))
    if rate and able and rate < NARROW_RATIO * able:
        rate_text = f"{rate / 1e7:.0f} MB/s"
        why = f"it carries at most {rate_text}; disk and port support {able / 1e9:.1f} Gbit/s"
        remedy = "check cable and backplane (the kernel log shows the errors)"
        yield f"SATA link of {name}", f"{rate / 1e9:.1f} Gbit/s", why, remedy
    pcie = layer.get("pcie")
    if layer.get("transport") == "nvme" and isinstance(pcie, dict):
        now, could = amount(pcie.get("bytes_per_second")), amount(pcie.get("able_bytes_per_second"))
        if now and could and now < NARROW_RATIO * could:
            value = f"{_lanes(pcie, '')}, the disk supports {_lanes(pcie, 'able_')}"
            why = f"the slot carries at most {now / 1e6:.0f} of {could / 1e6:.0f} MB/s"
            yield (f"PCI Express of {name}", value, why, "use a slot with more or faster lanes")


def _lanes(pcie: Any, prefix: str) -> str:
    lanes = amount(pcie.get(f"{prefix}lanes"))
    rate = amount(pcie.get(f"{prefix}transfers_per_second"))
    return f"x{lanes or 0:.0f} at {(rate or 0) / 1e9:g} GT/s"
