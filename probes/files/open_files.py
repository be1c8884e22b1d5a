"""Open sockets and files of processes, those of a copy among them, and the owners of sockets.

Source: proc(5), /proc/PID/fd, fdinfo and mountinfo.
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
"""Flags in fdinfo (open(2)): O_ACCMODE, O_WRONLY, O_RDWR, O_APPEND."""
KEPT_BY_SERVERS = (".tdb", ".ldb", ".log", ".pid", ".so", ".dat")
"""Files that a file server has open for itself."""
MOST_FILES = 4096
"""Limit of open files looked at in one process; a copy has a handful."""


@dataclass(frozen=True)
class OpenFile:
    """A regular file that a process has open."""

    path: str
    size_bytes: Optional[int]
    """Size; None: it lies on another host, which is not asked."""
    position_bytes: int
    """Position, which pread(2) and its kin do not move."""
    reads: bool
    writes: bool


@dataclass(frozen=True)
class Place:
    """Place of a copy's file."""

    folder: str
    here: bool
    """Whether we see that folder too: the process may see other mounts than we do."""
    filesystem: Optional[str]
    device: Optional[str]
    """Kernel name of the block device below; None: none, or not to be seen."""
    remote: bool
    """Whether it lies on another host: a network file system, or a daemon's."""
    remote_address: Optional[str]
    """Address of that host, where the mount names it."""
    remote_port: int
    """Port of that host; 0: unknown."""
    dialect: Optional[str]
    """SMB dialect, where the mount reports it."""


def inodes(pid: int) -> Set[int]:
    """Returns the inodes of a process's open sockets. Errors: OSError, where it is not ours."""
    matches = (re.fullmatch(r"socket:\[(\d+)\]", target) for _, target in links(pid))
    return {int(match[1]) for match in matches if match}


def holders(inode: int, pids: List[int]) -> Tuple[int, ...]:
    """Returns the processes that have a socket open; empty: the kernel, or not visible to us."""
    return tuple(pid for pid in pids if inode and inode in sockets(pid))


def regular_files(pid: int) -> List[OpenFile]:
    """Returns the files that a process reads or writes, without a file server's own.

    Empty where it may not be asked; without those on mounts that the process does not see. No
    stat(2) of a file on another host: it has NFS flush the copy's data, and waits for a server that
    does not answer (fs/nfs/inode.c, nfs_getattr; fs/smb/client/inode.c, cifs_getattr).
    """
    files = []
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
                    status = os.stat(f"/proc/{pid}/fd/{fd}")  # noqa: PTH116 - the link is the file
                    if not stat.S_ISREG(status.st_mode):
                        continue
                    size_bytes = status.st_size
                each = parse_fdinfo(text, target, size_bytes)
                if each is not None:
                    files.append(each)
    return files


def parse_fdinfo(text: str, path: str, size_bytes: Optional[int]) -> Optional[OpenFile]:
    """Parses a /proc/PID/fdinfo; None: a journal, which is only appended to, or a folder."""
    fields = _fields(text)
    flags = int(fields.get("flags", "0"), 8)
    # O_TMPFILE has the bit of O_DIRECTORY too; one with a size is known to be a file.
    if flags & APPENDS or (size_bytes is None and flags & os.O_DIRECTORY):
        return None
    access = flags & ACCESS
    return OpenFile(
        path=path,
        size_bytes=size_bytes,
        position_bytes=int(fields.get("pos", "0")),
        reads=access != WRITES_ALONE,
        writes=access in (WRITES_ALONE, READS_AND_WRITES),
    )


def busiest(old: List[OpenFile], new: List[OpenFile], writes: bool) -> Optional[OpenFile]:
    """Returns the file that moved most between two looks; where none did, the largest."""

    def rank(each: OpenFile) -> Tuple[int, bool, int]:
        # A server may open a file for writing that it only reads.
        return growth(old, each), each.writes == writes, each.size_bytes or 0

    fitting = [each for each in new if (each.writes if writes else each.reads)]
    return max(fitting, key=rank, default=None)


def growth(old_files: List[OpenFile], file: OpenFile) -> int:
    """Returns the bytes that a file's position and size moved since an old look; 0: it is new."""
    old = next((e for e in old_files if (e.path, e.writes) == (file.path, file.writes)), file)
    longer = (file.size_bytes or 0) - (old.size_bytes or 0)
    return abs(file.position_bytes - old.position_bytes) + abs(longer)


