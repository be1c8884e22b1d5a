"""os: the system's own, and on Windows the same names made of what it has.

Whoever opens files or folders, or asks whose they are, imports it from here: the calls then mean
the same on both. The other modules of POSIX that Windows lacks are in waiting.py. LIBC: the C
library, for calls that Python has none of; on Windows None.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

if sys.platform == "win32":
    from probes.host.windows import os

    LIBC: Any = None
else:
    import os

    LIBC = ctypes.CDLL(None, use_errno=True)

__all__ = ["LIBC", "os"]
