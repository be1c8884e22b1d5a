"""The folder of this run on the share: held open for the whole run, gone however it ends.

Folder and file are created with DELETE_ON_CLOSE (MS-SMB2 2.2.13), so the server removes them when
the last handle goes: closed by us, or by the server when our connection breaks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from probes.records import Endpoint
from probes.smb import compression
from probes.smb.frames import Broken
from probes.smb.session import Handle, Session, open_session
from probes.stage import Refused, Unavailable

NAME = "run-folder"
OURS = re.compile(r"source|pushed-[0-9a-f]{16}|small-[0-9a-f]{16}-[0-9]{1,6}")
"""Names of the files that a run puts into its folder."""
SOURCE = "source"
"""The file that pulls read; push steps with fill_source write it."""


@dataclass(frozen=True)
class Setting:
    """Which run's folder, and by which dialect it is held."""

    run: str
    """Hex id of the run."""
    dialect: str = ""
    """"": the best that the server offers."""


def joined(folder: str, name: str) -> str:
    """A path on a share."""
    folder = folder.replace("/", "\\").strip("\\")
    return f"{folder}\\{name}" if folder else name


@contextmanager
def hold(setting: Setting, peer: Endpoint) -> Iterator[Endpoint]:
    """Creates bottleneck-RUN in peer.folder, with an empty source file, and keeps both open.

    Yields the peer with that folder and with facts: what was agreed (SessionFacts), the server's
    interfaces (Interface), the compression that it offers (None: unknown), free_bytes and
    total_bytes of the share. Raises Refused or Unavailable; Broken where something may be left.
    """
    path = joined(peer.folder, f"bottleneck-{setting.run}")
    with open_session(peer, setting.dialect) as session:
        folder = session.create_folder(path)
        source = session.create_file(joined(path, SOURCE))
        space = session.space(folder)
        facts = {
            **session.facts.details(),
            "interfaces": [vars(each) for each in session.interfaces()],
            "compression": _compression(session, peer),
            "free_bytes": space.free_bytes,
            "total_bytes": space.total_bytes,
        }
        try:
            yield replace(peer, folder=path, facts=facts)
        finally:
            if not _vanished(session, source, folder):
                _sweep(setting, peer, path)


def _compression(session: Session, peer: Endpoint) -> list[str] | None:
    """What the server offers; None: it gave no answer."""
    if session.facts.dialect != "3.1.1":
        return []
    told = compression.offered(peer)
    return None if told is None else list(told)


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


def _sweep(setting: Setting, peer: Endpoint, path: str) -> None:
    """Removes by name what a server that died left of this run, and nothing else."""
    try:
        with open_session(peer, setting.dialect) as session:
            for name in filter(OURS.fullmatch, session.names(path)):
                session.remove_file(joined(path, name))
            session.close(session.open_folder(path))
    except (Refused, Unavailable) as error:
        if isinstance(error, Refused) and error.kind == "share":
            return
        text = f"//{peer.host}/{peer.share}: the folder {path} may be left there: {error}"
        raise Broken(text) from error
