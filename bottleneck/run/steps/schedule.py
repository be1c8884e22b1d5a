"""What explains the copies, in the order in which it decides; a clear case ends early.

After the first round of copies the analysis says which of them are in doubt. The stage that speaks
of the most doubts comes next. Where none speaks of any, what may find the cause behind a cap is
still made, and no other stage is begun that would not end within a third of the budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Self

from bottleneck.analysis import doubts
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.doubts import Doubt, Look, next_look, refining
from bottleneck.analysis.finding import Diagnosis
from bottleneck.analysis.steps import NATIVE
from bottleneck.report.report import Report
from bottleneck.run.bench import Bench
from bottleneck.run.steps import disks, initiators, turns
from probes.core.stage import LONG_BUDGET_SECONDS, USUAL_BUDGET_SECONDS, Stage, described

CLEAR_SHARE = 1 / 3
"""Of the budget, by which a clear case has ended."""
CLOSING_SECONDS = 2.5
"""What closing the hosts takes of that."""
CLEAR = "skipped, because the result is clear"
UNDECIDED = "skipped, because they do not decide what is still in doubt"
BROKEN = "the analysis failed midway, so the tests ran in the usual order"


INITIATORS = Stage("initiators", "which host should start the copy", usual_seconds=8.0)
"""The copies of smb-copy that the server starts: they explain the client's."""
BY_HAND = {
    "disk": disks.explain_disks,
    "smb-tax": turns.measure_security,
    INITIATORS.name: initiators.measure_initiators,
}
"""Of what explains copies, that which is more than turns one after the other."""
HAND_TIMES = 3.0
"""How many times its usual time such a stage takes in a long run."""


@dataclass
class Explanations:
    """Those that were asked for and not made yet."""

    bench: Bench
    left: list[Stage] = field(default_factory=list)

    @classmethod
    def of(cls, bench: Bench) -> Self:
        """All of a run's but a look that a stall asked for; each disk alone is only the first."""
        made = {each.stage for each in bench.log.steps} - set(BY_HAND)
        if bench.world.options.runs:
            made = set()
        asked = described(bench.world.options.stages)
        left = [each for each in asked if each.explains and each.name not in made]
        at = 0 if bench.world.options.budget_seconds >= LONG_BUDGET_SECONDS else len(left)
        left[at:at] = [INITIATORS] if bench.world.wants("smb-copy") else []
        return cls(bench, left)

    def refine(self) -> None:
        """What may find the cause behind a cap that is named already, clear as that is."""
        while diagnosed := _diagnosed(self.bench):
            _, diagnosis, dialects = diagnosed
            refines = {each.name: each.refines for each in self.left}
            look = refining(diagnosis, dialects, refines)
            if look is None:
                return
            self._make(look)

    def make(self, *left_out: str) -> None:
        """All of them, the one that decides most first; in a clear case those that are in time.

        left_out: what else has no time in a clear case; told in one note with the others.
        """
        self.refine()
        unmade, found = list(left_out), None
        while self.left:
            found = in_doubt(self.bench)
            look = next_look(found or (), {each.name: each.speaks_of for each in self.left})
            following = self.left[0]
            decided = found is not None and look is None
            if decided and not in_time(self.bench, following.usual_seconds):
                unmade.append(self.left.pop(0).name)
            else:
                self._make(look or Look(following.name, following.measures))
        if unmade:
            why = UNDECIDED if found else CLEAR
            self.bench.note(f"{why}: {', '.join(unmade)} (--thorough runs all)")

    def _make(self, look: Look) -> None:
        chosen = next(each for each in self.left if each.name == look.stage)
        self.left.remove(chosen)
        by_hand = BY_HAND.get(chosen.name)
        if by_hand is None:
            turns.measure(self.bench, chosen, look.why, self._fair_seconds(chosen))
        else:
            by_hand(self.bench, look.why)

    def _fair_seconds(self, chosen: Stage) -> float:
        """Of a long run's time, in which all stages have their turn, what one may take of it."""
        if self.bench.world.options.budget_seconds < LONG_BUDGET_SECONDS:
            return math.inf
        usual = {each: _usual_seconds(self.bench, each) for each in (chosen, *self.left)}
        return self.bench.clock.left() * usual[chosen] / max(sum(usual.values()), 1e-9)


def _usual_seconds(bench: Bench, stage: Stage) -> float:
    by_hand = stage.usual_seconds * HAND_TIMES
    return by_hand if stage.name in BY_HAND else turns.usual_seconds_of(bench, stage)


def _diagnosed(bench: Bench) -> tuple[Report, Diagnosis, tuple[str, ...]] | None:
    """What is known by now, and the dialects of the copies that count; None: none was made.

    None too where the analysis breaks on it, which is noted once: the run goes on.
    Those are the mount's own, where there is one, and those of the share's own dialect.
    """
    report = bench.report()
    try:
        diagnosis = diagnose(report)
    except Exception as error:
        # A rule that breaks must not end a run: its measurements are good without it.
        if not any(note.startswith(BROKEN) for note in bench.log.notes):
            reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            bench.note(f"{BROKEN} ({reason})")
        return None
    if not any(each.bytes_per_second for each in diagnosis.copies):
        return None
    return report, diagnosis, (NATIVE, str(bench.world.share.facts.get("dialect")))


def in_doubt(bench: Bench) -> tuple[Doubt, ...] | None:
    """The copies in doubt; empty: a clear case. None: a run that is not to end for that.

    None where nothing was copied yet, where one stage alone or several dialects were asked for,
    and where the budget is that of a thorough run.
    """
    options = bench.world.options
    if options.budget_seconds >= LONG_BUDGET_SECONDS:
        return None
    if len(options.stages) < 2 or len(options.dialects) > 1:
        return None
    diagnosed = _diagnosed(bench)
    return doubts.doubts(*diagnosed) if diagnosed is not None else None


def disks_to_measure(bench: Bench) -> disks.Disks:
    """Of each disk what is worth a look, by what the copies showed; None: all of all limits."""
    if in_doubt(bench) != () or bench.world.options.runs or bench.world.options.copy:
        return None
    diagnosed = _diagnosed(bench)
    return None if diagnosed is None else doubts.disks_to_measure(*diagnosed[1:])


def in_time(bench: Bench, usual_seconds: float) -> bool:
    """Whether a stage would end within a clear case's share of the budget."""
    budget = bench.world.options.budget_seconds
    takes = usual_seconds * budget / USUAL_BUDGET_SECONDS
    return bench.clock.elapsed() + takes + CLOSING_SECONDS <= CLEAR_SHARE * budget
