"""The folder of this run on the share: open for the whole run, removed however it ends.

Folder and files are created exclusively and with DELETE_ON_CLOSE (MS-SMB2 2.2.13), so the server
removes them with the last handle: closed by us, or by the server when our connection breaks.
Somebody who may write to the share can put something else under their names. So no file is written
to before the handle is proven to be of the run's file, and deletions, which a server carries out by
name, are limited to names that have the run's 128 random bits.
"""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from probes.core.field_types import Hex, Number, Text
from probes.core.records import SMB_PORT, Details, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.files import journal, payload
from probes.files.removal import run_files
from probes.files.served_file import new_name, source_name
from probes.smb import recycle_bin
from probes.smb.frames import SmbError
from probes.smb.login import open_session
from probes.smb.session import STEP_SECONDS, Handle, Session
from probes.system import rtnetlink

NAME = "run-folder"
LEAST_FILE_BYTES = 16 << 20
"""Size of a file that is worth a copy."""
LEFT_SECONDS = 3.0
"""Time to remove folders of killed runs, after which no further removal begins."""
GOING_SECONDS, PAUSE_SECONDS = 1.5, 0.05
"""Wait for the files of a stage that is just ending, as after Ctrl-C, and the pause in it."""


@dataclass(frozen=True)
class Setting:
    """The run, and the session that keeps its folder open."""

    run: Hex
    """Hex id of the run."""
    dialect: Text = ""
    """Dialect of the session; "": the best that the server offers."""
    outlived: bool = True
    """Whether the server lives on when this run is killed with all that it started."""
    security: Text = ""
    """Argument of open_session()."""
    seconds: Number = journal.LONGEST_SECONDS
    """Longest time of the run, during which other hosts do not remove its folder."""
    seed: Text = ""
    """Seed of the run's payload, hex; empty: no step writes to the source file."""
    pulls_file: bool = False
    """Whether a file of the user's is pulled, for which the share may be read-only."""


def join_path(folder: str, name: str) -> str:
    folder = folder.replace("/", "\\").strip("\\")
    return f"{folder}\\{name}" if folder else name


def source_of(
    session: Session, peer: Endpoint, size_bytes: int, what: str, past_cache: bool = False
) -> Handle:
    """Opens the run's source file, at least that long, for reading. peer.folder is the run's.

    past_cache: it is read without the server's cache, if that allows it.

    The folder is opened first: the server removes both when the last handle of any session goes.
    """
    session.open_folder(peer.folder)
    path = join_path(peer.folder, source_name(peer.folder))
    handle = session.open_past_cache(path) if past_cache else session.open_file(path, write=False)
    if handle.size_bytes < size_bytes:
        raise ValueError(
            f"the source on //{peer.host}/{peer.share} has {handle.size_bytes} bytes, "
            f"{size_bytes} are to be {what}"
        )
    return handle


def source_to_fill(session: Session, peer: Endpoint, seed: str) -> Handle:
    """Opens the run's source file for writing.

    Raises Refused before anything is written: "replaced" where another file has its name, "space"
    where it is empty, because the disk was full.
    """
    session.open_folder(peer.folder)
    handle = session.open_file(join_path(peer.folder, source_name(peer.folder)), write=True)
    if not handle.size_bytes:
        text = f"//{peer.host}/{peer.share}: {handle.path} took not even its first bytes"
        raise Refused("space", f"{text}; free some space there, or look for a quota")
    if not session.has_mark(handle, payload.mark(bytes.fromhex(seed))):
        raise replacement_error(peer, handle.path)
    return handle


def replacement_error(peer: Endpoint, path: str, how: str = "replaced by another file") -> Refused:
    """Returns the error for a run whose file is no longer at its path."""
    text = f"//{peer.host}/{peer.share}: {path} was {how} during the run; nothing was written "
    text += "to it; find out who renames files there: this run's own file may be left beside it"
    return Refused("replaced", text)


def new_file(session: Session, peer: Endpoint) -> Handle:
    """Creates a file for a push in the run's folder, which is opened first as in source_of."""
    session.open_folder(peer.folder)
    return session.create_file(join_path(peer.folder, new_name(peer.folder)))


