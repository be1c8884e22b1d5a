"""The disk stage's measurements, one file a pattern, and the setting that they share.

It imports core, system, files, programs and host. Begin with sequential.py, then zones.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from probes.core.field_types import Count, Device, File, FolderOrNone, Seconds, Size, Text


@dataclass(frozen=True)
class Setting:
    """The pattern of use to measure, and the host and folder or device."""

    verb: Text
    """read, write."""
    cache: Text
    """uncached, cached (reads alone; a write is always flushed to disk)."""
    folder: FolderOrNone
    side: Text
    """The host of the disk: client, server."""
    size_bytes: Size
    seconds: Seconds
    """Measured time; fio's start comes on top of it."""
    seed: Text = ""
    path: File = ""
    """The file to read where the peer names none; opened for reading only."""
    pattern: Text = "sequential"
    """sequential, random, zones, file, synced, sustained."""
    device: Device = ""
    """A block device's node, opened for reading only; empty: files in the folder."""
    zones: Count = 9
    """Pattern zones only: count of spans, from the outer edge to the inner."""
    block_bytes: Count = 0
    """Patterns sequential and random only: size of each request; 0: the pattern's own."""
    depth: Count = 0
    """Patterns sequential and random only: requests in flight, past the page cache."""

    @property
    def is_custom(self) -> bool:
        """Whether the user set the pattern of requests, so that user_pattern.py measures it."""
        return self.pattern == "random" or bool(self.block_bytes or self.depth)
