"""The last diagnosis of this user, so that its details can be shown without measuring again."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from bottleneck.report import document_file
from probes.files import folders
from probes.system.platform import os

MODE = 0o600


def state_folder() -> Path | None:
    """This user's folder for states (XDG_STATE_HOME); None: the user has no home."""
    import platformdirs

    path = Path()
    with suppress(RuntimeError):  # earlier versions give a relative path
        path = Path(platformdirs.user_state_dir("copy-bottleneck"))
    return path if path.is_absolute() else None


def path() -> Path | None:
    """The file of the last report, which may not exist; None: the user has no home."""
    folder = state_folder()
    return None if folder is None else folder / "last.json"


def keep(text: str) -> bool:
    """Writes a report for its user alone; whether it is there: a home may be read-only."""
    file = path()
    if file is None:
        return False
    try:
        there = next(each for each in file.parents if each.exists())
        if there.stat().st_uid != os.geteuid():
            return False  # root in another user's home would leave folders that are root's
        folders.make_private(str(file.parent))
        document_file.write(file, text, MODE)
    except OSError:
        return False
    return True