def place(pid: int, file: OpenFile) -> Optional[Place]:
    """Returns the place of a process's open file, by its mounts; None: they are hidden."""
    try:
        entries = folders.parse_mountinfo(_text(f"/proc/{pid}/mountinfo"))
    except OSError:
        return None
    entry = folders.mount_of(file.path, entries)
    return None if entry is None else _place(entry, os.path.dirname(file.path))  # noqa: PTH120 - bytes that are no UTF-8 stay as they are


def _place(entry: MountEntry, folder: str) -> Place:
    options, kind, remote = entry.option_values, entry.filesystem, entry.remote
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
    """Whether we see that folder too, and not another host's under its path."""
    entry = folders.mount_of(folder, folders.mounts())
    return entry is not None and not entry.remote and os.path.isdir(folder)  # noqa: PTH112 - where it may not be looked at, it is none


def _mounts(pid: int) -> Dict[str, MountEntry]:
    """Returns the mounts that a process sees, by fdinfo's numbers."""
    return {
        line.split()[0]: entry
        for line in _text(f"/proc/{pid}/mountinfo").splitlines()
        for entry in folders.parse_mountinfo(line)
    }


def _fields(text: str) -> Dict[str, str]:
    """Returns the fields of a /proc/PID/fdinfo."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs}


def links(pid: int) -> Iterator[Tuple[str, str]]:
    """Yields number and target of each open file. Errors: OSError, where it is not ours."""
    folder = f"/proc/{pid}/fd"
    for name in os.listdir(folder)[:MOST_FILES]:
        with contextlib.suppress(OSError):
            yield name, os.readlink(f"{folder}/{name}")  # noqa: PTH115 - socket:[7] is no path


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="surrogateescape") as file:  # noqa: PTH123 - a tenth of Path's time
        return file.read()


def total_io(pids: Iterable[int]) -> Optional[ProcessIo]:
    """Returns the I/O of processes in sum; None: none is readable (by their user, or root)."""
    counts = []
    for pid in pids:
        with contextlib.suppress(OSError):
            io = reader().process_io(pid)
            if io is not None:
                counts.append(io)
    return ProcessIo(*map(sum, zip(*counts))) if counts else None


@dataclass
class Tally:
    """I/O of processes in sum (/proc/PID/io), also of ended ones: it never falls."""

    pids: Tuple[int, ...]
    last: Dict[int, ProcessIo] = field(default_factory=dict)
    parents: Dict[int, int] = field(default_factory=dict)
    peak: Optional[ProcessIo] = None

    def __post_init__(self) -> None:
        stats = reader().processes() if self.pids else {}
        self.parents = {pid: stats[pid].parent for pid in self.pids if pid in stats}

    def total_io(self) -> Optional[ProcessIo]:
        """Returns the sum by now; None: none of them was ever readable."""
        ended = set()
        for pid in self.pids:
            try:
                io = reader().process_io(pid)
            except ProcessLookupError:
                ended.add(pid)
                continue
            except OSError:
                continue
            if io is not None:
                self.last[pid] = io
        for pid in ended:
            # A parent that waits for a child inherits its counts (kernel/exit.c, wait_task_zombie).
            if self.parents.get(pid) in set(self.pids) - ended:
                self.last.pop(pid, None)
        if self.last:
            total = ProcessIo(*map(sum, zip(*self.last.values())))
            self.peak = total if self.peak is None else ProcessIo(*map(max, zip(self.peak, total)))
        return self.peak


SEARCH_SECONDS = 0.05
"""CPU time of a search, which is a load of its own on a host with many processes."""


def owners(inodes: Set[int]) -> Dict[int, str]:
    """Returns the names of the programs that have sockets open, by inode, where visible to us.

    The kernel's own sockets are nobody's. Reads the open files of the processes that allow it, the
    youngest first, until all are found or SEARCH_SECONDS are over.
    """
    deadline = time.thread_time() + SEARCH_SECONDS
    targets = {f"socket:[{inode}]": inode for inode in inodes if inode}
    names: Dict[int, str] = {}
    for pid in sorted(map(int, filter(str.isdigit, os.listdir("/proc"))), reverse=True):
        if len(names) == len(targets) or time.thread_time() > deadline:
            break
        # A process may end meanwhile; most belong to somebody else.
        with contextlib.suppress(OSError):
            for _, target in links(pid):
                inode = targets.get(target)
                if inode is not None:
                    # smbd adds the address that it serves, in brackets
                    names[inode] = text(f"/proc/{pid}/comm").strip().partition("[")[0]
                if time.thread_time() > deadline:
                    break
    return names


def listeners(address: str, port: int) -> Set[int]:
    """Returns the inodes of sockets that listen on the port of an address, or of every address."""
    addresses = _printed_forms(address) | ANY_ADDRESS
    tables = (text("/proc/net/tcp"), text("/proc/net/tcp6"))
    return set().union(*(parse_table(each, OWN_END, LISTENS, addresses, port) for each in tables))


def parse_table(
    table: str, column: int, state: str, addresses: Set[str], port: Optional[int] = None
) -> Set[int]:
    """Returns the inodes of sockets in /proc/net/tcp or tcp6, by state and address of an end.

    column: OWN_END, OTHER_END. Source: Documentation/networking/proc_net_tcp.rst.
    """
    inodes = set()
    for line in table.splitlines()[1:]:
        fields = line.split(None, 10)
        if len(fields) > 9 and fields[3] == state:
            address, _, number = fields[column].partition(":")
            if address in addresses and port in (None, int(number, 16)):
                inodes.add(int(fields[9]))
    return inodes


def _words(packed: bytes) -> str:
    """Returns an address as the kernel prints it: 32-bit words in the host's byte order."""
    words = [packed[index : index + 4] for index in range(0, len(packed), 4)]
    little = sys.byteorder == "little"
    return b"".join(word[::-1] if little else word for word in words).hex().upper()


