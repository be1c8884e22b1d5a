"""What processes have open: their sockets, and the files that a copy reads and writes.

Source: proc(5), /proc/PID/fd, fdinfo and mountinfo.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import stat
from dataclasses import dataclass, field
from typing import Dict, Iterable, Iterator, List, Optional, Sequence, Set, Tuple, TypeVar

from probes.host import folders
from probes.host.folders import MountEntry
from probes.host.proc import Moved
from probes.host.reader import reader

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
    size_bytes: Optional[int]
    """None: it lies on another host, which is not asked."""
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
    matches = (re.fullmatch(r"socket:\[(\d+)\]", target) for _, target in links(pid))
    return {int(match[1]) for match in matches if match}


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

    Empty where it may not be asked; without those on mounts that the process does not see. Of a
    file on another host nothing is asked: stat(2) has NFS write out what the copy wrote, and waits
    for a server that does not answer (fs/nfs/inode.c, nfs_getattr; fs/smb/client/inode.c,
    cifs_getattr).
    """
    found = []
    with contextlib.suppress(OSError):
        mounts = _mounts(pid)
        for fd, target in links(pid):
            if not target.startswith("/") or target.endswith(KEPT_BY_SERVERS):
                continue
            with contextlib.suppress(OSError, ValueError):
                text = _text(f"/proc/{pid}/fdinfo/{fd}")
                entry = mounts.get(_fields(text).get("mnt_id", ""))
                if entry is None:
                    continue
                size_bytes = None
                if not _is_remote(entry):
                    told = os.stat(f"/proc/{pid}/fd/{fd}")  # noqa: PTH116 - the link is the file
                    if not stat.S_ISREG(told.st_mode):
                        continue
                    size_bytes = told.st_size
                each = parse_fdinfo(text, target, size_bytes)
                if each is not None:
                    found.append(each)
    return found


def parse_fdinfo(text: str, path: str, size_bytes: Optional[int]) -> Optional[OpenFile]:
    """One file by its /proc/PID/fdinfo; None: a journal, which is only appended to, or a folder."""
    told = _fields(text)
    flags = int(told.get("flags", "0"), 8)
    # O_TMPFILE has the bit of O_DIRECTORY too; what has a size is known to be a file.
    if flags & APPENDS or (size_bytes is None and flags & os.O_DIRECTORY):
        return None
    access = flags & ACCESS
    return OpenFile(
        path=path,
        size_bytes=size_bytes,
        position_bytes=int(told.get("pos", "0")),
        reads=access != WRITES_ALONE,
        writes=access in (WRITES_ALONE, READS_AND_WRITES),
    )


def busiest(before: List[OpenFile], after: List[OpenFile], writes: bool) -> Optional[OpenFile]:
    """The file that moved most between two looks; of those that did not, the largest."""
    was = {(each.path, each.writes): each for each in before}

    def moved(each: OpenFile) -> Tuple[int, bool, int]:
        old = was.get((each.path, each.writes), each)
        grown = abs(each.position_bytes - old.position_bytes)
        size_bytes = each.size_bytes or 0
        grown += abs(size_bytes - (old.size_bytes or 0))
        # A server that may write a file which it reads is told apart from one that does write.
        return grown, each.writes == writes, size_bytes

    fitting = [each for each in after if (each.writes if writes else each.reads)]
    return max(fitting, key=moved, default=None)


def place(pid: int, file: OpenFile) -> Optional[Place]:
    """Where an open file of a process lies, by the mounts that it sees; None: they are hidden."""
    try:
        entries = folders.parse_mountinfo(_text(f"/proc/{pid}/mountinfo"))
    except OSError:
        return None
    entry = folders.mount_of(file.path, entries)
    return None if entry is None else _place(entry, os.path.dirname(file.path))  # noqa: PTH120 - bytes that are no UTF-8 stay as they are


def _place(entry: MountEntry, folder: str) -> Place:
    options: Dict[str, str] = {}
    for each in entry.options.split(","):
        name, _, value = each.partition("=")
        options[name] = value
    kind = entry.filesystem
    remote = _is_remote(entry)
    port = options.get("port", "")
    smb = kind in folders.SMB_FILESYSTEMS
    return Place(
        folder=folder,
        here=not remote and _is_ours(folder),
        filesystem=kind,
        device=None if remote else folders.device_of(entry),
        remote=remote,
        remote_address=options.get("addr") or None if remote else None,
        remote_port=int(port) if remote and re.fullmatch(r"\d{1,5}", port) else 0,
        dialect=folders.DIALECT_OF_VERSION.get(options.get("vers", "")) if smb else None,
    )


