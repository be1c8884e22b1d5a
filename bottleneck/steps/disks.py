"""The disks' steps: a file of our own in each folder, read uncached and cached, and one written."""

from __future__ import annotations

from contextlib import ExitStack

from bottleneck import plan
from bottleneck.bench import NEEDS_AGENT, Bench
from bottleneck.hosts import StageError
from probes import disk
from probes.host import source_file
from probes.records import Endpoint
from probes.stage import Refused, Unavailable

SIDES: tuple[plan.Side, ...] = ("client", "server")
FILL_GRACE_SECONDS = 20.0
STEP_GRACE_SECONDS = 15.0
CACHED_UNTIL_RATIO = 0.6
"""Of the budget: later than that, what the page cache gives would cost a copy."""
UNTIL_RATIO = 0.75


def hold_sources(bench: Bench, stack: ExitStack) -> None:
    """A nameless file of payload in each folder, held until the stack closes.

    Raises:
        Refused: the client's folder cannot be written to; pushes would have no source.
    """
    for side, host in bench.reached.items():
        folder = bench.folder(side)
        if folder is None:
            continue
        setting = source_file.Setting(
            folder=folder,
            size_bytes=bench.options.size_bytes or plan.LARGEST_COPY_BYTES // 2,
            seconds=bench.times.fill,
            seed=bench.seed,
        )
        bench.tell(f"writing a file on the {side}")
        lifetime = bench.options.budget_seconds + 60
        try:
            held = host.hold(
                "source-file", setting, Endpoint(), lifetime, bench.times.fill + FILL_GRACE_SECONDS
            )
            bench.sources[side] = stack.enter_context(held)
        except (StageError, Unavailable, Refused) as error:
            if side == "client" and isinstance(error, Refused):
                raise
            bench.note(f"{side}: no file of our own in {folder}: {error}")


def measure_disks(bench: Bench) -> None:
    """The system's fio on both folders."""
    for each in plan.disk_steps(SIDES):
        source = bench.sources.get(each.side)
        seconds = bench.times.disk_cached if each.cache == "cached" else bench.times.disk
        setting = disk.Setting(
            verb=each.verb,
            cache=each.cache,
            folder=bench.folder(each.side) or "",
            side=each.side,
            size_bytes=int(source.facts["size_bytes"]) if source else 0,
            seconds=seconds,
            seed=bench.seed,
        )
        step = bench.step("disk", setting, each.side)
        with bench.outcome(step, f"disk {each.side} {each.verb} {each.cache}"):
            if each.side not in bench.reached:
                raise Unavailable(NEEDS_AGENT)
            if source is None:
                raise Unavailable(
                    "no file of our own could be written there"
                    if bench.folder(each.side)
                    else "the share's folder was not found there: --server-folder DIR"
                )
            bench.keep_time(CACHED_UNTIL_RATIO if each.cache == "cached" else UNTIL_RATIO)
            bench.initiate(step, setting, source, seconds + STEP_GRACE_SECONDS, both=False)
