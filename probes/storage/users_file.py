"""A file of the user's, looked at and no more: where it is, how large, how much of it is cached."""

from __future__ import annotations

import os
from typing import List, Optional

from probes.host import folders, page_cache
from probes.records import Details
from probes.storage.named_file import opened


def look(folder: str, parts: List[str], first_bytes: int) -> Details:
    """path, size_bytes, cached_ratio (None: cannot be told) and device of a file below a folder.

    first_bytes: what a copy of it may read, and so all of it that the ratio speaks of.
    parts: the names on the way, as a share shows them: where there is none of that very spelling,
    the only one that differs by case alone is taken. device: kernel name of what it lies on. The
    file is opened for reading, and its time of access stays where its owner asks. Errors:
    Unavailable with the reason.
    """
    path = folder
    for part in parts:
        path = os.path.join(path, _spelled(path, part))  # noqa: PTH118 - names may be any bytes
    with opened(path) as fd:
        size_bytes = os.fstat(fd).st_size
        told = page_cache.state(fd, min(size_bytes, first_bytes))
    return {
        "path": path,
        "size_bytes": size_bytes,
        "cached_ratio": None if told is None else told.cached_ratio,
        "device": folders.folder_facts(os.path.dirname(path)).device,  # noqa: PTH120 - any bytes
    }


def _spelled(folder: str, name: str) -> str:
    """The name as the folder has it."""
    if os.path.lexists(os.path.join(folder, name)):  # noqa: PTH118 - any bytes
        return name
    try:
        alike = [each for each in os.listdir(folder) if each.casefold() == name.casefold()]
    except OSError:
        alike = []
    found: Optional[str] = alike[0] if len(alike) == 1 else None
    return found or name
