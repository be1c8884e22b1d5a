"""Search for a running copy on this host: connection, processes, files. Moves no byte itself.

By process, by the host at the other end, or the busiest SMB connection. Two looks a moment apart
show the traffic.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass, field, replace
from typing import Any, Dict, List, Optional, Tuple

from probes.core.field_types import Address, Count, Port, Seconds
from probes.core.records import SMB_PORTS
from probes.core.stage import Refused, Unavailable
from probes.files import open_files
from probes.files.open_files import OpenFile, Place, listeners
from probes.sockets import tcp_info
from probes.sockets.sock_diag import Socket, Sockets, plain_address
from probes.system import processes
from probes.system.platform import os
from probes.system.proc import ProcessIo
from probes.system.reader import reader
from probes.watch import thread_calls
from probes.watch.socket_watch import Setting
from probes.watch.thread_states import Threads

SMB_DAEMONS = ("fuse.smbnetfs", "fuse.gvfsd-fuse")
"""FUSE file systems whose daemon speaks SMB; their mounts name no server."""
LEAST_CPU_SECONDS = 0.005
"""Least CPU time, in one look's time, of the file server's process that serves a copy."""
FILE_PORTS = (*SMB_PORTS, 2049)
"""Ports of network file systems; the last is NFS."""
ANY_PORT = (-1,)
MOST_LOOKED_AT = 4096
OWN_RATIO = 0.9
"""Least share of the copy's process in the CPU time of all file-server processes."""
LEAST_BYTES = 64 << 10
"""Least traffic of a connection that carries a copy, in one look's time."""
KERNEL_CLIENT = "cifsd"
"""The kernel's own thread for each SMB connection of a mount (fs/smb/client/connect.c)."""


@dataclass(frozen=True)
class CopyFilter:
    """Criteria of a copy; an empty one matches anything."""

    pid: int = 0
    address: str = ""
    """Address of the host at the other end."""
    local: Tuple[str, int] = ("", 0)
    """Our end; with peer exactly this connection, as the other end reported it."""
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
    """Whether the kernel itself has it open, as for a mount."""


@dataclass(frozen=True)
class Running:
    """A running copy on this host; None and empty where it is not visible."""

    link: Optional[Link]
    """Its connection; None: none carries it, or none moved enough."""
    pids: Tuple[int, ...]
    program: Optional[str]
    """Name of the first of the processes."""
    reads: Optional[Place]
    """Place of the file that they read most of."""
    writes: Optional[Place]
    moved_bytes: Dict[str, int]
    """Traffic during the search: sent_bytes and received_bytes of the connection, read_bytes and
    written_bytes of the processes."""
    connections: int = 1
    """Connections of the same program to the same server that moved data, this one included."""
    share_ratio: float = 1.0
    """Its traffic over that of all those connections."""


@dataclass
class _Family:
    """The requested process and its descendants."""

    pids: List[int] = field(default_factory=list)
    inodes: Dict[int, int] = field(default_factory=dict)
    """Processes by the inodes of their sockets."""
    files: Dict[int, List[OpenFile]] = field(default_factory=dict)
    io: Optional[ProcessIo] = None


