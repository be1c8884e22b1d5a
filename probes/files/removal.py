"""Removes a folder that a run created: by its name and identity, through descriptors.

No path is walked and no link followed: each step goes from an open folder to a name in it.
"""

from __future__ import annotations

import re
import stat
from typing import Any, Dict, List, Optional, Tuple

from probes.system.platform import os
from probes.system.waiting import signal

RUN, TREE = "run", "tree"
"""Kinds of folder: on a share, where only a run's files are removed; closed to others, where all of
it is removed."""
MAGIC = b"\x89bottleneck run\n"
"""First bytes of every payload."""
OLD_FILE = re.compile(
    r"source|\.?pushed-[0-9a-f]{16}(\.[0-9A-Za-z_-]{1,16})?|small-[0-9a-f]{16}-[0-9]{1,6}"
)
"""Names of a run's files before they had the run's id; removed if they begin with MAGIC."""
GONE, MISSING, OTHER = "gone", "missing", "other"
"""Results: removed; nothing has its name; another object has its name and stays."""

Facts = Dict[str, Any]
"""name and kind; after its creation ino and dev (absent after another boot); leader and started, of
a process group that has to end first."""


def run_files(folder: str) -> re.Pattern[str]:
    """Returns the pattern of the names of a run's files in its folder bottleneck-RUN.

    Each contains RUN, 128 random bits: a file of that name in another folder is nobody's. Programs
    that copy write to a name derived from it (rsync(1): .NAME.XXXXXX).
    """
    run, unique = re.escape(folder.rpartition("-")[2]), "[0-9a-f]{16}"
    pushed = rf"\.?pushed-{run}-{unique}(\.[0-9A-Za-z_-]{{1,16}})?"
    return re.compile(rf"source-{run}|{pushed}|small-[0-9]{{1,6}}-[0-9a-f]{{8}}-{run}")


def open_folder(name: str, parent: Optional[int] = None) -> int:
    """Opens a folder; follows no link where it is a name in an open folder."""
    flags = os.O_RDONLY | os.O_DIRECTORY | (0 if parent is None else os.O_NOFOLLOW)
    return os.open(name, flags, dir_fd=parent)


def remove(parent: int, facts: Facts) -> str:
    """Removes the folder of that name and identity; returns GONE, MISSING or OTHER.

    A folder of unknown identity has no content of ours yet, and is removed if it is empty. Errors:
    OSError of the part that could not be removed; NotADirectoryError is OTHER.
    """
    name = facts["name"]
    try:
        folder = open_folder(name, parent)
    except FileNotFoundError:
        return MISSING
    except OSError:
        if _is_folder(parent, name):
            raise
        return OTHER
    try:
        status = os.fstat(folder)
        if "ino" in facts:
            if status.st_ino != facts["ino"] or facts.get("dev", status.st_dev) != status.st_dev:
                return OTHER
            if "dev" not in facts and status.st_uid != os.geteuid():
                return OTHER  # less certain, and so only our own
            empty(folder, facts, status.st_dev)
    finally:
        # Before rmdir: a file server does not remove a folder that was listed and is still open.
        os.close(folder)
    try:
        if not os.path.samestat(os.stat(name, dir_fd=parent, follow_symlinks=False), status):
            return OTHER
        os.rmdir(name, dir_fd=parent)
    except FileNotFoundError:
        return MISSING
    return GONE


def _is_folder(parent: int, name: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def empty(folder: int, facts: Facts, device: int) -> None:
    """Removes a run's files from its open folder, or everything from one of kind TREE."""
    inner = _without_files(folder, facts["name"] if facts["kind"] == RUN else "", device)
    while inner:
        inner += _without_folder(folder, inner.pop(), device)


def _without_files(folder: int, run_folder: str, device: int) -> List[str]:
    """Removes a run's files, or all where run_folder is empty; returns the folders to remove."""
    inner, run_names = [], run_files(run_folder)
    for name in os.listdir(folder):
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                if not run_folder and status.st_dev == device:
                    inner.append(name)
            elif not run_folder or is_run_file(folder, name, status, run_names):
                os.unlink(name, dir_fd=folder)
        except FileNotFoundError:  # a step that gave up on a slow disk removes its file itself
            continue
    return inner


def _without_folder(top: int, name: str, device: int) -> List[str]:
    """Removes a folder in the top one; moves its folders up and returns their new names.

    Others may nest as deep as they like: no level may cost a descriptor or a frame.
    """
    lifted = []
    inner = open_folder(name, top)
    try:
        if os.fstat(inner).st_dev != device:
            return []
        for each in _without_files(inner, "", device):
            new = os.urandom(16).hex()
            os.rename(each, new, src_dir_fd=inner, dst_dir_fd=top)
            lifted.append(new)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=top)
    return lifted


def is_run_file(folder: int, name: str, info: os.stat_result, run_names: re.Pattern[str]) -> bool:
    """Whether a run wrote the file: by its name, or by MAGIC, with which an older version's begin.

    A link of our name is removed itself; its target stays.
    """
    if run_names.fullmatch(name):
        return stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode)
    if not OLD_FILE.fullmatch(name) or not stat.S_ISREG(info.st_mode) or info.st_nlink > 1:
        return False
    try:
        first_bytes, opened_file = head(folder, name)
    except OSError:  # another user's
        return False
    return first_bytes == MAGIC and os.path.samestat(opened_file, info)


def head(folder: int, name: str) -> Tuple[bytes, os.stat_result]:
    """Reads as many first bytes of a file in an open folder as MAGIC has; with its stat(2)."""
    # O_NONBLOCK: a FIFO in its place must not block us
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    try:
        return os.pread(fd, len(MAGIC), 0), os.fstat(fd)
    finally:
        os.close(fd)


def started_ticks(pid: int) -> Optional[int]:
    """Returns a process's start, in ticks since the boot (proc(5)); None: there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:  # noqa: PTH123
            return int(file.read().rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return None


def pid_space() -> int:
    """Returns the number of our PID namespace (pid_namespaces(7)); 0: not known."""
    try:
        return os.stat("/proc/self/ns/pid").st_ino  # noqa: PTH116
    except OSError:
        return 0


def end_group(facts: Facts) -> None:
    """Kills the process group, if its leader is that very process."""
    if "leader" not in facts or started_ticks(facts["leader"]) != facts["started"]:
        return
    try:
        os.killpg(facts["leader"], signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # it has ended; or its number is another user's by now
