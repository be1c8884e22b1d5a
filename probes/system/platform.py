"""os: the system's own, and on Windows the same names built on its calls.

Modules that open files or folders, or ask for their owner, import it from here: the calls then mean
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

USUAL_COPIER = "robocopy" if sys.platform == "win32" else "rclone"
"""Program with which people here copy folders, several files at once."""


@contextmanager
def descriptor(fd: int) -> Iterator[int]:
    """Closes a descriptor when the block is left."""
    try:
        yield fd
    finally:
        os.close(fd)
