"""The server's path of a share: found by the run's own folder, whose name nobody else has.

The client has made the folder over SMB and keeps it open; here it is looked for, first where
we were told, then among what processes hold open, then where smb.conf points, then by a short
walk over the local disks. And the page cache of the file in it is set and proven.
"""

from __future__ import annotations

import os
import re
import stat
import subprocess
import time
from pathlib import Path
from typing import Iterator

from probes.host import folders, page_cache, tools
from probes.records import Details

RUN_FOLDER = re.compile(r"bottleneck-[0-9a-f]{8,64}")
SOURCE = "source"
RUN_FILE = re.compile(r"source|pushed-[0-9a-f]{16}")
"""Names of the files that a run puts into its folder on a share."""
WALK_DEPTH = 4
WALK_SECONDS = 2.0
TESTPARM_SECONDS = 3.0
REAL_FILESYSTEMS = frozenset(
    ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "bcachefs", "f2fs", "jfs", "vfat", "exfat")
    + ("ntfs", "ntfs3", "fuseblk", "tmpfs", "overlay", "hfsplus", "ufs")
)
"""Local ones that people share; network file systems are not walked."""


def locate(folder_name: str, hint: str | None) -> str | None:
    """This host's path of the run's folder (bottleneck-<hex>); None: not found.

    hint: the server's path of the share's folder, where the user gave one. Errors: ValueError for
    any other name.
    """
    check_name(folder_name)
    for candidate in _candidates(folder_name, hint):
        if _is_folder(candidate):
            return candidate
    return None


def check_name(folder_name: str) -> None:
    """Refuses what is not the name of a run's folder."""
    if not RUN_FOLDER.fullmatch(folder_name):
        raise ValueError("not the name of a run's folder")


def set_cache(path: str, requested: str, first_bytes: int = 0, file_name: str = SOURCE) -> Details:
    """Evicts or warms the first bytes of the file `source` in the run's folder, and proves it.

    What lies behind them is left as it is: it need not be read from a slow disk again.
    path: as locate() found it. requested: cached, uncached. first_bytes: 0 is the whole file.
    file_name: another file of the run there.
    Returns side, requested, proven, cached_ratio_before (None: cannot be told). Errors: ValueError
    for a path that is not a run's folder or a source that is not a regular file; OSError.
    """
    if requested not in ("cached", "uncached"):
        raise ValueError(f"a file cannot be made {requested}")
    check_name(os.path.basename(path))  # noqa: PTH119
    if not RUN_FILE.fullmatch(file_name):
        raise ValueError("not the name of a run's file")
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        # O_NONBLOCK: a planted FIFO must not hold us
        fd = os.open(file_name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    finally:
        os.close(folder)
    try:
        told = os.fstat(fd)
        if not stat.S_ISREG(told.st_mode):
            raise ValueError(f"{file_name} in the run's folder is not a regular file")
        size_bytes = min(first_bytes or told.st_size, told.st_size)
        if requested == "cached":
            page_cache.warm(fd, size_bytes)
        else:
            page_cache.evict(fd, size_bytes)
        state = page_cache.state(fd, size_bytes)
    finally:
        os.close(fd)
    return {
        "side": "server",
        "requested": requested,
        "proven": page_cache.proven(state, requested == "cached"),
        "cached_ratio_before": None if state is None else state.cached_ratio,
    }


def parse_testparm(text: str) -> list[str]:
    """The paths of the shares that `testparm -s` prints; ones with variables are left out."""
    paths = re.findall(r"^\s*path\s*=\s*(/.*?)\s*$", text, re.MULTILINE)
    return [path for path in dict.fromkeys(paths) if "%" not in path]


def _candidates(folder_name: str, hint: str | None) -> Iterator[str]:
    if hint:
        yield os.path.join(hint, folder_name)  # noqa: PTH118
    yield from _held_open(folder_name)
    roots = _share_paths()
    for root in roots:
        yield os.path.join(root, folder_name)  # noqa: PTH118
    yield from _walked([*roots, *_mount_points()], folder_name)


def _held_open(folder_name: str) -> Iterator[str]:
    """What any process that we may look at holds open under that name."""
    for pid in filter(str.isdigit, _names("/proc")):
        for fd in _names(f"/proc/{pid}/fd"):
            try:
                target = os.readlink(f"/proc/{pid}/fd/{fd}")  # noqa: PTH115
            except OSError:
                continue  # closed meanwhile
            before, found, after = target.partition(f"/{folder_name}")
            if found and (not after or after.startswith("/")):
                yield before + found


def _share_paths() -> list[str]:
    testparm = tools.find("testparm")
    if testparm is None:
        return []
    try:
        told = subprocess.run(
            [testparm, "-s"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=TESTPARM_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return parse_testparm(told.stdout.decode("utf-8", "surrogateescape"))


def _mount_points() -> list[str]:
    try:
        text = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return ["/"]
    entries = folders.parse_mountinfo(text)
    return [entry.point for entry in entries if entry.filesystem in REAL_FILESYSTEMS]


def _walked(roots: list[str], folder_name: str) -> Iterator[str]:
    """Level by level below each root, on its own file system, until depth or time is over."""
    until = time.monotonic() + WALK_SECONDS
    seen: set[tuple[int, int]] = set()
    level = roots
    for _ in range(WALK_DEPTH):
        deeper: list[str] = []
        for folder in level:
            if time.monotonic() >= until:
                return
            for entry in _folders_in(folder, seen):
                if entry.name == folder_name:
                    yield entry.path
                deeper.append(entry.path)
        level = deeper


def _folders_in(folder: str, seen: set[tuple[int, int]]) -> list[os.DirEntry[str]]:
    """Folders in a folder that was not looked at before; neither links nor other file systems."""
    try:
        told = os.stat(folder)  # noqa: PTH116
        if (told.st_dev, told.st_ino) in seen:
            return []
        seen.add((told.st_dev, told.st_ino))
        with os.scandir(folder) as entries:
            found = [each for each in entries if each.is_dir(follow_symlinks=False)]
            return [
                each for each in found if each.stat(follow_symlinks=False).st_dev == told.st_dev
            ]
    except OSError:
        return []  # not ours to read, or gone


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
