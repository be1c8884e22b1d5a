"""The SQLite file of a history: whose it is, its tables, and one transaction on it.

A file may come from a stranger, and a schema is a program: nothing is asked of one that has more
than the tables that we make, in the very words that we make them (sqlite.org/security.html).
SQLite sees the bytes alone, never the file: what lies beside one named "-journal" it would play
back, whoever wrote it, and delete the file that its end names (sqlite.org/fileformat.html, 3.1).
What was written takes the place of the old file as a whole.

The file is told by its application_id (sqlite.org/pragma.html#pragma_application_id): one that is
not ours is never written to. The bytes that SQLite locks are locked meanwhile, so that two programs
may write at once.
"""

from __future__ import annotations

import sqlite3
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from bottleneck import document_file
from probes.host.system import os
from probes.host.tools import others_can_change
from probes.host.waiting import fcntl

APPLICATION_ID = 0x43427448
LOCKED_SECONDS = 10.0
"""How long another program may hold the file."""
MAKING_SECONDS = 2.0
"""How long an empty file may be one that another program has just made for a history."""
BREATH_SECONDS = 0.02
_LOCKS_BEGIN, _LOCKS_BYTES = 1 << 30, 512
"""The bytes that SQLite locks: pending, reserved, and those of the readers (its os.h)."""

