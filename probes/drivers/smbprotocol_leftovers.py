"""Listing with attributes, exclusive opens and deletes on a session of the smbprotocol library."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from smbprotocol.exceptions import NoMoreFiles, NoSuchFile, SMBResponseException
from smbprotocol.file_info import FileInformationClass
from smbprotocol.open import (
    CreateDisposition,
    CreateOptions,
    DirectoryAccessMask,
    FileAttributes,
    FilePipePrinterAccessMask,
    ImpersonationLevel,
    Open,
)

from probes.drivers.smbprotocol_session import Smb2Session
from probes.stage import Refused

__all__ = ["Entry", "Smb2Session", "entries", "matches", "remove", "withheld"]

MOST_ENTRIES = 20_000
SHARING_VIOLATION, DELETE_PENDING = 0xC0000043, 0xC0000056
NAME_NOT_FOUND = 0xC0000034
"""STATUS_OBJECT_NAME_NOT_FOUND (MS-ERREF 2.3.1)."""
_LIST = DirectoryAccessMask.FILE_LIST_DIRECTORY | DirectoryAccessMask.SYNCHRONIZE
_DELETE_FOLDER = _LIST | DirectoryAccessMask.DELETE | DirectoryAccessMask.FILE_READ_ATTRIBUTES
_DELETE_FILE = FilePipePrinterAccessMask.DELETE | FilePipePrinterAccessMask.FILE_READ_ATTRIBUTES
_FOLDER = CreateOptions.FILE_DIRECTORY_FILE
_FILE = CreateOptions.FILE_NON_DIRECTORY_FILE
_ALL = 0x7


@dataclass(frozen=True)
class Entry:
    """A name in a folder, as the server lists it."""

    name: str
    attributes: int
    size_bytes: int
    changed: datetime
    """The later of its last write and its last change, by the server's clock."""

    @property
    def is_plain_folder(self) -> bool:
        """A folder and no link or mount point."""
        return bool(self.attributes & FileAttributes.FILE_ATTRIBUTE_DIRECTORY) and not self._link

    @property
    def is_plain_file(self) -> bool:
        """A file and no link."""
        return not self.attributes & FileAttributes.FILE_ATTRIBUTE_DIRECTORY and not self._link

    @property
    def _link(self) -> bool:
        return bool(self.attributes & FileAttributes.FILE_ATTRIBUTE_REPARSE_POINT)


def matches(pattern: str, name: str) -> bool:
    """Whether a name is one that the pattern describes, to its end."""
    return re.fullmatch(pattern, name) is not None


def entries(session: Smb2Session, folder: str, pattern: str) -> Iterator[Entry]:
    """What lies in a folder of the share and matches the server's pattern, all of it.

    Raises Refused, also where that is more than MOST_ENTRIES.
    """
    found: list[Entry] = []
    with session._step(f"list {folder or 'the share'}"):
        opened = _opened(session, folder, _LIST, _FOLDER, _ALL)
        try:
            with contextlib.suppress(NoMoreFiles, NoSuchFile):
                while len(found) <= MOST_ENTRIES:
                    found += map(
                        _entry,
                        opened.query_directory(
                            pattern, FileInformationClass.FILE_DIRECTORY_INFORMATION
                        ),
                    )
        finally:
            opened.close()
    if len(found) > MOST_ENTRIES:
        raise Refused("usage", f"{folder or 'the share'} holds more than {MOST_ENTRIES} entries")
    yield from (each for each in found if each.name not in (".", ".."))


def withheld(session: Smb2Session, path: str) -> str:
    """Why a folder is not given to us alone; empty: it is, and nobody else has it open."""
    try:
        with session._step(f"open {path}", quiet=True):
            _opened(session, path, _DELETE_FOLDER, _FOLDER, 0).close()
    except SMBResponseException as error:
        return _words(error)
    return ""


def remove(session: Smb2Session, path: str, own_names: str, until: float) -> str:
    """Deletes a run's folder and its files, each once it is ours alone; empty, or why it stays.

    until: by time.monotonic(); it begins nothing more then.
    """
    doomed = CreateOptions.FILE_DELETE_ON_CLOSE
    try:
        for each in entries(session, path, "*"):
            if not matches(own_names, each.name) or not each.is_plain_file:
                return f"it holds {each.name!r}, which no run puts there"
            if time.monotonic() > until:
                return "the server took too long: a part of it is still there"
            with session._step(f"delete {path}", quiet=True):
                _opened(session, f"{path}\\{each.name}", _DELETE_FILE, _FILE | doomed, 0).close()
        with session._step(f"delete {path}", quiet=True):
            _opened(session, path, _DELETE_FOLDER, _FOLDER | doomed, 0).close()
    except SMBResponseException as error:
        return _words(error)
    except Refused as refused:
        return refused.text
    return _still_there(session, path)


def _still_there(session: Smb2Session, path: str) -> str:
    """Why a deleted folder is there all the same; empty: it is gone.

    Closing a folder that is not empty deletes nothing, and says nothing of it (MS-FSA 2.1.5.5).
    """
    try:
        with session._step(f"look for {path}", quiet=True):
            _opened(session, path, _LIST, _FOLDER, _ALL).close()
    except SMBResponseException as error:
        return "" if error.status == NAME_NOT_FOUND else _words(error)
    return "something came into it"


def _words(error: SMBResponseException) -> str:
    if error.status in (SHARING_VIOLATION, DELETE_PENDING):
        return "somebody has it open"
    return " ".join(str(error).split())[:200]


def _entry(listed: Any) -> Entry:
    times = [listed[name].get_value() for name in ("last_write_time", "change_time")]
    aware = [each if each.tzinfo else each.replace(tzinfo=UTC) for each in times]
    return Entry(
        name=listed["file_name"].get_value().decode("utf-16-le", "replace"),
        attributes=int(listed["file_attributes"].get_value()),
        size_bytes=int(listed["end_of_file"].get_value()),
        changed=max(aware),
    )


def _opened(session: Smb2Session, path: str, access: int, options: int, sharing: int) -> Any:
    opened = Open(session._tree, path)
    opened.create(
        ImpersonationLevel.Impersonation,
        access,
        0,
        sharing,
        CreateDisposition.FILE_OPEN,
        # of a link, the link itself
        options | CreateOptions.FILE_OPEN_REPARSE_POINT,
    )
    return opened
