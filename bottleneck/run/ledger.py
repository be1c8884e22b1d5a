"""What a run has measured so far: repeated runs of a step are gathered into one outcome."""

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


@dataclass
class Ledger:
    """Steps in the order in which they were first made."""

    steps: list[Step] = field(default_factory=list)
    repeats: dict[int, list[Repeat]] = field(default_factory=dict)
    ends: dict[int, Skipped | Failed] = field(default_factory=dict)
    failures: dict[int, list[str]] = field(default_factory=dict)
    """Errors of a step's runs, each of them."""
    notes: list[str] = field(default_factory=list)
    why: str = ""
    """What the next runs are made for."""
    whys: dict[int, list[str]] = field(default_factory=dict)
    """The reasons of a step's runs."""

    def _index(self, step: Step) -> int:
        if step not in self.steps:
            self.steps.append(step)
        return self.steps.index(step)

    def _known(self, step: Step) -> int:
        """The index of a step that has come to something, with the reason why it was made."""
        index = self._index(step)
        reasons = self.whys.setdefault(index, [])
        if self.why and self.why not in reasons:
            reasons.append(self.why)
        return index

    def forget(self) -> None:
        """All runs so far; what is noted stands."""
        for each in (self.steps, self.repeats, self.ends, self.failures, self.whys):
            each.clear()

    def add(self, step: Step, made: Repeat) -> None:
        """One more run of a step."""
        self.repeats.setdefault(self._known(step), []).append(made)

    def end(self, step: Step, outcome: Skipped | Failed) -> None:
        """A step that could not be made, or broke; runs that were measured before it stand."""
        index = self._known(step)
        self.ends.setdefault(index, outcome)
        if isinstance(outcome, Failed):
            self.failures.setdefault(index, []).append(outcome.error)

    def failed(self, step: Step) -> str:
        """Why a step's first run that failed did; empty: none failed."""
        known = self.failures.get(self._index(step), []) if step in self.steps else []
        return known[0] if known else ""

    def latest(self, step: Step) -> Repeat | None:
        """The last run of a step; None: none was measured."""
        made = self.repeats.get(self._index(step)) if step in self.steps else None
        return made[-1] if made else None

    def rate(self, step: Step) -> float | None:
        """Median rate of a step's runs, bytes per second."""
        made = self.repeats.get(self._index(step)) if step in self.steps else None
        return statistics.median(run_rate(each.run) for each in made) if made else None

    def entries(self) -> tuple[tuple[Step, Outcome], ...]:
        """Each step with its outcome."""
        return tuple(
            (replace(step, why="; then ".join(self.whys.get(index, ()))), self._outcome(index))
            for index, step in enumerate(self.steps)
        )

    def complete(self) -> bool:
        """Whether every step was measured."""
        return not self.ends

    def _outcome(self, index: int) -> Outcome:
        made = self.repeats.get(index)
        if not made:
            return self.ends[index]
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
        if index in self.failures:
            details["failed_runs"] = list(self.failures[index])
        return Measured(
            tuple(each.run for each in made), middle.initiator, middle.responder, details
        )
