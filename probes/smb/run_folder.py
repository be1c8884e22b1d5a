"""The folder of this run on the share: held open for the whole run, gone however it ends.

Folder and file are created with DELETE_ON_CLOSE (MS-SMB2 2.2.13), so the server removes them when
the last handle goes: closed by us, or by the server when our connection breaks.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from probes.core.meaning import Hex, Number, Text
from probes.core.records import SMB_PORT, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.files import journal
from probes.files.removal import RUN_FILE as OURS
from probes.smb.frames import Broken
from probes.smb.login import open_session
from probes.smb.session import Handle, Session
from probes.system import rtnetlink

NAME = "run-folder"
SOURCE = "source"
"""The file that pulls read; push steps with fill_source write it."""
LEFT_SECONDS = 3.0
"""For what killed runs left: then no further removal is begun."""


@dataclass(frozen=True)
class Setting:
    """Which run's folder, and by which dialect it is held."""

    run: Hex
    """Hex id of the run."""
    dialect: Text = ""
    """"": the best that the server offers."""
    outlived: bool = True
    """Whether the server lives on when this run is killed with all that it started."""
    security: Text = ""
    """As open_session() takes it."""
    seconds: Number = journal.LONGEST_SECONDS
    """How long the run may take: until then other hosts leave its folder alone."""


def joined(folder: str, name: str) -> str:
    """A path on a share."""
    folder = folder.replace("/", "\\").strip("\\")
    return f"{folder}\\{name}" if folder else name


def source_of(
    session: Session, peer: Endpoint, size_bytes: int, what: str, past_cache: bool = False
) -> Handle:
    """The run's source file, that long at least. peer.folder is the run's.

    past_cache: it is read without the server's cache, if that allows it.

    The folder is opened first: the last to leave removes both.
    """
    session.open_folder(peer.folder)
    path = joined(peer.folder, SOURCE)
    handle = session.open_past_cache(path) if past_cache else session.open_file(path, write=False)
    if handle.size_bytes < size_bytes:
        raise ValueError(
            f"the source on //{peer.host}/{peer.share} has {handle.size_bytes} bytes, "
            f"{size_bytes} are to be {what}"
        )
    return handle


def new_file(session: Session, peer: Endpoint) -> Handle:
    """A file of a push's own in the run's folder, opened in the same way."""
    session.open_folder(peer.folder)
    return session.create_file(joined(peer.folder, f"pushed-{secrets.token_hex(8)}"))


@contextmanager
def hold(setting: Setting, peer: Endpoint) -> Iterator[Endpoint]:
    """Creates bottleneck-RUN in peer.folder, with an empty source file, and keeps both open.

    Removes first what a run left there that was killed with the server. Yields the peer with that
    folder and with facts: what was agreed (SessionFacts), the server's interfaces (Interface, and
    reached_from: the address of this host that packets there have; None: no route), free_bytes
    and total_bytes of the share. Raises Refused or Unavailable; Broken where something may be left.
    """
    path = joined(peer.folder, f"bottleneck-{setting.run}")
    with (
        open_session(peer, setting.dialect, setting.security) as session,
        _noted(session, setting, peer, path) as note,
    ):
        folder = _created(session, peer, path)
        note.there = True
        source = session.create_file(joined(path, SOURCE))
        space = session.space(folder)
        facts = {
            **session.facts.details(),
            "interfaces": [
                {**vars(each), "reached_from": _reached_from(each.address)}
                for each in session.interfaces()
            ],
            "free_bytes": space.free_bytes,
            "total_bytes": space.total_bytes,
        }
        try:
            yield replace(peer, folder=path, facts=facts)
        finally:
            note.there = not (_vanished(session, source, folder) or _swept(setting, peer, path))


def _created(session: Session, peer: Endpoint, path: str) -> Handle:
    try:
        return session.create_folder(path)
    except Refused as error:
        if error.kind != "permission" or session.may_write() is not False:
            raise
        where = f"//{peer.host}/{peer.share}"
        text = f"{where} is read-only for this user, and a run writes its test files there"
        remedy = "use an account that may write, or another share"
        raise Refused(error.kind, f"{text}; {remedy}") from None


def _reached_from(address: str) -> str | None:
    try:
        return rtnetlink.source_address(address) if address else None
    except (OSError, ValueError):
        return None


@dataclass
class _Note:
    there: bool = False
    """Whether the folder may be there."""


@contextmanager
def _noted(session: Session, setting: Setting, peer: Endpoint, path: str) -> Iterator[_Note]:
    """Has it in the journal until it is gone; what is there of killed runs goes first."""
    note = _Note()
    if not setting.outlived:
        yield note
        return
    place = f"//{peer.host}:{peer.port or SMB_PORT}/{peer.share}"
    until = time.monotonic() + LEFT_SECONDS
    for facts, left in journal.left(journal.SHARE):
        if facts["folder"] == place and journal.has_ended(facts) and time.monotonic() < until:
            # Whatever is wrong with it is no reason to measure nothing: the next one tries again.
            with suppress(Refused, Unavailable, Broken):
                left.close(gone=_removed(session, facts["name"]))
    entry = journal.enter(journal.SHARE, place, path, seconds=math.ceil(setting.seconds))
    try:
        yield note
    finally:
        entry.close(gone=not note.there)


def _removed(session: Session, path: str) -> bool:
    """Removes a folder of a killed run by its name; whether it is gone."""
    try:
        for name in filter(OURS.fullmatch, session.names(path)):
            session.remove_file(joined(path, name))
        session.close(session.open_folder(path))
        session.close(session.open_folder(path))
    except Refused as refused:
        if refused.kind == "share":
            return True
        raise
    return False


def _vanished(session: Session, source: Handle, folder: Handle) -> bool:
    """Closes both, and looks whether that removed them."""
    try:
        session.close(source)
        session.close(folder)
    except Refused:
        return False
    try:
        session.close(session.open_folder(folder.path))
    except Refused as refused:
        return refused.kind == "share"
    return False


def _swept(setting: Setting, peer: Endpoint, path: str) -> bool:
    """Removes by name what a server that died left of this run, and nothing else.

    Whether it is gone: with a file of somebody else in it, it stays.
    """
    try:
        with open_session(peer, setting.dialect) as session:
            return _removed(session, path)
    except (Refused, Unavailable) as error:
        remedy = "may remain there; the next run or bottleneck cleanup removes it"
        raise Broken(f"//{peer.host}/{peer.share}: the folder {path} {remedy}: {error}") from error
