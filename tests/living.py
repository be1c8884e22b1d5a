"""Processes that tests look after: which of them live, which are whose, and until when."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def until(holds: Callable[[], bool], seconds: float = 15.0) -> bool:
    """Whether it holds before so many seconds have passed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        # Once is enough: /proc's list of children leaves some out while others end.
        if holds():
            return True
        time.sleep(0.02)
    return holds()


def ended(pids: Iterable[int], seconds: float = 15.0) -> bool:
    """Whether none of them lives any more, in time."""
    known = list(pids)
    return until(lambda: not any(map(alive, known)), seconds)


def below(ancestor: int) -> set[int]:
    """A process's living descendants now."""
    found: set[int] = set()
    waiting = [ancestor]
    while waiting:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{waiting.pop()}/task").iterdir():
                children = [int(each) for each in (task / "children").read_text().split()]
                found.update(filter(alive, children))
                waiting.extend(children)
    return found
