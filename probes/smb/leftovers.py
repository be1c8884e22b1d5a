"""Folders of killed runs on a share and in its recycle bin, found and removed over SMB 2 or 3.

Ours alone: the name of a run's folder, in it a run's files and nothing else, no link among them;
and these begin as a run's do, or the journal of this host names the folder. A file whose name has
no 128 random bits, as older versions made them, has to begin so in any case.
Each is opened with nothing shared first (MS-SMB2 2.2.13, ShareAccess 0), which a server refuses
while anybody, the run itself for one, has it open; only a handle that was given so is deleted by.
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
from probes.smb.run_folder import joined
from probes.smb.smbprotocol_connection import Entry, listed, opened
from probes.smb.smbprotocol_session import MOST_ENTRIES, Smb2Session

FILE_OF_RUN = re.compile(r"(source|pushed)-[0-9a-f]{32}(-[0-9a-f]{16})?")
LOOK_SECONDS = 40.0
"""From then on nothing more is begun: what was found and removed by then is told in time."""
SHARING_VIOLATION, DELETE_PENDING = 0xC0000043, 0xC0000056
_LIST = DirectoryAccessMask.FILE_LIST_DIRECTORY | DirectoryAccessMask.SYNCHRONIZE
_DELETE_FOLDER = _LIST | DirectoryAccessMask.DELETE | DirectoryAccessMask.FILE_READ_ATTRIBUTES


@contextmanager
def hold(setting: Setting, peer: Endpoint) -> Iterator[Endpoint]:
    """Looks into peer.folder of peer.share; removes what is named, where it is still ours.

    Yields the peer with facts: found (at most MOST_FOUND Leftovers as plain values, why_left also
    what went wrong) and removed (names). The session is over by then. Raises Refused, Unavailable.
    """
    until = time.monotonic() + LOOK_SECONDS
    session = Smb2Session(peer, "").start(None, ())
    found: list[Leftover] = []
    removed: list[str] = []
    try:
        now = session.facts.server_time
        wanted = frozenset(setting.remove)
        noted = {name for name, _ in _noted(peer)}
        there = [
            (each.name, joined(peer.folder, each.name), each)
            for each in entries(session, peer.folder, "bottleneck-*")
            if RUN.fullmatch(each.name)
        ]
        for name, path, entry in (*there, *_folders_in_bin(session, peer.folder)):
            if wanted and name not in wanted:
                continue
            if len(found) >= MOST_FOUND - 1 or time.monotonic() > until:
                found.append(Leftover(name, "too many for one cleanup: run it once more"))
                if wanted:
                    continue  # each of them is told of, so that none is taken for gone
                break
            # A run that the journal of this host knows to have ended needs no time to go by.
            older_seconds = 0.0 if entry.name in noted else setting.older_seconds
            seen = replace(_seen(session, path, entry, now, older_seconds), path=name)
            if not seen.why_left and entry.name not in noted:
                seen = replace(seen, why_left=_unproven(session, path))
            if name in wanted and not seen.why_left:
                seen = replace(seen, why_left=remove(session, path, until))
                if not seen.why_left:
                    removed.append(name)
                    continue
            found.append(seen)
        found += _files_in_bin(session, peer.folder, wanted, removed)
        _forget(peer, {name for name, _, _ in there}.difference(removed))
    finally:
        session.disconnect()
    facts = {"found": [asdict(each) for each in found], "removed": removed}
    yield replace(peer, access=None, facts=facts)


def _folders_in_bin(session: Smb2Session, folder: str) -> Iterator[tuple[str, str, Entry]]:
    """Yields runs' folders in a recycle bin: twice the path, and the entry."""
    for path in recycle_bin.entries(session, folder, RUN.fullmatch):
        place, _, name = path.rpartition("\\")
        yield from ((path, path, each) for each in entries(session, place, name))


