"""What a child process is asked to do, and the events that it tells of it."""

from __future__ import annotations

from typing import Any, Callable, Dict

from probes.core.stage import Refused, Unavailable

MEMORY_LIMIT_BYTES = 512 << 20

Event = Dict[str, Any]
Tell = Callable[[Event], None]
Work = Callable[[Tell, int], None]
"""Does the work; gets where to tell events, and a descriptor that reads end-of-file on close."""


def one_line(error: BaseException) -> str:
    """What went wrong, in one line without a traceback."""
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return f"needed more than the {MEMORY_LIMIT_BYTES} bytes of memory allowed to a probe"
    if isinstance(error, (OSError, RuntimeError, ValueError)) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def failure(error: BaseException) -> Event:
    """The event that tells of an error: skipped, refused or failed."""
    if isinstance(error, Unavailable):
        return {"skipped": str(error)}
    if isinstance(error, Refused):
        return {"refused": {"kind": error.kind, "text": error.text}}
    return {"failed": one_line(error)}
