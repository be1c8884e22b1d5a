"""What processes read and wrote, and how often they were seen to wait for a disk.

Source: proc(5), /proc/PID/io and /proc/PID/task/TID/stat.
"""

from __future__ import annotations

import contextlib
import os
from typing import Iterable, NamedTuple, Optional


class Moved(NamedTuple):
    """Since the process began, bytes."""

    read_bytes: int
    """Asked for with read(2) and its kin, from files and sockets alike, cached or not."""
    written_bytes: int
    disk_read_bytes: int
    """Fetched from disks for it."""
    disk_written_bytes: int
    """Made dirty by it, to be written to disks."""


def parse_io(text: str) -> Optional[Moved]:
    """One /proc/PID/io; None: it is empty or no such file."""
    told = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if value.strip().isdigit():
            told[name] = int(value)
    try:
        return Moved(told["rchar"], told["wchar"], told["read_bytes"], told["write_bytes"])
    except KeyError:
        return None


def moved(pids: Iterable[int]) -> Optional[Moved]:
    """The sum over processes; None: none of them lets us ask (it needs their user, or root)."""
    found = []
    for pid in pids:
        with contextlib.suppress(OSError):
            told = parse_io(_text(f"/proc/{pid}/io"))
            if told is not None:
                found.append(told)
    return Moved(*map(sum, zip(*found))) if found else None


def parse_state(stat: str) -> str:
    """The state in a line of /proc/PID/stat; empty: there is no such line."""
    return stat.rpartition(")")[2].strip()[:1]


def waits_for_disk(pids: Iterable[int]) -> Optional[bool]:
    """Whether any thread of the processes is in uninterruptible sleep now; None: none is left.

    A file server has threads for its disk beside the one that hears the network.
    """
    seen = None
    for pid in pids:
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(OSError):
                    seen = parse_state(_text(f"/proc/{pid}/task/{thread}/stat")) == "D"
                    if seen:
                        return True
    return seen


def _text(path: str) -> str:
    with open(path, encoding="ascii", errors="replace") as file:  # noqa: PTH123
        return file.read()
