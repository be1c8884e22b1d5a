"""Clock of a run: elapsed time and the remaining budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from probes.core.stage import USUAL_BUDGET_SECONDS, Unavailable
from probes.system import waiting

CLOSING_SECONDS = 2.0
CLOSING_SHARE = 0.05
CLEAR_SHARE, CLEAR_CLOSING_SECONDS = 1 / 3, 2.5
"""Share of the budget within which a clear case ends; time that closing the hosts takes of it."""
USEFUL_SECONDS = 1.5
"""Shortest time for a copy."""
HELD_SECONDS = 60.0
"""Time beyond the budget for which a host may hold something."""


@dataclass
class Clock:
    """Time of one run."""

    budget_seconds: float
    host: waiting.Clock = waiting.CLOCK
    began: float = field(init=False)
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    """Start of the run, ISO 8601."""
    return_seconds: float = 12.0
    """Longest wait for a server that went away; 0: it did not come back."""

    def __post_init__(self) -> None:
        self.began = self.host.now()

    def elapsed(self) -> float:
        """Returns the seconds since the run began."""
        return self.host.now() - self.began

    def remaining(self) -> float:
        """Returns the seconds that remain for steps, without the time to close the hosts."""
        closing = max(CLOSING_SECONDS, CLOSING_SHARE * self.budget_seconds)
        return self.budget_seconds - closing - self.elapsed()

    @property
    def lifetime(self) -> float:
        """Longest time for which a host may hold something."""
        return self.budget_seconds + HELD_SECONDS

    def ends_early(self, usual_seconds: float) -> bool:
        """Whether a stage of this duration (in a usual run) ends within a clear case's time."""
        takes = usual_seconds * self.budget_seconds / USUAL_BUDGET_SECONDS
        early = CLEAR_SHARE * self.budget_seconds - CLEAR_CLOSING_SECONDS
        return self.elapsed() + takes <= early

    def need(self, seconds: float = USEFUL_SECONDS) -> None:
        """Raises Unavailable if less time remains."""
        if self.remaining() < seconds:
            raise Unavailable("out of time (use a larger --budget)")
