"""Order of a run: copies, then the limits that they may have met, then their explanations.

After the first round of copies the analysis tells which of them are in doubt. The stage that may
settle the most doubts comes next. If no copy is in doubt, only stages that may find the cause of a
cap are run, and others that end within a third of the budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from bottleneck.agents.hosts import StageError
from bottleneck.analysis import doubts
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.doubts import Doubt, Look, next_look, refining_stage
from bottleneck.analysis.finding import Diagnosis
from bottleneck.analysis.steps import NATIVE
from bottleneck.report.report import WARMED_UP, Report
from bottleneck.run import plan
from bottleneck.run.clock import USEFUL_SECONDS, Clock
from bottleneck.run.files import Files
from bottleneck.run.log import WHOLE_COPY, Log, Tasks
from bottleneck.run.steps.copies import WITHOUT_DISK, Copies
from bottleneck.run.steps.copy_size import SMB1, Sizes
from bottleneck.run.steps.disks import Disks, Worth
from bottleneck.run.steps.initiators import ServerStartedCopies
from bottleneck.run.steps.native import Native
from bottleneck.run.steps.sources import Sources
from bottleneck.run.steps.tcp import Transfers
from bottleneck.run.steps.turns import Security, Turns
from bottleneck.run.world import RunState, World, so_far
from probes.core.records import DROPS, Skipped
from probes.core.stage import LONG_BUDGET_SECONDS, Refused, Stage, Unavailable, stages_of
from probes.smb import server_query
from probes.stages import loopback

CLEAR = "skipped, because the result is clear"
UNDECIDED = "skipped, because they do not decide what is still in doubt"
BROKEN = "the analysis failed midway, so the tests ran in the usual order"
SMB1_SECONDS = 2.5
"""Time of SMB1's two copies of a cached source in a clear case, with the usual budget."""
MOST_REPETITIONS = 6
ALL_ROUNDS_SECONDS = 300.0
"""Least budget in which all copies are repeated before the tests that explain them."""
INITIATORS = Stage("initiators", "which host should start the copy", usual_seconds=8.0)
"""Copies of smb-copy that the server starts, which explain the client's."""
HAND_TIMES = 3.0
"""Time in a long run over the usual time, of a stage in ByHand."""
ByHand = Mapping[str, Callable[[str], Tasks[None]]]
"""Explaining stages that are more than a sequence of turns; each takes the reason."""


Diagnosed = tuple[Report, Diagnosis, tuple[str, ...]]


@dataclass
class SoFar(RunState):
    """Diagnosis of the copies so far, and the open doubts."""

    latest: tuple[int, Diagnosed | None] = (-1, None)
    """Number of attempts and their diagnosis, computed once because it takes 0.1 s."""

    def diagnosis_so_far(self) -> Diagnosed | None:
        """Returns report, diagnosis and the dialects that count; None: no copy was made."""
        if self.latest[0] != len(self.log.counted_entries):
            self.latest = len(self.log.counted_entries), self._diagnose()
        return self.latest[1]

    def _diagnose(self) -> Diagnosed | None:
        """Diagnoses the current report; None also if the analysis fails, which is noted once.

        The dialects that count are the mount's own copies and the share's own dialect.
        """
        report = so_far(self.world, self.clock, self.log, self.files)
        try:
            diagnosis = diagnose(report)
        except Exception as error:
            # A failing rule must not end a run: the measurements are valid without it.
            if not any(note.startswith(BROKEN) for note in self.log.notes):
                reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
                self.log.note(f"{BROKEN} ({reason})")
            return None
        if not any(each.bytes_per_second for each in diagnosis.copies):
            return None
        return report, diagnosis, (NATIVE, str(self.files.share.facts.get("dialect")))

    def in_doubt(self) -> tuple[Doubt, ...] | None:
        """Returns the copies in doubt; empty: a clear case; None: the run must not end early.

        None if nothing was copied yet, if only one stage or several dialects are requested, and if
        the budget is that of a thorough run.
        """
        options = self.world.options
        if options.budget_seconds >= LONG_BUDGET_SECONDS:
            return None
        if len(options.stages) < 2 or len(options.dialects) > 1:
            return None
        diagnosed = self.diagnosis_so_far()
        return doubts.doubts(*diagnosed) if diagnosed is not None else None

    def disks_to_measure(self) -> Worth:
        """Returns the disk tests that the copies' results demand; None: all."""
        if self.in_doubt() != () or self.world.options.runs or self.world.options.copy:
            return None
        diagnosed = self.diagnosis_so_far()
        return None if diagnosed is None else doubts.disks_to_measure(*diagnosed)


