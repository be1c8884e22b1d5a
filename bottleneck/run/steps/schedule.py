"""The order of a run: copies, then the limits that they may have met, then what explains them.

After the first round of copies the analysis says which of them are in doubt. The stage that speaks
of the most doubts comes next. Where none speaks of any, what may find the cause behind a cap is
still made, and no other stage is begun that would not end within a third of the budget.
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
from bottleneck.analysis.doubts import Doubt, Look, next_look, refining
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
from bottleneck.run.steps.initiators import Initiators
from bottleneck.run.steps.native import Native
from bottleneck.run.steps.sources import Sources
from bottleneck.run.steps.transfers import Transfers
from bottleneck.run.steps.turns import Security, Turns
from bottleneck.run.world import World, so_far
from probes.core.records import DROPS, Skipped
from probes.core.stage import LONG_BUDGET_SECONDS, Refused, Stage, Unavailable, described
from probes.smb import offered
from probes.stages import loopback

CLEAR = "skipped, because the result is clear"
UNDECIDED = "skipped, because they do not decide what is still in doubt"
BROKEN = "the analysis failed midway, so the tests ran in the usual order"
SMB1_SECONDS = 2.5
"""In a clear case, of its two copies of a cached source, with the usual budget."""
MOST_REPETITIONS = 6
ALL_ROUNDS_SECONDS = 300.0
"""Budget from which on all copies are repeated before the tests that explain them."""
INITIATORS = Stage("initiators", "which host should start the copy", usual_seconds=8.0)
"""The copies of smb-copy that the server starts: they explain the client's."""
HAND_TIMES = 3.0
"""How many times its usual time a stage takes in a long run that is more than its turns."""
ByHand = Mapping[str, Callable[[str], Tasks[None]]]
"""Of what explains copies, that which is more than turns one after the other; given the reason."""


Diagnosed = tuple[Report, Diagnosis, tuple[str, ...]]


@dataclass
class SoFar:
    """What the copies have shown by now, and what that leaves open."""

    world: World
    clock: Clock
    log: Log
    files: Files
    latest: tuple[int, Diagnosed | None] = (-1, None)
    """Number of attempts, and what they came to: worked out once, as that takes 0.1 s."""

    def diagnosed(self) -> Diagnosed | None:
        """What is known, and the dialects of the copies that count; None: none was made."""
        if self.latest[0] != len(self.log.counted):
            self.latest = len(self.log.counted), self._diagnose()
        return self.latest[1]

    def _diagnose(self) -> Diagnosed | None:
        """None too where the analysis breaks on it, which is noted once: the run goes on.
        Those are the mount's own, where there is one, and those of the share's own dialect.
        """
        report = so_far(self.world, self.clock, self.log, self.files)
        try:
            diagnosis = diagnose(report)
        except Exception as error:
            # A rule that breaks must not end a run: its measurements are good without it.
            if not any(note.startswith(BROKEN) for note in self.log.notes):
                reason = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
                self.log.note(f"{BROKEN} ({reason})")
            return None
        if not any(each.bytes_per_second for each in diagnosis.copies):
            return None
        return report, diagnosis, (NATIVE, str(self.files.share.facts.get("dialect")))

    def in_doubt(self) -> tuple[Doubt, ...] | None:
        """The copies in doubt; empty: a clear case. None: a run that is not to end for that.

        None where nothing was copied yet, where one stage alone or several dialects were asked
        for, and where the budget is that of a thorough run.
        """
        options = self.world.options
        if options.budget_seconds >= LONG_BUDGET_SECONDS:
            return None
        if len(options.stages) < 2 or len(options.dialects) > 1:
            return None
        diagnosed = self.diagnosed()
        return doubts.doubts(*diagnosed) if diagnosed is not None else None

    def disks_to_measure(self) -> Worth:
        """Of each disk what is worth a look, by what copies showed; None: all of all limits."""
        if self.in_doubt() != () or self.world.options.runs or self.world.options.copy:
            return None
        diagnosed = self.diagnosed()
        return None if diagnosed is None else doubts.disks_to_measure(*diagnosed)


