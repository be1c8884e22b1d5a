"""Files of a folder of the share, and of those the ones that nobody read lately.

A server's cache cannot be emptied over SMB, but these it has most likely dropped. Whatever a server
lists, the search is bounded; no link is followed; of --cold-from no name leaves this module, in no
message either.
"""

from __future__ import annotations

import heapq
import re
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

from smbprotocol.exceptions import NoMoreFiles, NoSuchFile
from smbprotocol.file_info import FileInformationClass
from smbprotocol.open import FileAttributes

from probes.smb.pipe import EXISTING, FOLDER, OPEN_LINK
from probes.smb.run_folder import joined
from probes.smb.session import Handle, Session, Source
from probes.smb.smbprotocol_connection import opened
from probes.smb.smbprotocol_session import FILE_LIST_DIRECTORY, Smb2Session
from probes.stage import Refused, Unavailable

MOST_LISTED, MOST_FOLDERS, MOST_DEPTH = 20_000, 500, 8
LOOK_SECONDS = 4.0
"""For the whole search; what was found by then counts."""
MOST_FILES = 64
LEAST_IDLE_SECONDS = 3600.0
WHOLE_BYTES = 64 * 1024
"""Past its cache a server reads whole sectors alone."""
EARLIEST = datetime(1980, 1, 1, tzinfo=UTC)
"""A time before that is none."""
_ODD_NAME = re.compile(r'[\x00-\x1f\x7f-\x9f\\/:*?"<>|]|\.{1,2}\Z')
_SPECIAL = (
    FileAttributes.FILE_ATTRIBUTE_REPARSE_POINT
    | FileAttributes.FILE_ATTRIBUTE_OFFLINE
    | FileAttributes.FILE_ATTRIBUTE_RECALL_ON_OPEN
    | FileAttributes.FILE_ATTRIBUTE_RECALL_ON_DATA_ACCESS
)
"""Links, and files that come from a tape or a cloud."""
_NOT_AS_STORED = (
    FileAttributes.FILE_ATTRIBUTE_SPARSE_FILE
    | FileAttributes.FILE_ATTRIBUTE_COMPRESSED
    | FileAttributes.FILE_ATTRIBUTE_ENCRYPTED
)
"""Those that are not read as they are stored."""


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

    used: datetime
    """The later of its last read and its last write."""
    path: str
    size_bytes: int
    number: int
    """The server's own for the file, by whatever path it was met; 0: it has none."""
    attributes: int

    @property
    def is_folder(self) -> bool:
        """Whether it is one."""
        return bool(self.attributes & FileAttributes.FILE_ATTRIBUTE_DIRECTORY)

    @property
    def as_stored(self) -> bool:
        """Whether what is read lies on the disk as it is."""
        return not self.attributes & _NOT_AS_STORED


def idle_files(session: Session, folder: str, least_bytes: int, size_bytes: int) -> Source:
    """Opens files of a folder and those below it, the longest unread first: size_bytes at most.

    least_bytes: a smaller file is passed over. Raises Refused; Unavailable where there are none.
    """
    told = session.facts.server_time
    if not isinstance(session, Smb2Session):
        raise Unavailable("--cold-from: needs SMB 2 or 3")
    if told is None:
        raise Unavailable("--cold-from: the server does not report its clock")
    now = datetime.fromisoformat(told)
    until = time.monotonic() + LOOK_SECONDS
    found = (
        each
        for each in walk(session, folder, "--cold-from", until, Passed())
        if each.size_bytes >= max(least_bytes, WHOLE_BYTES)
        and each.as_stored
        and each.used > EARLIEST
        and (now - each.used).total_seconds() >= LEAST_IDLE_SECONDS
    )
    files: list[Handle] = []
    used = EARLIEST
    for each in heapq.nsmallest(MOST_FILES, found):
        left = size_bytes - sum(file.size_bytes for file in files)
        if left < WHOLE_BYTES:
            break
        try:
            handle = session.open_past_cache(each.path, "a file of --cold-from")
        except Refused as refused:
            if refused.kind in ("unreachable", "login"):
                raise
            continue  # gone by now, or not for this user
        size = min(handle.size_bytes, each.size_bytes, left) // WHOLE_BYTES * WHOLE_BYTES
        if size:
            files.append(replace(handle, size_bytes=size))
            used = max(used, each.used)
    if not files:
        raise Unavailable(
            f"--cold-from: no file of {-(-least_bytes >> 20)} MiB or more that was not used for "
            "an hour; use another folder"
        )
    return Source(tuple(files), (now - used).total_seconds())


def walk(
    session: Smb2Session, folder: str, option: str, until: float, passed: Passed
) -> Iterator[Entry]:
    """Every file that may be read, breadth first, each once; ends at the first of the limits.

    option: that named the folder. passed: gets what is left out.
    """
    todo, seen = deque([(folder, 0)]), {0}
    left = MOST_LISTED
    for _ in range(MOST_FOLDERS):
        if not todo or left <= 0 or time.monotonic() > until:
            break
        path, depth = todo.popleft()
        try:
            found = _listed(session, path, option, left, until)
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


def _listed(
    session: Smb2Session, folder: str, option: str, most: int, until: float
) -> list[Entry | None]:
    """What lies in a folder; None for each name that is passed over."""
    found: list[Entry | None] = []
    kind = FileInformationClass.FILE_ID_FULL_DIRECTORY_INFORMATION
    with session._step(f"list a folder of {option}"):
        made = opened(session._tree, folder, FILE_LIST_DIRECTORY, EXISTING, FOLDER | OPEN_LINK)
        try:
            with suppress(NoMoreFiles, NoSuchFile):
                while len(found) < most and time.monotonic() < until:
                    entries = made.query_directory("*", kind)
                    found += (_entry(folder, each) for each in entries if not _is_dots(each))
        finally:
            made.close()
    return found[:most]


def _is_dots(listed: Any) -> bool:
    return listed["file_name"].get_value() in (b".\0", b".\0.\0")


def _entry(folder: str, listed: Any) -> Entry | None:
    attributes = int(listed["file_attributes"].get_value())
    name = listed["file_name"].get_value().decode("utf-16-le", "replace")
    if attributes & _SPECIAL or _ODD_NAME.search(name) or not 0 < len(name) <= 255:
        return None
    times = [listed[each].get_value() for each in ("last_access_time", "last_write_time")]
    return Entry(
        max(each if each.tzinfo else each.replace(tzinfo=UTC) for each in times),
        joined(folder, name),
        int(listed["end_of_file"].get_value()),
        int(listed["file_id"].get_value()),
        attributes,
    )