def find(
    pid: Count,
    address: Address,
    own_address: Address,
    own_port: Port,
    peer_address: Address,
    peer_port: Port,
    look_seconds: Seconds,
) -> Running:
    """Returns the copy that runs here, by two looks look_seconds apart.

    Raises:
        Refused: kind "unreachable", no such process; "permission", it is another user's.
        Unavailable: the kernel does not report sockets.
    """
    target = CopyFilter(pid, address, (own_address, own_port), (peer_address, peer_port))
    family, remotes = family_of(target.pid)
    # Only root sees which process has a socket open.
    ordinary = os.geteuid() != 0
    with Sockets() as sockets:
        first = {each.identity: each for each in candidates(sockets, target, family, remotes)}
        used = server_seconds() if ordinary else {}
        served = sockets.find(SMB_PORTS, "", True, MOST_LOOKED_AT) if ordinary else []
        time.sleep(look_seconds)
        last = candidates(sockets, target, family, remotes)
        now = sockets.find(SMB_PORTS, "", True, MOST_LOOKED_AT) if ordinary else []
    state = _busiest(first, last, family, bool(target.local[1]))
    server: Tuple[int, ...] = ()
    if state is not None and carries_most(state, served, now):
        server = busiest_server(used, server_seconds())
    running = _describe_copy(state, first, target, family, server)
    grown = _growth_beside(state, first, last, running.pids)
    share_ratio = max(grown) / sum(grown) if sum(grown) else 1.0
    return replace(running, connections=max(1, len(grown)), share_ratio=share_ratio)


def payload_of(state: Socket) -> Tuple[int, int]:
    """Returns the payload that a connection has sent (and the peer acknowledged) and received."""
    figures = tcp_info.decode(state.info)
    return int(figures.get("acknowledged_bytes", 0)), int(figures.get("received_bytes", 0))


def require_procfs() -> None:
    """Raises Unavailable where this system does not show other processes."""
    if not os.path.isdir("/proc/self/fd"):  # noqa: PTH112 - where it may not be looked at, it is none
        raise Unavailable("this system does not show what other processes do")


def family_of(pid: int) -> Tuple[_Family, List[Place]]:
    """Returns a process with its descendants, and their network file systems; nothing for pid 0.

    Raises:
        Refused: there is none, or it is another user's.
        Unavailable: as require_procfs().
    """
    require_procfs()
    family = _family(pid) if pid else _Family()
    return family, _remotes(family)


def _family(pid: int) -> _Family:
    stats = reader().processes()
    if pid not in stats:
        raise Refused("unreachable", f"process {pid}: not found on this host")
    # This process may descend from the watched shell, and is none of its copies.
    below = processes.descendants(stats, pid) - processes.ancestors(stats, os.getpid())
    family = _Family(pids=[pid, *sorted(below)])
    for each in family.pids:
        try:
            for inode in open_files.inodes(each):
                family.inodes.setdefault(inode, each)
        except PermissionError:
            if each == pid:
                raise Refused(
                    "permission",
                    f"process {pid} ({stats[pid].name}) is another user's: watch it as that user, "
                    "or as root",
                ) from None
        except OSError:
            continue  # a child that ended meanwhile
        family.files[each] = open_files.regular_files(each)
    family.io = open_files.total_io(family.pids)
    return family


def _remotes(family: _Family) -> List[Place]:
    """Returns the network file systems of the processes' open files; FUSE has no address."""
    places = (open_files.place(pid, each) for pid, files in family.files.items() for each in files)
    return [place for place in places if place is not None and place.remote]


def candidates(
    sockets: Sockets, target: CopyFilter, family: _Family, remotes: List[Place]
) -> List[Socket]:
    """Returns the connections that may be the copy's, as they are now."""
    if target.local[1]:
        return _exactly(sockets, target)
    if target.pid:
        states = sockets.find(ANY_PORT, "", False, MOST_LOOKED_AT)
        mounted = {
            (str(plain_address(each.remote_address or "") or each.remote_address), port)
            for each in remotes
            for port in ((each.remote_port,) if each.remote_port else FILE_PORTS)
        }
        # A FUSE mount's connection is its daemon's.
        by_daemon = any(each.filesystem in SMB_DAEMONS for each in remotes)
        return [
            each
            for each in states
            if each.inode in family.inodes
            or each.peer in mounted
            or by_daemon
            and each.peer[1] in SMB_PORTS
        ]
    ports = ANY_PORT if target.address else SMB_PORTS
    clients = sockets.find(ports, target.address, False, MOST_LOOKED_AT)
    identities = {each.identity for each in clients}
    served = sockets.find(ports, target.address, True, MOST_LOOKED_AT)
    return clients + [each for each in served if each.identity not in identities]


