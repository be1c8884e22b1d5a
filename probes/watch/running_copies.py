"""Which copy runs on this host: its connection, its processes, its files. Moves no byte itself.

By process, by the host at the other end, or the busiest SMB connection. Two looks a moment apart
tell what moves.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Optional, Tuple

from probes.core.meaning import Address, Count, Port, Seconds
from probes.core.records import SMB_PORTS
from probes.core.stage import Refused, Unavailable
from probes.files import open_files
from probes.files.open_files import OpenFile, Place, listeners
from probes.sockets import tcp_info
from probes.sockets.sock_diag import Sockets, SocketState, plain_address
from probes.system import processes
from probes.system.platform import os
from probes.system.proc import ProcessIo
from probes.system.reader import reader
from probes.watch import thread_calls
from probes.watch.socket_watch import Setting
from probes.watch.thread_states import Threads

SMB_DAEMONS = ("fuse.smbnetfs", "fuse.gvfsd-fuse")
"""FUSE file systems whose daemon speaks SMB; they name no server."""
LEAST_CPU_SECONDS = 0.005
"""Of the file server's process that serves a copy, in the time of one look."""
FILE_PORTS = (*SMB_PORTS, 2049)
"""Of network file systems; the last is NFS."""
ANY_PORT = (-1,)
MOST_LOOKED_AT = 4096
OWN_RATIO = 0.9
"""Of the CPU time of all file-server processes: the copy's own took so much."""
LEAST_BYTES = 64 << 10
"""In one look's time: a connection that moves less carries no copy."""
KERNEL_CLIENT = "cifsd"
"""The kernel's own thread for each SMB connection of a mount (fs/smb/client/connect.c)."""


@dataclass(frozen=True)
class Wanted:
    """Which copy; what is empty may be anything."""

    pid: int = 0
    address: str = ""
    """Of the host at the other end."""
    own: Tuple[str, int] = ("", 0)
    """With peer: exactly this connection, as the other end told of it."""
    peer: Tuple[str, int] = ("", 0)


@dataclass(frozen=True)
class Link:
    """A copy's connection, as this host sees it."""

    own_address: str
    own_port: int
    peer_address: str
    peer_port: int
    serving: bool
    """Whether this host is the server's end."""
    kernel: bool
    """Whether the kernel itself holds it, as that of a mount."""


@dataclass(frozen=True)
class Running:
    """What copies on this host; None and empty where it is not to be seen."""

    link: Optional[Link]
    """None: no connection carries it, or none moved enough."""
    pids: Tuple[int, ...]
    program: Optional[str]
    """Name of the first of the processes."""
    reads: Optional[Place]
    """Where the file lies that they read most of."""
    writes: Optional[Place]
    moved: Dict[str, int]
    """While it was looked for: sent_bytes and received_bytes of the connection, read_bytes and
    written_bytes of the processes."""
    connections: int = 1
    """Of the same program to the same server, that moved data; it included."""
    share_ratio: float = 1.0
    """What it moved over all that they moved."""


@dataclass
class _Family:
    """The process that was named and those that it started."""

    pids: List[int] = field(default_factory=list)
    inodes: Dict[int, int] = field(default_factory=dict)
    """Of sockets, and which process holds each."""
    files: Dict[int, List[OpenFile]] = field(default_factory=dict)
    moved: Optional[ProcessIo] = None


