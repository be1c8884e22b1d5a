"""The file of a document that a user asked for: what may become it, and how it is written.

Nothing is lost to it: a block device is never opened for writing, of character devices a terminal
and /dev/null alone, and of files only an empty one or an earlier report is replaced. A link
or a pipe at the end of the path, in a folder that everybody may write to (/tmp), has to be root's
or this user's.
"""

from __future__ import annotations

import errno
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from probes.host.system import os

MARKS = (
    (b"{", b'"copy-bottleneck/'),
    (b"<!doctype html", b"copy-bottleneck"),
    (b"<?xml", b'name="bottleneck'),
    (b"# ", b"copy-bottleneck/ticket/"),
    (b"# help ", b"copy_bottleneck_"),
    (b"copy-bottleneck,", b"bytes_per_second"),
)
"""How each kind of our documents begins, in small letters, and what stands near its beginning."""
HEAD_BYTES = 4096
_LOOKING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_NULL = os.makedev(1, 3)
_TERMINALS = frozenset((4, 5, *range(136, 144)))
"""Majors of consoles, of one's own terminal, and of what ssh and windows have
(kernel: Documentation/admin-guide/devices.txt)."""
MOST_LINKS = 40
"""As many as the kernel follows (path_resolution(7))."""


def check(path: str | Path) -> tuple[str, os.stat_result | None]:
    """Where a document goes, links followed, and what is there; None: nothing.

    Errors: OSError with a sentence as its strerror: a link that may be planted, a device, a file
    that is neither empty nor a report of this program, or one that cannot be read to see which.
    """
    # Before the second look: a link that comes later leads to another file than was looked at.
    real = os.path.realpath(path)
    try:
        about = os.stat(path)  # noqa: PTH116 - as given
    except FileNotFoundError:
        if os.path.lexists(real):
            raise
        _refuse_planted(path)
        return real, None
    _refuse_device(about)
    if stat.S_ISREG(about.st_mode):
        _refuse_foreign(real, about)
    _refuse_planted(path)
    return real, about


def _refuse_planted(path: str | Path) -> None:
    """A link, or what is no file, of another user in a folder that everybody may write to."""
    for _ in range(MOST_LINKS):
        folder = os.path.dirname(path) or "."  # noqa: PTH120 - as given
        if not os.path.lexists(path):
            return
        about = os.lstat(path)
        planted = not stat.S_ISREG(about.st_mode) and about.st_uid not in (0, os.geteuid())
        if planted and os.stat(folder).st_mode & stat.S_IWOTH:  # noqa: PTH116 - as given
            text = "owned by another user, in a folder that is writable by everyone"
            raise OSError(errno.EACCES, text)
        if not stat.S_ISLNK(about.st_mode):
            return
        path = os.path.join(folder, os.readlink(path))  # noqa: PTH115, PTH118 - as given


def _refuse_foreign(real: str, about: os.stat_result) -> None:
    """A file that is neither empty nor a report of this program."""
    try:
        fd = os.open(real, _LOOKING)
    except PermissionError:
        text = "cannot be read, so it may not be an earlier report; use another file"
        raise OSError(errno.EACCES, text) from None
    except FileNotFoundError:
        raise OSError(errno.ENOENT, "the open file no longer has a name") from None
    try:
        if not os.path.samestat(os.fstat(fd), about):
            raise OSError(errno.EEXIST, "replaced during the run; not overwritten")
        head = os.pread(fd, HEAD_BYTES, 0)
    finally:
        os.close(fd)
    began = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if head and not any(began.startswith(first) and mark in began for first, mark in MARKS):
        text = "exists and is not a report of this program; use another file"
        raise OSError(errno.EEXIST, text)


def write(path: str | Path, text: str, mode: int | None = None) -> None:
    """Writes UTF-8 so that a reader finds the old file or the new one, never a half.

    mode: of the file; None: an existing file of this user keeps its own. A pipe or a terminal is
    written to as it is.
    Errors: those of check(), which is made again here; OSError.
    """
    real, about = check(path)
    if about is not None and not stat.S_ISREG(about.st_mode):
        _send(path, text)
        return
    # A mode that another user chose would open the document to whom that user likes.
    if mode is None and about is not None and about.st_uid == os.geteuid():
        mode = stat.S_IMODE(about.st_mode)
    folder, name = os.path.split(real)
    temporary = os.path.join(folder, f".{name[:40]}.{secrets.token_hex(6)}")  # noqa: PTH118
    fd = os.open(temporary, _NEW, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
            file.flush()
            os.fchmod(fd, _usual_mode() if mode is None else mode)
            os.fsync(fd)
        # Whatever took the name since: a node would be removed, a file replaced.
        if check(path)[0] != real:
            raise OSError(errno.EEXIST, "replaced during the run; not overwritten")
        os.rename(temporary, real)  # noqa: PTH104 - as given
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)  # noqa: PTH108 - as given


def _send(path: str | Path, text: str) -> None:
    """Into a pipe or a terminal; what took its place meanwhile is left alone."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENXIO:
            error.strerror = "a pipe that no program reads; start its reader first"
        raise
    with os.fdopen(fd, "wb") as file:
        about = os.fstat(fd)
        _refuse_device(about)
        if stat.S_ISREG(about.st_mode):
            raise OSError(errno.EEXIST, "replaced by a file during the run; not overwritten")
        os.set_blocking(fd, True)
        file.write(text.encode("utf-8", "backslashreplace"))


def _refuse_device(about: os.stat_result) -> None:
    """All but a terminal and /dev/null; before it is opened, which a tape or a watchdog notices."""
    if stat.S_ISBLK(about.st_mode):
        raise OSError(errno.ENOTBLK, "a block device is never written to")
    if stat.S_ISSOCK(about.st_mode):
        raise OSError(errno.ENXIO, "a socket; use a file")
    if stat.S_ISCHR(about.st_mode) and not _is_terminal_or_null(about.st_rdev):
        text = "a device, not a terminal; use a file"
        raise OSError(errno.ENODEV, text)


def _is_terminal_or_null(number: int) -> bool:
    if number == _NULL or os.major(number) in _TERMINALS:
        return True
    # A console of another kind, where this process has it for a terminal already.
    return any(os.isatty(fd) and os.fstat(fd).st_rdev == number for fd in range(3))


def _usual_mode() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