def _exactly(sockets: Sockets, target: CopyFilter) -> List[Socket]:
    """Returns the other end of a connection; with translated addresses all at one of the ports."""
    states = sockets.find(ANY_PORT, "", False, MOST_LOOKED_AT)
    exact = [each for each in states if (each.local, each.peer) == (target.local, target.peer)]
    local, peer = target.local[1], target.peer[1]
    return exact or [each for each in states if local == each.local[1] or peer == each.peer[1]]


def _busiest(
    first: Dict[bytes, Socket], last: List[Socket], family: _Family, exactly: bool
) -> Optional[Socket]:
    """Returns the connection that moved most; None: none moved enough to carry a copy."""

    def growth_of(each: Socket) -> int:
        was = first.get(each.identity)
        return sum(payload_of(each)) - (sum(payload_of(was)) if was is not None else 0)

    best = max((each for each in last if each.identity in first), key=growth_of, default=None)
    if best is None or (growth_of(best) < LEAST_BYTES and not exactly):
        return None
    if exactly or not serves(best):
        return best
    # Of a connection with both ends on this host the client's end counts.
    ends = best.peer, best.local
    asks = (each for each in last if (each.local, each.peer) == ends and each.identity in first)
    return next(asks, best)


def _growth_beside(
    state: Optional[Socket], first: Dict[bytes, Socket], last: List[Socket], pids: Tuple[int, ...]
) -> List[int]:
    """Returns the traffic of each of the processes' connections to that server with a copy."""
    growths = [
        sum(payload_of(each)) - sum(payload_of(first[each.identity]))
        for each in last
        if state is not None and each.identity in first and each.peer == state.peer
        if not pids or open_files.holders(each.inode, list(pids))
    ]
    return [each for each in growths if each >= LEAST_BYTES]


def server_seconds() -> Dict[int, float]:
    """Returns the CPU seconds of each file-server process in our network namespace."""
    stats, namespace = reader().processes(), open_files.network_namespace(os.getpid())
    beside = [
        pid
        for pid in open_files.file_servers(stats)
        if not stats[pid].kernel and open_files.network_namespace(pid) == namespace
    ]
    with contextlib.closing(Threads()) as threads:
        return {pid: sum(each.run_seconds for each in threads.look([pid])) for pid in beside}


def busiest_server(old: Dict[int, float], new: Dict[int, float]) -> Tuple[int, ...]:
    """Returns the process that took nearly all of the file servers' CPU time between two looks.

    smbd has one for each connection. Empty: several worked, so that the copy's is unknown.
    """
    grown = {pid: new[pid] - old[pid] for pid in old.keys() & new.keys()}
    best = max(grown, key=lambda pid: grown[pid], default=0)
    is_sole = bool(grown) and grown[best] > max(LEAST_CPU_SECONDS, OWN_RATIO * sum(grown.values()))
    return (best,) if is_sole else ()


def carries_most(state: Socket, old: List[Socket], new: List[Socket]) -> bool:
    """Whether a connection had nearly all traffic of the file server's connections."""
    old_bytes = {each.identity: sum(payload_of(each)) for each in old}
    grown = {each.identity: sum(payload_of(each)) - old_bytes.get(each.identity, 0) for each in new}
    return grown.get(state.identity, 0) > OWN_RATIO * sum(grown.values())


def serves(state: Socket) -> bool:
    """Whether this end is the server's: its port is SMB's, or somebody listens there."""
    local, peer = state.local, state.peer
    if (local[1] in FILE_PORTS) != (peer[1] in FILE_PORTS):
        return local[1] in FILE_PORTS
    return bool(listeners(local[0], local[1]))


