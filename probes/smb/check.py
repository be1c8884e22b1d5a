"""Whether what was copied is what was sent: parts of a file against its payload."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator

from probes.host import payload


class Check:
    """Compares what it is given with the payload."""

    def __init__(self, ring: memoryview) -> None:
        self._ring = ring
        self.intact = True
        """Nothing compared so far differed."""
        self.checked_bytes = 0

    def take(self, offset: int, view: memoryview) -> None:
        """Compares the part of the file at offset; at most 8 MiB."""
        self.intact = self.intact and payload.matches(self._ring, offset, view)
        self.checked_bytes += len(view)


def spread(size_bytes: int, block_bytes: int, seconds: float) -> Iterator[tuple[int, int]]:
    """Blocks of a file, from and to which offset: all of them, or as many as the time allows.

    First and last come first, whatever the time; then the others in an order that nobody can
    foretell, so that no server knows which part of a file will not be looked at.
    """
    count = -(-size_bytes // block_bytes)
    inner = list(range(1, count - 1))
    secrets.SystemRandom().shuffle(inner)
    until = time.monotonic() + seconds
    for place, number in enumerate([0, count - 1][:count] + inner):
        if place > 1 and time.monotonic() > until:
            return
        yield number * block_bytes, min(size_bytes, (number + 1) * block_bytes)