def _is_remote(entry: MountEntry) -> bool:
    kind = entry.filesystem
    return kind in folders.REMOTE_FILESYSTEMS or kind.startswith("fuse.")


def _is_ours(folder: str) -> bool:
    """Whether we see that folder on this host too: what we have there may be another host's."""
    entry = folders.mount_of(folder, folders.mounts())
    return entry is not None and not _is_remote(entry) and os.path.isdir(folder)  # noqa: PTH112 - where it may not be looked at, it is none


def _mounts(pid: int) -> Dict[str, MountEntry]:
    """The mounts that a process sees, by the number that fdinfo names them with."""
    return {
        line.split()[0]: entry
        for line in _text(f"/proc/{pid}/mountinfo").splitlines()
        for entry in folders.parse_mountinfo(line)
    }


def _fields(text: str) -> Dict[str, str]:
    """Of a /proc/PID/fdinfo."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs}


def links(pid: int) -> Iterator[Tuple[str, str]]:
    """Number and target of each open file. Errors: OSError, where it may not be asked."""
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder)[:MOST_FILES]:
        with contextlib.suppress(OSError):
            yield name, os.readlink(f"{folder}/{name}")  # noqa: PTH115 - socket:[7] is no path


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123 - a tenth of Path's time
        return file.read()


MOST_THREADS = 256
"""Of those that one look for waiting ones asks."""
T = TypeVar("T")


def moved(pids: Iterable[int]) -> Optional[Moved]:
    """The sum over processes; None: none of them lets us ask (it needs their user, or root)."""
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            told = reader().moved(pid)
            if told is not None:
                found.append(told)
    return Moved(*map(sum, zip(*found))) if found else None


@dataclass
class Tally:
    """What processes moved, those of them that end meanwhile included: it never falls."""

    pids: Tuple[int, ...]
    last: Dict[int, Moved] = field(default_factory=dict)
    parents: Dict[int, int] = field(default_factory=dict)
    most: Optional[Moved] = None

    def __post_init__(self) -> None:
        seen = reader().processes() if self.pids else {}
        self.parents = {pid: seen[pid].parent for pid in self.pids if pid in seen}

    def moved(self) -> Optional[Moved]:
        """The sum by now; None: none of them ever let us ask."""
        gone = set()
        for pid in self.pids:
            try:
                told = reader().moved(pid)
            except ProcessLookupError:
                gone.add(pid)
                continue
            except OSError:
                continue
            if told is not None:
                self.last[pid] = told
        for pid in gone:
            # A parent that waits for a child takes its account over (kernel/exit.c,
            # wait_task_zombie).
            if self.parents.get(pid) in set(self.pids) - gone:
                self.last.pop(pid, None)
        if self.last:
            total = Moved(*map(sum, zip(*self.last.values())))
            self.most = total if self.most is None else Moved(*map(max, zip(self.most, total)))
        return self.most


def parse_state(stat: str) -> str:
    """The state in a line of /proc/PID/stat; empty: there is no such line."""
    return stat.rpartition(")")[2].strip()[:1]


def waits_for_disk(pids: Iterable[int]) -> Optional[bool]:
    """Whether any thread of the processes is in uninterruptible sleep now; None: none is left.

    A file server has threads for its disk beside the one that hears the network. Of more than
    MOST_THREADS each look asks others.
    """
    seen = None
    left = MOST_THREADS
    for pid in _turned(list(pids)):
        with contextlib.suppress(OSError):
            for thread in _turned(os.listdir(f"/proc/{pid}/task"))[:left]:
                left -= 1
                with contextlib.suppress(OSError):
                    seen = parse_state(_text(f"/proc/{pid}/task/{thread}/stat")) == "D"
                    if seen:
                        return True
        if not left:
            break
    return seen


def _turned(items: Sequence[T]) -> List[T]:
    """The same, begun anywhere."""
    at = random.randrange(len(items)) if items else 0
    return [*items[at:], *items[:at]]
