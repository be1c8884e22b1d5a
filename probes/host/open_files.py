"""What processes have open: their sockets, and the files that a copy reads and writes.

Source: proc(5), /proc/PID/fd, fdinfo and mountinfo.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from dataclasses import dataclass
from typing import Dict, Iterator, List, Optional, Set, Tuple

from probes.host import folders, mount
from probes.host.folders import MountEntry

ACCESS, WRITES_ALONE, READS_AND_WRITES, APPENDS = 0o3, 0o1, 0o2, 0o2000
"""Of the flags in fdinfo (open(2)): O_ACCMODE, O_WRONLY, O_RDWR, O_APPEND."""
KEPT_BY_SERVERS = (".tdb", ".ldb", ".log", ".pid", ".so", ".dat")
"""Files that a file server has open for itself."""
MOST_FILES = 4096
"""Of one process; a copy has a handful."""


@dataclass(frozen=True)
class OpenFile:
    """A regular file that a process has open."""

    path: str
    size_bytes: int
    position_bytes: int
    """Stays where it is for whoever names the place with each request (pread(2))."""
    reads: bool
    writes: bool


@dataclass(frozen=True)
class Place:
    """Where a copy's file lies."""

    folder: str
    here: bool
    """Whether it is a folder of ours too: the process may see other mounts than we do."""
    filesystem: Optional[str]
    device: Optional[str]
    """Kernel name of the block device below; None: none, or not to be seen."""
    remote: bool
    """Whether it lies on another host: a network file system, or a daemon's."""
    remote_address: Optional[str]
    """Of that host, where the mount names it."""
    remote_port: int
    """0: not told."""
    dialect: Optional[str]
    """Of SMB, where the mount tells."""


def inodes(pid: int) -> Set[int]:
    """Inodes of the sockets that a process holds. Errors: OSError, where it may not be asked."""
    found = set()
    for _, target in _links(pid):
        match = re.fullmatch(r"socket:\[(\d+)\]", target)
        if match:
            found.add(int(match[1]))
    return found


def holders(inode: int, pids: List[int]) -> Tuple[int, ...]:
    """Those of the processes that hold a socket; empty: the kernel itself, or not ours to see."""
    found = []
    for pid in pids if inode else ():
        with contextlib.suppress(OSError):
            if inode in inodes(pid):
                found.append(pid)
    return tuple(found)


def regular_files(pid: int) -> List[OpenFile]:
    """The files that a process reads or writes, those that servers keep for themselves left out.

    Empty where it may not be asked.
    """
    found = []
    with contextlib.suppress(OSError):
        for fd, target in _links(pid):
            if not target.startswith("/") or target.endswith(KEPT_BY_SERVERS):
                continue
            with contextlib.suppress(OSError, ValueError):
                told = os.stat(f"/proc/{pid}/fd/{fd}")  # noqa: PTH116 - the link is the file
                each = parse_fdinfo(_text(f"/proc/{pid}/fdinfo/{fd}"), target, told.st_size)
                if stat.S_ISREG(told.st_mode) and each is not None:
                    found.append(each)
    return found


def parse_fdinfo(text: str, path: str, size_bytes: int) -> Optional[OpenFile]:
    """One file by its /proc/PID/fdinfo; None: it is a journal, which is only appended to."""
    told = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    flags = int(told.get("flags", "0").strip(), 8)
    if flags & APPENDS:
        return None
    access = flags & ACCESS
    return OpenFile(
        path=path,
        size_bytes=size_bytes,
        position_bytes=int(told.get("pos", "0").strip()),
        reads=access != WRITES_ALONE,
        writes=access in (WRITES_ALONE, READS_AND_WRITES),
    )


def busiest(before: List[OpenFile], after: List[OpenFile], writes: bool) -> Optional[OpenFile]:
    """The file that moved most between two looks; of those that did not, the largest."""
    was = {(each.path, each.writes): each for each in before}

    def moved(each: OpenFile) -> Tuple[int, bool, int]:
        old = was.get((each.path, each.writes), each)
        grown = abs(each.position_bytes - old.position_bytes)
        grown += abs(each.size_bytes - old.size_bytes)
        # A server that may write a file which it reads is told apart from one that does write.
        return grown, each.writes == writes, each.size_bytes

    fitting = [each for each in after if (each.writes if writes else each.reads)]
    return max(fitting, key=moved, default=None)


def place(pid: int, file: OpenFile) -> Optional[Place]:
    """Where an open file of a process lies, by the mounts that it sees; None: they are hidden."""
    try:
        entries = folders.parse_mountinfo(_text(f"/proc/{pid}/mountinfo"))
    except OSError:
        return None
    entry = folders.mount_of(file.path, entries)
    return None if entry is None else _place(entry, os.path.dirname(file.path))  # noqa: PTH120


def _place(entry: MountEntry, folder: str) -> Place:
    options: Dict[str, str] = {}
    for each in entry.options.split(","):
        name, _, value = each.partition("=")
        options[name] = value
    kind = entry.filesystem
    remote = kind in mount.REMOTE_FILESYSTEMS or kind.startswith("fuse.")
    port = options.get("port", "")
    smb = kind in mount.SMB_FILESYSTEMS
    return Place(
        folder=folder,
        here=not remote and os.path.isdir(folder),  # noqa: PTH112
        filesystem=kind,
        device=None if remote else folders.device_of(entry),
        remote=remote,
        remote_address=options.get("addr") or None if remote else None,
        remote_port=int(port) if remote and re.fullmatch(r"\d{1,5}", port) else 0,
        dialect=mount.DIALECT_OF_VERSION.get(options.get("vers", "")) if smb else None,
    )


def _links(pid: int) -> Iterator[Tuple[str, str]]:
    """Number and target of each open file."""
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder)[:MOST_FILES]:
        with contextlib.suppress(OSError):
            yield name, os.readlink(f"{folder}/{name}")  # noqa: PTH115 - socket:[7] is no path


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123
        return file.read()