def find(
    pid: Count,
    address: Address,
    own_address: Address,
    own_port: Port,
    peer_address: Address,
    peer_port: Port,
    look_seconds: Seconds,
) -> Running:
    """What copies here, by two looks so many seconds apart.

    Raises:
        Refused: kind "unreachable", no such process; "permission", it is another user's.
        Unavailable: the kernel does not tell of sockets.
    """
    wanted = Wanted(pid, address, (own_address, own_port), (peer_address, peer_port))
    family, remotes = family_of(wanted.pid)
    # Who is not root does not see whose socket is whose.
    ordinary = os.geteuid() != 0
    with Sockets() as sockets:
        first = {each.identity: each for each in candidates(sockets, wanted, family, remotes)}
        used = server_seconds() if ordinary else {}
        served = sockets.find(SMB_PORTS, "", True, MOST_LOOKED_AT) if ordinary else []
        time.sleep(look_seconds)
        last = candidates(sockets, wanted, family, remotes)
        now = sockets.find(SMB_PORTS, "", True, MOST_LOOKED_AT) if ordinary else []
    seen = _busiest(first, last, family, bool(wanted.own[1]))
    server: Tuple[int, ...] = ()
    if seen is not None and carries_most(seen, served, now):
        server = busiest_server(used, server_seconds())
    told = _told(seen, first, wanted, family, server)
    grown = _grown_beside(seen, first, last, told.pids)
    share_ratio = max(grown) / sum(grown) if sum(grown) else 1.0
    return replace(told, connections=max(1, len(grown)), share_ratio=share_ratio)


def counted(seen: SocketState) -> Tuple[int, int]:
    """Payload that a connection has sent (and the peer acknowledged) and received, bytes."""
    figures = tcp_info.decode(seen.info)
    return int(figures.get("acknowledged_bytes", 0)), int(figures.get("received_bytes", 0))


def require_procfs() -> None:
    """Raises Unavailable: this system does not tell of other processes."""
    if not os.path.isdir("/proc/self/fd"):  # noqa: PTH112 - where it may not be looked at, it is none
        raise Unavailable("this system does not show what other processes do")


def family_of(pid: int) -> Tuple[_Family, List[Place]]:
    """A process and those that it started, and the network file systems that they use; of 0: none.

    Raises:
        Refused: there is none, or it is another user's.
        Unavailable: as require_procfs().
    """
    require_procfs()
    family = _family(pid) if pid else _Family()
    return family, _remotes(family)


def _family(pid: int) -> _Family:
    seen = reader().processes()
    if pid not in seen:
        raise Refused("unreachable", f"process {pid}: not found on this host")
    # Whoever watches the shell that it was started from is none of the shell's copies.
    below = processes.descendants(seen, pid) - processes.ancestors(seen, os.getpid())
    family = _Family(pids=[pid, *sorted(below)])
    for each in family.pids:
        try:
            for inode in open_files.inodes(each):
                family.inodes.setdefault(inode, each)
        except PermissionError:
            if each == pid:
                raise Refused(
                    "permission",
                    f"process {pid} ({seen[pid].name}) is another user's: watch it as that user, "
                    "or as root",
                ) from None
        except OSError:
            continue  # a child that ended meanwhile
        family.files[each] = open_files.regular_files(each)
    family.moved = open_files.total_io(family.pids)
    return family


def _remotes(family: _Family) -> List[Place]:
    """Network file systems that the processes have files open on; a FUSE mount has no address."""
    places = (open_files.place(pid, each) for pid, files in family.files.items() for each in files)
    return [place for place in places if place is not None and place.remote]


def candidates(
    sockets: Sockets, wanted: Wanted, family: _Family, remotes: List[Place]
) -> List[SocketState]:
    """The connections that may be the copy's, as they are now."""
    if wanted.own[1]:
        return _exactly(sockets, wanted)
    if wanted.pid:
        found = sockets.find(ANY_PORT, "", False, MOST_LOOKED_AT)
        mounted = {
            (str(plain_address(each.remote_address or "") or each.remote_address), port)
            for each in remotes
            for port in ((each.remote_port,) if each.remote_port else FILE_PORTS)
        }
        # A FUSE mount's connection is its daemon's.
        by_daemon = any(each.filesystem in SMB_DAEMONS for each in remotes)
        return [
            each
            for each in found
            if each.inode in family.inodes
            or each.peer in mounted
            or by_daemon
            and each.peer[1] in SMB_PORTS
        ]
    ports = ANY_PORT if wanted.address else SMB_PORTS
    asked = sockets.find(ports, wanted.address, False, MOST_LOOKED_AT)
    known = {each.identity for each in asked}
    served = sockets.find(ports, wanted.address, True, MOST_LOOKED_AT)
    return asked + [each for each in served if each.identity not in known]


