"""The layers under a folder of Windows, from what PowerShell's storage commands print as JSON.

Parsed from recorded text: no Windows host was at hand, and each layer is labelled untested.
Sources: learn.microsoft.com MSFT_PhysicalDisk, MSFT_Partition, MSFT_Volume (numbers of BusType and
MediaType; SpindleSpeed 4294967295 is unknown); Get-PhysicalDisk shows their names.
"""

from __future__ import annotations

import json
import ntpath
import re
from typing import Any, Dict, List

from probes.host import tools
from probes.records import Details

ANSWER_SECONDS = 20.0
"""PowerShell's own start takes seconds."""
SCRIPT = (
    "$p = Get-Partition -DriveLetter {0}; $n = $p.DiskNumber; "
    "@{{volume = Get-Volume -DriveLetter {0} | Select-Object FileSystem, Size; "
    "partition = $p | Select-Object DiskNumber, PartitionNumber, Offset, Size; "
    "disk = Get-PhysicalDisk | Where-Object DeviceId -eq $n | Select-Object DeviceId, "
    "FriendlyName, Model, MediaType, BusType, Size, SpindleSpeed, HealthStatus"
    "}} | ConvertTo-Json -Depth 3 -Compress"
)
UNKNOWN_SPINDLE = 0xFFFFFFFF
MEDIA = {3: "HDD", 4: "SSD", 5: "SCM"}
BUSES = {1: "SCSI", 3: "ATA", 6: "Fibre Channel", 7: "USB", 8: "RAID", 9: "iSCSI", 10: "SAS"}
BUSES.update({11: "SATA", 12: "SD", 13: "MMC", 14: "Virtual", 16: "Storage Spaces", 17: "NVMe"})
TRANSPORTS = {"SD": "mmc", "Fibre Channel": "fc"}
HEALTHY = ("Healthy", 0)


def layers(path: str) -> List[Details]:
    """What a folder lies on, top first: its volume, its partition, its disk; or its server."""
    drive = ntpath.splitdrive(ntpath.abspath(path))[0]
    if drive.startswith("\\\\"):
        host = drive[2:].partition("\\")[0]
        return [{"name": "smb", "kind": "network", "host": host, "tested": False}]
    letter = drive[:1]
    if not re.fullmatch("[A-Za-z]", letter):
        return []
    command = ("powershell", "-NoProfile", "-NonInteractive", "-Command", SCRIPT.format(letter))
    return parse(tools.printed(command, ANSWER_SECONDS))


def parse(text: str) -> List[Details]:
    """The layers of the JSON that SCRIPT prints; empty: it is none. Never raises."""
    try:
        told = json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return []
    if not isinstance(told, dict):
        return []
    parts = (_volume(_one(told, "volume")), _partition(_one(told, "partition")))
    return [each for each in (*parts, _disk(_one(told, "disk"))) if each]


def _volume(told: Dict[str, Any]) -> Details:
    name = told.get("FileSystem")
    if not isinstance(name, str) or not name:
        return {}
    found: Details = {"name": name, "kind": "filesystem", "filesystem": name, "tested": False}
    return _with_bytes(found, told)


def _partition(told: Dict[str, Any]) -> Details:
    disk, number, offset = (
        _number(told.get(key)) for key in ("DiskNumber", "PartitionNumber", "Offset")
    )
    if disk is None or number is None:
        return {}
    found: Details = {"name": f"disk {disk} partition {number}", "kind": "partition"}
    found["tested"] = False
    if offset is not None:
        found["offset_bytes"] = offset
    return _with_bytes(found, told)


def _disk(told: Dict[str, Any]) -> Details:
    """Storage Spaces have no physical disk of the volume's number: then there is no such layer."""
    number = told.get("DeviceId")
    if number is None:
        return {}
    found: Details = {"name": f"PhysicalDrive{number}", "kind": "disk", "tested": False}
    model = told.get("Model") or told.get("FriendlyName")
    if isinstance(model, str):
        found["model"] = model.strip()
    spindle = _number(told.get("SpindleSpeed"))
    media = MEDIA.get(_number(told.get("MediaType")) or 0) or told.get("MediaType")
    if media in ("SSD", "SCM", "HDD"):
        found["rotational"] = media == "HDD"
    if spindle not in (None, 0, UNKNOWN_SPINDLE):
        found["rotational"] = True
    bus = BUSES.get(_number(told.get("BusType")) or 0) or told.get("BusType")
    if isinstance(bus, str) and bus not in ("Unknown", "0"):
        found["transport"] = TRANSPORTS.get(bus, bus.lower())
    if told.get("HealthStatus") is not None:
        found["smart"] = {"passed": told["HealthStatus"] in HEALTHY}
    return _with_bytes(found, told)


def _with_bytes(found: Details, told: Dict[str, Any]) -> Details:
    size = _number(told.get("Size"))
    if size is not None:
        found["bytes"] = size
    return found


def _one(told: Dict[str, Any], key: str) -> Dict[str, Any]:
    """ConvertTo-Json gives an object for one thing and a list for more: the first."""
    value = told.get(key)
    if isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, dict) else {}


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
