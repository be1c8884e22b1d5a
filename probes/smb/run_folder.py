"""The folder of this run on the share: held open for the whole run, gone however it ends.

Folder and file are created with DELETE_ON_CLOSE (MS-SMB2 2.2.13), so the server removes them when
the last handle goes: closed by us, or by the server when our connection breaks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from probes.records import Endpoint
from probes.smb.session import open_session

NAME = "run-folder"
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

    Yields the peer with that folder and with facts: what was agreed (SessionFacts), free_bytes and
    total_bytes of the share. Raises Refused or Unavailable.
    """
    path = joined(peer.folder, f"bottleneck-{setting.run}")
    with open_session(peer, setting.dialect) as session:
        folder = session.create_folder(path)
        session.create_file(joined(path, SOURCE))
        space = session.space(folder)
        facts = {
            **session.facts.details(),
            "free_bytes": space.free_bytes,
            "total_bytes": space.total_bytes,
        }
        # leaving the session closes the file, then the folder
        yield replace(peer, folder=path, facts=facts)
