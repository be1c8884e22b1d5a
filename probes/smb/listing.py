"""Lists files below a folder of the share. The search is bounded, and follows no link."""

from __future__ import annotations

import contextlib
import re
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from smbprotocol.open import FileAttributes

from probes.core.stage import Refused
from probes.smb import smbprotocol_connection
from probes.smb.pipe import EXISTING, FOLDER, OPEN_LINK
from probes.smb.run_folder import join_path
from probes.smb.smbprotocol_connection import LISTING_BYTES, list_folder, open_path, replies
from probes.smb.smbprotocol_session import FILE_LIST_DIRECTORY, Smb2Session

MOST_LISTED, MOST_FOLDERS, MOST_DEPTH = 20_000, 500, 8
FIXED_TRIPS = 3
"""CREATE, the query that brings no more, CLOSE."""
ENTRY_BYTES = 80
"""Bytes of an entry before its name."""
_ODD_NAME = re.compile(r'[\x00-\x1f\x7f-\x9f\\/:*?"<>|]|\.{1,2}\Z')
_SPECIAL = (
    FileAttributes.FILE_ATTRIBUTE_REPARSE_POINT
    | FileAttributes.FILE_ATTRIBUTE_OFFLINE
    | FileAttributes.FILE_ATTRIBUTE_RECALL_ON_OPEN
    | FileAttributes.FILE_ATTRIBUTE_RECALL_ON_DATA_ACCESS
)
"""Links, and files that have to be recalled from a tape or a cloud."""


@dataclass
class SkippedFiles:
    """The files and folders that are not copied."""

    special: int = 0
    """Count of links, special files, folders of other file systems."""
    unreadable: int = 0
    first: str | None = None
    """The first that cannot be read, and why."""
    cut: bool = False
    """Whether there is more than could be listed, or than there is room for."""

    def add_unreadable(self, text: str) -> None:
        self.unreadable += 1
        self.first = self.first or text


class Entry(NamedTuple):
    """A file or folder as a server lists it."""

    path: str
    size_bytes: int
    number: int
    """The server's number of the file, independent of the path; 0: it has none."""
    attributes: int

    @property
    def is_folder(self) -> bool:
        return bool(self.attributes & FileAttributes.FILE_ATTRIBUTE_DIRECTORY)


def walk(session: Smb2Session, folder: str, until: float, passed: SkippedFiles) -> Iterator[Entry]:
    """Yields every readable file, breadth first, each once; ends at the first limit.

    passed: gets those that are left out.
    """
    todo, numbers = deque([(folder, 0)]), {0}
    remaining = MOST_LISTED
    for _ in range(MOST_FOLDERS):
        if not todo or remaining <= 0 or time.monotonic() > until:
            break
        path, depth = todo.popleft()
        try:
            entries = _list(session, path, remaining, until)
        except Refused as refused:
            if not depth or refused.kind in ("unreachable", "login"):
                raise
            # Removed meanwhile, or not readable by this user.
            passed.add_unreadable(refused.text)
            continue
        remaining -= len(entries)
        for each in entries:
            if each is None:
                passed.special += 1
            elif not (each.number and each.number in numbers):
                numbers.add(each.number)
                if not each.is_folder:
                    yield each
                elif depth < MOST_DEPTH:
                    todo.append((each.path, depth + 1))
                else:
                    passed.cut = True
    passed.cut = passed.cut or bool(todo) or remaining <= 0 or time.monotonic() > until


class Listed(NamedTuple):
    """One listing of a folder."""

    entries: int
    """Count of the files of this run."""
    moved_bytes: int
    """Size of all entries, names included (MS-FSCC 2.4.18)."""
    replies: int

    @property
    def round_trips(self) -> int:
        return FIXED_TRIPS + self.replies

    def replies_needed(self, times: float) -> float:
        """Returns the replies that hold so many times the entries."""
        return float(times * self.moved_bytes / LISTING_BYTES)


def count_entries(session: Smb2Session, folder: str, prefix: str) -> Listed:
    """Lists a folder, of about MOST_LISTED entries at most; counts the names with a prefix."""
    with session._step("list a folder"):
        handle = open_path(session._tree, folder, FILE_LIST_DIRECTORY, EXISTING, FOLDER | OPEN_LINK)
        names, count = list[str](), 0
        with contextlib.closing(replies(handle, "*")) as listed:
            for each in listed:
                names += [entry.name for entry in each]
                count += 1
                if len(names) > MOST_LISTED:
                    break
    entries = sum(name.startswith(prefix) for name in names)
    return Listed(entries, sum(ENTRY_BYTES + 2 * len(name) for name in names), count)


def _list(session: Smb2Session, folder: str, limit: int, until: float) -> list[Entry | None]:
    """Lists a folder; None for each name that is left out."""
    entries: list[Entry | None] = []
    with session._step("list a folder of --tree"):
        handle = open_path(session._tree, folder, FILE_LIST_DIRECTORY, EXISTING, FOLDER | OPEN_LINK)
        for each in list_folder(handle, "*", limit, until):
            if each.name not in (".", ".."):
                entries.append(_entry(folder, each))
    return entries[:limit]


def _entry(folder: str, raw: smbprotocol_connection.Entry) -> Entry | None:
    name = raw.name
    if raw.attributes & _SPECIAL or _ODD_NAME.search(name) or not 0 < len(name) <= 255:
        return None
    return Entry(join_path(folder, name), raw.size_bytes, raw.number, raw.attributes)
