"""The log of a run, append-only; repeated runs of a step are gathered when it is read."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field, replace
from typing import Any

from bottleneck.report.report import Step
from probes.core.records import Failed, Measured, Outcome, Run, Skipped, Usage, run_rate


@dataclass(frozen=True)
class Repeat:
    """One run of a step, with what its hosts were busy with."""

    run: Run
    initiator: Usage
    responder: Usage | None
    details: dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """One attempt at a step: what it came to, and why it was made."""

    step: Step
    came_to: Repeat | Skipped | Failed
    why: str


@dataclass
class Log:
    """Attempts in the order in which they ended, and notes."""

    all_entries: list[Entry] = field(default_factory=list)
    uncounted: int = 0
    """Number of first entries that a warm-up made, once it is over."""
    notes: list[str] = field(default_factory=list)

    def add(self, step: Step, came_to: Repeat | Skipped | Failed, why: str = "") -> None:
        """One more attempt at a step; what was measured before it stands."""
        self.all_entries.append(Entry(step, came_to, why))

    def note(self, text: str) -> None:
        """One line for the report about what was not measured, and why; once."""
        if text not in self.notes:
            self.notes.append(text)

    def forget(self) -> None:
        """Counts nothing of what was measured so far; what is noted stands."""
        self.uncounted = len(self.all_entries)

    @property
    def counted(self) -> list[Entry]:
        """All that counts."""
        return self.all_entries[self.uncounted :]

    @property
    def steps(self) -> list[Step]:
        """Steps in the order in which they first came to something."""
        found: list[Step] = []
        for each in self.counted:
            if each.step not in found:
                found.append(each.step)
        return found

    def _of(self, step: Step) -> list[Entry]:
        return [each for each in self.counted if each.step == step]

    def repeats(self, step: Step) -> list[Repeat]:
        """The runs of a step that were measured, in their order."""
        return [e.came_to for e in self._of(step) if isinstance(e.came_to, Repeat)]

    def failures(self, step: Step) -> list[str]:
        """The errors of a step's runs, each of them."""
        return [e.came_to.error for e in self._of(step) if isinstance(e.came_to, Failed)]

    def failed(self, step: Step) -> str:
        """Why a step's first run that failed did; empty: none failed."""
        return next(iter(self.failures(step)), "")

    def latest(self, step: Step) -> Repeat | None:
        """The last run of a step; None: none was measured."""
        return next(reversed(self.repeats(step)), None)

    def rate(self, step: Step) -> float | None:
        """Median rate of a step's runs, bytes per second."""
        made = self.repeats(step)
        return statistics.median(run_rate(each.run) for each in made) if made else None

    def entries(self) -> tuple[tuple[Step, Outcome], ...]:
        """Each step with its outcome, and with the reasons of its runs."""
        return tuple(
            (replace(step, why="; then ".join(self._whys(step))), self._outcome(step))
            for step in self.steps
        )

    def measured_any(self) -> bool:
        """Whether any run of any step was measured."""
        return any(isinstance(each.came_to, Repeat) for each in self.counted)

    def complete(self) -> bool:
        """Whether every step was measured."""
        return all(isinstance(each.came_to, Repeat) for each in self.counted)

    def _whys(self, step: Step) -> dict[str, None]:
        return dict.fromkeys(each.why for each in self._of(step) if each.why)

    def _outcome(self, step: Step) -> Outcome:
        made, failures = self.repeats(step), self.failures(step)
        if not made:
            ends = (e.came_to for e in self._of(step) if not isinstance(e.came_to, Repeat))
            return next(ends)
        ordered = sorted(made, key=lambda each: run_rate(each.run))
        middle = ordered[(len(ordered) - 1) // 2]
        details = dict(middle.details)
        if "hash_ok" in details:
            # None: nobody could look, which is neither right nor wrong.
            looks = [each.details.get("hash_ok") for each in made]
            details["hash_ok"] = None if None in looks and False not in looks else all(looks)
        if details.get("cache"):
            proofs = [each.details.get("cache") or {} for each in made]
            proven = all(each.get("proven") is True for each in proofs)
            details["cache"] = {**details["cache"], "proven": proven}
        if failures:
            details["failed_runs"] = failures
        return Measured(
            tuple(each.run for each in made), middle.initiator, middle.responder, details
        )
