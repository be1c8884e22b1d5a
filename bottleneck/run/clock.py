"""Clock of a run: elapsed time and the remaining budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from probes.core.stage import USUAL_BUDGET_SECONDS, Unavailable
from probes.system import waiting

CLOSING_SECONDS = 2.0
CLOSING_SHARE = 0.05
EARLY_SHARE, EARLY_CLOSING_SECONDS = 1 / 3, 2.5
"""Share of the budget after which a run of a certain verdict ends; seconds of it to close hosts."""
USEFUL_SECONDS = 1.5
"""Shortest time for a copy."""
HELD_SECONDS = 60.0
"""Time after the budget at which a host releases files and processes by itself."""


@dataclass
class Clock:
    """Time of one run."""

    budget_seconds: float
    source: waiting.Clock = waiting.CLOCK
    began_monotonic: float = field(init=False)
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    """Start of the run, ISO 8601."""
    return_seconds: float = 12.0
    """Longest wait for a server that went away; 0: it did not come back."""

    def __post_init__(self) -> None:
        self.began_monotonic = self.source.now()

    def elapsed(self) -> float:
        """Returns the seconds since the run began."""
        return self.source.now() - self.began_monotonic

    def remaining(self) -> float:
        """Returns the seconds that remain for steps, without the time to close the hosts."""
        closing = max(CLOSING_SECONDS, CLOSING_SHARE * self.budget_seconds)
        return self.budget_seconds - closing - self.elapsed()

    @property
    def lifetime(self) -> float:
        """Seconds after which a host releases what it holds by itself."""
        return self.budget_seconds + HELD_SECONDS

    def ends_early(self, usual_seconds: float) -> bool:
        """Whether a stage of this duration (in a usual run) ends before a run that ends early."""
        takes = usual_seconds * self.budget_seconds / USUAL_BUDGET_SECONDS
        early = EARLY_SHARE * self.budget_seconds - EARLY_CLOSING_SECONDS
        return self.elapsed() + takes <= early

    def require_seconds(self, seconds: float = USEFUL_SECONDS) -> None:
        """Raises Unavailable if less time remains."""
        if self.remaining() < seconds:
            raise Unavailable("out of time (use a larger --budget)")