@contextmanager
def hold(setting: Setting, peer: Endpoint) -> Iterator[Endpoint]:
    """Creates bottleneck-RUN in peer.folder, with a source file that has only the run's mark.

    Keeps both open. First removes leftovers of runs that were killed with the server. Yields the
    peer with that folder and with facts: SessionFacts, the server's interfaces (Interface, and
    reached_from: this host's source address towards it; None: no route), free_bytes, total_bytes
    (None: unknown), bin (the recycle bin that deleted files go to), guest. For a read-only share,
    where setting.pulls_file allows it, the unchanged peer with the fact read_only.
    Raises Refused or Unavailable; SmbError where something may remain.
    """
    path = join_path(peer.folder, f"bottleneck-{setting.run}")
    with open_session(peer, setting.dialect, setting.security) as session:
        entry, is_gone = _enter_journal(session, setting, peer, path), False
        try:
            if setting.pulls_file and session.may_write() is False:
                is_gone = True
                facts = _facts(session, session.open_folder(peer.folder))
                yield replace(peer, facts={**facts, "read_only": True})
                return
            root_before = recycle_bin.names(session, "") if setting.seed else None
            folder = _create(session, peer, path)
            try:
                bin_folder = _bin(session, peer, path, root_before) if setting.seed else ""
                source = session.create_file(join_path(path, source_name(path)))
                mark = payload.mark(bytes.fromhex(setting.seed)) if setting.seed else b""
                if mark and not session.write_mark(source, mark):
                    mark = b""
                facts = {**_facts(session, folder), "bin": bin_folder}
            except Refused as refused:
                session.disconnect()
                with suppress(SmbError):
                    is_gone = _sweep(setting, peer, path, root_before)
                    raise
                raise Refused(refused.kind, f"{refused.text}; {path} may remain there") from None
            session.step_seconds = STEP_SECONDS
            run_peer = replace(peer, folder=path, facts=facts)
            try:
                yield run_peer
            finally:
                is_gone = _close(session, source, folder, run_peer, mark)
                is_gone = is_gone or _sweep(setting, peer, path, root_before)
                if bin_folder:
                    recycle_bin.remove_entries(session, peer.folder, setting.run, root_before)
        finally:
            entry.close(is_removed=is_gone or not _is_there(session, path))


def _facts(session: Session, folder: Handle) -> Details:
    space = session.space(folder)
    return {
        **session.facts.details(),
        "interfaces": [
            {**vars(each), "reached_from": rtnetlink.source_address_if_known(each.address) or None}
            for each in session.interfaces()
        ],
        "free_bytes": space.free_bytes if space.total_bytes else None,
        "total_bytes": space.total_bytes or None,
        "guest": session.guest,
    }


def _is_there(session: Session, path: str) -> bool:
    """Whether a folder may exist; true where the server does not tell."""
    folder, _, name = path.rpartition("\\")
    try:
        return name in session.names(folder)
    except Refused as refused:
        return refused.kind != "share"


def _bin(session: Session, peer: Endpoint, path: str, root_before: tuple[str, ...] | None) -> str:
    """Makes and deletes a small file; returns the recycle bin that it went to, or "".

    root_before: names in the share's root. Raises Refused where the file cannot be deleted.
    """
    file = session.create_file(join_path(path, new_name(path)))
    with suppress(Refused):
        session.close(file)
    if file.path.rpartition("\\")[2] in recycle_bin.names(session, path):
        text = f"//{peer.host}/{peer.share}: no file can be deleted there (a write-once share?)"
        raise Refused("permission", f"{text}; use another share")
    run = path.rpartition("-")[2]
    paths = recycle_bin.entries(session, peer.folder, lambda entry: run in entry, root_before)
    return next((entry.partition("\\")[0] for entry in paths), "")


