"""The run's own folder in a mounted share, with the file that pulls read; gone however it ends.

A mount has no file that goes by itself: a guardian process removes what this one left when it was
killed, and only names that a run gives, in a folder whose name nobody else has.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Callable, Iterator, Optional, TypeVar

from probes.host import free_space, source_file
from probes.host.locate import SOURCE, check_name
from probes.host.patience import NoAnswer, answered
from probes.records import Endpoint
from probes.stage import Refused

T = TypeVar("T")

ANSWER_SECONDS = 10.0
"""What a step before or after a copy may take in a mount."""
REMOVE_SECONDS = 4.0
OURS = re.compile(re.escape(SOURCE) + r"|pushed-[0-9a-f]{16}")
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

# Waits until its stdin closes, which happens however its starter dies; a line says that there is
# nothing left to do. A copy that is being killed may still hold its file, which NFS and FUSE then
# only hide: hence the attempts.
_GUARDIAN = """
trap '' HUP INT TERM
read -r word && exit 0
attempt=0
missing=0
while [ "$attempt" -lt 150 ] && [ "$missing" -lt 10 ]; do
    [ -L "$1" ] && exit 0
    if cd -- "$1" 2>/dev/null; then
        rm -f -- source pushed-* 2>/dev/null
        cd /
        rmdir -- "$1" 2>/dev/null && exit 0
    else
        missing=$((missing + 1))
    fi
    sleep 0.1
    attempt=$((attempt + 1))
done
"""


@dataclass(frozen=True)
class Setting:
    """Whose folder, and what is put into it."""

    folder: str
    """The mounted share, or a folder on it."""
    run: str
    """Hex id of the run."""
    size_bytes: int
    seconds: float
    """The source file ends early when writing it has taken so long."""
    seed: str
    """Of the payload, hex."""


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
    path = os.path.join(setting.folder, name)  # noqa: PTH118
    guardian = start_guardian(path)
    fd, left = None, False
    try:
        with speaking_of(setting.folder):
            free, total = _waited(setting.folder, lambda: _room(setting.folder))
            size_bytes = free_space.fitting_in(setting.size_bytes, setting.folder, free, total)
            try:
                _waited(setting.folder, lambda: os.mkdir(path, 0o700))  # noqa: PTH102
            except NoAnswer:
                left = True
                raise
            left = True
            fd = _waited(setting.folder, lambda: _created(path))
            began = time.monotonic()
            written = _filled(fd, setting, size_bytes)
            seconds = time.monotonic() - began
        facts = {
            "size_bytes": written,
            "seconds": seconds,
            "free_bytes": free,
            "total_bytes": total,
        }
        yield Endpoint(folder=path, facts=facts)
    finally:
        try:
            if left:
                _removed(path, fd)
                left = False
        finally:
            # Where something may be left the guardian tries on, also where we cannot wait.
            dismiss(guardian, "" if left else "done")


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


def _created(path: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    return os.open(os.path.join(path, SOURCE), flags, 0o600)  # noqa: PTH118


def _filled(fd: int, setting: Setting, size_bytes: int) -> int:
    now = time.monotonic()

    def fill() -> int:
        return source_file.fill(fd, size_bytes, bytes.fromhex(setting.seed), now + setting.seconds)

    return answered(setting.folder, now + setting.seconds + ANSWER_SECONDS, fill)


def remove(path: str) -> None:
    """Removes a run's folder and this run's files in it, and nothing else. Errors: OSError."""
    check_name(os.path.basename(path))  # noqa: PTH119
    try:
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return
    try:
        for name in filter(OURS.fullmatch, os.listdir(folder)):
            # A step that gave up on a mount that hung may remove its file only now.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
    finally:
        os.close(folder)
    os.rmdir(path)  # noqa: PTH106


def _removed(path: str, fd: Optional[int]) -> None:
    def work() -> None:
        if fd is not None:
            # First: NFS and FUSE only hide an open file, and its folder would stay.
            with contextlib.suppress(OSError):
                os.close(fd)
        remove(path)

    try:
        answered(path, time.monotonic() + REMOVE_SECONDS, work)
    except NoAnswer as error:
        text = f"may be left until the mount answers, and is removed then: {error}"
        raise TimeoutError(text) from None
    except OSError as error:
        raise OSError(f"{path} may be left: {(error.strerror or str(error)).lower()}") from None


def start_guardian(path: str) -> subprocess.Popen[bytes]:
    """A process that removes a run's folder and this run's files in it once we are gone."""
    return subprocess.Popen(
        ["/bin/sh", "-c", _GUARDIAN, "bottleneck-mounted-folder", path],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )


def dismiss(guardian: subprocess.Popen[bytes], word: str) -> None:
    """Ends a guardian; without a word it removes the folder first, when it can."""
    assert guardian.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # a killed guardian: we cleaned up ourselves
        guardian.stdin.write(f"{word}\n".encode() if word else b"")
        guardian.stdin.close()
    if word:
        guardian.wait()
