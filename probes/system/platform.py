"""os: the system's own, and on Windows the same names made of what it has.

Whoever opens files or folders, or asks whose they are, imports it from here: the calls then mean
the same on both. The other modules of POSIX that Windows lacks are in waiting.py.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import Iterator

if sys.platform == "win32":
    from probes.system.windows import os
else:
    import os

__all__ = ["descriptor", "os"]


@contextmanager
def descriptor(fd: int) -> Iterator[int]:
    """Closes a descriptor when the block is left."""
    try:
        yield fd
    finally:
        os.close(fd)
