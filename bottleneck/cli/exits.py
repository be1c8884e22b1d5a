"""Exit codes, and how an error becomes one."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable

DONE = 0
INCOMPLETE = 3
"""Done, but a stage is missing or the verdict is inconclusive."""
USAGE = 64
UNREACHABLE = 69
INTERNAL = 70
REFUSED = 77
"""Login or permission refused."""
INTERRUPTED = 130

OF_REFUSAL = {
    "usage": USAGE,
    "unreachable": UNREACHABLE,
    "share": UNREACHABLE,
    "login": REFUSED,
    "permission": REFUSED,
    "space": INCOMPLETE,
    "replaced": INCOMPLETE,
    "crowded": INCOMPLETE,
}
"""Exit code of each kind of probes.core.stage.Refused."""

LIMITS = {
    "Too many open files": "raise the limit of open files (ulimit -n)",
    "can't start new thread": "raise the limit of processes (ulimit -u)",
    "Resource temporarily unavailable": "raise the limit of processes (ulimit -u)",
}
"""Remedy by the end of an error's text."""

complaints: list[str] = []
_hiding: list[Callable[[str], str]] = []


def begin() -> None:
    """Forgets what was said and hidden."""
    complaints.clear()
    _hiding.clear()


def hide_by(hide: Callable[[str], str]) -> None:
    """Shows complaints from now on as `hide` returns them."""
    _hiding[:] = [hide]


def complain(text: str, visible: bool = True) -> None:
    """Prints one line on stderr, safe for a terminal; visible: False where stdout has it."""
    from bottleneck.cli.streams import wrapped_text
    from bottleneck.text.safe import safe

    complaints.append(text)
    if not visible:
        return
    for hide in _hiding:
        text = hide(text)
    try:
        print(wrapped_text(f"bottleneck: {safe(text, 1000)}"), file=sys.stderr, flush=True)
    except OSError:
        abandon(2)  # the exit code says it alone


def exit_of_error(error: Exception) -> tuple[int, str]:
    """Returns exit code and sentence of the error that ended a command."""
    from bottleneck.agents.hosts import AgentLost, PartlyRan, StageError
    from bottleneck.agents.protocol import WireError
    from bottleneck.report.report import ReportError
    from probes.core.stage import Refused, Unavailable

    if isinstance(error, Refused):
        return OF_REFUSAL[error.kind], error.text
    if isinstance(error, ReportError):
        return USAGE, str(error)
    system = error if isinstance(error, OSError) and error.filename is None else OSError()
    text = " ".join((system.strerror or str(error)).split())[:300]
    for words, remedy in LIMITS.items():
        if text.endswith(words):
            return UNREACHABLE, f"{text}; {remedy}"
    if isinstance(error, (AgentLost, PartlyRan, StageError, Unavailable, WireError)):
        return UNREACHABLE, str(error)
    if system.errno == errno.ENOENT:
        # os.getcwd()'s alone names no file.
        return USAGE, "current folder: deleted; change to another folder"
    if os.environ.get("BOTTLENECK_DEBUG"):
        import traceback

        traceback.print_exception(error)
    return INTERNAL, f"internal error: {type(error).__name__}: {text}"


def abandon(number: int = 1) -> None:
    """Drops what stdout or stderr cannot take: the interpreter must not complain at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)