@dataclass
class Explanations:
    """Those that were asked for and not made yet."""

    known: SoFar
    turns: Turns
    by_hand: ByHand
    left: list[Stage] = field(init=False)

    def __post_init__(self) -> None:
        """All of a run's but a look that a stall asked for; each disk alone is only the first."""
        options, log = self.known.world.options, self.known.log
        made = set() if options.runs else {each.stage for each in log.steps} - set(self.by_hand)
        self.left = [e for e in described(options.stages) if e.explains and e.name not in made]
        at = 0 if options.budget_seconds >= LONG_BUDGET_SECONDS else len(self.left)
        self.left[at:at] = [INITIATORS] if self.known.world.wants("smb-copy") else []

    def refine(self) -> Tasks[None]:
        """What may find the cause behind a cap that is named already, clear as that is."""
        while diagnosed := self.known.diagnosed():
            refines = {each.name: each.refines for each in self.left}
            look = refining(*diagnosed, refines)
            if look is None:
                return
            yield from self._make(look)

    def make(self, *left_out: str) -> Tasks[None]:
        """All of them, the one that decides most first; in a clear case those that are in time.

        left_out: what else has no time in a clear case; told in one note with the others.
        """
        yield from self.refine()
        unmade, found = list(left_out), None
        while self.left:
            found = self.known.in_doubt()
            look = next_look(found or (), {each.name: each.speaks_of for each in self.left})
            following = self.left[0]
            decided = found is not None and look is None
            if decided and not self.known.clock.ends_early(following.usual_seconds):
                unmade.append(self.left.pop(0).name)
            else:
                yield from self._make(look or Look(following.name, following.measures))
        if unmade:
            why = UNDECIDED if found else CLEAR
            self.known.log.note(f"{why}: {', '.join(unmade)} (--thorough runs all)")

    def _make(self, look: Look) -> Tasks[None]:
        chosen = next(each for each in self.left if each.name == look.stage)
        self.left.remove(chosen)
        if chosen.name in self.by_hand:
            yield from self.by_hand[chosen.name](look.why)
        else:
            yield from self.turns.measure(chosen, look.why, self._fair_seconds(chosen))

    def _fair_seconds(self, chosen: Stage) -> float:
        """Of a long run's time, in which all stages have their turn, what one may take of it."""
        if self.known.world.options.budget_seconds < LONG_BUDGET_SECONDS:
            return math.inf
        usual = {each: self._usual_seconds(each) for each in (chosen, *self.left)}
        return self.known.clock.remaining() * usual[chosen] / max(sum(usual.values()), 1e-9)

    def _usual_seconds(self, stage: Stage) -> float:
        by_hand = stage.usual_seconds * HAND_TIMES
        return by_hand if stage.name in self.by_hand else self.turns.usual_seconds_of(stage)