def sockets(pid: int) -> Set[int]:
    """Returns the inodes of a process's sockets; empty: it ended, or is not visible to us."""
    with contextlib.suppress(OSError):
        return inodes(pid)
    return set()


NAMES = ("smbd", "ksmbd")
"""Beginnings of the names of file servers' processes."""

NAMESPACES = Path("/proc/self/net")
"""Tables of sockets; without them, as on macOS, a file server's clients are unknown."""

ESTABLISHED, LISTENS = "01", "0A"
"""States in /proc/net/tcp (include/net/tcp_states.h)."""
OWN_END, OTHER_END = 1, 2
"""Columns of /proc/net/tcp."""
ANY_ADDRESS = {"0" * 8, "0" * 32}

_MAPPED = bytes(10) + b"\xff\xff"
"""The first 12 bytes of an IPv4 address in an IPv6 socket."""


def file_servers(stats: dict[int, ProcessStat]) -> set[int]:
    """Returns every file-server process of the machine, of any user."""
    return {each.pid for each in stats.values() if each.name.startswith(NAMES)}


def servers_of_peer(stats: dict[int, ProcessStat], agent_pid: int, peer_address: str) -> set[int]:
    """Returns the visible file-server processes that serve the peer.

    smbd has a process for each connection: one with an established TCP connection to the peer's
    address serves it. Of several those that began after the agent: our connection did too. Where
    none has one (another user's process, a translated address) it is those of the agent's network
    namespace that began after the agent.
    """
    candidates = file_servers(stats)
    agent = stats.get(agent_pid)
    namespace = network_namespace(agent_pid)
    if namespace is None and not NAMESPACES.exists():
        return candidates
    spaces = {pid: network_namespace(pid) for pid in candidates}
    beside = {pid for pid, space in spaces.items() if namespace is not None and space == namespace}
    fresh = {pid for pid in candidates if agent and stats[pid].started_ticks >= agent.started_ticks}
    # The likeliest first: the kernel takes milliseconds for a table, and open files may be many.
    groups = (beside & fresh, beside - fresh, fresh - beside, candidates - beside - fresh)
    tables: dict[tuple[int | None, str], set[int]] = {}
    for group in groups if peer_address else ():
        for name in ("tcp6",) if ":" in peer_address else ("tcp", "tcp6"):
            pids = set()
            for pid in group:
                key = spaces[pid], name
                if key not in tables:
                    tables[key] = _connections(pid, name, peer_address)
                if tables[key] and tables[key] & sockets(pid):
                    pids.add(pid)
            if pids:
                return pids
    return beside & fresh


def network_namespace(pid: int) -> int | None:
    """Returns a number that processes of one network namespace share; None: not visible.

    ns/net may be unreadable for other users; the inode of a table of the namespace is not.
    """
    try:
        return Path(f"/proc/{pid}/net/dev").stat().st_ino
    except OSError:
        return None


def _connections(pid: int, name: str, address: str) -> set[int]:
    """Returns the inodes of connections with the address in a table of a process's namespace."""
    # empty where it ended meanwhile, or of a kernel without IPv6
    table = text(f"/proc/{pid}/net/{name}")
    return parse_table(table, OTHER_END, ESTABLISHED, _printed_forms(address))


def _printed_forms(address_text: str) -> set[str]:
    """Returns an address as printed in tables of IPv4 and IPv6 sockets; empty: it is none."""
    address = plain_address(address_text)
    if address is None:
        return set()
    printed = _words(address.packed)
    return {printed} if address.version == 6 else {printed, _words(_MAPPED) + printed}
