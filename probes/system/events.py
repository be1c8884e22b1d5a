"""Work of a child process, and the events that it reports."""

from __future__ import annotations

from typing import Any, Callable, Dict

from probes.core.stage import Refused, Unavailable

MEMORY_LIMIT_BYTES = 512 << 20

Event = Dict[str, Any]
Tell = Callable[[Event], None]
Work = Callable[[Tell, int], None]
"""Function that does the work; gets the receiver of events, and a descriptor that reads end-of-file
when the work is to end."""


def one_line(error: BaseException) -> str:
    """Returns the text of an error, in one line without a traceback."""
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"needed more than the {MEMORY_LIMIT_BYTES} bytes of memory allowed to a probe"
    if isinstance(error, (OSError, RuntimeError, ValueError)) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def failure(error: BaseException) -> Event:
    """Returns the event that tells of an error: skipped, refused or failed."""
    if isinstance(error, Unavailable):
        return {"skipped": str(error)}
    if isinstance(error, Refused):
        return {"refused": {"kind": error.kind, "text": error.text}}
    return {"failed": one_line(error)}