class Schedule:
    """All of a run in its order, once its world is reached."""

    native: Native | None = None
    """The copies through a mount, of a mounted TARGET."""

    def __init__(
        self, world: World, clock: Clock, log: Log, files: Files, stack: ExitStack
    ) -> None:
        """stack: closes what is held until the end of the run."""
        self.world, self.clock, self.log, self.files = parts = world, clock, log, files
        self.stack = stack
        self.known, self.sources = SoFar(*parts), Sources(*parts)
        self.sizes, self.turns = Sizes(*parts, self.sources), Turns(*parts, self.sources)
        self.disks = Disks(*parts, self.sources)
        self.transfers = Transfers(self.turns, world, clock, log)
        self.by_hand: ByHand = {
            "disk": self.disks.explain,
            "smb-tax": lambda why: Security(self.turns, why).measure(),
            INITIATORS.name: Initiators(*parts, self.sources, self.disks).measure,
        }

    def tasks(self) -> Tasks[None]:
        """Every step that the options and the budget allow."""
        for _ in self.rounds():
            if self.world.wants("smb-copy"):
                yield from self._copies()
            else:
                yield from self._limits(None)
                yield from self._explanations().make()

    def rounds(self) -> Iterator[None]:
        """The runs of all that is measured: one, or those that were asked for after a warm-up."""
        runs = self.world.options.runs
        began = self.clock.elapsed()
        self.log.warming = runs > 0
        yield
        if self.log.warming:
            self.log.forget()
            self.log.note(WARMED_UP)
            self.log.warming = False
        for made in range(runs):
            took, began = self.clock.elapsed() - began, self.clock.elapsed()
            if took > self.clock.remaining():
                self.log.note(f"{made} of {runs} runs made: out of time (use a larger --budget)")
                return
            yield

    def _copies(self) -> Tasks[None]:
        """Every dialect's copies, then the limits and what explains the copies.

        Clear copies are not repeated.
        """
        opened, options = self.files.dialect, self.world.options
        made: dict[str, Copies] = {}
        for dialect in plan.newest_first(options.dialects) or (opened,):
            copies = self._of(dialect)
            if copies is None:
                continue
            if options.copies:
                yield from copies.make_source(self.stack)
            elif options.file and options.file.side == "client" and not self.log.first_rates:
                yield from copies.calibrate()  # it bounds how much of the file is pushed
            yield from copies.round(0, WHOLE_COPY)
            if self.turns.in_vain("pull"):
                self.log.note(f"tests that explain copies: skipped: {DROPS} on the path")
                break
            if dialect == opened:
                yield from self.sources.copy_file(dialect, copies.labels)
                yield from self.sources.copy_tree(dialect)
            made[dialect] = copies
        own = made.get(opened)
        left_out = yield from self._limits_worth_a_look(own)
        if own is not None and not (options.runs or options.copy):
            yield from self._explained(own, left_out)

    def _limits_worth_a_look(self, own: Copies | None) -> Tasks[tuple[str, ...]]:
        """The limits after a first round; own: the share's dialect's. Names of skipped tests."""
        options, worth = self.world.options, self.known.disks_to_measure()
        usual = own is not None and not (options.runs or options.copy or options.settings)
        first = usual and worth is None and self.world.wants("tcp") and bool(self.known.in_doubt())
        if first:
            # What the network carries decides most doubts, and is soon known.
            yield from self.transfers.measure(several=False)
            worth = self.known.disks_to_measure()
        if worth is None and own is not None and not options.copy:
            # Where a push from memory made the pulls' source, that push is known.
            for copy in ("push.cached", "pull.cached") if own.filling() else ("pull.cached",):
                yield from own.copy(copy, "memory", WITHOUT_DISK)
        return (yield from self._limits(worth, first))

    def _limits(self, worth: Worth, carried: bool = False) -> Tasks[tuple[str, ...]]:
        """This tool, the network and the disks, each alone; and the copies through a mount.

        worth: the disks to measure; if the copies are clear, this tool is not measured either.
        carried: one stream each way was made. Returns the names of skipped tests.
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

    def _explained(self, copies: Copies, left_out: tuple[str, ...] = ()) -> Tasks[None]:
        """After the first round of the share's own dialect: looks, SMB1 and repetitions.

        left_out: what was not measured because the copies are clear.
        """
        others, budget = self.world.options.dialects, self.world.options.budget_seconds
        thorough = budget >= LONG_BUDGET_SECONDS
        before = 1
        if thorough:
            # What the advice promises is made before all that only explains it, if there is time.
            before = plan.THOROUGH_ROUNDS if budget >= ALL_ROUNDS_SECONDS else plan.LEAST_ROUNDS
            yield from self._repeat(copies, 1, before)
            if not others:
                yield from self._smb1()
        explanations = self._explanations()
        yield from explanations.refine()
        found = self.known.in_doubt()
        clear = found is not None and not found
        in_time = self.clock.ends_early(SMB1_SECONDS + self.sizes.warming_seconds())
        unmade = [SMB1] if clear and not others else []
        if unmade and in_time:
            is_offered = yield from self._smb1("cached")
            unmade = [f"{SMB1} uncached"] if is_offered else []
        yield from explanations.make(*left_out, *unmade)
        rounds = plan.THOROUGH_ROUNDS if thorough else plan.MAX_ROUNDS
        yield from self._repeat(copies, before, rounds)
        yield from self._until_stable(copies)
        if not clear and not others and not thorough:
            yield from self._smb1()

    def _repeat(self, copies: Copies, made: int, rounds: int) -> Tasks[None]:
        """All copies again while one of them is in doubt: from the rounds made to so many."""
        for number in range(made, rounds):
            found = self.known.in_doubt()
            if found is not None and not found:
                break
            yield from copies.round(number, found[0].reason if found else "how far one run varies")

    def _until_stable(self, copies: Copies) -> Tasks[None]:
        """Copies whose runs lie far apart, again if time is left: another load may have gone."""
        for _ in range(MOST_REPETITIONS):
            found = self.known.in_doubt() or ()
            unsteady = {x.copy for x in found if x.unstable and x.dialect == copies.dialect}
            fitting = [copy for copy in unsteady if self.sizes.fits(copies.dialect, copy)]
            if not fitting:
                return
            for copy in plan.COPY_ORDER:
                if copy in fitting:
                    yield from copies.copy(copy, "folder", "its runs vary widely")

    def _smb1(self, cache: str = "") -> Tasks[bool]:
        """One round over SMB1 where the server offers it: nobody asked, so it may be left out.

        cache: the copies of such a source alone. Returns whether it is offered.
        """
        copies = self._of(SMB1)
        if copies is not None:
            why = "the oldest dialect that the server supports"
            yield from copies.round(0, why, extra=True, cache=cache)
        return copies is not None

    def _explanations(self) -> Explanations:
        return Explanations(self.known, self.turns, self.by_hand)

    def _of(self, dialect: str) -> Copies | None:
        """A dialect's copies, by what its session protects; None: it is not possible, and noted.

        SMB1 is looked for unasked: a server where it is off is well kept, and that is no failure.
        """
        parts = self.world, self.clock, self.log, self.files, self.sources
        copies = Copies(*parts, self.sizes, self.turns, self.disks, dialect, {})
        opened = dialect == self.files.dialect
        facts: Mapping[str, Any] = self.files.share.facts
        if not opened or self.world.denied:
            asked = opened or bool(self.world.options.dialects)
            if not asked and self.clock.remaining() < 3 * USEFUL_SECONDS:
                self.log.note("SMB1: skipped: out of time (use a larger --budget)")
                return None
            setting = offered.Setting(dialect, self.world.options.security)
            try:
                if opened:
                    raise Unavailable(self.world.denied)
                there = self.world.options.target.endpoint(self.world.access)
                with self.world.client.hold("visit", setting, there, 30) as held:
                    facts = held.facts
            except (Unavailable, StageError, Refused) as error:
                self.log.note(str(error))
                for copy in plan.COPY_ORDER if asked else ():
                    self.log.add(copies.step(copy, "folder"), Skipped(str(error)), WHOLE_COPY)
                return None
        copies.labels = {name: facts.get(name) for name in ("signing", "encryption")}
        return copies
