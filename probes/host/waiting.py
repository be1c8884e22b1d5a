"""Locks, signals and what can be waited for: POSIX's own, and on Windows what it has of it."""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from probes.host.windows import fcntl, select, selectors, signal
else:
    import fcntl
    import select
    import selectors
    import signal

__all__ = ["fcntl", "select", "selectors", "signal"]
