"""Finds a run's folder on this host, where a share lies that this host serves."""

from __future__ import annotations

import contextlib
import re
import stat
import time
from typing import Iterator, Optional

from probes.core.meaning import Text
from probes.core.stage import Unavailable
from probes.files import folders, open_files
from probes.files.served_file import check_name
from probes.programs import samba_config
from probes.system.platform import os
from probes.system.proc import names

WALK_DEPTH = 6
"""Folders below a root; the time ends most walks sooner."""


WALK_SECONDS = 2.0


TESTPARM_SECONDS = 3.0


REAL_FILESYSTEMS = frozenset(
    ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "bcachefs", "f2fs", "jfs", "vfat", "exfat")
    + ("ntfs", "ntfs3", "fuseblk", "tmpfs", "overlay", "hfsplus", "ufs")
)
"""Local ones that people share; network file systems are not walked."""


def locate(folder_name: Text, hint: Optional[Text]) -> Optional[str]:
    """This host's path of the run's folder (bottleneck-<hex>); None: not found.

    hint: the server's path of the share's folder, where the user gave one. Errors: ValueError for
    any other name.
    """
    check_name(folder_name)
    for candidate in _candidates(folder_name, hint):
        if _is_folder(candidate):
            return candidate
    return None


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
    for pid in filter(str.isdigit, names("/proc")):
        with contextlib.suppress(OSError):  # it ended, or is another user's
            for _, target in open_files.links(int(pid)):
                before, found, after = target.partition(f"/{folder_name}")
                if found and (not after or after.startswith("/")):
                    yield before + found


def _share_paths() -> list[str]:
    try:
        told = samba_config.run_testparm(["-s"], None, TESTPARM_SECONDS)
    except Unavailable:
        return []
    return parse_testparm(told.stdout.decode("utf-8", "surrogateescape"))


def _mount_points() -> list[str]:
    found = [each.point for each in folders.mounts() if each.filesystem in REAL_FILESYSTEMS]
    return found or ["/"]


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


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
