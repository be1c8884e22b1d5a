"""Finds a run's folder on this host, which serves its share."""

from __future__ import annotations

import contextlib
import re
import stat
import time
from typing import Iterator, Optional

from probes.core.field_types import Text
from probes.core.stage import Unavailable
from probes.files import folders, open_files
from probes.files.served_file import check_name
from probes.programs import samba_config
from probes.system.platform import os
from probes.system.proc import names

WALK_DEPTH = 6
"""Levels of folders below a root; the time ends most walks sooner."""


WALK_SECONDS = 2.0


TESTPARM_SECONDS = 3.0


REAL_FILESYSTEMS = frozenset(
    ("ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "bcachefs", "f2fs", "jfs", "vfat", "exfat")
    + ("ntfs", "ntfs3", "fuseblk", "tmpfs", "overlay", "hfsplus", "ufs")
)
"""Local file systems that people share; network file systems are not walked."""


def locate(folder_name: Text, hint: Optional[Text]) -> Optional[str]:
    """Returns this host's path of the run's folder (bottleneck-<hex>); None: not found.

    hint: the server's path of the share's folder, from the user. Errors: ValueError for any other
    name.
    """
    check_name(folder_name)
    for candidate in _candidates(folder_name, hint):
        if _is_folder(candidate):
            return candidate
    return None


def parse_testparm(text: str) -> list[str]:
    """Returns the shares' paths in the output of `testparm -s`, without those with variables."""
    paths = re.findall(r"^\s*path\s*=\s*(/.*?)\s*$", text, re.MULTILINE)
    return [path for path in dict.fromkeys(paths) if "%" not in path]


def _candidates(folder_name: str, hint: str | None) -> Iterator[str]:
    if hint:
        yield os.path.join(hint, folder_name)  # noqa: PTH118
    yield from _opened_folders(folder_name)
    roots = _share_paths()
    for root in roots:
        yield os.path.join(root, folder_name)  # noqa: PTH118
    yield from _walk([*roots, *_mount_points()], folder_name)


def _opened_folders(folder_name: str) -> Iterator[str]:
    """Yields the folders of that name that visible processes have open."""
    for pid in filter(str.isdigit, names("/proc")):
        with contextlib.suppress(OSError):  # it ended, or is another user's
            for _, target in open_files.links(int(pid)):
                parent, match, rest = target.partition(f"/{folder_name}")
                if match and (not rest or rest.startswith("/")):
                    yield parent + match


def _share_paths() -> list[str]:
    try:
        output = samba_config.run_testparm(["-s"], None, TESTPARM_SECONDS)
    except Unavailable:
        return []
    return parse_testparm(output.stdout.decode("utf-8", "surrogateescape"))


def _mount_points() -> list[str]:
    points = [each.point for each in folders.mounts() if each.filesystem in REAL_FILESYSTEMS]
    return points or ["/"]


def _walk(roots: list[str], folder_name: str) -> Iterator[str]:
    """Yields folders of that name below each root, on its file system, within depth and time."""
    deadline = time.monotonic() + WALK_SECONDS
    visited: set[tuple[int, int]] = set()
    level = roots
    for _ in range(WALK_DEPTH):
        deeper: list[str] = []
        for folder in level:
            if time.monotonic() >= deadline:
                return
            for entry in _folders_in(folder, visited):
                if entry.name == folder_name:
                    yield entry.path
                deeper.append(entry.path)
        level = deeper


def _folders_in(folder: str, visited: set[tuple[int, int]]) -> list[os.DirEntry[str]]:
    """Returns the folders in an unvisited folder, without links and other file systems."""
    try:
        status = os.stat(folder)  # noqa: PTH116
        if (status.st_dev, status.st_ino) in visited:
            return []
        visited.add((status.st_dev, status.st_ino))
        with os.scandir(folder) as entries:
            inner = [each for each in entries if each.is_dir(follow_symlinks=False)]
            return [e for e in inner if e.stat(follow_symlinks=False).st_dev == status.st_dev]
    except OSError:
        return []  # unreadable, or removed


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
