"""Which program holds a socket."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import sys
import time
from pathlib import Path
from typing import Dict, Set

from probes.host.open_files import inodes, links
from probes.host.proc import ProcessStat
from probes.host.sock_diag import plain_address

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
                    found[inode] = _program(pid)
                if time.thread_time() > until:
                    break
    return found


def _program(pid: int) -> str:
    """Name of a process; smbd adds the address that it serves, in brackets."""
    with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - thousands
        return file.read().strip().partition("[")[0]


def listeners(address: str, port: int) -> Set[int]:
    """Inodes of the sockets that listen on address and port, or on every address and port."""
    tables = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
    return {
        inode
        for table in tables
        if table.exists()
        for inode in parse_listeners(table.read_text(), address, port)
    }


def parse_listeners(table: str, address: str, port: int) -> Set[int]:
    """Inodes out of the text of /proc/net/tcp or tcp6 (Documentation/networking/proc_net_tcp)."""
    ours = _words(ipaddress.ip_address(address).packed)
    found = set()
    for line in table.splitlines()[1:]:
        fields = line.split()
        where, _, number = fields[1].partition(":")
        overlaps = where == ours or not where.strip("0")
        if overlaps and int(number, 16) == port and fields[3] == "0A":
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

ESTABLISHED = "01"
"""TCP_ESTABLISHED in /proc/net/tcp (include/net/tcp_states.h)."""

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


def parse_connections(table: str, address: str) -> set[int]:
    """Inodes of established connections with an address, of /proc/net/tcp or tcp6.

    Source: Documentation/networking/proc_net_tcp.rst; an IPv6 socket may carry IPv4.
    """
    wanted = _printed(address)
    found = set()
    for line in table.splitlines()[1:]:
        fields = line.split(None, 10)
        if len(fields) > 9 and fields[3] == ESTABLISHED and fields[2][:-5] in wanted:
            found.add(int(fields[9]))
    return found


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
    try:
        table = Path(f"/proc/{pid}/net/{name}").read_text(encoding="ascii")
    except OSError:
        return set()  # it ended meanwhile, or a kernel without IPv6
    return parse_connections(table, address)


def _printed(text: str) -> set[str]:
    """An address as tables of IPv4 and IPv6 sockets print it; empty: it is none."""
    address = plain_address(text)
    if address is None:
        return set()
    printed = _words(address.packed)
    return {printed} if address.version == 6 else {printed, _words(_MAPPED) + printed}
