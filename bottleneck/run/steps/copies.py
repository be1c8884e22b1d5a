"""The copies as a user makes them; the last push fills the pulls' source."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import Any

from bottleneck.agents.hosts import PartlyRan, Result, StageError
from bottleneck.report.report import Step
from bottleneck.run import plan
from bottleneck.run.clock import USEFUL_SECONDS
from bottleneck.run.log import Task, Tasks, raise_if_final, step_of
from bottleneck.run.steps import sources
from bottleneck.run.steps.copy_size import Sizes
from bottleneck.run.steps.disks import LEAST_SOURCE_BYTES, Disks
from bottleneck.run.steps.sources import Sources, cache_details, copy_setting, prepare_cache
from bottleneck.run.steps.turns import Turns
from bottleneck.run.world import RunState
from bottleneck.text.units import rate_text, size_text
from probes.core.records import DROPS, run_rate
from probes.core.stage import Refused, Unavailable
from probes.smb.frames import first_to_answer
from probes.smb.session import NO_ANSWER
from probes.stages import smb_copy

SMALL_COPIES, CALIBRATION_BYTES = ("push.cached", "pull.cached"), 2 * plan.MIB
CALIBRATION_SHARE_OF_LEFT = 0.2
CALIBRATION = {"request_bytes": 64 << 10, "depth": 8, "most_seconds": 1.5}
"""So few bytes are in flight that the time limit ends it even on a path of 1 Mbit/s."""
CALIBRATION_TIMES = 4.0
"""Possible rate of a long copy over that of one that took BRIEF_SECONDS: round trips, and the start
of TCP."""
BRIEF_SECONDS = 0.5
GRACE_SECONDS, OUT_OF_TIME = 8.0, "ran out of time"
CONNECTION_ENDS = ("closed the connection", "the connection failed", "_DELETED")
"""Words in the error of a copy whose server ended the connection, the share or the session."""
ATTEMPTS, PAUSE_SECONDS = 3, 0.25
"""Attempts at one copy: the server restarts, it is back without the run's folder, it works."""
WITHOUT_DISK = "the copy without the client's disk"
SLOWER_RATIO = 2.0
"""Least rate of a cached pull over each read past the cache: a busy host reads a file unevenly
that was just written."""
READS = 2
COPY_TIMES = 2.0
"""Time limit of a read past the cache over that of another copy."""
REMEDY = "use --agent, or --file FILE"
OF_AGENT = "use --server-folder DIR: the agent did not find the share's folder"
"""Remedy if there is an agent that does not find the file, and so cannot empty its cache."""


