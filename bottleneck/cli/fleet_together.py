"""`bottleneck fleet --together N`: its conditions, its load and its result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bottleneck.cli import completion, options
from probes.core.stage import Refused

if TYPE_CHECKING:
    from bottleneck.fleet.collected import FleetRates
    from bottleneck.fleet.records import Fleet
    from bottleneck.fleet.result import Result

DIRECTIONS = ("pull", "push")


@options.group("Tests")
class Tests:
    plan: bool = options.flag("Print the timetable and its load; measure nothing.")
    reports: Path | None = options.value(
        "DIR", "Judge the reports in DIR; measure nothing.", readable=False
    )
    all: bool = options.flag("Measure every pair, not only those that decide.")
    keep: Path = options.value(
        "DIR", "Keep the report of each pair in DIR.", Path("fleet-reports"), readable=False
    )
    together: int | None = options.value(
        "N", "Then copy from one share to N clients at the same time, and compare."
    )
    direction: str | None = options.value(
        "NAME",
        "Direction of the copies of --together: pull or push.",
        usual="pull",
        complete=completion.one_of(*DIRECTIONS),
    )
    resume: bool = options.flag("Continue a run: measure what --keep DIR does not have yet.")
    budget: float = options.value("SECONDS", "Time limit for each test.", 20.0)


def checked_fleet(fleet: Fleet | None, tests: Tests) -> tuple[Fleet | None, Tests]:
    """Returns the fleet of the clients that copy at once: the inventory's first, each pair once.

    Raises Refused, "usage", where --together is not possible.
    """
    if tests.direction is not None and tests.direction not in DIRECTIONS:
        raise Refused("usage", f"--direction {tests.direction[:40]!r}: must be one of pull, push")
    count = tests.together
    if count is None:
        if tests.direction is not None:
            raise Refused("usage", "--direction: not allowed without --together")
        return fleet, tests
    if tests.all or tests.resume or tests.reports is not None:
        raise Refused("usage", "--together: not allowed with --all, --resume or --reports")
    if fleet is None or len(fleet.servers) != 1:
        shares = len(fleet.servers) if fleet else 0
        raise Refused("usage", f"--together: needs INVENTORY and one --share, found {shares}")
    if not 2 <= count <= len(fleet.clients):
        limit = len(fleet.clients)
        raise Refused("usage", f"--together {count}: must be from 2 to {limit}, all clients")
    return replace(fleet, clients=fleet.clients[:count]), replace(tests, all=True)


def copy_of(tests: Tests) -> str:
    """Returns the copy that all make: of what the sender has in its memory."""
    return f"{tests.direction or DIRECTIONS[0]}.cached"


def most_bytes(fleet: Fleet, copy: str) -> int:
    """Returns the bytes that all clients move at most; a pull reads what its client wrote."""
    from bottleneck.run.plan import LARGEST_COPY_BYTES
    from bottleneck.run.steps.sources import MOST_BYTES
    from probes.stages.smb_copy import MOST_REPEATED_BYTES

    pulls = copy.startswith("pull")
    return len(fleet.clients) * (MOST_REPEATED_BYTES + MOST_BYTES if pulls else LARGEST_COPY_BYTES)


def load_text(fleet: Fleet, tests: Tests) -> str:
    """Returns what is said of the load before anything is written; empty without --together."""
    from bottleneck.text.units import size_text

    if tests.together is None:
        return ""
    return f", and moves at most {size_text(most_bytes(fleet, copy_of(tests)))} at once"


def plan_load(fleet: Fleet, tests: Tests, figures: dict[str, Any]) -> tuple[str, ...]:
    """Returns the load in sentences, and adds it to the figures of a plan."""
    from bottleneck.documents.fleet_together import plan_lines
    from bottleneck.fleet.run import at_once_seconds

    copy, seconds = copy_of(tests), at_once_seconds(tests.budget)
    limit = most_bytes(fleet, copy)
    figures["total_seconds"] += tests.budget + seconds
    figures["together"] = {
        "clients": len(fleet.clients),
        "copy": copy,
        "copy_seconds": seconds,
        "bytes_at_most": limit,
    }
    return plan_lines(len(fleet.clients), copy, seconds, tests.budget + seconds, limit)


def add_together(
    result: Result, fleet: Fleet | None, collected: FleetRates, tests: Tests
) -> Result:
    """Returns the result with what the clients got at once, by the reports that were kept of it."""
    from bottleneck.fleet import together
    from bottleneck.fleet.records import Together
    from bottleneck.report import report

    if tests.together is None or fleet is None:
        return result
    at_once, copy = collected.at_once, copy_of(tests)
    if at_once is None:
        reason = "they did not copy at once"
        test = Together(copy, fleet.servers[0], len(fleet.clients), reason=reason)
        return replace(result, together=test)
    reports = {
        pair: (report.load(at_once.report_files[pair][0]), at_once.report_files[pair][1])
        for pair in at_once.pairs() & at_once.report_files.keys()
    }
    solo = together.single_rates(collected.rates, copy)
    test = together.judge_reports(fleet, copy, solo, reports, at_once.rates.get(copy, []))
    missing = {pair: f"at once: {why}" for pair, why in at_once.missing.items()}
    return replace(result, together=test, missing={**missing, **result.missing})
