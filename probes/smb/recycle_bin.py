"""Recycle bins of a share: folders into which a server moves deleted files.

A run's files are emptied before they are deleted, so that a bin holds their names and no data.
Entries with a run's random name are removed, where this user may. Sources: vfs_recycle(8); usual
names are those of Synology (#recycle), QNAP (@Recycle), TrueNAS, Unraid and OMV (.recycle).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

from probes.core.stage import Refused
from probes.smb.session import Session

USUAL = re.compile(r"[.#@$~]?(recycle|recycler|recycled|trash|trashbin|deleted|bin)\b.*", re.I)
"""Names of folders of a share that may be a bin."""
MOST_USERS = 50
"""Folders in a bin that are searched: many have one for each user."""
LOOK_SECONDS = 3.0


def names(session: Session, folder: str) -> tuple[str, ...]:
    """Lists a folder of the share; empty where it is none, or may not be listed."""
    with suppress(Refused):
        return session.names(folder)
    return ()


def entries(
    session: Session,
    folder: str,
    is_wanted: Callable[[str], object],
    old_root: tuple[str, ...] | None = None,
) -> Iterator[str]:
    """Yields paths of a bin's entries whose names are wanted; looks for LOOK_SECONDS at most.

    folder: from which they were deleted. old_root: names in the share's root before that: a new
    folder there is taken for a bin, too; None: unknown.
    """
    until = time.monotonic() + LOOK_SECONDS
    for place in _places(session, folder, old_root):
        if time.monotonic() > until:
            return
        yield from (f"{place}\\{name}" for name in filter(is_wanted, names(session, place)))


def _places(session: Session, folder: str, old_root: tuple[str, ...] | None) -> Iterator[str]:
    """Yields the folders in which a bin keeps what was deleted from a folder."""
    behind = f"\\{folder}" if folder else ""
    for top in names(session, ""):
        if USUAL.fullmatch(top) or (old_root is not None and top not in old_root):
            yield from dict.fromkeys((top, top + behind))
            for user in names(session, top)[:MOST_USERS]:
                yield from dict.fromkeys((f"{top}\\{user}", f"{top}\\{user}{behind}"))


def remove_entries(
    session: Session, folder: str, run_id: str, old_root: tuple[str, ...] | None = None
) -> None:
    """Deletes a run's entries in a bin: files that have its id in their name, and their folder."""
    if not re.fullmatch("[0-9a-f]{32}", run_id):
        return  # such names prove nothing
    is_ours = re.compile(run_id).search
    for path in list(entries(session, folder, is_ours, old_root)):
        inside = (f"{path}\\{name}" for name in filter(is_ours, names(session, path)))
        for file in (*inside, path):
            with suppress(Refused):  # what may not be deleted stays, without content
                session.remove_file(file)
        with suppress(Refused):
            session.remove_folder(path)
