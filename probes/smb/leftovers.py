"""Finds and removes folders of killed runs on a share and in its recycle bin, over SMB 2 or 3.

Only a run's are removed: a folder with a run's name, in it only files with a run's names and no
link; and these begin with a run's mark, or the journal of this host has the folder. A file whose
name has no 128 random bits, as from older versions, must begin with the mark in any case.
Each is first opened with ShareAccess 0 (MS-SMB2 2.2.13), which a server refuses while anybody, such
as the run itself, has it open; only through such a handle it is deleted.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from smbprotocol.exceptions import SMBResponseException
from smbprotocol.open import CreateOptions, DirectoryAccessMask

from probes.core.records import SMB_PORT, Endpoint
from probes.core.stage import Refused
from probes.files import journal, payload
from probes.files.leftovers import MOST_FOUND, RUN, UNPROVEN, Leftover
from probes.files.leftovers import OnShare as Setting
from probes.files.removal import MAGIC, OLD_FILE, run_files
from probes.smb import recycle_bin, status
from probes.smb.pipe import EXISTING, FILE, FOLDER, READ_ALONE, SHARE_ALL
from probes.smb.run_folder import join_path
from probes.smb.smbprotocol_connection import Entry, list_folder, open_path
from probes.smb.smbprotocol_session import MOST_ENTRIES, Smb2Session

FILE_OF_RUN = re.compile(r"(source|pushed)-[0-9a-f]{32}(-[0-9a-f]{16})?")
LOOK_SECONDS = 40.0
"""Time after which nothing more is begun, so that the result is reported in time."""
SHARING_VIOLATION, DELETE_PENDING = 0xC0000043, 0xC0000056
_LIST = DirectoryAccessMask.FILE_LIST_DIRECTORY | DirectoryAccessMask.SYNCHRONIZE
_DELETE_FOLDER = _LIST | DirectoryAccessMask.DELETE | DirectoryAccessMask.FILE_READ_ATTRIBUTES


@contextmanager
def hold(setting: Setting, peer: Endpoint) -> Iterator[Endpoint]:
    """Searches peer.folder of peer.share; removes setting.remove's names where still a run's.

    Yields the peer with facts: found (at most MOST_FOUND Leftovers as plain values, why_left also
    with errors) and removed (names), after the session has ended. Raises Refused, Unavailable.
    """
    until = time.monotonic() + LOOK_SECONDS
    session = Smb2Session(peer, "").start(None, ())
    leftovers: list[Leftover] = []
    removed: list[str] = []
    try:
        now = session.facts.server_time
        to_remove = frozenset(setting.remove)
        ended_runs = {name for name, _ in _ended_runs(peer)}
        candidates = [
            (each.name, join_path(peer.folder, each.name), each)
            for each in entries(session, peer.folder, "bottleneck-*")
            if RUN.fullmatch(each.name)
        ]
        for name, path, entry in (*candidates, *_folders_in_bin(session, peer.folder)):
            if to_remove and name not in to_remove:
                continue
            if len(leftovers) >= MOST_FOUND - 1 or time.monotonic() > until:
                leftovers.append(Leftover(name, "too many for one cleanup: run it once more"))
                if to_remove:
                    continue  # each of them is reported, so that none seems to be removed
                break
            # No minimum age for a run that has ended by the journal of this host.
            older_seconds = 0.0 if entry.name in ended_runs else setting.older_seconds
            leftover = replace(_examine(session, path, entry, now, older_seconds), path=name)
            if not leftover.why_left and entry.name not in ended_runs:
                leftover = replace(leftover, why_left=_why_unproven(session, path))
            if name in to_remove and not leftover.why_left:
                leftover = replace(leftover, why_left=remove(session, path, until))
                if not leftover.why_left:
                    removed.append(name)
                    continue
            leftovers.append(leftover)
        leftovers += _files_in_bin(session, peer.folder, to_remove, removed)
        _forget(peer, {name for name, _, _ in candidates}.difference(removed))
    finally:
        session.disconnect()
    facts = {"found": [asdict(each) for each in leftovers], "removed": removed}
    yield replace(peer, access=None, facts=facts)


def _folders_in_bin(session: Smb2Session, folder: str) -> Iterator[tuple[str, str, Entry]]:
    """Yields runs' folders in a recycle bin: twice the path, and the entry."""
    for path in recycle_bin.entries(session, folder, RUN.fullmatch):
        place, _, name = path.rpartition("\\")
        yield from ((path, path, each) for each in entries(session, place, name))


def _files_in_bin(
    session: Smb2Session, folder: str, to_remove: frozenset[str], removed: list[str]
) -> Iterator[Leftover]:
    """Yields runs' files that a bin keeps without their folder, or removes those in to_remove.

    Their content must prove them; an empty one proves nothing, and takes no room.
    """
    for path in recycle_bin.entries(session, folder, FILE_OF_RUN.fullmatch):
        if to_remove and path not in to_remove:
            continue
        try:
            file = session.open_file(path, write=False)
            is_own = file.size_bytes >= len(MAGIC) and session.has_mark(file, MAGIC)
            session.close(file)
            if is_own and to_remove:
                session.remove_file(path)
                removed.append(path)
            elif is_own:
                yield Leftover(path, "", files=1, size_bytes=file.size_bytes)
        except Refused as refused:
            yield Leftover(path, refused.text)