@dataclass
class Copies(RunState):
    sources: Sources
    sizes: Sizes
    turns: Turns
    disks: Disks
    dialect: str
    protection: dict[str, Any]
    """Signing and encryption of its session."""

    def make_source(self, stack: ExitStack) -> Tasks[None]:
        """Creates the files that copies read: the client's, and the share's if no push fills it."""
        if self.files.source_bytes:
            return
        pushed = yield from self.calibrate(("push.cached",))
        begun = self.disks.begin_sources(stack, self.disks.first_sides())
        if pushed:
            yield from self.calibrate(("pull.cached",))
        self.disks.take_sources(begun)
        if not self.last_push():
            yield from self._fill()

    def last_push(self) -> str:
        """Returns the last push, whose file the pulls read; empty: no push or no pull is made."""
        pushes = [each for each in plan.COPY_ORDER if each in self._requested_copies("push")]
        if not pushes or not self._requested_copies("pull"):
            return ""
        # If a slow disk had too little time for the client's file, that is too small for pulls.
        pushed = self.log.first_rates.get("push", 0.0) * self.world.times().copy
        needed = min(LEAST_SOURCE_BYTES, pushed)
        return pushes[-1] if self.sizes.room_bytes(pushes[-1], "folder") >= needed else ""

    def _requested_copies(self, verb: str) -> tuple[str, ...]:
        return tuple(each for each in self.world.options.copies if each.startswith(verb))

    def _fill(self, again: bool = False) -> Tasks[None]:
        """Creates the pulls' source by a push from memory if there is none; again: repeats it."""
        tried = not again and self.step("push.cached", "memory") in self.log.steps
        if not self.files.source_bytes and self._requested_copies("pull") and not tried:
            yield from self.copy("push.cached", "memory", WITHOUT_DISK)

    def calibrate(self, copies: tuple[str, ...] = SMALL_COPIES) -> Tasks[bool]:
        """Makes small copies that are not counted, to size the others; returns whether all ran.

        Errors are ignored here: the copy itself will report them.

        Raises:
            Refused: the login, which is not tried again.
            AgentLost: the client's agent is gone.
        """
        if self.turns.drops_packets("push") or self.turns.drops_packets("pull"):
            return False
        for copy in copies:
            verb = copy.partition(".")[0]
            step = replace(self, protection={}).step(copy, "memory")
            setting = copy_setting(
                self.world,
                copy,
                self.dialect,
                end="memory",
                size_bytes=CALIBRATION_BYTES,
                seconds=CALIBRATION_SHARE_OF_LEFT * max(USEFUL_SECONDS, self.clock.remaining()),
                fill_source=verb == "push",
                **CALIBRATION,
            )
            if self.sizes.room_bytes("push.cached", "memory") < CALIBRATION_BYTES:
                return False
            self.log.tell(f"a first {verb}")
            try:
                peer = replace(self.files.share, path="")
                ran = yield Task(step, setting, peer, setting.seconds + GRACE_SECONDS)
            except (PartlyRan, StageError, Unavailable, Refused) as error:
                raise_if_final(error)
                if OUT_OF_TIME in str(error):
                    # An upper bound of the rate, so that the copies become as small as needed.
                    self.log.first_rates[verb] = CALIBRATION_BYTES / setting.seconds
                yield from self.turns.ask_path(str(error))
                return False
            rate, trip = run_rate(ran.samples), self.world.connect_seconds
            brief = max(BRIEF_SECONDS, plan.ROUND_TRIPS_OF_COPY * trip) * rate > CALIBRATION_BYTES
            self.log.first_rates[verb] = rate * (CALIBRATION_TIMES if brief else 1)
        return True

    def round(self, number: int, why: str, extra: bool = False, cache: str = "") -> Tasks[None]:
        """Makes all four copies, or those with this cache state, in turn: drift affects all alike.

        extra: the dialect was not requested: a copy without time gives a note, not a failure.
        """
        for copy in self.world.options.copies:
            if cache and not copy.endswith(f".{cache}"):
                continue
            if copy.startswith("pull") and not extra:
                yield from self._fill()
            if number == 0 and not extra or self.sizes.fits(self.dialect, copy):
                yield from self.copy(copy, "folder", why)
            elif number == 0:
                skipped = "skipped: out of time (use a larger --budget)"
                self.log.note(f"{self.dialect} {copy}: {skipped}")

    def step(self, copy: str, end: str) -> Step:
        """Returns the step of a copy, without keys that vary from run to run."""
        setting = copy_setting(self.world, copy, self.dialect, end=end, **self.protection)
        return step_of("smb-copy", setting, "client")

    def copy(self, copy: str, end: str, why: str) -> Tasks[None]:
        """Makes one run of one copy; repeats it if the cause of its failure was removed."""
        step = self.step(copy, end)
        unproven = copy == "pull.uncached" and self.files.server_path is None
        if unproven and (self.log.warming or step in self.log.steps):
            return  # after the first read its source is cached
        label = f"{copy} {'memory ' if end == 'memory' else ''}{self.dialect}"
        with self.log.attempt(step, label, why) as add_run:
            for attempt in range(ATTEMPTS):
                try:
                    yield from self._make(step, unproven, add_run)
                    break
                except (PartlyRan, Refused, StageError) as error:
                    lost = isinstance(error, PartlyRan) and error.lost
                    if lost or attempt == ATTEMPTS - 1 or not self._mend(copy, error):
                        raise
                    self.log.tell(label, outcome=f"failed, and is made again: {error}")
                    self.log.note(f"{label} was made again: {error}")
                if copy.startswith("pull"):
                    yield from self._fill(again=True)
        yield from self.turns.ask_path(self.log.first_failure(step))

    def _make(self, step: Step, unproven: bool, add_run: Callable[..., None]) -> Tasks[None]:
        """Makes the run of a step; unproven: its source's cache state cannot be checked."""
        copy, end = (str(step.setting[name]) for name in ("copy", "end"))
        verb, _, requested = copy.partition(".")
        if self.turns.in_vain(verb):
            raise Unavailable(f"{DROPS} on the path; a copy would stall")
        self.clock.require_seconds(max(USEFUL_SECONDS, self.sizes.overhead_seconds()))
        size, _ = self.sizes.copy_bytes(self.dialect, copy, end)
        if size < plan.SLOW_PATH_COPY_BYTES:
            raise Unavailable(self.sources.why_no_copy(copy.startswith("pull")))
        first = min(size, self.files.source_bytes)
        again = copy.startswith("pull") and self.sizes.is_repeated(copy)
        proof = prepare_cache(self.world.server, self.files.server_path, copy, first)
        proof = proof or cache_details("server", requested)
        fills = verb == "push" and not self.files.source_bytes
        fills = fills and (end == "memory" or copy == self.last_push())
        source = self.files.sources.get("client")
        setting = copy_setting(
            self.world,
            copy,
            self.dialect,
            end=end,
            size_bytes=size,
            seconds=max(USEFUL_SECONDS, self.clock.remaining()),
            fill_source=fills,
            most_seconds=self.sizes.copy_seconds(self.dialect, copy, end),
            lasting=self.sizes.is_lasting(end),
            source_bytes=self.files.source_bytes if again else 0,
            checked=not self.turns.drops_packets("pull"),
            **self.protection,
        )
        if unproven:
            yield from PastCache(self, step, setting).pull(add_run)
            return
        peer = replace(self.files.share, path=source.path if source and end == "folder" else "")
        details = {"cache": proof} if verb == "pull" else {}
        ran = yield Task(step, setting, peer, setting.seconds + GRACE_SECONDS)
        add_run(ran, details)
        last = ran.samples[-1]
        if fills:
            self.files.source_bytes = last.moved_bytes
        brief = last.elapsed_seconds < 2 * BRIEF_SECONDS and last.moved_bytes >= size
        if brief and end == "folder" and not (self.world.options.size_bytes or self.log.warming):
            why = f"a run lasted under 1 s: it had no more than {size_text(size)} to copy"
            self.log.note(f"{copy} {self.dialect}: {why}")

    def _mend(self, copy: str, error: Exception) -> bool:
        """Removes the cause of a copy's failure; returns whether the copy may be repeated."""
        kind = error.kind if isinstance(error, Refused) else ""
        if isinstance(error, Refused) and kind == "space" and copy.startswith("push"):
            half_bytes = error.samples[-1].moved_bytes // 2 if error.samples else 0
            self.files.limit_bytes = half_bytes if self.files.limit_bytes is None else 0
            return self.files.limit_bytes > 0
        if kind == "share":
            return self.files.reopen()
        ended = any(each in str(error) for each in CONNECTION_ENDS)
        return (ended or kind == "unreachable" and NO_ANSWER not in str(error)) and self._answers()

    def _answers(self) -> bool:
        """Waits for a server that restarts; returns whether it accepts connections again."""
        self.log.tell("waiting for the server to come back")
        wait_seconds = min(self.clock.return_seconds, self.clock.remaining() - USEFUL_SECONDS)
        until = self.clock.elapsed() + wait_seconds
        while self.clock.elapsed() < until:
            with suppress(OSError):
                first_to_answer(self.world.address, self.world.options.target.port).close()
                return True
            self.clock.source.sleep(PAUSE_SECONDS)
        self.clock.return_seconds = 0.0
        return False


