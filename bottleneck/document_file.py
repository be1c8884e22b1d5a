"""The file of a document that a user asked for: what may become it, and how it is written.

Nothing is lost to it: a block device is never opened for writing, of character devices a terminal
and /dev/null alone, and of files only an empty one or an earlier report is replaced. Every step is
made in one folder that is held open, so that none goes elsewhere. A folder that everybody may write
to (/tmp) can hold a link of anybody's, to any file of ours: no link in such a folder is followed,
and elsewhere those of root and of this user alone.
"""

from __future__ import annotations

import errno
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from probes.host import nameless
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
_NULL = os.makedev(1, 3)
_TERMINALS = frozenset((4, 5, *range(136, 144)))
"""Majors of consoles, of one's own terminal, and of what ssh and windows have
(kernel: Documentation/admin-guide/devices.txt)."""
MOST_LINKS = 40
"""As many as the kernel follows (path_resolution(7))."""
_PATH = getattr(os, "O_PATH", os.O_RDONLY)
_FOLDER = _PATH | os.O_DIRECTORY
_NAMELESS = getattr(os, "O_TMPFILE", os.O_CREAT | os.O_EXCL)
"""Where there is no such flag (macOS) the folder's own name is in its way: EISDIR or EEXIST."""


def check(path: str | Path) -> None:
    """Looks whether a document may be written there.

    Errors: OSError with a sentence as its strerror: a link that may be planted, a device, a file
    that is neither empty nor a report of this program, or one that cannot be read to see which.
    """
    with found(path) as place:
        _check(place)


def _check(place: Place) -> None:
    if place.about is None:
        return
    _refuse_device(place.about)
    if not stat.S_ISREG(place.about.st_mode):
        if is_planted(place):
            text = "owned by another user, in a folder that is writable by everyone"
            raise OSError(errno.EACCES, text)
        return
    try:
        fd = os.open(place.name, _LOOKING, dir_fd=place.folder)
    except PermissionError:
        text = "cannot be read, so it may not be an earlier report; use another file"
        raise OSError(errno.EACCES, text) from None
    try:
        about = os.fstat(fd)
        _refuse_device(about)
        if not stat.S_ISREG(about.st_mode) or about.st_size == 0:
            return
        head = os.pread(fd, HEAD_BYTES, 0)
    finally:
        os.close(fd)
    began = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if not any(began.startswith(first) and mark in began for first, mark in MARKS):
        text = "exists and is not a report of this program; use another file"
        raise OSError(errno.EEXIST, text)


def write(path: str | Path, text: str, mode: int | None = None) -> None:
    """Writes UTF-8 so that a reader finds the old file or the new one, never a half.

    mode: of the file; None: an existing file of this user keeps its own. A pipe or a terminal is
    written to as it is.
    Errors: those of check(), which is made again here; OSError.
    """
    with found(path) as place:
        _check(place)
        if place.about is None or stat.S_ISREG(place.about.st_mode):
            _replace(place, text, mode)
        else:
            _send(place, text)


def _replace(place: Place, text: str, mode: int | None) -> None:
    # A mode that another user chose would open the document to whom that user likes.
    own = place.about is not None and place.about.st_uid == os.geteuid()
    if mode is None:
        mode = stat.S_IMODE(place.about.st_mode) if own and place.about else _usual_mode()
    with _beside(place) as (fd, name):
        _write_all(fd, text.encode("utf-8", "backslashreplace"))
        os.fchmod(fd, mode)
        os.fsync(fd)
        # whatever took the name since: a node would be removed, a file replaced
        _check(_again(place))
        os.rename(name(), place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)


def _again(place: Place) -> Place:
    """The same name, looked at anew."""
    try:
        about = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
    except FileNotFoundError:
        return Place(place.folder, place.name, None)
    return Place(place.folder, place.name, about)


@contextmanager
def _beside(place: Place) -> Iterator[tuple[int, Callable[[], str]]]:
    """A new file in the place's folder, and what gives it a name there, only when it is whole.

    Without a name it goes by itself, however this process ends (O_TMPFILE, open(2)).
    """
    fd, temporary = -1, f".{place.name[:40]}.{secrets.token_hex(6)}"
    try:
        try:
            fd = os.open(".", _NAMELESS | os.O_RDWR, 0o600, dir_fd=place.folder)
        except OSError as error:
            if error.errno not in (*nameless.WITHOUT_TMPFILE, errno.EEXIST):
                raise
            made = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            fd = os.open(temporary, made, 0o600, dir_fd=place.folder)
            yield fd, lambda: temporary
        else:
            yield fd, lambda: _named(fd, place.folder, temporary)
    finally:
        if fd >= 0:
            os.close(fd)
        # also where an interrupt came between its naming and its renaming
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=place.folder)


def _named(fd: int, folder: int, name: str) -> str:
    # AT_SYMLINK_FOLLOW goes along only where a folder's descriptor does, which is not looked at
    source = f"/proc/self/fd/{fd}"
    os.link(source, name, src_dir_fd=fd, dst_dir_fd=folder, follow_symlinks=True)
    return name


def _write_all(fd: int, content: bytes) -> None:
    done = 0
    while done < len(content):
        done += os.write(fd, content[done:])