def _files_in_bin(
    session: Smb2Session, folder: str, wanted: frozenset[str], removed: list[str]
) -> Iterator[Leftover]:
    """Yields runs' files that a bin keeps without their folder, and removes those that are wanted.

    Each is proven by its content; an empty one proves nothing, and takes no room.
    """
    for path in recycle_bin.entries(session, folder, FILE_OF_RUN.fullmatch):
        if wanted and path not in wanted:
            continue
        try:
            file = session.open_file(path, write=False)
            is_own = file.size_bytes >= len(MAGIC) and session.has_mark(file, MAGIC)
            session.close(file)
            if is_own and wanted:
                session.remove_file(path)
                removed.append(path)
            elif is_own:
                yield Leftover(path, "", files=1, size_bytes=file.size_bytes)
        except Refused as refused:
            yield Leftover(path, refused.text)


def _noted(peer: Endpoint) -> Iterator[tuple[str, journal.Entry]]:
    """Names of runs that have ended, of which this host's journal has a folder in this one."""
    place = f"//{peer.host}:{peer.port or SMB_PORT}/{peer.share}"
    for facts, entry in journal.orphans(journal.SHARE):
        name = facts["name"].rpartition("\\")[2]
        here = (facts["folder"], facts["name"]) == (place, joined(peer.folder, name))
        if here and journal.has_ended(facts):
            yield name, entry


def _forget(peer: Endpoint, there: set[str]) -> None:
    """What lay in this folder and does no more, whoever removed it, is no longer in the journal."""
    for name, entry in _noted(peer):
        if name not in there:
            entry.close(is_removed=True)


def _seen(
    session: Smb2Session, path: str, entry: Entry, now: str | None, older_seconds: float
) -> Leftover:
    """One candidate by its name, looked into; nothing is changed."""
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
    """What lies in a folder of the share and matches the server's pattern, all of it.

    Raises Refused, also where that is more than MOST_ENTRIES.
    """
    with session._step(f"list {folder or 'the share'}"):
        made = _opened(session, folder, _LIST, FOLDER, SHARE_ALL)
        found = listed(made, pattern, MOST_ENTRIES)
    if len(found) > MOST_ENTRIES:
        raise Refused("usage", f"{folder or 'the share'} contains more than {MOST_ENTRIES} entries")
    yield from (each for each in found if each.name not in (".", ".."))


def _unproven(session: Smb2Session, path: str) -> str:
    """Why nothing shows that a run wrote what lies in a folder; empty: something does."""
    try:
        files = sorted(entries(session, path, "*"), key=lambda each: payload.first(each.name))
        heads = (_head(session, path, each) for each in files)
        return "" if payload.proves(heads) else UNPROVEN
    except Refused as refused:
        return refused.text


def _head(session: Smb2Session, path: str, entry: Entry) -> bytes:
    """Reads the first bytes of a file in a folder, as many as MAGIC has."""
    if not entry.size_bytes:
        return b""
    with session._step(f"read {path}"):
        file = _opened(session, f"{path}\\{entry.name}", READ_ALONE, FILE, SHARE_ALL)
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
    """Why a folder is not given to us alone; empty: it is, and nobody else has it open."""
    try:
        with session._step(f"open {path}", quiet=True):
            _opened(session, path, _DELETE_FOLDER, FOLDER, 0).close()
    except SMBResponseException as error:
        is_open = error.status in (SHARING_VIOLATION, DELETE_PENDING)
        return "another client has it open" if is_open else status.named(error.status)
    return ""


def remove(session: Smb2Session, path: str, until: float) -> str:
    """Deletes a run's folder and its files, each once it is ours alone; empty, or why it stays.

    until: by time.monotonic(); it begins nothing more then.
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
    # Closing a folder that is not empty deletes nothing, and says nothing (MS-FSA 2.1.5.5).
    try:
        session.close(session.open_folder(path))
    except Refused as refused:
        return "" if refused.kind == "share" else refused.text
    return "it is no longer empty"


def _opened(session: Smb2Session, path: str, access: int, options: int, sharing: int) -> Any:
    # of a link, the link itself
    options |= CreateOptions.FILE_OPEN_REPARSE_POINT
    return opened(session._tree, path, access, EXISTING, options, sharing)
