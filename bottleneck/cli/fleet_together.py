"""`bottleneck fleet --together N`: what is allowed, what it may load, and what it comes to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bottleneck.cli import completion, options
from probes.core.stage import Refused

if TYPE_CHECKING:
    from bottleneck.fleet.collected import Collected
    from bottleneck.fleet.records import Fleet
    from bottleneck.fleet.result import Result

DIRECTIONS = ("pull", "push")


@options.group("Tests")
class Tests:
    """What is measured."""

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


def checked(known: Fleet | None, tests: Tests) -> tuple[Fleet | None, Tests]:
    """The fleet of the clients that copy at once: the first of the inventory, each pair once.

    Raises Refused, "usage", where --together is not possible.
    """
    if tests.direction is not None and tests.direction not in DIRECTIONS:
        raise Refused("usage", f"--direction {tests.direction[:40]!r}: must be one of pull, push")
    count = tests.together
    if count is None:
        if tests.direction is not None:
            raise Refused("usage", "--direction: not allowed without --together")
        return known, tests
    if tests.all or tests.resume or tests.reports is not None:
        text = "--together: not allowed with --all, --resume or --reports"
        raise Refused("usage", text)
    if known is None or len(known.servers) != 1:
        found = len(known.servers) if known else 0
        raise Refused("usage", f"--together: needs INVENTORY and one --share, found {found}")
    if not 2 <= count <= len(known.clients):
        most = len(known.clients)
        raise Refused("usage", f"--together {count}: must be from 2 to {most}, all clients")
    return replace(known, clients=known.clients[:count]), replace(tests, all=True)


def copy_of(tests: Tests) -> str:
    """The copy that all make: of what the sender has in its memory."""
    return f"{tests.direction or DIRECTIONS[0]}.cached"


def most_bytes(known: Fleet, copy: str) -> int:
    """What all clients move at once at most; a pull reads a file that its client wrote before."""
    from bottleneck.run.plan import LARGEST_COPY_BYTES
    from bottleneck.run.steps.sources import MOST_BYTES
    from probes.stages.smb_copy import MOST_REPEATED_BYTES

    pulls = copy.startswith("pull")
    return len(known.clients) * (MOST_REPEATED_BYTES + MOST_BYTES if pulls else LARGEST_COPY_BYTES)


def load_text(known: Fleet, tests: Tests) -> str:
    """What is said of it before anything is written; empty without --together."""
    from bottleneck.text.units import size_text

    if tests.together is None:
        return ""
    return f", and moves at most {size_text(most_bytes(known, copy_of(tests)))} at once"


def planned(known: Fleet, tests: Tests, figures: dict[str, Any]) -> tuple[str, ...]:
    """What it loads, in sentences; the figures of a plan have it too."""
    from bottleneck.documents.fleet_together import plan_lines
    from bottleneck.fleet.run import at_once_seconds

    copy, seconds = copy_of(tests), at_once_seconds(tests.budget)
    most = most_bytes(known, copy)
    figures["total_seconds"] += tests.budget + seconds
    figures["together"] = {
        "clients": len(known.clients),
        "copy": copy,
        "copy_seconds": seconds,
        "bytes_at_most": most,
    }
    return plan_lines(len(known.clients), copy, seconds, tests.budget + seconds, most)


def added(judged: Result, known: Fleet | None, found: Collected, tests: Tests) -> Result:
    """With what the clients got at once, by the reports that are kept of it, if that was asked."""
    from bottleneck.fleet import together
    from bottleneck.fleet.records import Together
    from bottleneck.report import report

    if tests.together is None or known is None:
        return judged
    made, copy = found.at_once, copy_of(tests)
    if made is None:
        reason = "they did not copy at once"
        told = Together(copy, known.servers[0], len(known.clients), reason=reason)
        return replace(judged, together=told)
    pairs = made.reported() & made.report_files.keys()
    reports = {
        pair: (report.load(made.report_files[pair][0]), made.report_files[pair][1])
        for pair in pairs
    }
    alone = together.by_themselves(found.rates, copy)
    told = together.of_reports(known, copy, alone, reports, made.rates.get(copy, []))
    lost = {pair: f"at once: {why}" for pair, why in made.missing.items()}
    return replace(judged, together=told, missing={**lost, **judged.missing})
