"""Which of a host's file-server processes carry our copy: those that serve the other host."""

from __future__ import annotations

import ipaddress
import sys
from pathlib import Path

from probes.host.listeners import sockets
from probes.host.processes import ProcessStat

NAMES = ("smbd", "ksmbd")
"""How the names of the file servers' processes begin."""

ESTABLISHED = "01"
"""TCP_ESTABLISHED in /proc/net/tcp (include/net/tcp_states.h)."""

_MAPPED = "0000000000000000FFFF0000"
"""How the kernel prints the first 12 bytes of an IPv4 address in an IPv6 socket."""


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
    spaces = {pid: network_namespace(pid) for pid in candidates}
    beside = {pid for pid, space in spaces.items() if own is not None and space == own}
    fresh = {pid for pid in candidates if agent and seen[pid].started_ticks >= agent.started_ticks}
    # The likeliest first: the kernel takes milliseconds for a table, and open files may be many.
    groups = (beside & fresh, beside - fresh, fresh - beside, candidates - beside - fresh)
    tables: dict[tuple[int | None, str], set[str]] = {}
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


def parse_connections(table: str, address: str) -> set[str]:
    """Inodes of established connections with an address, of /proc/net/tcp or tcp6.

    Source: Documentation/networking/proc_net_tcp.rst; an IPv6 socket may carry IPv4.
    """
    wanted = _printed(address)
    found = set()
    for line in table.splitlines()[1:]:
        fields = line.split(None, 10)
        if len(fields) > 9 and fields[3] == ESTABLISHED and fields[2][:-5] in wanted:
            found.add(fields[9])
    return found


def network_namespace(pid: int) -> int | None:
    """A number that processes of one network namespace share; None: it cannot be seen.

    ns/net may be another user's secret; the inode of a table of the namespace is not.
    """
    try:
        return Path(f"/proc/{pid}/net/dev").stat().st_ino
    except OSError:
        return None


def _connections(pid: int, name: str, address: str) -> set[str]:
    """Inodes of the connections with the address in a table of the process's namespace."""
    try:
        table = Path(f"/proc/{pid}/net/{name}").read_text(encoding="ascii")
    except OSError:
        return set()  # it ended meanwhile, or a kernel without IPv6
    return parse_connections(table, address)


def _printed(address: str) -> set[str]:
    """An address as the kernel prints it: 32-bit words in the machine's own byte order."""
    try:
        told = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return set()
    if isinstance(told, ipaddress.IPv6Address) and told.ipv4_mapped is not None:
        told = told.ipv4_mapped
    packed = told.packed
    words = [packed[at : at + 4] for at in range(0, len(packed), 4)]
    little = sys.byteorder == "little"
    text = b"".join(word[::-1] if little else word for word in words).hex().upper()
    if told.version == 6:
        return {text}
    mapped = _MAPPED if little else "00000000000000000000FFFF"
    return {text, mapped + text}
