"""The stack under a folder, layer by layer: file system, RAID, encryption, partition, disk, bus.

Nothing here moves a byte on a disk: it is read from mountinfo and /sys (SMART alone asks the
disk, and only where the caller wants it).
"""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any, Iterator, List, Sequence, Set

from probes.core.records import Details, HostSetting
from probes.files import block, folders
from probes.system.platform import os
from probes.system.proc import is_visible

MOST_LAYERS = 32
"""A RAID of many disks has as many; more tell nothing that these do not."""
MEMORY_FILESYSTEMS = ("tmpfs", "ramfs", "devtmpfs", "hugetlbfs")
NETWORK_FILESYSTEMS = (
    *("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "virtiofs", "ceph", "afs", "lustre", "beegfs"),
    *("glusterfs", "ncpfs", "orangefs", "pvfs2"),
)


def layers(path: str, ask_smart: bool = False) -> List[Details]:
    """What a folder lies on, top first; empty where the system tells nothing.

    Each layer has `name` and `kind` (filesystem, partition, disk, loop, lvm, dm-crypt, dm, md,
    bcache, zram, network, fuse, memory) and what is known of it; a key that is not known is
    absent. The layers below a loop device's file or an overlay's upper folder follow it.
    ask_smart: also `smart` of each disk, by smartctl (up to 5 s each; never wakes a disk).
    """
    return _asked(Walk(folders.mounts()).folder(path), ask_smart)


def device_layers(name: str, ask_smart: bool = False) -> List[Details]:
    """The same of a block device, by its kernel name (sda1) or its node; links are followed."""
    return _asked(Walk(folders.mounts()).device(kernel_name(name)), ask_smart)


def kernel_name(device: str) -> str:
    """A block device's kernel name, of its node however that is called; a name stays as it is."""
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


def _asked(found: List[Details], ask_smart: bool) -> List[Details]:
    for layer in found:
        told = block.read_smart(layer["name"]) if ask_smart and layer["kind"] == "disk" else {}
        if told:
            layer["smart"] = told
    return found


class Walk:
    """One way down a stack; knows where it has been, so that a circle ends.

    mounts: those to look folders up in; sys_folder: what is /sys on a host.
    """

    def __init__(self, mounts: Sequence[folders.MountEntry], sys_folder: Path = folders.SYS):
        self._mounts = list(mounts)
        self._sys = sys_folder
        self._found: List[Details] = []
        self._seen: Set[str] = set()

    def folder(self, path: str) -> List[Details]:
        """The mount that shows the folder, and what is below."""
        entry = folders.mount_of(os.path.realpath(path), self._mounts)
        if entry is None or not self._enter(f"mount {entry.point}"):
            return self._found
        device = folders.device_of(entry, self._sys)
        layer = filesystem_layer(entry)
        below = [] if device is None else [device]
        if entry.filesystem == "btrfs" and device is not None:
            below = _btrfs_members(device, self._sys) or below
            if len(below) > 1:
                layer["members"] = below
        self._found.append(layer)
        for name in below:
            self.device(name)
        upper = entry.told.get("upperdir") if entry.filesystem == "overlay" else None
        if upper is not None and is_visible(Path(upper)):
            self.folder(upper)
        return self._found

    def device(self, name: str) -> List[Details]:
        """A block device, and what is below."""
        layer = block.layer(name, self._sys) if self._enter(name) else None
        if layer is None:
            return self._found
        self._found.append(layer)
        for each in block.below(name, self._sys):
            self.device(each)
        backing = layer.get("backing_file")
        if backing and is_visible(Path(backing)):
            self.folder(backing)
        return self._found

    def _enter(self, place: str) -> bool:
        if place in self._seen or len(self._found) >= MOST_LAYERS:
            return False
        self._seen.add(place)
        return True


def filesystem_layer(entry: folders.MountEntry) -> Details:
    """A mount as a layer; `host` is the server of a network file system (no user, no path)."""
    filesystem = entry.filesystem
    found: Details = {"name": filesystem, "kind": "filesystem", "filesystem": filesystem}
    if filesystem in MEMORY_FILESYSTEMS:
        found["kind"] = "memory"
    elif filesystem in NETWORK_FILESYSTEMS:
        found["kind"] = "network"
        host = source_host(entry.source)
        if host:
            found["host"] = host
    elif filesystem in ("fuse", "fuseblk") or filesystem.startswith("fuse."):
        found["kind"] = "fuse"
    if entry.options:
        found["mount_options"] = entry.options
    return found


def source_host(source: str) -> str:
    """The server in a mount's source: `nas` of nas:/media and of //nas/media; empty: none."""
    if source.startswith("//"):
        return source[2:].partition("/")[0]
    host, colon, _ = source.partition(":/")
    return host.strip("[]") if colon else ""


def _btrfs_members(device: str, sys_folder: Path) -> List[str]:
    """All devices of the btrfs that one device belongs to (/sys/fs/btrfs/UUID/devices)."""
    for each in sorted(sys_folder.glob(f"fs/btrfs/*/devices/{device}")):
        return sorted(member.name for member in each.parent.iterdir())
    return []


USB_2_BITS_PER_SECOND = 480_000_000
ATTACHED = ("sata", "sas")
"""Where write_cache is the disk's own: RAID cards, hypervisors and USB bridges tell another."""
NARROW_RATIO = 0.9
"""Of what it could; closer than that is rounding."""
RESYNCS = ("resync", "recover", "check", "repair", "reshape")


def costly(layers: Sequence[Details]) -> Iterator[HostSetting]:
    """What costs, of `layers(folder)`: as records.HostSetting, top first; never raises."""
    for layer in layers:
        for option, value, why, remedy in _of(layer):
            yield HostSetting(option, value, why, remedy)


def _of(layer: Details) -> Iterator[tuple[str, str, str, str]]:
    name = str(layer.get("name"))
    yield from _of_mount(name, layer)
    if layer.get("kind") == "md":
        yield from _of_raid(name, layer)
    if layer.get("kind") == "disk":
        yield from _of_disk(name, layer)
        yield from _of_link(name, layer)


def _of_mount(name: str, layer: Details) -> Iterator[tuple[str, str, str, str]]:
    options = str(layer.get("mount_options") or "").split(",")
    if "sync" in options:
        why = "each write is synchronous: it waits until the disk has stored the data"
        yield f"mount option of {name}", "sync", why, "mount without sync (async is the default)"
    if "dirsync" in options:
        why = "creating or removing a file waits for the disk, which slows small files down"
        yield f"mount option of {name}", "dirsync", why, "mount without dirsync"


def _of_raid(name: str, layer: Details) -> Iterator[tuple[str, str, str, str]]:
    level = str(layer.get("raid_level") or "RAID")
    missing = _amount(layer, "degraded_disks")
    if missing:
        why = "each read of the missing disk's data needs all other disks"
        if level in ("raid1", "raid10"):
            why = "there are fewer disks to read from"
        remedy = f"replace the missing disk (mdadm --detail /dev/{name} shows which it is)"
        yield f"{level} {name}", f"degraded by {missing:.0f}", why, remedy
    action = layer.get("sync_action")
    if action in RESYNCS:
        rate = _amount(layer, "sync_bytes_per_second")
        at = f" at {rate / 1e6:.0f} MB/s" if rate else ""
        why = "it keeps all disks of the RAID busy"
        remedy = "measure again when it has finished (see /proc/mdstat)"
        yield f"{level} {name}", f"{action}{at}", why, remedy


def _of_disk(name: str, layer: Details) -> Iterator[tuple[str, str, str, str]]:
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


def _of_link(name: str, layer: Details) -> Iterator[tuple[str, str, str, str]]:
    usb = _amount(layer, "usb_bits_per_second")
    if usb and usb <= USB_2_BITS_PER_SECOND:
        why = "USB 2 carries at most about 40 MB/s, whatever the disk"
        remedy = "use a USB 3 port, cable and enclosure"
        yield f"USB of {name}", f"{usb / 1e6:.0f} Mbit/s", why, remedy
    rate, able = _amount(layer, "link_bits_per_second"), _amount(layer, "link_able_bits_per_second")
    if rate and able and rate < NARROW_RATIO * able:
        most = f"{rate / 1e7:.0f} MB/s"
        why = f"it carries at most {most}; disk and port support {able / 1e9:.1f} Gbit/s"
        remedy = "check cable and backplane (the kernel log shows the errors)"
        yield f"SATA link of {name}", f"{rate / 1e9:.1f} Gbit/s", why, remedy
    pcie = layer.get("pcie")
    if layer.get("transport") == "nvme" and isinstance(pcie, dict):
        now, could = _amount(pcie, "bytes_per_second"), _amount(pcie, "able_bytes_per_second")
        if now and could and now < NARROW_RATIO * could:
            value = f"{_lanes(pcie, '')}, the disk supports {_lanes(pcie, 'able_')}"
            why = f"the slot carries at most {now / 1e6:.0f} of {could / 1e6:.0f} MB/s"
            yield (f"PCI Express of {name}", value, why, "use a slot with more or faster lanes")


def _lanes(pcie: Any, prefix: str) -> str:
    lanes, rate = _amount(pcie, f"{prefix}lanes"), _amount(pcie, f"{prefix}transfers_per_second")
    return f"x{lanes or 0:.0f} at {(rate or 0) / 1e9:g} GT/s"


def _amount(layer: Any, key: str) -> float | None:
    value = layer.get(key)
    fits = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if fits and 0 <= value < float("inf") else None
