"""What the stages that were measured so far allow a copy, by plan.Rates' names."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.bench import Bench
from bottleneck.report import Step

OF_LOOPBACK_RATIO = 0.5
"""Of what a host moves to itself: SMB and a file cost it at least as much again."""


def measured(bench: Bench) -> Iterator[tuple[Step, float]]:
    """The steps that have a rate, with it; bytes per second."""
    for step in bench.ledger.steps:
        rate = bench.ledger.rate(step)
        if rate is not None:
            yield step, rate


def of_stages(bench: Bench) -> dict[str, float]:
    """Rates of the bare network and of the disks past their cache.

    A copy has one connection: what several streams carry together bounds it where one was not
    measured alone.
    """
    known: dict[str, float] = {}
    for step, rate in measured(bench):
        setting = step.setting
        if step.stage == "loopback":
            least = min(rate * OF_LOOPBACK_RATIO, known.get("loopback", rate))
            known["loopback"] = least
        elif step.stage == "tcp":
            name = f"tcp.{setting['verb']}"
            if setting["streams"] == 1:
                known[name] = rate
            else:
                known.setdefault(name, rate)
        elif (
            step.stage == "disk"
            and setting["cache"] == "uncached"
            and setting["pattern"] == "sequential"
        ):
            known[f"{setting['side']}.{setting['verb']}"] = rate
    return known