@dataclass
class PastCache:
    """pull.uncached if no agent empties the server's cache: reads this tool's file past the cache.

    FILE_NO_INTERMEDIATE_BUFFERING (MS-SMB2 2.2.13) requests that: Windows obeys, Samba does not.
    Reads that are no slower than cached ones before and after them prove nothing, and do not count.
    The cache state is never proven.
    """

    copies: Copies
    step: Step
    setting: smb_copy.Setting
    warm: float = 0.0
    """Rate of the cached pull, bytes per second."""

    def pull(self, add_run: Callable[..., None]) -> Tasks[None]:
        """Makes the step after the cached pull of the same dialect, and takes its runs.

        Raises Unavailable if nothing shows that the file came from the disk.
        """
        twin = replace(self.step, setting={**self.step.setting, "copy": "pull.cached"})
        warm_pull = self.copies.log.latest(twin)
        is_own_session = self.setting.dialect == self.copies.files.dialect != "smb1"
        if warm_pull is None or not is_own_session:
            raise Unavailable(sources.NEEDS_SERVER_CACHE)
        self.warm = run_rate(warm_pull.run)
        try:
            why = yield from self._keep(add_run)
        except (PartlyRan, StageError, Unavailable, Refused) as error:
            raise_if_final(error)
            why = f"{sources.NEEDS_SERVER_CACHE}; {error}"
        if why:
            raise Unavailable(why)

    def _copy_once(self, **changes: Any) -> Tasks[tuple[Result, float]]:
        """Makes one copy; returns it with its rate."""
        usual = min(self.setting.most_seconds or math.inf, self.setting.size_bytes / self.warm)
        self.copies.clock.require_seconds(USEFUL_SECONDS + usual)
        setting = replace(
            self.setting,
            seconds=self.copies.clock.remaining(),
            most_seconds=COPY_TIMES * max(usual, self.copies.world.times().copy),
            **changes,
        )
        peer = replace(self.copies.files.share, path="")
        ran = yield Task(self.step, setting, peer, setting.seconds + GRACE_SECONDS)
        return ran, run_rate(ran.samples)

    def _keep(self, add_run: Callable[..., None]) -> Tasks[str]:
        """Takes two reads past the cache if cached pulls are SLOWER_RATIO as fast as both.

        Returns why they prove nothing, or "".
        """
        reads: list[Result] = []
        fastest = 0.0
        for _ in range(READS):
            ran, rate = yield from self._copy_once(past_cache=True)
            reads.append(ran)
            fastest = max(fastest, rate)
            if self.warm < SLOWER_RATIO * fastest:
                return self._no_slower(fastest, self.warm)
        _, again = yield from self._copy_once(copy="pull.cached")
        cached = min(self.warm, again)
        if cached < SLOWER_RATIO * fastest:
            return self._no_slower(fastest, cached)
        proof = {"cold_source": "past-cache", "cached_bytes_per_second": cached}
        for ran in reads:
            add_run(ran, {"cache": {**ran.details["cache"], **proof}})
        return ""

    def _no_slower(self, rate: float, cached: float) -> str:
        """Returns why the reads prove nothing."""
        rates = f"the test file was read at {rate_text(rate)}, a cached file at {rate_text(cached)}"
        remedy = REMEDY if self.copies.world.server is None else OF_AGENT
        return f"{rates}: too alike to tell the disk from the cache ({remedy})"