READING_SECONDS = 10.0
"""A large one takes a tenth of it."""
STEPS_BETWEEN_LOOKS = 20_000
"""Of SQLite's own machine: a few milliseconds."""
LARGEST_BYTES = 24 << 20
"""Years of nights; SQLite has it in memory as a whole."""
LARGEST_VALUE_BYTES = 64 << 10
LARGEST_HEAP_BYTES = 64 << 20
MOST_CHARACTERS = 2 << 20
"""Of all that one query gives."""
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: LARGEST_VALUE_BYTES,
    sqlite3.SQLITE_LIMIT_SQL_LENGTH: LARGEST_VALUE_BYTES,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 0,
    sqlite3.SQLITE_LIMIT_WORKER_THREADS: 0,
}
_CAREFUL = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA mmap_size = 0",
    f"PRAGMA hard_heap_limit = {LARGEST_HEAP_BYTES}",
)
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY type, name LIMIT 100"

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE runs (
            id INTEGER PRIMARY KEY,
            started TEXT NOT NULL,
            started_unix_seconds REAL NOT NULL,
            elapsed_seconds REAL NOT NULL,
            share TEXT NOT NULL,
            client TEXT NOT NULL,
            server TEXT,
            status TEXT NOT NULL,
            version TEXT NOT NULL,
            headline TEXT,
            UNIQUE (started, share, client)
        )""",
        """CREATE TABLE copies (
            run INTEGER NOT NULL REFERENCES runs (id),
            place INTEGER NOT NULL,
            copy TEXT NOT NULL,
            dialect TEXT NOT NULL,
            initiator TEXT NOT NULL,
            bytes_per_second REAL,
            low_bytes_per_second REAL,
            high_bytes_per_second REAL,
            runs INTEGER,
            cap TEXT NOT NULL,
            confidence REAL NOT NULL,
            ceiling_bytes_per_second REAL,
            predicted_bytes_per_second REAL,
            PRIMARY KEY (run, place)
        )""",
        "CREATE INDEX runs_of_two_ends ON runs (share, client, started_unix_seconds)",
    ),
)
"""What makes each version of the file from the one before; the first one from nothing."""


class HistoryError(Exception):
    """A file that cannot be a history, or not be written; outside of this module the text is one
    line that names it."""


@contextmanager
def opened(path: Path, writing: bool) -> Iterator[sqlite3.Connection]:
    """One transaction on a history, which is made where there is none and it is written to.

    Errors: HistoryError.
    """
    try:
        # No link on the way that is planted.
        with document_file.found(path):
            # From here on that one file, wherever a link leads by then.
            real = Path(os.path.realpath(path, strict=path.is_symlink()))
        changed = others_can_change(os.fspath(real.parent), sticky=True) if writing else ""
        if changed:
            # No look at a name would hold there.
            raise HistoryError(
                f"{changed} is writable by other users; use a file in a folder of your own"
            )
        with _held(real, writing) as content, closing(_database(content)) as file:
            with _in_time(file):
                file.execute("BEGIN")
                _check_schema(file)
                _bring_up(file)
                yield file
                # An error passes this by, and nothing of it is kept.
                file.execute("COMMIT")
            if writing and (made := file.serialize()) != content:
                _replace(real, made)
    except HistoryError as error:
        raise HistoryError(f"{path}: {error}") from None
    except (sqlite3.Error, UnicodeDecodeError, MemoryError) as error:
        raise HistoryError(f"{path}: {_reason(error)}") from None
    except PermissionError as error:
        why = "no write permission" if writing else error.strerror
        raise HistoryError(f"{path}: {why}") from None
    except OSError as error:
        raise HistoryError(f"{path}: {error.strerror}") from None


@contextmanager
def _held(path: Path, writing: bool) -> Iterator[bytes]:
    """What the file holds, while nobody else writes to it; empty: it was made here."""
    began = time.monotonic()
    while True:
        fd, made = _descriptor(path, writing)
        waited = time.monotonic() - began
        try:
            if _locked(fd, writing) and _is_at(fd, path):
                content = b"" if made else _content(fd)
                if made or content:
                    _check_beside(path)
                    yield content
                    return
                # It is not ours, unless another program is about to fill it.
                if waited > MAKING_SECONDS or not writing:
                    what = "not a history; use another file" if writing else "no runs stored"
                    raise HistoryError(f"empty file, {what}")
            elif waited > LOCKED_SECONDS:
                raise HistoryError("another program is writing to it; try again")
        finally:
            if made and _is_at(fd, path):
                # Nothing came into it.
                path.unlink()
            os.close(fd)
        time.sleep(BREATH_SECONDS)


def _descriptor(path: Path, writing: bool) -> tuple[int, bool]:
    """The file, open; and whether there was none and it was made, empty."""
    careful = os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW
    if writing:
        with suppress(FileExistsError):
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | careful, 0o600), True
    # Before it is opened for writing: of a device that alone may do something.
    if not stat.S_ISREG(path.stat().st_mode):
        raise HistoryError("not a regular file; use another one")
    return os.open(path, (os.O_RDWR if writing else os.O_RDONLY) | careful), False


def _locked(fd: int, writing: bool) -> bool:
    """Whether no writer, or nobody at all, has the file; none comes until it is closed."""
    try:
        how = fcntl.LOCK_EX if writing else fcntl.LOCK_SH
        fcntl.lockf(fd, how | fcntl.LOCK_NB, _LOCKS_BYTES, _LOCKS_BEGIN)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _is_at(fd: int, path: Path) -> bool:
    """Whether it is still the file of that name."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(fd), path.lstat())
    return False


def _content(fd: int) -> bytes:
    if os.fstat(fd).st_size > LARGEST_BYTES:
        raise HistoryError(f"larger than {LARGEST_BYTES} bytes; use another file")
    content = os.pread(fd, LARGEST_BYTES, 0)
    # Its header (sqlite.org/fileformat.html): mark, how it is written (1: with a rollback journal),
    # user_version and our id.
    if content and not content.startswith(b"SQLite format 3\0"):
        raise HistoryError("not a history file, left unchanged; use another file")
    if content and content[18:20] != b"\1\1":
        raise HistoryError("another program's database, left unchanged; use another file")
    if content:
        _check_ours(int.from_bytes(content[68:72]), int.from_bytes(content[60:64]))
    return content


def _check_beside(path: Path) -> None:
    """Nothing that another program still has to play back, which may be a part of the file."""
    for end in ("-journal", "-wal"):
        if os.path.lexists(f"{path}{end}"):
            told = f"{path.name}{end} belongs to another program"
            raise HistoryError(f"{told}; move it away, or use another file")


