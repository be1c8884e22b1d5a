"""The SQLite file of a history: whose it is, its tables, and one transaction on it.

The file is told by its application_id (sqlite.org/pragma.html#pragma_application_id): one that is
not ours is never written to. It is kept in rollback mode, which works on a network disk where
write-ahead logging does not (sqlite.org/wal.html), and two programs may write at once.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

APPLICATION_ID = 0x43427448
LOCKED_SECONDS = 10.0
"""How long another program may hold the file."""
MAKING_SECONDS = 2.0
"""How long an empty file may be one that another program has just made for a history."""
BREATH_SECONDS = 0.02
HEADER_BYTES = 100
"""Of every SQLite file (sqlite.org/fileformat.html): mark, user_version at 60, our id at 68."""

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
    """A file that cannot be a history, or not be written; the text is one line that names it."""


@contextmanager
def opened(path: Path, writing: bool) -> Iterator[sqlite3.Connection]:
    """One transaction on a history, which is made where there is none and it is written to.

    Errors: HistoryError.
    """
    made = done = False
    try:
        made = writing and _made(path)
        version = 0 if made else _version(path, writing)
        # What an earlier version of this program wrote is brought up first.
        writing = writing or version < len(MIGRATIONS)
        # Of a file that it may not write to SQLite makes this "ro" by itself.
        named = f"file:{quote(os.fsencode(path.absolute()))}?mode=rw"
        connection = sqlite3.connect(named, uri=True, timeout=LOCKED_SECONDS, isolation_level=None)
        with closing(connection) as file:
            file.row_factory = _named
            file.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
            if writing:
                _bring_up(path, file)
            yield file
            # An error passes this by, and closing then takes everything back.
            file.execute("COMMIT")
            done = True
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise HistoryError(f"{path}: {_reason(error)}") from None
    except OSError as error:
        raise HistoryError(f"{path}: {error.strerror}") from None
    finally:
        if made and not done:
            _unmade(path)


def _made(path: Path) -> bool:
    """Makes the file, empty, where there is nothing of that name; whether it did."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        return False
    os.close(fd)
    return True


def _unmade(path: Path) -> None:
    """Takes a made file away again into which nothing came."""
    with suppress(OSError):
        if path.stat().st_size == 0:
            path.unlink()


def _version(path: Path, writing: bool) -> int:
    """An existing file's version; read without SQLite, which might repair it."""
    header = _header(path)
    began = time.monotonic()
    # An empty one is not ours, unless another program is about to fill it in its first transaction.
    while writing and not header and _may_be_in_the_making(path, time.monotonic() - began):
        time.sleep(BREATH_SECONDS)
        header = _header(path)
    if not header:
        what = "and no history: it stays; name another file" if writing else "no run was kept there"
        raise HistoryError(f"{path}: empty, {what}")
    if not header.startswith(b"SQLite format 3\0"):
        raise HistoryError(f"{path}: no history, and it stays; name another file")
    _check_ours(path, int.from_bytes(header[68:72]), int.from_bytes(header[60:64]))
    return int.from_bytes(header[60:64])


def _may_be_in_the_making(path: Path, waited_seconds: float) -> bool:
    """Whether an empty file may be filled soon: SQLite has a journal beside what it writes to."""
    journal = path.with_name(f"{path.name}-journal")
    return waited_seconds < (LOCKED_SECONDS if journal.exists() else MAKING_SECONDS)


def _header(path: Path) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise HistoryError(f"{path}: not a regular file; name another one")
        return os.read(fd, HEADER_BYTES)
    finally:
        os.close(fd)


def _check_ours(path: Path, application_id: int, version: int) -> None:
    whose = "another program's database"
    if application_id == APPLICATION_ID:
        if version <= len(MIGRATIONS):
            return
        whose = "of a later version of this program"
    raise HistoryError(f"{path}: {whose}, and it stays; name another file")


def _bring_up(path: Path, file: sqlite3.Connection) -> None:
    """Makes the tables, or of an earlier version's file one of this version."""
    version = _number(file, "PRAGMA user_version")
    if version or _number(file, "SELECT count(*) FROM sqlite_master"):
        # Once more, now that nobody else can change it.
        _check_ours(path, _number(file, "PRAGMA application_id"), version)
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
    """What broke, in words that say what to do about it."""
    text = str(error)
    if "locked" in text:
        return "another program is writing to it; try again"
    if "readonly" in text:
        return "no right to write there"
    if "unable to open" in text:
        return "no right to write into its folder"
    if "full" in text:
        return "no space left there"
    return f"damaged or not to be used ({' '.join(text.split())[:160]}); name another file"
