"""Recycle bins of a share: folders into which a server moves what is deleted.

A run's files are emptied before they are deleted, so that a bin holds their names and no data. What
has a run's random name there is removed, where this user may. Sources: vfs_recycle(8); the usual
names are those of Synology (#recycle), QNAP (@Recycle), TrueNAS, Unraid and OMV (.recycle).
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import suppress

from probes.core.stage import Refused
from probes.smb.session import Session

USUAL = re.compile(r"[.#@$~]?(recycle|recycler|recycled|trash|trashbin|deleted|bin)\b.*", re.I)
"""Names of folders of a share that may be a bin."""
OF_RUNS = re.compile(r"(bottleneck|source|pushed|small-[0-9]{1,6}-[0-9a-f]{8})-[0-9a-f]{32}")
"""In the name of what a run made, which a bin may begin with words of its own."""
MOST_USERS = 50
"""Folders in a bin that are looked into: many have one for each user."""
LOOK_SECONDS = 3.0


def names(session: Session, folder: str) -> tuple[str, ...]:
    """Lists a folder of the share; nothing where it is none, or may not be listed."""
    with suppress(Refused):
        return session.names(folder)
    return ()


def entries(
    session: Session, folder: str, wanted: re.Pattern[str], known: tuple[str, ...] = ()
) -> Iterator[str]:
    """Yields the paths of what has such a name in a bin; folder: from which it was deleted.

    known: what the share held before something was deleted: other folders are bins, too. Looks for
    LOOK_SECONDS.
    """
    until = time.monotonic() + LOOK_SECONDS
    for place in _places(session, folder, known):
        if time.monotonic() > until:
            return
        for name in filter(wanted.search, names(session, place)):
            yield f"{place}\\{name}"


def _places(session: Session, folder: str, known: tuple[str, ...]) -> Iterator[str]:
    """Yields the folders in which a bin keeps what was deleted from a folder."""
    behind = f"\\{folder}" if folder else ""
    for top in names(session, ""):
        if USUAL.fullmatch(top) or (known and top not in known):
            yield from dict.fromkeys((top, top + behind))
            for user in names(session, top)[:MOST_USERS]:
                yield from dict.fromkeys((f"{top}\\{user}", f"{top}\\{user}{behind}"))


def removed(session: Session, path: str) -> bool:
    """Deletes a file of a run in a bin, or a folder with such files; whether it is gone."""
    inside = names(session, path)
    for name in filter(OF_RUNS.search, inside):
        with suppress(Refused):
            session.remove_file(f"{path}\\{name}")
    with suppress(Refused):
        (session.remove_folder if inside or _is_folder(session, path) else session.remove_file)(
            path
        )
    try:
        session.close(session.open_file(path, write=False))
    except Refused as refused:
        return refused.kind == "share"
    return False


def _is_folder(session: Session, path: str) -> bool:
    with suppress(Refused):
        session.close(session.open_folder(path))
        return True
    return False
