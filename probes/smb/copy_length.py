"""Decides whether a copy has lasted long enough: its time is over, and its rate no longer rises.

Pure: the copy reports its bytes, and asks before each further request.
"""

from __future__ import annotations

import math

RISING_RATIO = 1.2
"""Ratio of a copy's last two quarters that means a rise: TCP's slow start, a warming cache."""
LONGEST_TIMES = 2.0
"""Longest duration of a copy whose rate rises, as a multiple of its time."""
LEAST_LOOKS = 8


class Flushes:
    """The flushes of a push: the durable bytes, and an estimate of the time for the rest."""

    def __init__(self) -> None:
        self.asked_bytes = self.durable_bytes = 0
        """Bytes from the file's start before the last FLUSH that was sent, and was answered."""
        self.asked_at = self._took_seconds = 0.0
        self._covered_bytes = 0

    @property
    def in_flight(self) -> int:
        """FLUSH requests that wait for their reply: 0 or 1."""
        return int(self.asked_bytes > self.durable_bytes)

    def ask(self, sent_bytes: int, now: float) -> None:
        """Records a FLUSH that is sent after so many bytes."""
        self._covered_bytes = sent_bytes - self.durable_bytes
        self.asked_bytes, self.asked_at = sent_bytes, now

    def answer(self, now: float) -> float:
        """Records the answer to the FLUSH; returns the seconds that it took."""
        self.durable_bytes, self._took_seconds = self.asked_bytes, now - self.asked_at
        return self._took_seconds

    def backlog_seconds(self, written_bytes: int, now: float) -> float:
        """Estimates the seconds to flush the written bytes, at the pace of the latest FLUSH."""
        if not self._covered_bytes:
            return 0.0
        took = now - self.asked_at if self.in_flight else self._took_seconds
        return took * max(0, written_bytes - self.durable_bytes) / self._covered_bytes


class CopyLength:
    """Decides the end of a copy whose time does not suffice for all of its bytes."""

    def __init__(self, most_seconds: float, longest_seconds: float = math.inf) -> None:
        """most_seconds: 0: it ends with its last byte. longest_seconds: limit for a rising rate."""
        self._most_seconds = most_seconds
        self._longest_seconds = min(longest_seconds, LONGEST_TIMES * most_seconds)
        self._looks: list[tuple[float, int]] = []
        self.over = False
        """Whether no further request is to be sent."""

    def look(self, lasted_seconds: float, moved_bytes: int, backlog_seconds: float = 0.0) -> None:
        """Records the copy's progress; backlog_seconds: the estimate of its last flush."""
        if self._most_seconds <= 0:
            return
        self._looks.append((lasted_seconds, moved_bytes))
        likely = lasted_seconds + backlog_seconds
        enough = likely >= self._most_seconds and not self._rises()
        self.over = enough or likely >= self._longest_seconds

    def _rises(self) -> bool:
        looks = self._looks
        if len(looks) < LEAST_LOOKS:
            return False
        (end, total_bytes), (half, half_bytes), (start, start_bytes) = (
            looks[-1 - part * (len(looks) // 4)] for part in range(3)
        )
        pace = (half_bytes - start_bytes) / max(1e-6, half - start)
        return total_bytes - half_bytes > RISING_RATIO * pace * (end - half)