@dataclass
class Explanations:
    """Requested stages that explain copies and have not run yet."""

    so_far: SoFar
    turns: Turns
    by_hand: ByHand
    pending: list[Stage] = field(init=False)

    def __post_init__(self) -> None:
        """Collects the stages, without those that ran; ByHand stages run again for details."""
        options, log = self.so_far.world.options, self.so_far.log
        done = set() if options.runs else {each.stage for each in log.steps} - set(self.by_hand)
        self.pending = [e for e in stages_of(options.stages) if e.explains and e.name not in done]
        index = 0 if options.budget_seconds >= LONG_BUDGET_SECONDS else len(self.pending)
        self.pending[index:index] = [INITIATORS] if self.so_far.world.wants("smb-copy") else []

    def refine(self) -> Tasks[None]:
        """Runs stages that may find the cause behind a cap that is already named."""
        while diagnosed := self.so_far.diagnosis_so_far():
            look = refining_stage(*diagnosed, {each.name: each.refines for each in self.pending})
            if look is None:
                return
            yield from self._make(look)

    def make(self, *left_out: str) -> Tasks[None]:
        """Runs all stages, the most decisive first; in a clear case those that end early.

        left_out: further skipped tests of a clear case, for the same note.
        """
        yield from self.refine()
        unmade, cases = list(left_out), None
        while self.pending:
            cases = self.so_far.in_doubt()
            look = next_look(cases or (), {each.name: each.speaks_of for each in self.pending})
            following = self.pending[0]
            decided = cases is not None and look is None
            if decided and not self.so_far.clock.ends_early(following.usual_seconds):
                unmade.append(self.pending.pop(0).name)
            else:
                yield from self._make(look or Look(following.name, following.measures))
        if unmade:
            why = UNDECIDED if cases else CLEAR
            self.so_far.log.note(f"{why}: {', '.join(unmade)} (--thorough runs all)")

    def _make(self, look: Look) -> Tasks[None]:
        stage = next(each for each in self.pending if each.name == look.stage)
        self.pending.remove(stage)
        if stage.name in self.by_hand:
            yield from self.by_hand[stage.name](look.why)
        else:
            yield from self.turns.measure(stage, look.why, self._fair_seconds(stage))

    def _fair_seconds(self, stage: Stage) -> float:
        """Returns a stage's share of the remaining time of a long run, in which all stages run."""
        if self.so_far.world.options.budget_seconds < LONG_BUDGET_SECONDS:
            return math.inf
        usual = {each: self._usual_seconds(each) for each in (stage, *self.pending)}
        return self.so_far.clock.remaining() * usual[stage] / max(sum(usual.values()), 1e-9)

    def _usual_seconds(self, stage: Stage) -> float:
        by_hand = stage.usual_seconds * HAND_TIMES
        return by_hand if stage.name in self.by_hand else self.turns.usual_seconds_of(stage)


