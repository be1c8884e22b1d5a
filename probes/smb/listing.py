"""Files below a folder of the share. Whatever a server lists, the search is bounded; no link is
followed."""

from __future__ import annotations

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
from probes.smb.run_folder import joined
from probes.smb.smbprotocol_connection import listed, opened
from probes.smb.smbprotocol_session import FILE_LIST_DIRECTORY, Smb2Session

MOST_LISTED, MOST_FOLDERS, MOST_DEPTH = 20_000, 500, 8
_ODD_NAME = re.compile(r'[\x00-\x1f\x7f-\x9f\\/:*?"<>|]|\.{1,2}\Z')
_SPECIAL = (
    FileAttributes.FILE_ATTRIBUTE_REPARSE_POINT
    | FileAttributes.FILE_ATTRIBUTE_OFFLINE
    | FileAttributes.FILE_ATTRIBUTE_RECALL_ON_OPEN
    | FileAttributes.FILE_ATTRIBUTE_RECALL_ON_DATA_ACCESS
)
"""Links, and files that come from a tape or a cloud."""


@dataclass
class Passed:
    """What of a folder is not copied."""

    special: int = 0
    """Links, files that are no plain ones, folders of other file systems."""
    unreadable: int = 0
    first: str | None = None
    """Of those that cannot be read, and why."""
    cut: bool = False
    """There is more than could be listed, or than there is room for."""

    def refused(self, text: str) -> None:
        """One more that cannot be read."""
        self.unreadable += 1
        self.first = self.first or text


class Entry(NamedTuple):
    """A file or folder as a server lists it."""

    path: str
    size_bytes: int
    number: int
    """The server's own for the file, by whatever path it was met; 0: it has none."""
    attributes: int

    @property
    def is_folder(self) -> bool:
        """Whether it is one."""
        return bool(self.attributes & FileAttributes.FILE_ATTRIBUTE_DIRECTORY)


def walk(session: Smb2Session, folder: str, until: float, passed: Passed) -> Iterator[Entry]:
    """Every file that may be read, breadth first, each once; ends at the first of the limits.

    passed: gets what is left out.
    """
    todo, seen = deque([(folder, 0)]), {0}
    left = MOST_LISTED
    for _ in range(MOST_FOLDERS):
        if not todo or left <= 0 or time.monotonic() > until:
            break
        path, depth = todo.popleft()
        try:
            found = _listed(session, path, left, until)
        except Refused as refused:
            if not depth or refused.kind in ("unreachable", "login"):
                raise
            # gone by now, or not for this user
            passed.refused(refused.text)
            continue
        left -= len(found)
        for each in found:
            if each is None:
                passed.special += 1
            elif not (each.number and each.number in seen):
                seen.add(each.number)
                if not each.is_folder:
                    yield each
                elif depth < MOST_DEPTH:
                    todo.append((each.path, depth + 1))
                else:
                    passed.cut = True
    passed.cut = passed.cut or bool(todo) or left <= 0 or time.monotonic() > until


def _listed(session: Smb2Session, folder: str, most: int, until: float) -> list[Entry | None]:
    """What lies in a folder; None for each name that is passed over."""
    found: list[Entry | None] = []
    with session._step("list a folder of --tree"):
        made = opened(session._tree, folder, FILE_LIST_DIRECTORY, EXISTING, FOLDER | OPEN_LINK)
        for each in listed(made, "*", most, until):
            if each.name not in (".", ".."):
                found.append(_entry(folder, each))
    return found[:most]


def _entry(folder: str, told: smbprotocol_connection.Entry) -> Entry | None:
    name = told.name
    if told.attributes & _SPECIAL or _ODD_NAME.search(name) or not 0 < len(name) <= 255:
        return None
    return Entry(joined(folder, name), told.size_bytes, told.number, told.attributes)
