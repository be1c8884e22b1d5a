"""Checks the path of a document that a user asked for, and writes the document there.

No other file is lost: a block device is never opened for writing, of character devices only a
terminal and /dev/null, and only an empty file or an earlier report of this user's or root's is
replaced. A link at the last part is followed only in /dev, a link before it only if it is this
user's or root's. Root writes into no folder that another user can change.
"""

from __future__ import annotations

import errno
import re
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from probes.system.platform import descriptor, os
from probes.system.tools import others_can_change

MARKS = (
    (b"{", b'"copy-bottleneck/'),
    (b"<!doctype html", b"copy-bottleneck"),
    (b"<?xml", b'name="bottleneck'),
    (b"# ", b"copy-bottleneck/ticket/"),
    (b"# help ", b"copy_bottleneck_"),
    (b"copy-bottleneck,", b"bytes_per_second"),
    (b"_bottleneck_completion()", b"_bottleneck_complete="),
    (b"#compdef bottleneck", b"_bottleneck_complete="),
    (b"complete --command bottleneck", b"_bottleneck_complete="),
)
"""Beginning of each kind of our documents, in small letters, and a text near its beginning."""
HEAD_BYTES = 4096
_LOOKING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_NULL = os.makedev(1, 3)
_TERMINALS = frozenset((4, 5, *range(136, 144)))
"""Major numbers of consoles, the controlling terminal and pseudoterminals
(kernel: Documentation/admin-guide/devices.txt)."""
_DESCRIPTORS = re.compile(r"/dev|/proc/\d+(/task/\d+)?/fd")
"""Folders whose links lead to files that are already open."""
MOST_LINKS = 40
"""Links that the kernel follows in one path (path_resolution(7))."""


def check(path: str | Path) -> tuple[str, os.stat_result | None]:
    """Returns the path without links, and the status of what is there; None: nothing.

    Errors: OSError with a sentence as its strerror: a link, a folder that another user can change,
    a device, a file that is neither empty nor a readable report of this program.
    """
    text = os.fspath(path)
    _refuse_open_folder(text)
    real = _real(text)
    try:
        status = os.lstat(real)
    except FileNotFoundError:
        return real, None
    if stat.S_ISLNK(status.st_mode):
        # A link of the kernel's to an open file: a pipe is used as it is, a file by its name.
        status = os.stat(real)
        if stat.S_ISREG(status.st_mode):
            real = os.readlink(real)
            _refuse_open_folder(real)
    elif stat.S_ISFIFO(status.st_mode):
        _refuse_stranger(status)
    _refuse_device(status)
    if stat.S_ISREG(status.st_mode):
        _refuse_foreign(real, status)
    return real, status


def _refuse_open_folder(path: str) -> None:
    """Refuses root a file in a folder that another user can change, by any part of its path."""
    if os.geteuid() != 0 or not hasattr(os, "seteuid"):
        return  # on Windows nothing outside a profile counts as private
    # With a dot behind it /tmp is not the last part, and its sticky bit counts.
    here = "/" if os.path.isabs(path) else os.getcwd()
    folder = os.path.join(here, os.path.dirname(path), ".")
    if changed := others_can_change(folder, sticky=True):
        text = f"another user can change {changed}; use - and redirect, or a folder of root's"
        raise OSError(errno.EACCES, text)


def _real(path: str, links: int = 0, is_last: bool = True) -> str:
    """Returns the path without links, each of which is root's or this user's.

    Link by link, so that exactly the checked link is followed. A link of /proc stays as it is.
    is_last: the last part may be a link only in /dev.
    """
    if not path:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
    folder, name = os.path.split(path)
    if folder == path:
        return path
    parent = _real(folder, links, is_last=False) if folder else os.getcwd()
    if name in ("", "."):
        return parent
    if name == "..":
        return os.path.dirname(parent)
    place = os.path.join(parent, name)
    try:
        status = os.lstat(place)
    except FileNotFoundError:
        return place
    is_link = stat.S_ISLNK(status.st_mode)
    if is_link and is_last and not _DESCRIPTORS.fullmatch(parent):
        raise OSError(errno.ELOOP, "a symbolic link; name the file that it leads to")
    if not is_link or parent.startswith("/proc/"):
        return place
    _refuse_stranger(status)
    text = os.readlink(place)
    if links >= MOST_LINKS or not os.path.samestat(os.lstat(place), status):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return _real(os.path.join(parent, text), links + 1, is_last)


def _refuse_stranger(status: os.stat_result) -> None:
    if status.st_uid not in (0, os.geteuid()):
        raise OSError(errno.EACCES, "owned by another user; use another file")


