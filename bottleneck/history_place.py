"""Where a history lies, and what lies beside it: SQLite would play that back before we have looked.

A file named as the history and "-journal" is a write that was interrupted. SQLite undoes it when it
opens the history, whoever wrote it, and deletes the file that the journal's last bytes name as its
super-journal (sqlite.org/fileformat.html, 3.1). Ours never name one: one transaction of ours is on
one file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bottleneck.document_file import is_trusted
from probes.host.tools import others_can_change

BREATH_SECONDS = 0.02
_LOCKS_BEGIN, _LOCKS_BYTES = 1 << 30, 512
"""The bytes that SQLite locks: pending, reserved, and those of the readers (its os.h)."""
_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")
"""The last bytes of a journal that names one."""
_LOOKING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY
_STAYS = "move it away, or name another file"


def check_folder(path: Path) -> None:
    """A folder in which others may rename is none to write in: no look at a name would hold.

    Errors: OSError with a sentence as its strerror.
    """
    changed = others_can_change(os.fspath(path.parent), sticky=True)
    if changed:
        text = f"others may write to {changed}; name a file in a folder of your own"
        raise OSError(errno.EACCES, text)


def check_beside(path: Path, made: bool) -> None:
    """Beside a history that is written to: at most the journal of a write of ours.

    made: there was no such file just now, so that no journal is its own.
    Errors: OSError with a sentence as its strerror.
    """
    _check_no_log(path)
    journal = path.with_name(f"{path.name}-journal")
    # Whoever writes at this moment takes the journal away when done.
    with suppress(FileNotFoundError):
        if not _is_own_journal(journal) or made:
            raise OSError(errno.EEXIST, f"{journal.name} is of another program; {_STAYS}")


def _check_no_log(path: Path) -> None:
    """No history is kept with a log, which SQLite would take for a part of it."""
    if os.path.lexists(f"{path}-wal"):
        raise OSError(errno.EEXIST, f"{path.name}-wal is of another program; {_STAYS}")


def _is_own_journal(journal: Path) -> bool:
    about = journal.lstat()
    if not stat.S_ISREG(about.st_mode) or about.st_nlink > 1 or not is_trusted(about.st_uid):
        return False
    fd = os.open(journal, _LOOKING)
    try:
        size = os.fstat(fd).st_size
        return os.pread(fd, len(_SUPER_JOURNAL), max(0, size - 8)) != _SUPER_JOURNAL
    finally:
        os.close(fd)


@contextmanager
def at_rest(path: Path, within_seconds: float) -> Iterator[None]:
    """A block in which nobody writes to the file, and nothing beside it is waiting to be undone.

    Errors: OSError with a sentence as its strerror: another program writes to it, or was
    interrupted.
    """
    fd, until = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), time.monotonic()
    until += within_seconds
    try:
        while not _locked(fd):
            if time.monotonic() > until:
                raise OSError(errno.EAGAIN, "another program is writing to it; try again")
            time.sleep(BREATH_SECONDS)
        _check_no_log(path)
        if os.path.lexists(f"{path}-journal"):
            text = f"a write to it was interrupted ({path.name}-journal is there)"
            raise OSError(errno.EBUSY, f"{text}; the next run with --history repairs it")
        yield
    finally:
        os.close(fd)


def _locked(fd: int) -> bool:
    """Whether no writer has the file; none comes then, until it is closed."""
    try:
        fcntl.lockf(fd, fcntl.LOCK_SH | fcntl.LOCK_NB, _LOCKS_BYTES, _LOCKS_BEGIN)
    except (BlockingIOError, PermissionError):
        return False
    return True
