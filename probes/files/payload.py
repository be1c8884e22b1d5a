"""The bytes that are copied: incompressible, the same on both hosts from a short seed."""

from __future__ import annotations

import hashlib
from typing import Iterable, Tuple

from probes.files.removal import MAGIC

MARK_BYTES = 64
"""Length of mark()."""
MOST_HEADS = 3
"""Number of files that may all end before MAGIC is complete; of more, one has to have it."""
PERIOD_BYTES = 4 * 1024 * 1024 + 4096 + 64
"""No power of two: the same block comes back at the same alignment after 65601 blocks only."""

LONGEST_BLOCK_BYTES = 8 * 1024 * 1024


def make_ring(seed: bytes) -> memoryview:
    """Returns payload of PERIOD_BYTES, MAGIC and SHAKE-128 of seed, repeated: a block is a slice.

    12 MiB in memory, 30 ms of one core. Source: FIPS 202.
    """
    period = MAGIC + hashlib.shake_128(seed).digest(PERIOD_BYTES - len(MAGIC))
    copies = -(-(PERIOD_BYTES + LONGEST_BLOCK_BYTES) // PERIOD_BYTES)
    return memoryview((period * copies)[: PERIOD_BYTES + LONGEST_BLOCK_BYTES])


def mark(seed: bytes) -> bytes:
    """Returns the first MARK_BYTES of a run's payload: a file that begins with them is the run's.

    They need the seed to be computed, but anybody who can read the file can copy them.
    """
    return MAGIC + hashlib.shake_128(seed).digest(MARK_BYTES - len(MAGIC))


def block(ring: memoryview, offset: int, size: int) -> memoryview:
    """Returns the size bytes that belong at offset of the file, no copy; size <= 8 MiB."""
    if size > LONGEST_BLOCK_BYTES:
        raise ValueError(f"a block has at most {LONGEST_BLOCK_BYTES} bytes, not {size}")
    start = offset % PERIOD_BYTES
    return ring[start : start + size]


def matches(ring: memoryview, offset: int, view: memoryview) -> bool:
    """Whether view has the payload of that offset of the file; len(view) <= 8 MiB."""
    if len(view) > LONGEST_BLOCK_BYTES:
        raise ValueError(f"a block has at most {LONGEST_BLOCK_BYTES} bytes, not {len(view)}")
    content = ring.obj
    assert isinstance(content, bytes)
    # bytes.startswith is a memcmp on any buffer; == of two memoryviews goes byte by byte
    return content.startswith(view, offset % PERIOD_BYTES)


def proof_order(name: str) -> Tuple[bool, str]:
    """Sorts a run's files: the source and the first small one, which begin with MAGIC, first."""
    return not (name.endswith("-0") or name.startswith(("source", "small-0-"))), name


def proves(heads: Iterable[bytes]) -> bool:
    """Whether a run wrote a folder's files, by the first len(MAGIC) bytes of each.

    One of the first files has MAGIC; or there are no more files, and each is empty or ends within
    MAGIC, as those of a run that was killed when it had just created them.
    """
    short = True
    for count, head in enumerate(heads):
        if head == MAGIC or count == MOST_HEADS:
            return head == MAGIC
        short = short and MAGIC.startswith(head)
    return short
