"""Copies that the server starts, to compare with the client's in the same direction.

The server's smbclient pushes to and pulls from a share on the client.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from bottleneck.agents.hosts import Result, StageError
from bottleneck.report.report import Step
from bottleneck.run import plan
from bottleneck.run.clock import USEFUL_SECONDS
from bottleneck.run.log import NEEDS_AGENT, Task, Tasks, step_of
from bottleneck.run.steps.disks import Disks
from bottleneck.run.steps.server_copies import LABEL, SMBCLIENT, ClientShare
from bottleneck.run.steps.sources import Sources, copy_setting, usable_bytes
from bottleneck.run.world import RunState
from probes.core.records import Details, Endpoint, Failed, Skipped
from probes.core.stage import LEAST_BUDGET_SECONDS, Refused, Unavailable
from probes.files.free_space import beyond_reserve_bytes
from probes.files.served_file import new_name
from probes.stages import smbclient_copy

SET_UP_SECONDS = 1.2
"""Time to open the client's share and to find the server's program."""
TIME_RATIO = 0.45
LEAST_COPY_SECONDS = 0.4
GRACE_SECONDS = 12.0
FLUSH_SECONDS = 30.0
WORST_RATIO = 2.0
"""Longest time of the slower of two copies of one size over the intended time."""


@dataclass
class ServerStartedCopies(RunState):
    """Copies that the server starts, after those of the client."""

    sources: Sources
    disks: Disks
    served: ClientShare = field(init=False)

    def measure(self, why: str) -> Tasks[None]:
        """Makes all four copies once from the server; in a short run gives a note instead."""
        if "dialect" not in self.files.share.facts:
            return  # a mounted folder: there are no copies of ours to compare with
        if self.world.server is None:
            self.log.note(f"{LABEL}: skipped: {NEEDS_AGENT}")
            return
        remaining = list(plan.COPY_ORDER)
        copy_seconds = self._seconds_each(len(remaining))
        if copy_seconds is None:
            self.log.note(f"{LABEL}: skipped: out of time (use a larger --budget)")
            return
        with ExitStack() as stack:
            self.log.tell("opening a share on the client")
            try:
                if "server" not in self.files.sources:
                    self.disks.hold_sources(stack, ("server",))
                    stack.callback(self.files.sources.pop, "server", None)
                parts = self.world, self.clock, self.log, self.files
                self.served = ClientShare(*parts, stack, copy_seconds)
                self.served.open_share()
                while remaining:
                    yield from self._copy(remaining.pop(0), why)
            except Unavailable as error:
                self._end(remaining, Skipped(str(error)), why)
            except (StageError, Refused) as error:
                # A refused login is not tried again for the remaining copies.
                self._end(remaining, Failed(str(error)), why)

    def _seconds_each(self, copies: int) -> float | None:
        """Returns the seconds of each copy; None: too few in this run."""
        seconds = (TIME_RATIO * self.clock.remaining() - SET_UP_SECONDS) / copies
        if self.world.options.budget_seconds < LEAST_BUDGET_SECONDS:
            return None
        return min(seconds, self.world.times().copy) if seconds >= LEAST_COPY_SECONDS else None

    def _end(self, copies: list[str], outcome: Skipped | Failed, why: str) -> None:
        for copy in copies:
            self.log.add(self._step(copy, self.files.share.facts), outcome, why)
        self.log.save()

    def _step(self, copy: str, agreed: Details) -> Step:
        """Returns the step of a copy, without varying keys; agreed: facts of its session."""
        security = {name: agreed.get(name) for name in ("signing", "encryption")}
        security["folder"] = self.files.test_folder("server")
        setting = copy_setting(self.world, f"server.{copy}", str(agreed["dialect"]), **security)
        step = step_of("smb-copy", setting, "server")
        step.setting["engine"] = SMBCLIENT
        return step

    def _copy(self, copy: str, why: str) -> Tasks[None]:
        step = self._step(copy, self.served.share.facts)
        with self.log.attempt(step, f"server.{copy} {self.served.dialect}", why) as add_run:
            self.clock.require_seconds()
            verb = copy.partition(".")[0]
            size = self._size(verb)
            if size < plan.SLOW_PATH_COPY_BYTES:
                raise Unavailable(self.sources.why_no_copy(verb == "push"))
            make = self._push if verb == "push" else self._pull
            yield from make(step, copy, size, add_run)

    def _size(self, verb: str) -> int:
        """Returns the size of both copies of a verb, by rates of copies in the same direction."""
        same_way = ("pull." if verb == "push" else "push.", f"server.{verb}.")
        rates = [
            rate
            for step in self.log.steps
            if step.stage == "smb-copy"
            and step.setting["end"] == "folder"
            and step.setting["copy"].startswith(same_way)
            and step.setting["dialect"] == self.served.dialect
            and (rate := self.log.rate(step)) is not None
        ]
        rate = min(max(rates), WORST_RATIO * min(rates)) if rates else None
        longest = max(USEFUL_SECONDS / 2, self.clock.remaining() / WORST_RATIO)
        seconds, size_bytes = min(self.served.seconds, longest), self.world.options.size_bytes
        return plan.copy_bytes(rate, seconds, self._room(verb), size_bytes)

    def _room(self, verb: str) -> int:
        facts = self.served.share.facts
        # Room for one pushed or pulled file, and one more while it is replaced.
        free = plan.LARGEST_COPY_BYTES
        if facts["free_bytes"] is not None:
            free = beyond_reserve_bytes(int(facts["free_bytes"]), int(facts["total_bytes"])) // 2
        if verb == "push":
            return min(free, self.files.source_bytes_of("server"))
        assert self.world.server is not None
        there = usable_bytes(self.world.server, self.files.server_path)
        return min(there, max(free, self.served.good_bytes), plan.LARGEST_COPY_BYTES)

    def _push(self, step: Step, copy: str, size: int, add_run: Callable[..., None]) -> Tasks[None]:
        served = self.served
        size, path = served.whole_source(size)
        name = new_name(served.share.folder)
        details: dict[str, Any] = {}

        def finish() -> float:
            """Flushes by the client's agent, if it sees the file: smbclient does not flush."""
            if not served.path:
                return 0.0
            place = {"path": served.path, "file_name": name}
            try:
                seconds = float(self.world.client.ask("served-flush", FLUSH_SECONDS, **place))
            except (StageError, Refused, Unavailable) as error:
                self.log.note(f"{step.setting['copy']}: not flushed: {error}")
                return 0.0
            details.update(flushed=True, flush_seconds=seconds)
            return seconds

        peer = replace(served.share, path=path)
        ran = yield from self._run_copy(step, copy, size, peer, name, finish)
        intact = details["hash_ok"] = served.is_intact(name, size)
        add_run(ran, {**details, **self._engine_details()})
        if intact is not False:
            served.replace_source(name, size)

    def _pull(self, step: Step, copy: str, size: int, add_run: Callable[..., None]) -> Tasks[None]:
        served = self.served
        size = served.resize_source(size)
        if size < plan.MIB:
            raise Unavailable("no source file on the client's share")
        details = {"cache": served.client_cache(copy, size), **self._engine_details()}
        ran = yield from self._run_copy(step, copy, size, served.share, served.name)
        add_run(ran, details)

    def _run_copy(
        self,
        step: Step,
        copy: str,
        size: int,
        peer: Endpoint,
        name: str,
        finish: Callable[[], float] | None = None,
    ) -> Tasks[Result]:
        facts = self.served.share.facts
        setting = smbclient_copy.Setting(
            copy=copy,
            dialect=self.served.dialect,
            size_bytes=size,
            seconds=max(USEFUL_SECONDS, self.clock.remaining()),
            name=name,
            folder=self.files.test_folder("server"),
            seed=self.world.seed,
            signing=facts.get("signing"),
            encryption=facts.get("encryption"),
        )
        limit = setting.seconds + GRACE_SECONDS
        ran: Result = yield Task(step, setting, peer, limit, engine="smbclient-copy", finish=finish)
        return ran

    def _engine_details(self) -> dict[str, Any]:
        facts = self.served.share.facts
        own_facts = {name: facts[name] for name in ("engine_server", "on_folder_disk")}
        return {"engine": SMBCLIENT, **own_facts}
