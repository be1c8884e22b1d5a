"""Work that a file system does for itself on its disks: a scrub, a resilver, a balance.

Sources: zpool-status(8); btrfs-progs' cmds/scrub.c, which rewrites its status file every 5 s;
Documentation/ABI/testing/sysfs-fs-btrfs (exclusive_operation).
"""

from __future__ import annotations

import re
import time
from pathlib import Path

from probes.system import tools
from probes.system.proc import word

ANSWER_SECONDS = 5.0
BTRFS_STATUS = Path("/var/lib/btrfs")
STALE_SECONDS = 60.0
"""Age of a scrub's status file from which on the scrub has ended without a word."""
_ZFS = re.compile(r"^\s*scan: (scrub|resilver) in progress", re.MULTILINE)
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
    if operation not in (None, "none"):
        return operation
    status = status_folder / f"scrub.status.{folder.name}"
    try:
        age = (time.time() if now is None else now) - status.stat().st_mtime
        is_running = bool(_BTRFS.search(status.read_text("utf-8", "replace")))
    except OSError:
        return None
    return "scrub" if is_running and age < STALE_SECONDS else None
