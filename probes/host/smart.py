"""What a disk says of its own health, by smartctl (smartmontools 7 and later).

Source: smartctl(8): --json, `-n standby` (a sleeping disk stays asleep), EXIT STATUS (a bit mask:
bits 0 to 2 are smartctl's own failures, bits 3 to 7 the disk's state); ataprint.cpp, scsiprint.cpp,
nvmeprint.cpp.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any, Dict

from probes.host import tools
from probes.records import Details

ANSWER_SECONDS = 5.0
OPTIONS = ("--json", "-a", "-n", "standby")
SECONDS_PER_HOUR = 3600
NOT_ASKED_BITS = 0b011
"""The command line was wrong, or the device was not opened (or sleeps)."""
STATES = {3: "failing", 4: "below-threshold", 5: "was-below-threshold", 6: "errors-logged"}
"""By bit of the exit status; 7 (a self-test's errors) may be years old."""
ATTRIBUTES = {5: "reallocated_sectors", 197: "pending_sectors", 198: "uncorrectable_sectors"}
"""By number of the ATA attribute; the raw value counts."""
RAW_BITS = 0xFFFFFFFF
"""Of a raw value that count sectors; some disks keep other things above them."""


def read(name: str) -> Details:
    """SMART of a whole disk by its kernel name; empty: no smartctl, no right, or no answer.

    passed, states (words), reallocated_sectors, pending_sectors, uncorrectable_sectors,
    temperature_celsius, power_on_seconds, wear_ratio (1.0: the endurance that was promised is used
    up), media_errors, rotations_per_minute; `asleep` alone where the disk sleeps. Serial numbers
    are left out.
    """
    program = tools.find("smartctl")
    node = "/dev/" + name.replace("!", "/")
    if program is None or os.geteuid() != 0 or not _is_block(node):
        return {}
    return parse(tools.printed((program, *OPTIONS, node), ANSWER_SECONDS))


def parse(text: str) -> Details:
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
    for key, value in (*_common(told).items(), *_of_ata(told).items(), *_of_nvme(told).items()):
        if value is not None:
            found[key] = value
    return found


def _common(told: Dict[str, Any]) -> Dict[str, float | None]:
    hours = _number(told, "power_on_time", "hours")
    return {
        "temperature_celsius": _number(told, "temperature", "current"),
        "power_on_seconds": None if hours is None else hours * SECONDS_PER_HOUR,
        "rotations_per_minute": _number(told, "rotation_rate") or None,
        "reallocated_sectors": _number(told, "scsi_grown_defect_list"),
        "wear_ratio": _share(
            _number(told, "endurance_used", "current_percent"),
            _number(told, "scsi_percentage_used_endurance_indicator"),
        ),
    }


def _of_ata(told: Dict[str, Any]) -> Dict[str, float | None]:
    table = _in(told, "ata_smart_attributes", "table")
    found: Dict[str, float | None] = {}
    for row in table if isinstance(table, list) else ():
        number, raw = _number(row, "id"), _number(row, "raw", "value")
        if raw is not None and number in ATTRIBUTES:
            found[ATTRIBUTES[int(number)]] = int(raw) & RAW_BITS
    return found


def _of_nvme(told: Dict[str, Any]) -> Dict[str, float | None]:
    log = _in(told, "nvme_smart_health_information_log")
    if not isinstance(log, dict):
        return {}
    return {
        "wear_ratio": _share(_number(log, "percentage_used")),
        "media_errors": _number(log, "media_errors"),
    }


def _sleeps(told: Dict[str, Any]) -> bool:
    """smartctl tells it in a message: `Device is in STANDBY mode, exit(2)`."""
    messages = _in(told, "smartctl", "messages")
    texts = [_in(each, "string") for each in messages] if isinstance(messages, list) else []
    return any(isinstance(each, str) and each.startswith("Device is in S") for each in texts)


def _share(*percents: float | None) -> float | None:
    return next((each / 100 for each in percents if each is not None), None)


def _in(told: Any, *keys: str) -> Any:
    for key in keys:
        told = told.get(key) if isinstance(told, dict) else None
    return told


def _number(told: Any, *keys: str) -> float | None:
    value = _in(told, *keys)
    fits = isinstance(value, (int, float)) and not isinstance(value, bool)
    return value if fits and 0 <= value < float("inf") else None


def _is_block(path: str) -> bool:
    try:
        return stat.S_ISBLK(Path(path).stat().st_mode)
    except OSError:
        return False