def _create(session: Session, peer: Endpoint, path: str) -> Handle:
    try:
        return session.create_folder(path)
    except Refused as error:
        text = error.text
        if error.kind == "permission" and session.may_write() is False:
            text = f"//{peer.host}/{peer.share} is read-only for this user, and a run writes its "
            size_bytes, name = session.largest_file(peer.folder)
            file = shlex.quote(name) if size_bytes >= LEAST_FILE_BYTES else "FILE"
            text += "test files there; use an account that may write or another share, or measure "
            text += f"pulls of a file that is there with --file {file}"
        elif error.kind == "permission" and _is_there(session, path):
            text += f"; the empty folder {path} was made all the same, and is left there"
        raise Refused(error.kind, text) from None


def _enter_journal(session: Session, setting: Setting, peer: Endpoint, path: str) -> journal.Entry:
    """Removes leftovers of killed runs there, and enters the folder into the journal."""
    if not setting.outlived:
        return journal.Entry(None)
    place = f"//{peer.host}:{peer.port or SMB_PORT}/{peer.share}"
    until = time.monotonic() + LEFT_SECONDS
    for facts, leftover in journal.orphans(journal.SHARE):
        if facts["folder"] == place and journal.has_ended(facts) and time.monotonic() < until:
            # An error must not prevent the measurement: the next run tries again.
            with suppress(Refused, Unavailable, SmbError):
                folder, _, name = facts["name"].rpartition("\\")
                is_gone = _remove(session, facts["name"])
                recycle_bin.remove_entries(session, folder, name.rpartition("-")[2])
                leftover.close(is_removed=is_gone)
    return journal.enter(journal.SHARE, place, path, seconds=math.ceil(setting.seconds))


def _remove(session: Session, path: str, seconds: float = 0.0) -> bool:
    """Removes a folder of a run by its name, retrying for so long; returns whether it is gone."""
    until = time.monotonic() + seconds
    while True:
        try:
            for name in filter(run_files(path).fullmatch, session.names(path)):
                with suppress(Refused):  # removed or in use: the folder's removal shows it
                    session.remove_file(join_path(path, name))
            session.remove_folder(path)
            session.close(session.open_folder(path))
        except Refused as refused:
            if refused.kind == "share":
                return True
            if time.monotonic() >= until:
                raise
        if time.monotonic() >= until:
            return False
        time.sleep(PAUSE_SECONDS)


def _close(session: Session, source: Handle, folder: Handle, peer: Endpoint, mark: bytes) -> bool:
    """Closes both, and returns whether that removed them; peer: with the run's folder.

    Raises Refused ("replaced") where the source, by its path, no longer begins with the mark.
    """
    try:
        if mark:
            _check_source(session, source.path, peer, mark)
        for handle in (source, folder):
            with suppress(Refused):  # what the server could not delete is found below
                session.close(handle)
        session.close(session.open_folder(folder.path))
    except Refused as refused:
        if refused.kind == "replaced":
            raise
        return refused.kind == "share"
    return False


def _check_source(session: Session, path: str, peer: Endpoint, mark: bytes) -> None:
    """Raises Refused ("replaced") where the run's source is not at its path."""
    try:
        file = session.open_file(path, write=False)
    except Refused as refused:
        if refused.kind == "share":
            raise replacement_error(peer, path, "renamed or deleted") from refused
        raise
    same = session.has_mark(file, mark)
    session.close(file)
    if not same:
        raise replacement_error(peer, path)


def _sweep(setting: Setting, peer: Endpoint, path: str, old_root: tuple[str, ...] | None) -> bool:
    """Removes by name what a crashed server kept of this run, and nothing else; returns True.

    Raises SmbError where it stays, as with a file of somebody else in it.
    """
    remedy = "may remain there; the next run or bottleneck cleanup removes it"
    what = f"//{peer.host}/{peer.share}: the folder {path} {remedy}"
    try:
        with open_session(peer, setting.dialect) as session:
            is_gone = _remove(session, path, GOING_SECONDS)
            recycle_bin.remove_entries(session, peer.folder, setting.run, old_root)
            if is_gone:
                return True
    except (Refused, Unavailable) as error:
        raise SmbError(f"{what}: {error}") from error
    raise SmbError(f"{what}: it is not empty")
