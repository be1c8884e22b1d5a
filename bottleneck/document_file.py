"""The file of a document that a user asked for: what may become it, and how it is written.

Nothing is lost to it: a block device is never opened for writing, and of files only an empty one
or an earlier report is replaced.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from probes.host import nameless

MARKS = (
    (b"{", b'"copy-bottleneck/'),
    (b"<!doctype html", b"copy-bottleneck"),
    (b"<?xml", b'name="bottleneck'),
    (b"# ", b"copy-bottleneck/ticket/"),
    (b"# help ", b"copy_bottleneck_"),
)
"""How each kind of our documents begins, in small letters, and what stands near its beginning."""
HEAD_BYTES = 4096


def check(path: str | Path) -> None:
    """Looks whether a document may be written there; a link is followed.

    Errors: OSError with a sentence as its strerror: a block device, a file that is neither empty
    nor a report of this program, or one that cannot be read to see which.
    """
    mode = _mode(path)
    if mode is None:
        return
    target = str(path)
    _refuse_device(mode, target)
    if not stat.S_ISREG(mode):
        return
    try:
        fd = os.open(os.path.realpath(path), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except PermissionError:
        text = "it cannot be read, so that it may be more than an earlier report; name another file"
        raise OSError(errno.EACCES, text, target) from None
    try:
        told = os.fstat(fd)
        _refuse_device(told.st_mode, target)
        if not stat.S_ISREG(told.st_mode) or told.st_size == 0:
            return
        head = os.pread(fd, HEAD_BYTES, 0)
    finally:
        os.close(fd)
    if not _is_ours(head):
        text = "there is a file that is no report of this program, and it stays; name another one"
        raise OSError(errno.EEXIST, text, target)


def _is_ours(head: bytes) -> bool:
    """Whether a file that begins so is a document of this program."""
    began = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    return any(began.startswith(first) and mark in began for first, mark in MARKS)


def write(path: str | Path, text: str) -> None:
    """Writes UTF-8 so that a reader finds the old file or the new one, never a half.

    A link is followed and an existing file's mode kept; a pipe or a character device is written to
    as it is. Errors: those of check(), which is made again here; OSError.
    """
    check(path)
    mode = _mode(path)
    if mode is not None and not stat.S_ISREG(mode):
        # as it was named: a pipe in /dev/fd has no other path
        _send(path, text)
        return
    target = Path(os.path.realpath(path))
    with _beside(target) as (fd, name):
        _write_all(fd, text.encode("utf-8", "backslashreplace"))
        os.fchmod(fd, _usual_mode() if mode is None else stat.S_IMODE(mode))
        os.fsync(fd)
        # whatever took the name since: a node would be removed, a file replaced
        check(target)
        name().replace(target)


@contextmanager
def _beside(target: Path) -> Iterator[tuple[int, Callable[[], Path]]]:
    """A new file in the target's folder, and what gives it a name there, only when it is whole.

    Without a name it goes by itself, however this process ends (O_TMPFILE, open(2)).
    """
    fd, temporary = -1, target.with_name(f".{target.name[:40]}.{secrets.token_hex(6)}")
    try:
        try:
            fd = os.open(target.parent, os.O_TMPFILE | os.O_RDWR, 0o600)
        except OSError as error:
            if error.errno not in nameless.WITHOUT_TMPFILE:
                raise
            fd = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            yield fd, lambda: temporary
        else:
            yield fd, lambda: _named(fd, temporary)
    finally:
        if fd >= 0:
            os.close(fd)
        # also where an interrupt came between its naming and its renaming
        temporary.unlink(missing_ok=True)


def _named(fd: int, path: Path) -> Path:
    # AT_SYMLINK_FOLLOW goes along only where a folder's descriptor does, which is not looked at
    os.link(f"/proc/self/fd/{fd}", path, src_dir_fd=fd, follow_symlinks=True)
    return path


def _write_all(fd: int, content: bytes) -> None:
    done = 0
    while done < len(content):
        done += os.write(fd, content[done:])


def _mode(path: str | Path) -> int | None:
    """Of what stands there, at the end of its links; None: nothing."""
    try:
        return os.stat(path).st_mode  # noqa: PTH116 - text that may be no path at all
    except FileNotFoundError:
        return None


def _send(path: str | Path, text: str) -> None:
    """Into a pipe or a character device; what took its place meanwhile is left alone."""
    fd = os.open(path, os.O_WRONLY | os.O_NOCTTY)
    with os.fdopen(fd, "w", encoding="utf-8", errors="backslashreplace") as file:
        mode = os.fstat(fd).st_mode
        _refuse_device(mode, str(path))
        if stat.S_ISREG(mode):
            raise OSError(errno.EEXIST, "it became a file meanwhile, and stays", str(path))
        file.write(text)


def _refuse_device(mode: int, target: str) -> None:
    if stat.S_ISBLK(mode):
        raise OSError(errno.ENOTBLK, "a block device, which is never written to", target)


def _usual_mode() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return 0o666 & ~umask
