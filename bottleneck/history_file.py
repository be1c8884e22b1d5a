"""The SQLite file of a history: whose it is, its tables, and one transaction on it.

A file may come from a stranger, and a schema is a program: nothing is asked of one that has more
than the tables that we make, in the very words that we make them (sqlite.org/security.html).

The file is told by its application_id (sqlite.org/pragma.html#pragma_application_id): one that is
not ours is never written to. It is kept in rollback mode, which works on a network disk where
write-ahead logging does not (sqlite.org/wal.html), and two programs may write at once.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bottleneck import document_file, history_place

APPLICATION_ID = 0x43427448
LOCKED_SECONDS = 10.0
"""How long another program may hold the file."""
MAKING_SECONDS = 2.0
"""How long an empty file may be one that another program has just made for a history."""
HEADER_BYTES = 100
"""Of every SQLite file (sqlite.org/fileformat.html): mark, user_version at 60, our id at 68;
at 18 and 19 how it is written, 1: with a rollback journal."""

READING_SECONDS = 10.0
"""From when nobody else holds the file: reading a large one takes a tenth of it."""
STEPS_BETWEEN_LOOKS = 20_000
"""Of SQLite's own machine: a few milliseconds."""
LARGEST_BYTES = 256 << 20
LARGEST_VALUE_BYTES = 64 << 10
LARGEST_HEAP_BYTES = 64 << 20
MOST_CHARACTERS = 8 << 20
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
        with _written(real) if writing else _read(real) as file:
            yield file
    except HistoryError as error:
        raise HistoryError(f"{path}: {error}") from None
    except (sqlite3.Error, UnicodeDecodeError, MemoryError) as error:
        raise HistoryError(f"{path}: {_reason(error)}") from None
    except OSError as error:
        raise HistoryError(f"{path}: {error.strerror}") from None


@contextmanager
def _read(path: Path) -> Iterator[sqlite3.Connection]:
    """SQLite never looks beside a file that it takes for immutable, so we lock it ourselves."""
    if _version(path, writing=False) < len(MIGRATIONS):
        # What an earlier version of this program wrote is brought up first.
        with _written(path):
            pass
    at_rest = history_place.at_rest(path, LOCKED_SECONDS)
    with at_rest, _transaction(path, "mode=ro&immutable=1", "BEGIN") as file:
        yield file


@contextmanager
def _written(path: Path) -> Iterator[sqlite3.Connection]:
    history_place.check_folder(path)
    made, done = _made(path), False
    try:
        if not made:
            _version(path, writing=True)
        history_place.check_beside(path, made)
        # Of a file that it may not write to SQLite makes this "ro" by itself.
        with _transaction(path, "mode=rw", "BEGIN IMMEDIATE") as file:
            _bring_up(file)
            yield file
        done = True
    finally:
        if made and not done:
            _unmade(path)


@contextmanager
def _transaction(path: Path, mode: str, begin: str) -> Iterator[sqlite3.Connection]:
    named = f"file:{quote(os.fsencode(path))}?{mode}"
    connection = sqlite3.connect(named, uri=True, timeout=LOCKED_SECONDS, isolation_level=None)
    with closing(connection) as file:
        _limit(file)
        file.execute(begin)
        with _in_time(file):
            _check_schema(file)
            yield file
        # An error passes this by, and closing then takes everything back.
        file.execute("COMMIT")


def rows(file: sqlite3.Connection, query: str, values: tuple[Any, ...]) -> list[dict[str, Any]]:
    """What a query gives, as far as memory is bounded. Errors: sqlite3.Error."""
    found, characters = [], 0
    for row in file.execute(query, values):
        characters += sum(len(each) for each in row.values() if isinstance(each, str | bytes))
        if characters > MOST_CHARACTERS:
            raise sqlite3.DataError("more text than a history has")
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
    # Whoever holds the file has let go by then.
    _number(file, "PRAGMA user_version")
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
    # Once more, now that nobody else can change it.
    found = _schema(file)
    if version or found:
        _check_ours(_number(file, "PRAGMA application_id"), version)
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as ours:
        ours.row_factory = _named
        for statements in MIGRATIONS[:version]:
            for statement in statements:
                ours.execute(statement)
        if found != _schema(ours):
            raise HistoryError("other tables than a history's; name another file")


def _schema(file: sqlite3.Connection) -> list[tuple[str, ...]]:
    return [
        tuple(" ".join(str(each).split()) for each in row.values())
        for row in rows(file, _SCHEMA, ())
    ]


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
        time.sleep(history_place.BREATH_SECONDS)
        header = _header(path)
    if not header:
        what = "and no history: it stays; name another file" if writing else "no run was kept there"
        raise HistoryError(f"empty, {what}")
    if not header.startswith(b"SQLite format 3\0"):
        raise HistoryError("no history, and it stays; name another file")
    if header[18:20] != b"\1\1":
        raise HistoryError("another program's database, and it stays; name another file")
    _check_ours(int.from_bytes(header[68:72]), int.from_bytes(header[60:64]))
    return int.from_bytes(header[60:64])


def _may_be_in_the_making(path: Path, waited_seconds: float) -> bool:
    """Whether an empty file may be filled soon: SQLite has a journal beside what it writes to."""
    journal = path.with_name(f"{path.name}-journal")
    return waited_seconds < (LOCKED_SECONDS if journal.exists() else MAKING_SECONDS)


def _header(path: Path) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            raise HistoryError("not a regular file; name another one")
        if about.st_size > LARGEST_BYTES:
            raise HistoryError(f"larger than {LARGEST_BYTES} bytes; name another file")
        return os.read(fd, HEADER_BYTES)
    finally:
        os.close(fd)


def _check_ours(application_id: int, version: int) -> None:
    whose = "another program's database"
    if application_id == APPLICATION_ID:
        if version <= len(MIGRATIONS):
            return
        whose = "of a later version of this program"
    raise HistoryError(f"{whose}, and it stays; name another file")


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
