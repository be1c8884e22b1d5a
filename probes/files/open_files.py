"""What processes have open: their sockets, and the files that a copy reads and writes.

And whose a socket is. Source: proc(5), /proc/PID/fd, fdinfo and mountinfo.
"""

from __future__ import annotations

import contextlib
import re
import stat
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Optional, Set, Tuple

from probes.files import folders
from probes.files.folders import MountEntry
from probes.sockets.sock_diag import plain_address
from probes.system.platform import os
from probes.system.proc import ProcessIo, ProcessStat, text
from probes.system.reader import reader

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
    return tuple(pid for pid in pids if inode and inode in sockets(pid))


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
                if not entry.remote:
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

    def moved(each: OpenFile) -> Tuple[int, bool, int]:
        # A server that may write a file which it reads is told apart from one that does write.
        return grown(before, each), each.writes == writes, each.size_bytes or 0

    fitting = [each for each in after if (each.writes if writes else each.reads)]
    return max(fitting, key=moved, default=None)


def grown(before: List[OpenFile], file: OpenFile) -> int:
    """Bytes by which a file's position and size moved since an earlier look; 0: it is new."""
    old = next((e for e in before if (e.path, e.writes) == (file.path, file.writes)), file)
    longer = (file.size_bytes or 0) - (old.size_bytes or 0)
    return abs(file.position_bytes - old.position_bytes) + abs(longer)


def place(pid: int, file: OpenFile) -> Optional[Place]:
    """Where an open file of a process lies, by the mounts that it sees; None: they are hidden."""
    try:
        entries = folders.parse_mountinfo(_text(f"/proc/{pid}/mountinfo"))
    except OSError:
        return None
    entry = folders.mount_of(file.path, entries)
    return None if entry is None else _place(entry, os.path.dirname(file.path))  # noqa: PTH120 - bytes that are no UTF-8 stay as they are


def _place(entry: MountEntry, folder: str) -> Place:
    options, kind, remote = entry.told, entry.filesystem, entry.remote
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


def _is_ours(folder: str) -> bool:
    """Whether we see that folder on this host too: what we have there may be another host's."""
    entry = folders.mount_of(folder, folders.mounts())
    return entry is not None and not entry.remote and os.path.isdir(folder)  # noqa: PTH112 - where it may not be looked at, it is none


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


def moved(pids: Iterable[int]) -> Optional[ProcessIo]:
    """The sum over processes; None: none of them lets us ask (it needs their user, or root)."""
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            told = reader().process_io(pid)
            if told is not None:
                found.append(told)
    return ProcessIo(*map(sum, zip(*found))) if found else None


@dataclass
class Tally:
    """What processes read and wrote (/proc/PID/io), also those that ended: it never falls."""

    pids: Tuple[int, ...]
    last: Dict[int, ProcessIo] = field(default_factory=dict)
    parents: Dict[int, int] = field(default_factory=dict)
    most: Optional[ProcessIo] = None

    def __post_init__(self) -> None:
        seen = reader().processes() if self.pids else {}
        self.parents = {pid: seen[pid].parent for pid in self.pids if pid in seen}

    def moved(self) -> Optional[ProcessIo]:
        """The sum by now; None: none of them ever let us ask."""
        gone = set()
        for pid in self.pids:
            try:
                told = reader().process_io(pid)
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
            total = ProcessIo(*map(sum, zip(*self.last.values())))
            self.most = total if self.most is None else ProcessIo(*map(max, zip(self.most, total)))
        return self.most


SEARCH_SECONDS = 0.05
"""Of CPU time: it is a load of its own on a host with many processes."""


def owners(inodes: Set[int]) -> Dict[int, str]:
    """Names of the programs that hold sockets, by inode; what is not ours to see is absent.

    The kernel's own sockets are nobody's. Reads the open files of the processes that let us, the
    youngest first, until all are found or SEARCH_SECONDS are over.
    """
    until = time.thread_time() + SEARCH_SECONDS
    wanted = {f"socket:[{inode}]": inode for inode in inodes if inode}
    found: Dict[int, str] = {}
    for pid in sorted(map(int, filter(str.isdigit, os.listdir("/proc"))), reverse=True):
        if len(found) == len(wanted) or time.thread_time() > until:
            break
        # A process may end meanwhile; most belong to somebody else.
        with contextlib.suppress(OSError):
            for _, target in links(pid):
                inode = wanted.get(target)
                if inode is not None:
                    # smbd adds the address that it serves, in brackets
                    found[inode] = text(f"/proc/{pid}/comm").strip().partition("[")[0]
                if time.thread_time() > until:
                    break
    return found


