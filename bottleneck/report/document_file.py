"""The file of a document that a user asked for: what may become it, and how it is written.

Nothing is lost to it: a block device is never opened for writing, of character devices a terminal
and /dev/null alone, and of files only an empty one or an earlier report of this user's or root's is
replaced. No link at the name itself is followed but /dev's own, and before it none of another
user's. Root writes into no folder that another user can change.
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
"""How each kind of our documents begins, in small letters, and what stands near its beginning."""
HEAD_BYTES = 4096
_LOOKING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY
_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
_NULL = os.makedev(1, 3)
_TERMINALS = frozenset((4, 5, *range(136, 144)))
"""Majors of consoles, of one's own terminal, and of what ssh and windows have
(kernel: Documentation/admin-guide/devices.txt)."""
_DESCRIPTORS = re.compile(r"/dev|/proc/\d+(/task/\d+)?/fd")
"""Folders whose links stand for files that are open already."""
MOST_LINKS = 40
"""As many as the kernel follows (path_resolution(7))."""


def check(path: str | Path) -> tuple[str, os.stat_result | None]:
    """Returns the path without links in it, and what is there; None: nothing.

    Errors: OSError with a sentence as its strerror: a link, what another user can change, a
    device, a file that is neither empty nor a readable report of this program.
    """
    text = os.fspath(path)
    _refuse_open_folder(text)
    real = _real(text)
    try:
        about = os.lstat(real)
    except FileNotFoundError:
        return real, None
    if stat.S_ISLNK(about.st_mode):
        # The kernel's own, of an open file: a pipe as it is, a file by its name.
        about = os.stat(real)
        if stat.S_ISREG(about.st_mode):
            real = os.readlink(real)
            _refuse_open_folder(real)
    elif stat.S_ISFIFO(about.st_mode):
        _refuse_stranger(about)
    _refuse_device(about)
    if stat.S_ISREG(about.st_mode):
        _refuse_foreign(real, about)
    return real, about


def _refuse_open_folder(path: str) -> None:
    """Refuses root a file in a folder that another user can change, by any part of its path."""
    if os.geteuid() != 0 or not hasattr(os, "seteuid"):
        return  # on Windows nothing outside a profile counts as private
    # With a dot behind it /tmp is no last part, and passes.
    here = "/" if os.path.isabs(path) else os.getcwd()
    folder = os.path.join(here, os.path.dirname(path), ".")
    if changed := others_can_change(folder, sticky=True):
        text = f"another user can change {changed}; use - and redirect, or a folder of root's"
        raise OSError(errno.EACCES, text)


def _real(path: str, links: int = 0, is_last: bool = True) -> str:
    """Returns the path without links, each of which is root's or this user's.

    Link by link: what was looked at is what is followed. A link of /proc is left as it is.
    is_last: no link is followed at its end, but one of /dev.
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
        about = os.lstat(place)
    except FileNotFoundError:
        return place
    is_link = stat.S_ISLNK(about.st_mode)
    if is_link and is_last and not _DESCRIPTORS.fullmatch(parent):
        raise OSError(errno.ELOOP, "a symbolic link; name the file that it leads to")
    if not is_link or parent.startswith("/proc/"):
        return place
    _refuse_stranger(about)
    text = os.readlink(place)
    if links >= MOST_LINKS or not os.path.samestat(os.lstat(place), about):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    return _real(os.path.join(parent, text), links + 1, is_last)


def _refuse_stranger(about: os.stat_result) -> None:
    if about.st_uid not in (0, os.geteuid()):
        raise OSError(errno.EACCES, "owned by another user; use another file")


def _refuse_foreign(real: str, about: os.stat_result) -> None:
    """Refuses a file of another user's, and what is neither empty nor a report of this program."""
    _refuse_stranger(about)
    try:
        fd = os.open(real, _LOOKING)
    except PermissionError:
        text = "cannot be read, so it may not be an earlier report; use another file"
        raise OSError(errno.EACCES, text) from None
    except FileNotFoundError:
        raise OSError(errno.ENOENT, "the open file no longer has a name") from None
    with descriptor(fd):
        if not os.path.samestat(os.fstat(fd), about):
            raise OSError(errno.EEXIST, "replaced during the run; not overwritten")
        head = os.pread(fd, HEAD_BYTES, 0)
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
        _send(real, text)
        return
    # A mode that another user chose would open the document to whom that user likes.
    if mode is None and about is not None and about.st_uid == os.geteuid():
        mode = stat.S_IMODE(about.st_mode)
    place, name = os.path.split(real)
    temporary = f".{name[:40]}.{secrets.token_hex(6)}"
    folder = os.open(place, getattr(os, "O_PATH", 0) | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fd, named = _new(folder, temporary)
        with os.fdopen(fd, "wb") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
            file.flush()
            os.fchmod(fd, _usual_mode() if mode is None else mode)
            os.fsync(fd)
            if not named:
                # AT_SYMLINK_FOLLOW goes along only where a folder's descriptor does.
                source = f"/proc/self/fd/{fd}"
                os.link(source, temporary, dst_dir_fd=folder, follow_symlinks=True)
        # Whatever took a name since: a node would be removed, a file replaced, a folder entered.
        again, about = check(path)
        same = os.path.samestat(os.fstat(folder), os.stat(place)) and _is_at(folder, name, about)
        if again != real or not same:
            raise OSError(errno.EEXIST, "replaced during the run; not overwritten")
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        os.close(folder)


def _is_at(folder: int, name: str, about: os.stat_result | None) -> bool:
    """Whether that file, or none, has the name in an open folder."""
    try:
        entry = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return about is None
    return about is not None and os.path.samestat(entry, about)


def _new(folder: int, temporary: str) -> tuple[int, bool]:
    """A new file, and whether it has the name: without one it goes with this process."""
    if os.path.isdir("/proc/self/fd"):
        with suppress(OSError):
            return os.open(".", os.O_TMPFILE | os.O_RDWR, 0o600, dir_fd=folder), False
    return os.open(temporary, _NEW, 0o600, dir_fd=folder), True


def _send(real: str, text: str) -> None:
    """Into a pipe or a terminal; what took its place meanwhile is left alone."""
    followed = 0 if real.startswith("/proc/") else os.O_NOFOLLOW
    try:
        fd = os.open(real, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK | followed)
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
