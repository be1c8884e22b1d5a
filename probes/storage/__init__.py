"""What the disk stage measures, one file a pattern, and the setting that they share.

It imports core, system, files, programs and host. Begin with sequential.py, then zones.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from probes.core.meaning import Count, Device, File, FolderOrNone, Seconds, Size, Text


@dataclass(frozen=True)
class Setting:
    """What to measure on which host."""

    verb: Text
    """read, write."""
    cache: Text
    """uncached, cached (reads alone; a write is always flushed to disk)."""
    folder: FolderOrNone
    side: Text
    """The host that this is about: client, server."""
    size_bytes: Size
    seconds: Seconds
    """The measured time; fio's start comes on top of it."""
    seed: Text = ""
    path: File = ""
    """The file to read where the peer names none; opened for reading only."""
    pattern: Text = "sequential"
    """sequential, random, zones, file, synced, sustained."""
    device: Device = ""
    """A block device's node, opened for reading only; empty: files in the folder."""
    zones: Count = 9
    """zones alone: how many spans, from the outer edge to the inner."""
    block_bytes: Count = 0
    """sequential and random alone: of each request; 0: as the pattern has it."""
    depth: Count = 0
    """The same: requests in flight, past the page cache."""

    @property
    def chosen(self) -> bool:
        """Whether somebody chose how the disk is used."""
        return self.pattern == "random" or bool(self.block_bytes or self.depth)
