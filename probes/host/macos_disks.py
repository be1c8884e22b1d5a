"""The layers under a folder of macOS, from the property lists that `diskutil info -plist` prints.

Parsed from recorded text: no Mac was at hand, and each layer is labelled untested.
Source: diskutil(8); an APFS volume lies in a container, a disk that is made up, which names the
partition that holds it (APFSPhysicalStores).
"""

from __future__ import annotations

import os
import plistlib
import re
from typing import Any, Dict, List
from xml.parsers.expat import ExpatError

from probes.host import tools
from probes.records import Details

ANSWER_SECONDS = 10.0
COMMAND = ("diskutil", "info", "-plist")
TRANSPORTS = {"PCI-Express": "nvme", "Apple Fabric": "nvme", "Secure Digital": "mmc"}
NETWORK = ("smbfs", "nfs", "afpfs", "webdav")


def layers(path: str) -> List[Details]:
    """What a folder lies on, top first: its volume, then its partition, then its disk."""
    # diskutil takes a mount point or a device: of a folder, the mount point above it
    volume = _info(_mount_point(os.path.realpath(path)))
    store = physical_store(volume)
    if store is None and volume.get("ParentWholeDisk"):
        store = physical_store(_info(str(volume["ParentWholeDisk"])))
    name = whole_disk(store or str(volume.get("ParentWholeDisk") or ""))
    return layers_of(volume, store, _info(name) if name else {})


def parse(text: bytes) -> Dict[str, Any]:
    """One property list; empty: it is none, or tells that there is no such disk."""
    try:
        told = plistlib.loads(text)
    except (plistlib.InvalidFileException, ExpatError, ValueError, TypeError, IndexError):
        return {}
    return told if isinstance(told, dict) and not told.get("Error") else {}


def physical_store(told: Dict[str, Any]) -> str | None:
    """The partition that holds an APFS container; None: it is none."""
    stores = told.get("APFSPhysicalStores")
    first = stores[0] if isinstance(stores, list) and stores else None
    name = first.get("APFSPhysicalStore") if isinstance(first, dict) else None
    return name if isinstance(name, str) else None


def whole_disk(name: str) -> str:
    """disk0 of disk0s2 and of disk3s1s1; empty: no disk's name."""
    match = re.match(r"disk\d+", name)
    return match[0] if match else ""


def layers_of(volume: Dict[str, Any], store: str | None, disk: Dict[str, Any]) -> List[Details]:
    """The layers of a volume's, a store's and a whole disk's description; pure."""
    found: List[Details] = []
    filesystem = _word(volume, "FilesystemType")
    if filesystem:
        kind = "network" if filesystem in NETWORK else "filesystem"
        found.append({"name": filesystem, "kind": kind, "filesystem": filesystem})
        _put_bytes(found[-1], volume)
    partition = store or _word(volume, "DeviceIdentifier")
    name = _word(disk, "DeviceIdentifier")
    if partition and partition != name:
        found.append({"name": partition, "kind": "partition"})
    if name:
        layer: Details = {"name": name, "kind": "disk"}
        _put_bytes(layer, disk)
        model = _word(disk, "MediaName")
        if model:
            layer["model"] = model
        solid = disk.get("SolidState")
        if isinstance(solid, bool):
            layer["rotational"] = not solid
        bus = _word(disk, "BusProtocol")
        if bus:
            layer["transport"] = TRANSPORTS.get(bus, bus.lower())
        if _word(disk, "SMARTStatus") in ("Verified", "Failing"):
            layer["smart"] = {"passed": disk["SMARTStatus"] == "Verified"}
        found.append(layer)
    return [{**each, "tested": False} for each in found]


def _info(name: str) -> Dict[str, Any]:
    return parse(tools.printed((*COMMAND, name), ANSWER_SECONDS).encode()) if name else {}


def _mount_point(path: str) -> str:
    # By os: names may be any bytes, and the root is its own parent.
    while not os.path.ismount(path) and path != os.path.dirname(path):  # noqa: PTH120
        path = os.path.dirname(path)  # noqa: PTH120
    return path


def _put_bytes(layer: Details, told: Dict[str, Any]) -> None:
    size = told.get("TotalSize", told.get("Size"))
    if isinstance(size, int) and not isinstance(size, bool) and size >= 0:
        layer["bytes"] = size


def _word(told: Dict[str, Any], key: str) -> str:
    value = told.get(key)
    return value.strip() if isinstance(value, str) else ""
