"""When a copy has lasted long enough: its time is over, and its rate no longer rises.

Pure: whoever copies tells what has moved, and asks before each further request.
"""

from __future__ import annotations

import math

RISING_RATIO = 1.2
"""Last quarter of a copy over the one before: TCP's slow start on a far path, a warming cache."""
LONGEST_TIMES = 2.0
"""Its time, which a copy whose rate rises takes at most."""
LEAST_LOOKS = 8


class Flushes:
    """Of a push: what the server has made durable, and how long the rest is likely to take."""

    def __init__(self) -> None:
        self.asked_bytes = self.durable_bytes = 0
        """From the file's start, by the last FLUSH that was sent, and that was answered."""
        self.asked_at = self._took_seconds = 0.0
        self._covered_bytes = 0

    @property
    def outstanding(self) -> int:
        """FLUSH requests that wait for their reply: 0 or 1."""
        return int(self.asked_bytes > self.durable_bytes)

    def ask(self, sent_bytes: int, now: float) -> None:
        """A FLUSH is sent behind so many bytes."""
        self._covered_bytes = sent_bytes - self.durable_bytes
        self.asked_bytes, self.asked_at = sent_bytes, now

    def answer(self, now: float) -> float:
        """The FLUSH is answered; seconds that it took."""
        self.durable_bytes, self._took_seconds = self.asked_bytes, now - self.asked_at
        return self._took_seconds

    def backlog_seconds(self, written_bytes: int, now: float) -> float:
        """Estimates the time to make durable what is written, at the pace of the latest FLUSH."""
        if not self._covered_bytes:
            return 0.0
        took = now - self.asked_at if self.outstanding else self._took_seconds
        return took * max(0, written_bytes - self.durable_bytes) / self._covered_bytes


class CopyLength:
    """Decides when a copy ends that was not given enough time for all of its bytes."""

    def __init__(self, most_seconds: float, longest_seconds: float = math.inf) -> None:
        """most_seconds: 0: it ends with its last byte. longest_seconds: however its rate rises."""
        self._most_seconds = most_seconds
        self._longest_seconds = min(longest_seconds, LONGEST_TIMES * most_seconds)
        self._seen: list[tuple[float, int]] = []
        self.over = False
        """Whether no further request is to be sent."""

    def look(self, lasted_seconds: float, moved_bytes: int, backlog_seconds: float = 0.0) -> None:
        """Takes how far the copy is; backlog_seconds: what its last flush is likely to take."""
        if self._most_seconds <= 0:
            return
        self._seen.append((lasted_seconds, moved_bytes))
        likely = lasted_seconds + backlog_seconds
        enough = likely >= self._most_seconds and not self._rises()
        self.over = enough or likely >= self._longest_seconds

    def _rises(self) -> bool:
        seen = self._seen
        if len(seen) < LEAST_LOOKS:
            return False
        (end, all_of_it), (half, more), (start, some) = (
            seen[-1 - part * (len(seen) // 4)] for part in range(3)
        )
        before = (more - some) / max(1e-6, half - start)
        return all_of_it - more > RISING_RATIO * before * (end - half)
