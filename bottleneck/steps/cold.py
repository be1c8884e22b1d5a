"""pull.uncached where no agent empties the server's cache: from what that has most likely dropped.

In this order. The run's own file, asked for without the server's cache (MS-SMB2 2.2.13,
FILE_NO_INTERMEDIATE_BUFFERING: Windows obeys, Samba does not), or dropped by a server of little
memory, whose second read is faster. Then files of --cold-from. A source that is read no slower than
a cached one before and after it shows nothing, and does not count. None is ever proven.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from bottleneck import plan
from bottleneck.bench import USEFUL_SECONDS, Bench
from bottleneck.hosts import AgentLost, PartlyRan, Ran, StageError
from bottleneck.report import Step
from bottleneck.steps import files
from bottleneck.units import rate_text
from probes import smb_copy
from probes.records import run_rate
from probes.stage import Refused, Unavailable

SLOWER_RATIO = 1.3
"""Of a cached pull's rate over that of idle files: less may be chance."""
DROPPED_RATIO = 2.0
"""The same of the run's own file, which was written a moment ago: a busy host reads unevenly."""
FILE_BYTES = 8 * plan.MIB
"""What a file of --cold-from has at least: the seek before it is then a small part of its time."""
COPY_TIMES = 2.0
"""How much longer than another copy such a one may take."""
REMEDY = "use --agent, or --cold-from with old files"


def pull(bench: Bench, step: Step, setting: smb_copy.Setting) -> None:
    """Makes the step, after the cached pull of the same dialect.

    Raises Unavailable where nothing shows that a source came from the disk, and what the copy of
    files of --cold-from raises.
    """
    twin = Step(step.stage, {**step.setting, "copy": "pull.cached"}, step.initiator)
    made = bench.ledger.latest(twin)
    if made is None or setting.dialect != bench.share.facts["dialect"] or setting.dialect == "smb1":
        raise Unavailable(files.NEEDS_SERVER_CACHE)
    trial = _Trial(bench, step, setting, run_rate(made.run))
    why = _own(trial)
    if why and bench.options.cold_from:
        why = _idle(trial)
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
        bench.need(USEFUL_SECONDS + usual)
        setting = replace(
            self.setting,
            seconds=bench.left(),
            most_seconds=COPY_TIMES * max(usual, bench.times.copy),
            **more,
        )
        timeout = setting.seconds + files.GRACE_SECONDS
        ran = bench.run(self.step, setting, replace(bench.share, path=""), timeout)
        return ran, run_rate(ran.samples)

    def keep(self, source: str, least: float, *runs: tuple[Ran, float]) -> bool:
        """Takes the runs for the step where a cached pull is still so much faster than all."""
        after = self.run(copy="pull.cached")[1]
        cached = min(self.warm, after)
        if cached < least * max(rate for _, rate in runs):
            return False
        for ran, _ in runs:
            known = {"cold_source": source, "cached_bytes_per_second": cached}
            self.bench.take(self.step, ran, {"cache": {**ran.details["cache"], **known}})
        return True

    def no_slower(self, what: str, rate: float) -> str:
        """Why it shows nothing."""
        rates = f"{what} at {rate_text(rate)}, a cached file at {rate_text(self.warm)}"
        return f"{rates}: disk and cache look the same ({REMEDY})"


def _own(trial: _Trial) -> str:
    """From the run's own file; empty, or why that shows nothing."""
    try:
        first = trial.run(past_cache=True)
        why = trial.no_slower("the test file was read", first[1])
        if trial.warm < DROPPED_RATIO * first[1]:
            return why
        second = trial.run(past_cache=True)
        if min(second[1], trial.warm) >= DROPPED_RATIO * first[1]:
            kept = trial.keep("dropped", DROPPED_RATIO, first)
        else:
            slow = trial.warm >= DROPPED_RATIO * second[1]
            kept = slow and trial.keep("past-cache", DROPPED_RATIO, first, second)
    except (PartlyRan, StageError, Unavailable, Refused) as error:
        if isinstance(error, PartlyRan) and error.lost:
            raise AgentLost(str(error)) from None
        if isinstance(error, Refused) and error.kind == "login":
            raise
        return f"{files.NEEDS_SERVER_CACHE}; {error}"
    return "" if kept else why


def _idle(trial: _Trial) -> str:
    """From files of --cold-from; the same."""
    least = min(FILE_BYTES, trial.setting.size_bytes)
    read = trial.run(cold_from=trial.bench.options.cold_from, least_bytes=least)
    count = read[0].details["cache"].get("files")
    what = f"{count} {'file' if count == 1 else 'files'} of --cold-from were read"
    if trial.warm >= SLOWER_RATIO * read[1] and trial.keep("idle-files", SLOWER_RATIO, read):
        return ""
    return trial.no_slower(what, read[1])
