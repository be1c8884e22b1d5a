"""Keeps the report of a user's last diagnosis, so that `explain` can show it again."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from bottleneck.report import document_file
from probes.files import folders
from probes.system.platform import os

MODE = 0o600


def state_folder() -> Path | None:
    """Returns this user's folder for state (XDG_STATE_HOME); None: the user has no home."""
    import platformdirs

    path = Path()
    with suppress(RuntimeError):  # earlier versions give a relative path
        path = Path(platformdirs.user_state_dir("copy-bottleneck"))
    return path if path.is_absolute() else None


def path() -> Path | None:
    """Returns the path of the last report, which may not exist; None: the user has no home."""
    folder = state_folder()
    return None if folder is None else folder / "last.json"


def keep(text: str) -> bool:
    """Writes a report for its user only; returns whether it could: a home may be read-only."""
    file = path()
    if file is None:
        return False
    try:
        existing = next(each for each in file.parents if each.exists())
        if existing.stat().st_uid != os.geteuid():
            return False  # in another user's home root would leave folders of root's
        folders.make_private(str(file.parent))
        document_file.write(file, text, MODE)
    except OSError:
        return False
    return True
