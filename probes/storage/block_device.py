"""A block device that a user named: opened for reading only, for ever.

No option and no setting leads to another flag here. What is handed on is the descriptor, never the
name: the node cannot be exchanged after it was looked at.
"""

from __future__ import annotations

import errno
import os
import socket
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator, NamedTuple

from probes.stage import Unavailable

SYS_DEVICES = Path("/sys/dev/block")


class Opened(NamedTuple):
    """A block device that is open for reading."""

    fd: int
    name: str | None
    """The kernel's; None: it does not tell."""
    size_bytes: int


@contextmanager
def opened(node: str) -> Iterator[Opened]:
    """The device of a node, open for reading; closed when left.

    Errors: Unavailable with a sentence: no such node, no block device, no right to read it, no
    medium in it.
    """
    host = socket.gethostname()
    try:
        # looked at before it is opened: opening alone starts a watchdog or rewinds a tape
        if not stat.S_ISBLK(Path(node).stat().st_mode):
            raise Unavailable(f"{node} on {host} is no block device")
        fd = os.open(node, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise Unavailable(_why(node, host, error)) from None
    try:
        told = os.fstat(fd)
        if not stat.S_ISBLK(told.st_mode):
            raise Unavailable(f"{node} on {host} is no block device")
        size_bytes = os.lseek(fd, 0, os.SEEK_END)
        if size_bytes == 0:
            raise Unavailable(f"{node} on {host} has no size: there is no medium in it")
        yield Opened(fd, _kernel_name(told.st_rdev), size_bytes)
    finally:
        os.close(fd)


def readable(node: str) -> bool:
    """Whether this user may read the device of a node; it is opened for that, and closed."""
    try:
        with opened(node):
            return True
    except Unavailable:
        return False


def kernel_name(node: str) -> str | None:
    """The kernel's name of a node's device; None where there is none."""
    try:
        told = Path(node).stat()
    except OSError:
        return None
    return _kernel_name(told.st_rdev) if stat.S_ISBLK(told.st_mode) else None


def _kernel_name(number: int) -> str | None:
    link = SYS_DEVICES / f"{os.major(number)}:{os.minor(number)}"
    return link.resolve().name if link.exists() else None


def _why(node: str, host: str, error: OSError) -> str:
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENXIO, errno.ENODEV, errno.ELOOP):
        return f"there is no device {node} on {host}"
    if error.errno == errno.EPERM and os.geteuid() == 0:
        why = "a container's device rules forbid it"
        return f"{node} on {host} may not be opened, not even by root: {why}"
    if error.errno in (errno.EACCES, errno.EPERM):
        return (
            f"{node} on {host} may not be read by this user: run the agent there as root or as a"
            " member of the group disk"
        )
    if error.errno == errno.ENOMEDIUM:
        return f"there is no medium in {node} on {host}"
    return f"{node} on {host} cannot be opened: {os.strerror(error.errno or 0)}"