def _ended_runs(peer: Endpoint) -> Iterator[tuple[str, journal.Entry]]:
    """Yields names of ended runs whose folder in this one is in this host's journal."""
    place = f"//{peer.host}:{peer.port or SMB_PORT}/{peer.share}"
    for facts, entry in journal.orphans(journal.SHARE):
        name = facts["name"].rpartition("\\")[2]
        location = (facts["folder"], facts["name"]) == (place, join_path(peer.folder, name))
        if location and journal.has_ended(facts):
            yield name, entry


def _forget(peer: Endpoint, present: set[str]) -> None:
    """Removes entries from the journal whose folder is no longer there."""
    for name, entry in _ended_runs(peer):
        if name not in present:
            entry.close(is_removed=True)


def _examine(
    session: Smb2Session, path: str, entry: Entry, now: str | None, older_seconds: float
) -> Leftover:
    """Examines a candidate's content; changes nothing."""
    changed, files, size = entry.changed, 0, 0
    why = "" if entry.is_plain_folder else "it is not a plain folder"
    try:
        for each in entries(session, path, "*") if not why else ():
            changed = max(changed, each.changed)
            files, size = files + 1, size + each.size_bytes
            if why := _foreign(session, path, each):
                break
    except Refused as refused:
        why = refused.text
    why = why or withheld(session, path)
    age = None if now is None else (datetime.fromisoformat(now) - changed).total_seconds()
    if not why and age is None:
        why = "the server does not report its clock, so its age is unknown"
    if not why and age is not None and age < older_seconds:
        why = (
            f"changed {max(0.0, age):.0f} s ago, less than {older_seconds:.0f} s: a run may use it"
        )
    return Leftover(entry.name, why, files, size, max(0.0, age or 0.0))


def entries(session: Smb2Session, folder: str, pattern: str) -> Iterator[Entry]:
    """Yields all entries of a folder of the share that match the server's pattern.

    Raises Refused, also where there are more than MOST_ENTRIES.
    """
    with session._step(f"list {folder or 'the share'}"):
        handle = _open_entry(session, folder, _LIST, FOLDER, SHARE_ALL)
        rows = list_folder(handle, pattern, MOST_ENTRIES)
    if len(rows) > MOST_ENTRIES:
        raise Refused("usage", f"{folder or 'the share'} contains more than {MOST_ENTRIES} entries")
    yield from (each for each in rows if each.name not in (".", ".."))


def _why_unproven(session: Smb2Session, path: str) -> str:
    """Returns why nothing proves that a run wrote a folder's files; empty: something does."""
    try:
        files = sorted(entries(session, path, "*"), key=lambda each: payload.proof_order(each.name))
        return "" if payload.proves(_head(session, path, each) for each in files) else UNPROVEN
    except Refused as refused:
        return refused.text


def _head(session: Smb2Session, path: str, entry: Entry) -> bytes:
    """Reads the first bytes of a file in a folder, as many as MAGIC has."""
    if not entry.size_bytes:
        return b""
    with session._step(f"read {path}"):
        file = _open_entry(session, f"{path}\\{entry.name}", READ_ALONE, FILE, SHARE_ALL)
        try:
            return bytes(file.read(0, min(entry.size_bytes, len(MAGIC))))
        finally:
            file.close()


def _foreign(session: Smb2Session, path: str, entry: Entry) -> str:
    """Says why an entry of a run's folder is not the run's; empty: it is."""
    is_own = bool(run_files(path).fullmatch(entry.name))
    if entry.is_plain_file and not is_own and OLD_FILE.fullmatch(entry.name):
        is_own = _head(session, path, entry) == MAGIC
    if entry.is_plain_file and is_own:
        return ""
    return f"it contains {entry.name!r}, which is not from a run"


def withheld(session: Smb2Session, path: str) -> str:
    """Returns why a folder cannot be opened exclusively; empty: nobody else has it open."""
    try:
        with session._step(f"open {path}", quiet=True):
            _open_entry(session, path, _DELETE_FOLDER, FOLDER, 0).close()
    except SMBResponseException as error:
        is_open = error.status in (SHARING_VIOLATION, DELETE_PENDING)
        return "another client has it open" if is_open else status.describe(error.status)
    return ""


def remove(session: Smb2Session, path: str, until: float) -> str:
    """Deletes a run's folder and its files, each opened exclusively; returns why it stays, or "".

    until: by time.monotonic(); after it no further deletion begins.
    """
    try:
        for each in entries(session, path, "*"):
            if why := _foreign(session, path, each):
                return why
            if time.monotonic() > until:
                return "the server took too long: a part of it remains"
            session.remove_file(f"{path}\\{each.name}", sharing=0)
        session.remove_folder(path, sharing=0)
    except Refused as refused:
        return refused.text
    # Closing a folder that is not empty deletes nothing, without an error (MS-FSA 2.1.5.5).
    try:
        session.close(session.open_folder(path))
    except Refused as refused:
        return "" if refused.kind == "share" else refused.text
    return "it is no longer empty"


def _open_entry(session: Smb2Session, path: str, access: int, options: int, sharing: int) -> Any:
    # A link itself is opened, not its target.
    options |= CreateOptions.FILE_OPEN_REPARSE_POINT
    return open_path(session._tree, path, access, EXISTING, options, sharing)
