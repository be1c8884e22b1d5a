"""pull.uncached where no agent empties the server's cache: the run's own file, read past it.

FILE_NO_INTERMEDIATE_BUFFERING (MS-SMB2 2.2.13) asks for that: Windows obeys, Samba does not. Reads
that are no slower than cached ones before and after them show nothing, and do not count. It is
never proven.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from bottleneck.agents.hosts import AgentLost, PartlyRan, Ran, StageError
from bottleneck.report.report import Step
from bottleneck.run.bench import Bench
from bottleneck.run.clock import USEFUL_SECONDS
from bottleneck.run.steps import files
from bottleneck.text.units import rate_text
from probes.core.records import run_rate
from probes.core.stage import Refused, Unavailable
from probes.stages import smb_copy

SLOWER_RATIO = 2.0
"""Of a cached pull's rate over that of each read: a busy host reads a file unevenly that was
written a moment ago."""
READS = 2
COPY_TIMES = 2.0
"""How much longer than another copy such a one may take."""
REMEDY = "use --agent, or --file FILE"
OF_AGENT = "use --server-folder DIR: the agent did not find the share's folder"
"""Remedy where an agent is there, and cannot empty the cache of a file that it does not find."""


def pull(bench: Bench, step: Step, setting: smb_copy.Setting, take: Callable[..., None]) -> None:
    """Makes the step, after the cached pull of the same dialect, and takes its runs.

    Raises Unavailable where nothing shows that the file came from the disk.
    """
    twin = Step(step.stage, {**step.setting, "copy": "pull.cached"}, step.initiator)
    made = bench.log.latest(twin)
    if (
        made is None
        or setting.dialect != bench.world.share.facts["dialect"]
        or setting.dialect == "smb1"
    ):
        raise Unavailable(files.NEEDS_SERVER_CACHE)
    trial = _Trial(bench, step, setting, run_rate(made.run))
    try:
        why = trial.keep(take)
    except (PartlyRan, StageError, Unavailable, Refused) as error:
        if isinstance(error, PartlyRan) and error.lost:
            raise AgentLost(str(error)) from None
        if isinstance(error, Refused) and error.ends_run:
            raise
        why = f"{files.NEEDS_SERVER_CACHE}; {error}"
    if why:
        raise Unavailable(why)


@dataclass
class _Trial:
    bench: Bench
    step: Step
    setting: smb_copy.Setting
    warm: float
    """Rate of the cached pull, bytes per second."""

    def run(self, **more: Any) -> tuple[Ran, float]:
        """One copy, with its rate."""
        bench, most = self.bench, self.setting.most_seconds or math.inf
        usual = min(most, self.setting.size_bytes / self.warm)
        bench.clock.need(USEFUL_SECONDS + usual)
        setting = replace(
            self.setting,
            seconds=bench.clock.left(),
            most_seconds=COPY_TIMES * max(usual, bench.world.times().copy),
            **more,
        )
        timeout = setting.seconds + files.GRACE_SECONDS
        ran = bench.run(self.step, setting, replace(bench.world.share, path=""), timeout)
        return ran, run_rate(ran.samples)

    def keep(self, take: Callable[..., None]) -> str:
        """Takes two reads past the cache, where cached pulls are so much faster than both.

        Returns why they show nothing, or "".
        """
        reads: list[Ran] = []
        fastest = 0.0
        for _ in range(READS):
            ran, rate = self.run(past_cache=True)
            reads.append(ran)
            fastest = max(fastest, rate)
            if self.warm < SLOWER_RATIO * fastest:
                return self.no_slower(fastest, self.warm)
        cached = min(self.warm, self.run(copy="pull.cached")[1])
        if cached < SLOWER_RATIO * fastest:
            return self.no_slower(fastest, cached)
        known = {"cold_source": "past-cache", "cached_bytes_per_second": cached}
        for ran in reads:
            take(ran, {"cache": {**ran.details["cache"], **known}})
        return ""

    def no_slower(self, rate: float, cached: float) -> str:
        """Why it shows nothing."""
        rates = f"the test file was read at {rate_text(rate)}, a cached file at {rate_text(cached)}"
        remedy = REMEDY if self.bench.world.server is None else OF_AGENT
        return f"{rates}: too alike to tell the disk from the cache ({remedy})"