class Schedule:
    """Order of a run, once its world is connected."""

    native: Native | None = None
    """Copies through the mount of a mounted TARGET."""

    def __init__(
        self, world: World, clock: Clock, log: Log, files: Files, stack: ExitStack
    ) -> None:
        """Prepares the kinds of steps; stack: closes resources at the end of the run."""
        self.world, self.clock, self.log, self.files = parts = world, clock, log, files
        self.stack = stack
        self.so_far, self.sources = SoFar(*parts), Sources(*parts)
        self.sizes, self.turns = Sizes(*parts, self.sources), Turns(*parts, self.sources)
        self.disks = Disks(*parts, self.sources)
        self.transfers = Transfers(self.turns, world, clock, log)
        self.by_hand: ByHand = {
            "disk": self.disks.explain,
            "smb-tax": lambda why: Security(self.turns, why).measure(),
            INITIATORS.name: ServerStartedCopies(*parts, self.sources, self.disks).measure,
        }

    def tasks(self) -> Tasks[None]:
        """Yields every task that the options and the budget allow."""
        for _ in self.rounds():
            if self.world.wants("smb-copy"):
                yield from self._copies()
            else:
                yield from self._limits(None)
                yield from self._explanations().make()

    def rounds(self) -> Iterator[None]:
        """Yields once for each run: one, or the requested number after a warm-up."""
        runs = self.world.options.runs
        began = self.clock.elapsed()
        self.log.warming = runs > 0
        yield
        if self.log.warming:
            self.log.forget()
            self.log.note(WARMED_UP)
            self.log.warming = False
        for number in range(runs):
            took, began = self.clock.elapsed() - began, self.clock.elapsed()
            if took > self.clock.remaining():
                self.log.note(f"{number} of {runs} runs made: out of time (use a larger --budget)")
                return
            yield

    def _copies(self) -> Tasks[None]:
        """Makes every dialect's copies, then measures the limits and explains the copies.

        Clear copies are not repeated.
        """
        opened, options = self.files.dialect, self.world.options
        by_dialect: dict[str, Copies] = {}
        for dialect in plan.newest_first(options.dialects) or (opened,):
            copies = self._copies_in(dialect)
            if copies is None:
                continue
            if options.copies:
                yield from copies.make_source(self.stack)
            elif options.file and options.file.side == "client" and not self.log.first_rates:
                yield from copies.calibrate()  # its rate bounds the pushed part of the file
            yield from copies.round(0, WHOLE_COPY)
            if self.turns.in_vain("pull"):
                self.log.note(f"tests that explain copies: skipped: {DROPS} on the path")
                break
            if dialect == opened:
                yield from self.sources.copy_file(dialect, copies.protection)
                yield from self.sources.copy_tree(dialect)
            by_dialect[dialect] = copies
        first = by_dialect.get(opened)
        left_out = yield from self._limits_worth_a_look(first)
        if first is not None and not (options.runs or options.copy):
            yield from self._explain_copies(first, left_out)

    def _limits_worth_a_look(self, copies: Copies | None) -> Tasks[tuple[str, ...]]:
        """Measures the limits after the first round; copies: those of the share's dialect.

        Returns the names of skipped tests.
        """
        options, worth = self.world.options, self.so_far.disks_to_measure()
        usual = copies is not None and not (options.runs or options.copy or options.settings)
        first = usual and worth is None and self.world.wants("tcp") and bool(self.so_far.in_doubt())
        if first:
            # The network's rate decides most doubts, and is measured quickly.
            yield from self.transfers.measure(several=False)
            worth = self.so_far.disks_to_measure()
        if worth is None and copies is not None and not options.copy:
            # If a push from memory created the pulls' source, its rate is known.
            for copy in ("push.cached", "pull.cached") if copies.last_push() else ("pull.cached",):
                yield from copies.copy(copy, "memory", WITHOUT_DISK)
        return (yield from self._limits(worth, first))

    def _limits(self, worth: Worth, carried: bool = False) -> Tasks[tuple[str, ...]]:
        """Measures this tool, the network and the disks by themselves, and copies through a mount.

        worth: the disks to measure; None: all, and this tool too. carried: one stream each way was
        measured. Returns the names of skipped tests.
        """
        native = self.native if self.world.wants("native-copy") else None
        worth = worth if native is None else None
        left_out: list[str] = []
        if self.world.wants("loopback") and worth is None:
            yield from self.turns.measure(loopback.STAGE, loopback.STAGE.measures)
        elif self.world.wants("loopback"):
            left_out.append("loopback")
        if self.world.wants("tcp"):
            yield from self.transfers.measure(not carried, worth is None)
        if self.world.wants("disk"):
            if self.disks.needs_server_file(worth):
                self.disks.hold_sources(self.stack)
            left_out += yield from self.disks.measure(worth)
        if native is not None:
            yield from native.measure(self.stack)
        return tuple(left_out)

    def _explain_copies(self, copies: Copies, left_out: tuple[str, ...] = ()) -> Tasks[None]:
        """Explains the first round of the share's dialect: further stages, SMB1, repetitions.

        left_out: tests that were skipped because the copies are clear.
        """
        others, budget = self.world.options.dialects, self.world.options.budget_seconds
        thorough = budget >= LONG_BUDGET_SECONDS
        done = 1
        if thorough:
            # Repeats narrow the predicted gain, and come before explanations if there is time.
            done = plan.THOROUGH_ROUNDS if budget >= ALL_ROUNDS_SECONDS else plan.LEAST_ROUNDS
            yield from self._repeat(copies, 1, done)
            if not others:
                yield from self._smb1()
        explanations = self._explanations()
        yield from explanations.refine()
        cases = self.so_far.in_doubt()
        clear = cases is not None and not cases
        in_time = self.clock.ends_early(SMB1_SECONDS + self.sizes.warming_seconds())
        unmade = [SMB1] if clear and not others else []
        if unmade and in_time:
            is_offered = yield from self._smb1("cached")
            unmade = [f"{SMB1} uncached"] if is_offered else []
        yield from explanations.make(*left_out, *unmade)
        yield from self._repeat(copies, done, plan.THOROUGH_ROUNDS if thorough else plan.MAX_ROUNDS)
        yield from self._until_stable(copies)
        if not clear and not others and not thorough:
            yield from self._smb1()

    def _repeat(self, copies: Copies, done: int, rounds: int) -> Tasks[None]:
        """Repeats all copies while one of them is in doubt, up to a number of rounds."""
        for number in range(done, rounds):
            cases = self.so_far.in_doubt()
            if cases is not None and not cases:
                break
            yield from copies.round(number, cases[0].reason if cases else "how far one run varies")

    def _until_stable(self, copies: Copies) -> Tasks[None]:
        """Repeats copies whose runs vary widely, if time remains: another load may have ended."""
        for _ in range(MOST_REPETITIONS):
            cases = self.so_far.in_doubt() or ()
            unsteady = {x.copy for x in cases if x.unstable and x.dialect == copies.dialect}
            fitting = [copy for copy in unsteady if self.sizes.fits(copies.dialect, copy)]
            if not fitting:
                return
            for copy in plan.COPY_ORDER:
                if copy in fitting:
                    yield from copies.copy(copy, "folder", "its runs vary widely")

    def _smb1(self, cache: str = "") -> Tasks[bool]:
        """Makes one optional round over SMB1 if the server offers it; returns whether it does.

        cache: only the copies of this cache state.
        """
        copies = self._copies_in(SMB1)
        if copies is not None:
            why = "the oldest dialect that the server supports"
            yield from copies.round(0, why, extra=True, cache=cache)
        return copies is not None

    def _explanations(self) -> Explanations:
        return Explanations(self.so_far, self.turns, self.by_hand)

    def _copies_in(self, dialect: str) -> Copies | None:
        """Returns a dialect's copies; None: it is not possible, which is noted.

        SMB1 is tried without request: a server without it is well configured, not a failure.
        """
        parts = self.world, self.clock, self.log, self.files, self.sources
        copies = Copies(*parts, self.sizes, self.turns, self.disks, dialect, {})
        opened = dialect == self.files.dialect
        facts: Mapping[str, Any] = self.files.share.facts
        if not opened or self.world.denied:
            is_requested = opened or bool(self.world.options.dialects)
            if not is_requested and self.clock.remaining() < 3 * USEFUL_SECONDS:
                self.log.note("SMB1: skipped: out of time (use a larger --budget)")
                return None
            setting = server_query.Setting(dialect, self.world.options.security)
            try:
                if opened:
                    raise Unavailable(self.world.denied)
                there = self.world.options.target.endpoint(self.world.access)
                with self.world.client.hold("visit", setting, there, 30) as visit:
                    facts = visit.facts
            except (Unavailable, StageError, Refused) as error:
                self.log.note(str(error))
                for copy in plan.COPY_ORDER if is_requested else ():
                    self.log.add(copies.step(copy, "folder"), Skipped(str(error)), WHOLE_COPY)
                return None
        copies.protection = {name: facts.get(name) for name in ("signing", "encryption")}
        return copies