def _exactly(sockets: Sockets, wanted: Wanted) -> List[SocketState]:
    """The other end of a connection; where addresses are translated between, all at that port."""
    found = sockets.find(ANY_PORT, "", False, MOST_LOOKED_AT)
    exact = [each for each in found if (each.local, each.peer) == (wanted.own, wanted.peer)]
    own, peer = wanted.own[1], wanted.peer[1]
    near = [each for each in found if own == each.local[1] or peer == each.peer[1]]
    return exact or near


def _busiest(
    first: Dict[bytes, SocketState], last: List[SocketState], family: _Family, exactly: bool
) -> Optional[SocketState]:
    """The connection that moved most; None: none moved enough to carry a copy."""

    def grown(each: SocketState) -> int:
        was = first.get(each.identity)
        return sum(counted(each)) - (sum(counted(was)) if was is not None else 0)

    best = max((each for each in last if each.identity in first), key=grown, default=None)
    if best is None or (grown(best) < LEAST_BYTES and not exactly):
        return None
    if exactly or not serves(best):
        return best
    # Of both ends of one connection on this host the one that asks is told.
    ends = best.peer, best.local
    asks = (each for each in last if (each.local, each.peer) == ends and each.identity in first)
    return next(asks, best)


def _grown_beside(
    seen: Optional[SocketState],
    first: Dict[bytes, SocketState],
    last: List[SocketState],
    pids: Tuple[int, ...],
) -> List[int]:
    """What each connection of the processes with that server moved, of those that carry a copy."""
    found = [
        sum(counted(each)) - sum(counted(first[each.identity]))
        for each in last
        if seen is not None and each.identity in first and each.peer == seen.peer
        if not pids or open_files.holders(each.inode, list(pids))
    ]
    return [each for each in found if each >= LEAST_BYTES]


def server_seconds() -> Dict[int, float]:
    """CPU seconds of each file-server process in our network namespace; every user may see it."""
    seen, own = reader().processes(), open_files.network_namespace(os.getpid())
    beside = [
        pid
        for pid in open_files.file_servers(seen)
        if not seen[pid].kernel and open_files.network_namespace(pid) == own
    ]
    with contextlib.closing(Threads()) as threads:
        return {pid: sum(each.run_seconds for each in threads.look([pid])) for pid in beside}


def busiest_server(before: Dict[int, float], after: Dict[int, float]) -> Tuple[int, ...]:
    """The process that took nearly all of the file servers' CPU time between two looks.

    smbd has one for each connection. Empty: several worked, so that none can be told.
    """
    grown = {pid: after[pid] - before[pid] for pid in before.keys() & after.keys()}
    best = max(grown, key=lambda pid: grown[pid], default=0)
    alone = bool(grown) and grown[best] > max(LEAST_CPU_SECONDS, OWN_RATIO * sum(grown.values()))
    return (best,) if alone else ()


def carries_most(seen: SocketState, before: List[SocketState], after: List[SocketState]) -> bool:
    """Whether a connection moved nearly all of what the file server's connections moved."""
    was = {each.identity: sum(counted(each)) for each in before}
    grown = {each.identity: sum(counted(each)) - was.get(each.identity, 0) for each in after}
    return grown.get(seen.identity, 0) > OWN_RATIO * sum(grown.values())


def serves(seen: SocketState) -> bool:
    """Whether this end is the server's: its port is SMB's, or somebody listens there."""
    own, peer = seen.local, seen.peer
    if (own[1] in FILE_PORTS) != (peer[1] in FILE_PORTS):
        return own[1] in FILE_PORTS
    return bool(listeners(own[0], own[1]))