def _describe_copy(
    state: Optional[Socket],
    first: Dict[bytes, Socket],
    target: CopyFilter,
    family: _Family,
    server: Tuple[int, ...],
) -> Running:
    """Returns the copy; server: the file server's process, where its socket's is not visible."""
    stats = reader().processes()
    if target.pid and target.pid not in stats:
        raise Refused("unreachable", f"process {target.pid}: it has just ended")
    holding = () if state is None else open_files.holders(state.inode, sorted(stats, reverse=True))
    kernel = state is not None and not holding and os.geteuid() == 0
    serving = state is not None and serves(state)
    if serving and not holding and not kernel:
        holding = server
    # The daemon of a FUSE mount moves the copy's bytes too.
    pids = list(dict.fromkeys((*family.pids, *holding)))
    if kernel:
        pids += [pid for pid, each in stats.items() if each.kernel and each.name == KERNEL_CLIENT]
    now = open_files.total_io(family.pids)
    link = None
    if state is not None:
        link = Link(*state.local, *state.peer, serving=serving, kernel=kernel)
    return Running(
        link=link,
        pids=tuple(pids),
        program=stats[pids[0]].name.partition("[")[0] if pids and pids[0] in stats else None,
        reads=_place(pids, family, writes=False),
        writes=_place(pids, family, writes=True),
        moved_bytes=_moved_bytes(state, first, family.io, now),
    )


def _moved_bytes(
    state: Optional[Socket],
    first: Dict[bytes, Socket],
    old: Optional[ProcessIo],
    new: Optional[ProcessIo],
) -> Dict[str, int]:
    grown: Dict[str, int] = {}
    if state is not None:
        sent, received = payload_of(state)
        was_sent, was_received = payload_of(first[state.identity])
        grown.update(sent_bytes=sent - was_sent, received_bytes=received - was_received)
    if old is not None and new is not None:
        read = max(0, new.read_bytes - old.read_bytes)
        written = max(0, new.written_bytes - old.written_bytes)
        grown.update(read_bytes=read, written_bytes=written)
    return grown


def _place(pids: List[int], family: _Family, writes: bool) -> Optional[Place]:
    """Returns the place of the file that the processes read, or write, most of."""
    places: List[Tuple[bool, int, Place]] = []
    for pid in pids:
        old_files = family.files.get(pid, [])
        file = open_files.busiest(old_files, open_files.regular_files(pid), writes)
        place = None if file is None else open_files.place(pid, file)
        if file is not None and place is not None:
            size_bytes = open_files.growth(old_files, file)
            # A receiver may read what it writes.
            places.append((size_bytes > 0 and file.writes == writes, size_bytes, place))
    return max(places, key=lambda each: each[:2])[2] if places else None


def place_of(running: Running, sends: Optional[bool]) -> Optional[Place]:
    """Returns the place of a host's file; sends: the bytes leave it, None: it copies to itself."""
    if sends is None:
        return running.writes
    return running.reads if sends else running.writes


def sends_more(running: Running) -> Optional[bool]:
    """Whether a host was the sender during the search; None: no connection moved."""
    sent, received = (running.moved_bytes.get(name, 0) for name in ("sent_bytes", "received_bytes"))
    return None if running.link is None else sent >= received


def watch_setting(running: Running, seconds: float) -> Setting:
    """Returns the setting of a watch: the copy's connection, its programs, its file's disk."""
    link, place = running.link, place_of(running, sends_more(running))
    device = place.device if place is not None else None
    fields: Dict[str, Any] = {"pids": running.pids, "seconds": seconds, "device": device}
    remote = any(each is not None and each.remote for each in (running.reads, running.writes))
    if link is None:
        return Setting((), False, **fields, disk_verb=thread_calls.OTHER if remote else "")
    verb = thread_calls.READ if sends_more(running) else thread_calls.WRITE
    verb = thread_calls.OTHER if remote else verb
    port = link.own_port if link.serving else link.peer_port
    fields.update(ends=(link.own_port, link.peer_port), disk_verb=verb)
    return Setting((port,), link.serving, link.peer_address, **fields)
