"""Processes that tests look after, and time: the one place of the short run that knows a clock.

A test waits for a condition by `until`, gives what takes a deadline a generous one by `within`, and
passes a `FakeClock` to what has to see time go by.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from probes.files import journal


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def running(code: str, *arguments: object) -> subprocess.Popen[str]:
    """A Python that runs this code on this clone's modules, its stdin and stdout ours."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


GENEROUS_SECONDS = 120.0
"""Bound of whatever a test waits for: reached where something hangs, and never by a slow host."""
STAYS = ("tail", "-f", "/dev/null")
"""A program that does nothing until somebody ends it."""


class FakeClock:
    """A clock that moves when it is told, or by those who wait by it.

    It stands for `probes.system.waiting.Clock`, and for a module's `time` where that is replaced.
    """

    def __init__(self, now: float = 1000.0, step: float = 0.0) -> None:
        self.time, self._step = now, step

    def now(self) -> float:
        """Seconds; each look moves it by the step that it was made with."""
        self.time += self._step
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds

    monotonic = perf_counter = process_time = thread_time = now


def swept(holds: Callable[[], bool]) -> bool:
    """Whether it holds once the next run's sweep has removed what a killed one left."""
    return until(lambda: (journal.sweep(), holds())[1])


def deadline_in(seconds: float = GENEROUS_SECONDS) -> float:
    """Deadline by the monotonic clock, for calls that take one."""
    return time.monotonic() + seconds


def until(holds: Callable[[], bool], seconds: float = GENEROUS_SECONDS) -> bool:
    """Whether it holds before so many seconds have passed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        # Once is enough: /proc's list of children leaves some out while others end.
        if holds():
            return True
        time.sleep(0.02)
    return holds()


def ended(pids: Iterable[int], seconds: float = GENEROUS_SECONDS) -> bool:
    """Whether none of them lives any more, in time."""
    remaining = list(pids)
    return until(lambda: not any(map(alive, remaining)), seconds)


def entered(manager: AbstractContextManager[Any]) -> None:
    """Enters it and leaves it: for what refuses to be entered."""
    with manager:
        pass


@contextlib.contextmanager
def connected() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A connection within this host, its server's end first."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
        listener.accept()[0] as server,
    ):
        yield server, client


def reset(connection: socket.socket) -> None:
    """Closes with a reset in place of an end, whoever else holds the socket."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def unacknowledged_bytes(connection: socket.socket) -> int:
    """Written by the application and not yet acknowledged by the other end (SIOCOUTQ)."""
    import fcntl
    import termios

    answer = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, b"\0" * 4)
    return int.from_bytes(answer, sys.byteorder)


def below(ancestor: int) -> set[int]:
    descendants: set[int] = set()
    waiting = [ancestor]
    while waiting:
        with contextlib.suppress(OSError):
            for task in Path(f"/proc/{waiting.pop()}/task").iterdir():
                children = [int(each) for each in (task / "children").read_text().split()]
                descendants.update(filter(alive, children))
                waiting.extend(children)
    return descendants