def _replace(path: Path, content: bytes) -> None:
    """Puts a file with this content in the place of one, with the same owner and rights."""
    about = path.stat()
    fd, name = tempfile.mkstemp(prefix=".history-", dir=path.parent)
    try:
        with os.fdopen(fd, "wb") as file:
            with suppress(PermissionError):
                os.fchown(fd, about.st_uid, about.st_gid)
            os.fchmod(fd, stat.S_IMODE(about.st_mode))
            file.write(content)
            file.flush()
            os.fsync(fd)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink()
        raise


def _database(content: bytes) -> sqlite3.Connection:
    file = sqlite3.connect(":memory:", isolation_level=None)
    _limit(file)
    if content:
        file.deserialize(content)
    return file


def rows(file: sqlite3.Connection, query: str, values: tuple[Any, ...]) -> list[dict[str, Any]]:
    """What a query gives, as far as memory is bounded. Errors: sqlite3.Error."""
    found, characters = [], 0
    for row in file.execute(query, values):
        characters += sum(len(each) for each in row.values() if isinstance(each, str | bytes))
        if characters > MOST_CHARACTERS:
            raise sqlite3.DataError("too much text for a history")
        found.append(row)
    return found


def _limit(file: sqlite3.Connection) -> None:
    """Before anything of the file is read."""
    file.row_factory = _named
    for limit, most in _LIMITS.items():
        file.setlimit(limit, most)
    for each in _CAREFUL:
        file.execute(each)
    if sys.version_info >= (3, 12):
        file.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)
        for each in (sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW, sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER):
            file.setconfig(each, False)


@contextmanager
def _in_time(file: sqlite3.Connection) -> Iterator[None]:
    """A block whose queries end in time, and with a signal: SQLite looks at neither by itself.

    Raises:
        KeyboardInterrupt: one came while SQLite was at work.
        sqlite3.Error: out of time, or of the block.
    """
    until = time.monotonic() + READING_SECONDS
    file.set_progress_handler(lambda: time.monotonic() > until, STEPS_BETWEEN_LOOKS)
    try:
        yield
    except sqlite3.OperationalError as error:
        if str(error) != "interrupted":
            raise
        if time.monotonic() <= until:
            # What a signal raises in the handler ends the query, and goes no further by itself.
            raise KeyboardInterrupt from None
        text = f"reading it took more than {READING_SECONDS:.0f} s"
        raise sqlite3.OperationalError(text) from None
    finally:
        file.set_progress_handler(None, 0)


def _check_schema(file: sqlite3.Connection) -> None:
    """No view, trigger or virtual table, no other table than ours, no other words in them."""
    version = _number(file, "PRAGMA user_version")
    found = _schema(file)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as ours:
        ours.row_factory = _named
        for statements in MIGRATIONS[:version]:
            for statement in statements:
                ours.execute(statement)
        if found != _schema(ours):
            raise HistoryError("not the tables of a history; use another file")


def _schema(file: sqlite3.Connection) -> list[tuple[str, ...]]:
    return [
        tuple(" ".join(str(each).split()) for each in row.values())
        for row in rows(file, _SCHEMA, ())
    ]


def _check_ours(application_id: int, version: int) -> None:
    whose = "another program's database"
    if application_id == APPLICATION_ID:
        if version <= len(MIGRATIONS):
            return
        whose = "written by a later version of this program"
    raise HistoryError(f"{whose}, left unchanged; use another file")


def _bring_up(file: sqlite3.Connection) -> None:
    """Makes the tables, or of an earlier version's file one of this version."""
    version = _number(file, "PRAGMA user_version")
    for statements in MIGRATIONS[version:]:
        for statement in statements:
            file.execute(statement)
    if version < len(MIGRATIONS):
        file.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        file.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _named(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> dict[str, Any]:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


def _number(file: sqlite3.Connection, query: str) -> int:
    (value,) = file.execute(query).fetchone().values()
    return int(value)


def _reason(error: Exception) -> str:
    return f"damaged or unusable ({' '.join(str(error).split())[:160]}); use another file"
