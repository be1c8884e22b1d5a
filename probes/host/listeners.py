"""Who listens on a TCP port of this host, read from the kernel's own tables."""

from __future__ import annotations

import contextlib
import socket
import sys
from pathlib import Path
from typing import Set


def listeners(address: str, port: int) -> Set[str]:
    """Inodes of the sockets that listen on address and port, or on every address and port."""
    tables = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
    return {
        inode
        for table in tables
        if table.exists()
        for inode in parse_listeners(table.read_text(), address, port)
    }


def parse_listeners(table: str, address: str, port: int) -> Set[str]:
    """Inodes out of the text of /proc/net/tcp or tcp6 (Documentation/networking/proc_net_tcp)."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    packed = socket.inet_pton(family, address)
    # The kernel prints each 32-bit word in its own byte order.
    words = [packed[at : at + 4] for at in range(0, len(packed), 4)]
    ours = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)
    inodes = set()
    for line in table.splitlines()[1:]:
        fields = line.split()
        where, _, number = fields[1].partition(":")
        overlaps = where == ours.hex().upper() or not where.strip("0")
        if overlaps and int(number, 16) == port and fields[3] == "0A":
            inodes.add(fields[9])
    return inodes


def sockets(process_id: int) -> Set[str]:
    """Inodes of the sockets that a process of this user holds."""
    inodes = set()
    with contextlib.suppress(OSError):  # it ended, or it closed a file while we looked
        for link in Path(f"/proc/{process_id}/fd").iterdir():
            with contextlib.suppress(OSError):
                target = str(link.readlink())
                if target.startswith("socket:["):
                    inodes.add(target[len("socket:[") : -1])
    return inodes