def _refuse_foreign(real: str, status: os.stat_result) -> None:
    """Refuses another user's file, and one that is neither empty nor a report of this program."""
    _refuse_stranger(status)
    try:
        fd = os.open(real, _LOOKING)
    except PermissionError:
        text = "cannot be read, so it may not be an earlier report; use another file"
        raise OSError(errno.EACCES, text) from None
    except FileNotFoundError:
        raise OSError(errno.ENOENT, "the open file no longer has a name") from None
    with descriptor(fd):
        if not os.path.samestat(os.fstat(fd), status):
            raise OSError(errno.EEXIST, "replaced during the run; not overwritten")
        head = os.pread(fd, HEAD_BYTES, 0)
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if head and not any(start.startswith(first) and mark in start for first, mark in MARKS):
        text = "exists and is not a report of this program; use another file"
        raise OSError(errno.EEXIST, text)


def write(path: str | Path, text: str, mode: int | None = None) -> None:
    """Writes UTF-8 atomically: a reader finds the old file or the new one, never a part.

    mode: permissions of the file; None: an existing file of this user keeps its own. A pipe or a
    terminal is written to directly.
    Errors: those of check(), which is repeated here; OSError.
    """
    real, status = check(path)
    if status is not None and not stat.S_ISREG(status.st_mode):
        _send(real, text)
        return
    # Another user's mode is not kept: that user could have chosen who reads the document.
    if mode is None and status is not None and status.st_uid == os.geteuid():
        mode = stat.S_IMODE(status.st_mode)
    place, name = os.path.split(real)
    temporary = f".{name[:40]}.{secrets.token_hex(6)}"
    folder = os.open(place, getattr(os, "O_PATH", 0) | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fd, is_named = _new(folder, temporary)
        with os.fdopen(fd, "wb") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
            file.flush()
            os.fchmod(fd, _usual_mode() if mode is None else mode)
            os.fsync(fd)
            if not is_named:
                # Python passes AT_SYMLINK_FOLLOW on only beside a folder's descriptor.
                os.link(f"/proc/self/fd/{fd}", temporary, dst_dir_fd=folder, follow_symlinks=True)
        # Another file may have taken a name since: rename() would replace it.
        again, status = check(path)
        same = os.path.samestat(os.fstat(folder), os.stat(place)) and _is_at(folder, name, status)
        if again != real or not same:
            raise OSError(errno.EEXIST, "replaced during the run; not overwritten")
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        os.close(folder)


def _is_at(folder: int, name: str, status: os.stat_result | None) -> bool:
    """Whether the name in an open folder still leads to that file, or to none."""
    try:
        entry = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return status is None
    return status is not None and os.path.samestat(entry, status)


def _new(folder: int, temporary: str) -> tuple[int, bool]:
    """Creates a file, unnamed if possible; returns its descriptor, and whether it has a name."""
    if os.path.isdir("/proc/self/fd"):
        with suppress(OSError):
            return os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600, dir_fd=folder), False
    return os.open(temporary, _NEW, 0o600, dir_fd=folder), True


def _send(real: str, text: str) -> None:
    """Writes into a pipe or a terminal, and into nothing that took its place meanwhile."""
    no_follow = 0 if real.startswith("/proc/") else os.O_NOFOLLOW
    try:
        fd = os.open(real, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | no_follow)
    except OSError as error:
        if error.errno == errno.ENXIO:
            error.strerror = "a pipe that no program reads; start its reader first"
        raise
    with os.fdopen(fd, "wb") as file:
        status = os.fstat(fd)
        _refuse_device(status)
        if stat.S_ISREG(status.st_mode):
            raise OSError(errno.EEXIST, "replaced by a file during the run; not overwritten")
        os.set_blocking(fd, True)
        file.write(text.encode("utf-8", "backslashreplace"))


def _refuse_device(status: os.stat_result) -> None:
    """Refuses all devices but a terminal and /dev/null, unopened: opening one may act on it."""
    if stat.S_ISBLK(status.st_mode):
        raise OSError(errno.ENOTBLK, "a block device is never written to")
    if stat.S_ISSOCK(status.st_mode):
        raise OSError(errno.ENXIO, "a socket; use a file")
    if stat.S_ISCHR(status.st_mode) and not _is_terminal_or_null(status.st_rdev):
        raise OSError(errno.ENODEV, "a device, not a terminal; use a file")


def _is_terminal_or_null(number: int) -> bool:
    if number == _NULL or os.major(number) in _TERMINALS:
        return True
    # A console of another kind counts if this process already uses it as its terminal.
    return any(os.isatty(fd) and os.fstat(fd).st_rdev == number for fd in range(3))


def _usual_mode() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
