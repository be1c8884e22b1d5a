"""The run's own folder in a mounted share, with the file that pulls read; gone however it ends.

A mount has no file that goes by itself: see own_folder.py for what removes it all the same.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Callable, Iterator, TypeVar

from probes.host import free_space, removal, source_file
from probes.host.deadline import NoAnswer, answered
from probes.host.own_folder import OwnFolder
from probes.host.served_file import SOURCE, check_name
from probes.meaning import Count, Folder, Hex, Seconds, Size, Text
from probes.records import Endpoint
from probes.stage import Refused

T = TypeVar("T")

ANSWER_SECONDS = 10.0
"""What a step before or after a copy may take in a mount."""
REMOVE_SECONDS = 4.0
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NOT_ALLOWED = (errno.EACCES, errno.EPERM)
LOST = (errno.ENOTCONN, errno.EHOSTDOWN, errno.ECONNABORTED, errno.ESHUTDOWN, errno.ETIMEDOUT)
KNOWN_ERRORS = (
    *NO_ROOM,
    *NOT_ALLOWED,
    *LOST,
    errno.EROFS,
    errno.ESTALE,
    errno.ENOENT,
    errno.ENOTDIR,
)
"""What refused() has a sentence for."""


@dataclass(frozen=True)
class Setting:
    """Whose folder, and what is put into it."""

    folder: Folder
    """The mounted share, or a folder on it."""
    run: Hex
    """Hex id of the run."""
    size_bytes: Size
    seconds: Seconds
    """The source file ends early when writing it has taken so long."""
    seed: Text
    """Of the payload, hex."""
    parts: Count = 1
    """See free_space.fitting."""


@contextmanager
def hold(setting: Setting, peer: Endpoint) -> Iterator[Endpoint]:
    """Creates bottleneck-RUN in the folder, with a source file of payload, and keeps both.

    Yields its path as folder, and facts: size_bytes (what fits and could be written in time),
    seconds (of that writing), free_bytes and total_bytes (0: the mount does not tell). Errors:
    Refused ("usage", "permission", "space", "unreachable"), Unavailable (no room for 4 MiB);
    OSError where something may be left.
    """
    name = f"bottleneck-{setting.run}"
    check_name(name)
    with ExitStack() as stack:
        with speaking_of(setting.folder):
            made = _waited(setting.folder, lambda: OwnFolder(removal.RUN, setting.folder, name))
            stack.callback(made.close)
            free, total = _waited(setting.folder, lambda: _room(setting.folder))
            size_bytes = free_space.fitting_in(
                setting.size_bytes, setting.folder, free, total, setting.parts
            )
            path = os.path.join(setting.folder, name)  # noqa: PTH118
            opened: list[int] = []
            stack.callback(_removed, path, made, opened)
            _waited(setting.folder, made.create)
            opened.append(_waited(setting.folder, lambda: made.new_file(SOURCE)))
            began = time.monotonic()
            written = _filled(opened[0], setting, size_bytes)
            seconds = time.monotonic() - began
        facts = {
            "size_bytes": written,
            "seconds": seconds,
            "free_bytes": free,
            "total_bytes": total,
        }
        yield Endpoint(folder=path, facts=facts)


@contextmanager
def speaking_of(folder: str) -> Iterator[None]:
    """A block whose OSErrors and silences in that folder become what a user has to mend."""
    try:
        yield
    except NoAnswer as error:
        raise Refused("unreachable", f"{error}; is its server up?") from None
    except OSError as error:
        raise refused(folder, error) from error


def refused(folder: str, error: OSError) -> Exception:
    """What a user has to mend in a folder, one line; other errors with the folder's name."""
    code, words = error.errno, (error.strerror or str(error)).lower()
    if code in NO_ROOM:
        return Refused("space", f"{folder}: {words}: make room there, or name a smaller --size")
    if code == errno.EROFS:
        text = f"{folder}: mounted read-only: mount it to be written to, or name another folder"
        return Refused("permission", text)
    if code in NOT_ALLOWED:
        return Refused("permission", f"{folder}: {words}: no right to write there; choose another")
    if code in (errno.ENOENT, errno.ENOTDIR):
        return Refused("usage", f"{folder}: there is no such folder on this host")
    if code == errno.ESTALE:
        text = f"{folder}: stale file handle: the server no longer knows this mount; mount it again"
        return Refused("unreachable", text)
    if code in LOST:
        return Refused("unreachable", f"{folder}: the mount lost its server ({words}); mount again")
    return RuntimeError(f"{folder}: {words}")


def _waited(folder: str, work: Callable[[], T]) -> T:
    return answered(folder, time.monotonic() + ANSWER_SECONDS, work)


def _room(folder: str) -> tuple[int, int]:
    told = os.statvfs(folder)
    return told.f_bavail * told.f_frsize, told.f_blocks * told.f_frsize


def _filled(fd: int, setting: Setting, size_bytes: int) -> int:
    now = time.monotonic()

    def fill() -> int:
        return source_file.fill(fd, size_bytes, bytes.fromhex(setting.seed), now + setting.seconds)

    return answered(setting.folder, now + setting.seconds + ANSWER_SECONDS, fill)


def _removed(path: str, made: OwnFolder, opened: list[int]) -> None:
    """Removes the folder; what then may be left the guardian tries on, as long as it takes."""

    def work() -> None:
        for fd in opened:
            # First: NFS and FUSE only hide an open file, and its folder would stay.
            with contextlib.suppress(OSError):
                os.close(fd)
        made.remove()

    try:
        answered(path, time.monotonic() + REMOVE_SECONDS, work)
    except NoAnswer as error:
        text = f"may be left until the mount answers, and is removed then: {error}"
        raise TimeoutError(text) from None
    except OSError as error:
        raise OSError(f"{path} may be left: {(error.strerror or str(error)).lower()}") from None
