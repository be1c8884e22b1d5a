"""Which program holds a socket."""

from __future__ import annotations

import contextlib
import os
import time
from typing import Dict, Iterator, Set

SEARCH_SECONDS = 0.05
"""It is a load of its own on a host with many processes."""


def owners(inodes: Set[int]) -> Dict[int, str]:
    """Names of the programs that hold sockets, by inode; what is not ours to see is absent.

    The kernel's own sockets are nobody's. Reads the open files of the processes that let us, the
    youngest first, until all are found or SEARCH_SECONDS are over.
    """
    until = time.monotonic() + SEARCH_SECONDS
    wanted = {f"socket:[{inode}]": inode for inode in inodes if inode}
    found: Dict[int, str] = {}
    for pid in sorted(map(int, filter(str.isdigit, os.listdir("/proc"))), reverse=True):
        if len(found) == len(wanted) or time.monotonic() > until:
            break
        # A process may end meanwhile; most belong to somebody else.
        with contextlib.suppress(OSError):
            for target in _open_files(pid, until):
                inode = wanted.get(target)
                if inode is not None:
                    found[inode] = _program(pid)
    return found


def _open_files(pid: int, until: float) -> Iterator[str]:
    """What a process has open; one may have more than there is time for."""
    folder = f"/proc/{pid}/fd"
    with os.scandir(folder) as entries:
        for entry in entries:
            if time.monotonic() > until:
                return
            with contextlib.suppress(OSError):
                yield os.readlink(entry.path)  # noqa: PTH115 - text such as socket:[7], no path


def _program(pid: int) -> str:
    """Name of a process; smbd adds the address that it serves, in brackets."""
    with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:  # noqa: PTH123 - thousands
        return file.read().strip().partition("[")[0]
