"""One sequential pass over an open file, a few requests in flight, by threads of this process.

For files of the user's: fio opens its file anew and would change the time of its last access.
"""

from __future__ import annotations

import mmap
import os
import threading
import time
from typing import List, Optional

BLOCK_BYTES = 1024 * 1024
DEPTH = 4
"""Requests in flight of direct I/O, as fio has them here."""
JOIN_SECONDS = 5.0
"""For a request that is on its way when somebody gives up."""


class Shorter(RuntimeError):
    """The file lost bytes while it was read."""


class Pass:
    """A pass that is under way: requests are sent off until the bytes or the time are over."""

    def __init__(self, fd: int, size_bytes: int, seconds: float, depth: int = DEPTH) -> None:
        """size_bytes: whole blocks, from the file's start. depth: 1 for reads through the cache."""
        self.latencies_seconds: List[float] = []
        self.began = time.monotonic()
        self._fd = fd
        self._size_bytes = size_bytes
        self._until = self.began + seconds
        self._lock = threading.Lock()
        self._next_bytes = 0
        self._moved_bytes = 0
        self._ended = self.began
        self._stopped = False
        self._error: Optional[BaseException] = None
        self._threads = [threading.Thread(target=self._read, daemon=True) for _ in range(depth)]
        for each in self._threads:
            each.start()

    @property
    def moved_bytes(self) -> int:
        """What has arrived so far."""
        return self._moved_bytes

    @property
    def elapsed_seconds(self) -> float:
        """Until the last request came back."""
        return self._ended - self.began

    def wait(self, seconds: float) -> bool:
        """Whether the pass has ended within so many seconds. Errors: Shorter, OSError."""
        until = time.monotonic() + seconds
        for each in self._threads:
            each.join(max(0.0, until - time.monotonic()))
        if any(each.is_alive() for each in self._threads):
            return False
        if self._error is not None:
            raise self._error
        return True

    def stop(self) -> None:
        """Sends no further request off and waits for those under way."""
        self._stopped = True
        for each in self._threads:
            each.join(JOIN_SECONDS)

    def _read(self) -> None:
        # a mapping of its own: direct I/O wants memory at the start of a page
        with mmap.mmap(-1, BLOCK_BYTES) as memory, memoryview(memory) as view:
            try:
                while True:
                    with self._lock:
                        offset, sent = self._next_bytes, time.monotonic()
                        over = offset >= self._size_bytes or sent >= self._until
                        if over or self._stopped:
                            return
                        self._next_bytes += BLOCK_BYTES
                    self._take(view, offset)
                    with self._lock:
                        self._ended = time.monotonic()
                        self._moved_bytes += BLOCK_BYTES
                        self.latencies_seconds.append(self._ended - sent)
            except (OSError, Shorter) as error:
                self._error = self._error or error
                self._stopped = True

    def _take(self, view: memoryview, offset: int) -> None:
        done = 0
        while done < BLOCK_BYTES:
            with view[done:] as rest:
                got = os.preadv(self._fd, [rest], offset + done)
            if got == 0 or os.fstat(self._fd).st_size < offset + BLOCK_BYTES:
                raise Shorter("the file became shorter while it was read")
            done += got
