"""signal, with the names of POSIX: Ctrl-Break and a closed console are its SIGHUP."""

from __future__ import annotations

import sys

assert sys.platform == "win32"

import signal as _signal
import threading
from signal import *  # noqa: F403
from typing import Any, Callable, Optional

SIGHUP = _signal.SIGBREAK
SIGKILL = _signal.SIGTERM
"""Any signal to another process ends it at once (TerminateProcess)."""
SIGALRM = 14
ITIMER_REAL = 0
_alarm: Callable[[int, Any], Any] = lambda number, frame: None  # noqa: E731
_timer: Optional[threading.Timer] = None


def signal(number: int, handler: Any) -> Any:
    """Sets a handler; SIGALRM's is called by setitimer() alone."""
    global _alarm  # noqa: PLW0603 - as the process's own table
    if number != SIGALRM:
        return _signal.signal(number, handler)
    old_handler, _alarm = _alarm, handler
    return old_handler


def setitimer(which: int, seconds: float, again_seconds: float = 0.0) -> None:
    """Calls SIGALRM's handler after some seconds, then each again_seconds; 0: never again."""
    global _timer  # noqa: PLW0603
    if _timer is not None:
        _timer.cancel()
        _timer = None
    if seconds:

        def due() -> None:
            _alarm(SIGALRM, None)
            if again_seconds and _timer is not None:
                setitimer(which, again_seconds, again_seconds)

        _timer = threading.Timer(seconds, due)
        _timer.daemon = True
        _timer.start()
