"""What the disk stage is to measure: the setting that all its patterns share."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """What to measure on which host."""

    verb: str
    """read, write."""
    cache: str
    """uncached, cached (reads alone; a write is always flushed to disk)."""
    folder: str
    side: str
    """The host that this is about: client, server."""
    size_bytes: int
    seconds: float
    """The measured time; fio's start comes on top of it."""
    seed: str = ""
    path: str = ""
    """The file to read where the peer names none; opened for reading only."""
    pattern: str = "sequential"
    """sequential, zones, file, synced, sustained."""
    device: str = ""
    """zones alone: a block device's node, opened for reading only; empty: files in the folder."""
    zones: int = 9
    """zones alone: how many spans, from the outer edge to the inner."""