def listeners(address: str, port: int) -> Set[int]:
    """Inodes of the sockets that listen on address and port, or on every address and port."""
    wanted = _printed(address) | ANY_ADDRESS
    tables = (text("/proc/net/tcp"), text("/proc/net/tcp6"))
    return set().union(*(parse_table(each, OWN_END, LISTENS, wanted, port) for each in tables))


def parse_table(
    table: str, column: int, state: str, addresses: Set[str], port: Optional[int] = None
) -> Set[int]:
    """Inodes out of /proc/net/tcp or tcp6, of the sockets in a state whose end has such an address.

    column: OWN_END, OTHER_END. Source: Documentation/networking/proc_net_tcp.rst.
    """
    found = set()
    for line in table.splitlines()[1:]:
        fields = line.split(None, 10)
        if len(fields) > 9 and fields[3] == state:
            where, _, number = fields[column].partition(":")
            if where in addresses and port in (None, int(number, 16)):
                found.add(int(fields[9]))
    return found


def _words(packed: bytes) -> str:
    """An address as the kernel prints it: 32-bit words in the machine's own byte order."""
    words = [packed[at : at + 4] for at in range(0, len(packed), 4)]
    little = sys.byteorder == "little"
    return b"".join(word[::-1] if little else word for word in words).hex().upper()


def sockets(pid: int) -> Set[int]:
    """Inodes of the sockets that a process holds; empty: it ended, or is not ours to see."""
    with contextlib.suppress(OSError):
        return inodes(pid)
    return set()


NAMES = ("smbd", "ksmbd")
"""How the names of the file servers' processes begin."""

NAMESPACES = Path("/proc/self/net")
"""Where it is missing, as on macOS, nothing tells whom a file server serves."""

ESTABLISHED, LISTENS = "01", "0A"
"""States in /proc/net/tcp (include/net/tcp_states.h)."""
OWN_END, OTHER_END = 1, 2
"""Columns there."""
ANY_ADDRESS = {"0" * 8, "0" * 32}

_MAPPED = bytes(10) + b"\xff\xff"
"""The first 12 bytes of an IPv4 address in an IPv6 socket."""


def file_servers(seen: dict[int, ProcessStat]) -> set[int]:
    """Every file-server process of the machine, whoever's it is."""
    return {each.pid for each in seen.values() if each.name.startswith(NAMES)}


def serving(seen: dict[int, ProcessStat], agent_pid: int, peer_address: str) -> set[int]:
    """The file-server processes that serve the peer, of those that can be seen.

    smbd has a process for each connection: one that holds an established TCP connection with the
    peer's address serves it. Of several those that began after the agent: our connection did too.
    Where none can be told like this (another user's process, an address that is translated on the
    way) it is those of the agent's network namespace that began after the agent.
    """
    candidates = file_servers(seen)
    agent = seen.get(agent_pid)
    own = network_namespace(agent_pid)
    if own is None and not NAMESPACES.exists():
        return candidates
    spaces = {pid: network_namespace(pid) for pid in candidates}
    beside = {pid for pid, space in spaces.items() if own is not None and space == own}
    fresh = {pid for pid in candidates if agent and seen[pid].started_ticks >= agent.started_ticks}
    # The likeliest first: the kernel takes milliseconds for a table, and open files may be many.
    groups = (beside & fresh, beside - fresh, fresh - beside, candidates - beside - fresh)
    tables: dict[tuple[int | None, str], set[int]] = {}
    for group in groups if peer_address else ():
        for name in ("tcp6",) if ":" in peer_address else ("tcp", "tcp6"):
            found = set()
            for pid in group:
                key = spaces[pid], name
                if key not in tables:
                    tables[key] = _connections(pid, name, peer_address)
                if tables[key] and tables[key] & sockets(pid):
                    found.add(pid)
            if found:
                return found
    return beside & fresh


def network_namespace(pid: int) -> int | None:
    """A number that processes of one network namespace share; None: it cannot be seen.

    ns/net may be another user's secret; the inode of a table of the namespace is not.
    """
    try:
        return Path(f"/proc/{pid}/net/dev").stat().st_ino
    except OSError:
        return None


def _connections(pid: int, name: str, address: str) -> set[int]:
    """Inodes of the connections with the address in a table of the process's namespace."""
    # empty where it ended meanwhile, or of a kernel without IPv6
    table = text(f"/proc/{pid}/net/{name}")
    return parse_table(table, OTHER_END, ESTABLISHED, _printed(address))


def _printed(address_text: str) -> set[str]:
    """An address as tables of IPv4 and IPv6 sockets print it; empty: it is none."""
    address = plain_address(address_text)
    if address is None:
        return set()
    printed = _words(address.packed)
    return {printed} if address.version == 6 else {printed, _words(_MAPPED) + printed}
