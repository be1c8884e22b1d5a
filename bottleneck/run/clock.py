"""A run's time: what has passed, and what is left of its budget."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from probes.core.stage import USUAL_BUDGET_SECONDS, Unavailable
from probes.system import waiting

CLOSING_SECONDS = 2.0
CLOSING_SHARE = 0.05
CLEAR_SHARE, CLEAR_CLOSING_SECONDS = 1 / 3, 2.5
"""Of the budget, by which a clear case has ended; what closing the hosts takes of that."""
USEFUL_SECONDS = 1.5
"""Less is no copy."""
HELD_SECONDS = 60.0
"""Time beyond the budget for which a host may hold something."""


@dataclass
class Clock:
    """Since the run began."""

    budget_seconds: float
    host: waiting.Clock = waiting.CLOCK
    began: float = field(init=False)
    started: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    """The date and time of that."""
    return_seconds: float = 12.0
    """Limit of one wait for a server that went; 0: it did not come back."""

    def __post_init__(self) -> None:
        self.began = self.host.now()

    def elapsed(self) -> float:
        """Seconds since the run began."""
        return self.host.now() - self.began

    def left(self) -> float:
        """Seconds of the budget that remain for steps; closing the hosts takes the rest."""
        closing = max(CLOSING_SECONDS, CLOSING_SHARE * self.budget_seconds)
        return self.budget_seconds - closing - self.elapsed()

    @property
    def lifetime(self) -> float:
        """Seconds for what a host holds until the run's end."""
        return self.budget_seconds + HELD_SECONDS

    def ends_early(self, usual_seconds: float) -> bool:
        """Whether a stage that takes so long in a usual run would end by a clear case's end."""
        takes = usual_seconds * self.budget_seconds / USUAL_BUDGET_SECONDS
        early = CLEAR_SHARE * self.budget_seconds - CLEAR_CLOSING_SECONDS
        return self.elapsed() + takes <= early

    def need(self, seconds: float = USEFUL_SECONDS) -> None:
        """Raises Unavailable where less is left."""
        if self.left() < seconds:
            raise Unavailable("out of time (use a larger --budget)")
