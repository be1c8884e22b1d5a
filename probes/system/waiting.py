"""Locks, signals, time, select and selectors: POSIX's own, or their counterparts for Windows."""

from __future__ import annotations

import sys
import time

if sys.platform == "win32":
    from probes.system.windows import fcntl, select, selectors, signal
else:
    import fcntl
    import select
    import selectors
    import signal

__all__ = ["CLOCK", "Clock", "fcntl", "select", "selectors", "signal"]


class Clock:
    """The monotonic clock of this host, in seconds; passed in, so that a test can move its own."""

    now = staticmethod(time.monotonic)
    sleep = staticmethod(time.sleep)


CLOCK = Clock()