def _send(place: Place, text: str) -> None:
    """Into a pipe or a terminal; what took its place meanwhile is left alone."""
    flags = os.O_WRONLY | os.O_NOCTTY | (0 if place.open_already else os.O_NOFOLLOW)
    fd = os.open(place.name, flags, dir_fd=place.folder)
    with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
        about = os.fstat(fd)
        _refuse_device(about)
        if stat.S_ISREG(about.st_mode):
            raise OSError(errno.EEXIST, "replaced by a file during the run; not overwritten")
        file.write(text)


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


# -- where it goes -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A name in a folder that is held open."""

    folder: int
    name: str
    about: os.stat_result | None
    """What stands there; None: nothing."""
    open_already: bool = False
    """Whether it is what /proc shows of a descriptor, a link that the kernel follows."""


@contextmanager
def found(path: str | Path) -> Iterator[Place]:
    """The place that a path leads to; its folder is open until the block ends.

    Errors: OSError, with a sentence as its strerror where a link is not followed.
    """
    text = os.fspath(path)
    walk = _Walk(text)
    try:
        yield walk.to_its_end()
    except OSError as error:
        # Of a name relative to a descriptor, which says nothing by itself.
        error.filename = text
        raise
    finally:
        os.close(walk.folder)


def is_planted(place: Place) -> bool:
    """Whether another user may have put there what stands there."""
    if place.about is None or is_trusted(place.about.st_uid):
        return False
    return bool(os.fstat(place.folder).st_mode & stat.S_IWOTH)


class _Walk:
    """On its way through a path: the folder that it stands in, and the names that are left."""

    def __init__(self, path: str) -> None:
        root = Path(path).anchor
        self.folder = os.open(root or ".", _FOLDER)
        self.left = _names(path[len(root) :])
        self.links = 0

    def to_its_end(self) -> Place:
        while True:
            if not self.left:
                raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))
            name = self.left.pop()
            try:
                about = os.stat(name, dir_fd=self.folder, follow_symlinks=False)
            except FileNotFoundError:
                if self.left:
                    raise
                return Place(self.folder, name, None)
            if stat.S_ISLNK(about.st_mode):
                if not _is_of_proc(self.folder):
                    self._follow(name)
                    continue
                self._check_link(about)
                if not self.left:
                    return self._opened(name)
                self._enter(name, _FOLDER)
            elif self.left:
                self._enter(name, _FOLDER | os.O_NOFOLLOW)
            else:
                return Place(self.folder, name, about)

    def _enter(self, name: str, flags: int) -> None:
        inner = os.open(name, flags, dir_fd=self.folder)
        os.close(self.folder)
        self.folder = inner

    def _check_link(self, link: os.stat_result) -> None:
        self.links += 1
        if self.links > MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        _refuse_planted(link, os.fstat(self.folder))

    def _follow(self, name: str) -> None:
        """Puts what a link says in the place of its name, of the very link that was looked at."""
        text = self._text(name) if hasattr(os, "O_PATH") else self._text_unchanged(name)
        root = Path(text).anchor
        if root:
            self._enter(root, _FOLDER)
        self.left += _names(text[len(root) :])

    def _text(self, name: str) -> str:
        link = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=self.folder)
        try:
            self._check_link(os.fstat(link))
            return os.readlink("", dir_fd=link)
        finally:
            os.close(link)

    def _text_unchanged(self, name: str) -> str:
        """The same where no link can be held open (macOS): one that changes meanwhile is none."""
        looks = [os.stat(name, dir_fd=self.folder, follow_symlinks=False)]
        self._check_link(looks[0])
        text = os.readlink(name, dir_fd=self.folder)
        looks.append(os.stat(name, dir_fd=self.folder, follow_symlinks=False))
        if len({(each.st_dev, each.st_ino, each.st_ctime_ns) for each in looks}) > 1:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        return text

    def _opened(self, name: str) -> Place:
        """What /proc/self/fd/1 stands for: a pipe or a terminal as it is, a file by its name."""
        about = os.stat(name, dir_fd=self.folder)
        if not stat.S_ISREG(about.st_mode):
            return Place(self.folder, name, about, open_already=True)
        text = os.readlink(name, dir_fd=self.folder)
        self._enter("/", _FOLDER)
        self.left = _names(text)
        place = self.to_its_end()
        if place.about is None or not os.path.samestat(place.about, about):
            raise OSError(errno.ENOENT, "the open file no longer has a name")
        return place


def _names(path: str) -> list[str]:
    """The last one first; a path that ends in a slash ends in its folder itself."""
    parts = path.replace(os.sep, "/").split("/")
    names = [each for each in parts if each not in ("", ".")]
    return [*(["."] if len(parts) > 1 and parts[-1] in ("", ".") else []), *reversed(names)]


def _is_of_proc(folder: int) -> bool:
    """Whether links there are the kernel's own, which no text can stand for."""
    try:
        return os.fstat(folder).st_dev == os.stat("/proc").st_dev  # noqa: PTH116 - beside a descriptor's
    except OSError:
        # A host without /proc has no such links.
        return False


def _refuse_planted(link: os.stat_result, folder: os.stat_result) -> None:
    if folder.st_mode & stat.S_IWOTH:
        text = "a link in a folder that is writable by everyone is not followed; use the file"
        raise OSError(errno.ELOOP, text)
    if not is_trusted(link.st_uid):
        raise OSError(
            errno.ELOOP, "a link owned by another user is not followed; use the file itself"
        )


def is_trusted(uid: int) -> bool:
    """Whether what belongs to that user is root's or our own."""
    return uid in (0, os.geteuid())