def _told(
    seen: Optional[SocketState],
    first: Dict[bytes, SocketState],
    wanted: Wanted,
    family: _Family,
    server: Tuple[int, ...],
) -> Running:
    """server: the file server's process, where the holder of its socket is not ours to see."""
    known = reader().processes()
    if wanted.pid and wanted.pid not in known:
        raise Refused("unreachable", f"process {wanted.pid}: it has just ended")
    holding = () if seen is None else open_files.holders(seen.inode, sorted(known, reverse=True))
    kernel = seen is not None and not holding and os.geteuid() == 0
    serving = seen is not None and serves(seen)
    if serving and not holding and not kernel:
        holding = server
    # The daemon of a FUSE mount moves the copy's bytes too.
    pids = list(dict.fromkeys((*family.pids, *holding)))
    if kernel:
        pids += [pid for pid, each in known.items() if each.kernel and each.name == KERNEL_CLIENT]
    now = open_files.total_io(family.pids)
    link = None
    if seen is not None:
        link = Link(*seen.local, *seen.peer, serving=serving, kernel=kernel)
    return Running(
        link=link,
        pids=tuple(pids),
        program=known[pids[0]].name.partition("[")[0] if pids and pids[0] in known else None,
        reads=_place(pids, family, writes=False),
        writes=_place(pids, family, writes=True),
        moved=_grown(seen, first, family.moved, now),
    )


def _grown(
    seen: Optional[SocketState],
    first: Dict[bytes, SocketState],
    before: Optional[ProcessIo],
    after: Optional[ProcessIo],
) -> Dict[str, int]:
    grown: Dict[str, int] = {}
    if seen is not None:
        sent, received = counted(seen)
        was_sent, was_received = counted(first[seen.identity])
        grown.update(sent_bytes=sent - was_sent, received_bytes=received - was_received)
    if before is not None and after is not None:
        read = max(0, after.read_bytes - before.read_bytes)
        written = max(0, after.written_bytes - before.written_bytes)
        grown.update(read_bytes=read, written_bytes=written)
    return grown


def _place(pids: List[int], family: _Family, writes: bool) -> Optional[Place]:
    """Where the file lies that moved most of those that the processes read, or write."""
    found: List[Tuple[bool, int, Place]] = []
    for pid in pids:
        before = family.files.get(pid, [])
        file = open_files.busiest(before, open_files.regular_files(pid), writes)
        place = None if file is None else open_files.place(pid, file)
        if file is not None and place is not None:
            moved = open_files.grown(before, file)
            # A receiver may read what it writes.
            found.append((moved > 0 and file.writes == writes, moved, place))
    return max(found, key=lambda each: each[:2])[2] if found else None


def place_of(running: Running, sends: Optional[bool]) -> Optional[Place]:
    """Where a host's file lies; sends: whether the bytes leave it, None: it copies to itself."""
    if sends is None:
        return running.writes
    return running.reads if sends else running.writes


def sends_more(running: Running) -> Optional[bool]:
    """Whether a host was the sender while the copy was looked for; None: no connection moved."""
    sent, received = (running.moved.get(name, 0) for name in ("sent_bytes", "received_bytes"))
    return None if running.link is None else sent >= received


def setting(running: Running, seconds: float) -> Setting:
    """What a host looks at: the copy's connection there, its programs, the disk of its file."""
    link, place = running.link, place_of(running, sends_more(running))
    device = place.device if place is not None else None
    told: Dict[str, Any] = {"pids": running.pids, "seconds": seconds, "device": device}
    remote = any(each is not None and each.remote for each in (running.reads, running.writes))
    if link is None:
        return Setting((), False, **told, disk_verb=thread_calls.OTHER if remote else "")
    verb = thread_calls.READ if sends_more(running) else thread_calls.WRITE
    verb = thread_calls.OTHER if remote else verb
    port = link.own_port if link.serving else link.peer_port
    told.update(ends=(link.own_port, link.peer_port), disk_verb=verb)
    return Setting((port,), link.serving, link.peer_address, **told)
