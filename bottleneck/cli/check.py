"""`bottleneck check TARGET` or `--report FILE`: the gate for CI and monitoring.

Every ending is one of 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN, with one document on stdout.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import typer

from bottleneck.cli import interrupts, options

Target = Annotated[
    str | None,
    typer.Argument(metavar="TARGET", help="As for diagnose; or give --report."),
]
Repeat = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="Measure so many times; a baseline wants 3 to 5. What alarms is repeated anyway, "
        "while the budget lasts.",
    ),
]
Format = Annotated[
    str,
    options.format_of(
        *("text", "nagios", "junit", "openmetrics", "github", "json"),
        help="text, nagios, junit, openmetrics, github or json on stdout.",
    ),
]
OutputFile = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="F",
        help="Write junit, openmetrics or json there, as a whole; stdout has the text.",
    ),
]


@dataclass(frozen=True)
class Time(options.Time):
    """How long all runs may take."""

    budget: float | None = options.value(
        "SECONDS", "Time of all runs; default 20 each, and of three with --baseline."
    )


def check(
    target: Target = None,
    *,
    expected: options.Expected,
    format: Format = "text",
    output: OutputFile = None,
    repeat: Repeat = 1,
    who: options.Login,
    ends: options.Ends,
    others: options.Others,
    copies: options.Copies,
    time: Time,
    shown: options.Kept,
    yes: options.Yes = False,
    quiet: options.Quiet,
) -> int:
    """Hold a measurement, or a stored report, against what you expect; for CI and monitoring.

    Exit codes: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN (all else, wrong usage included).
    """
    with interrupts.held():
        from bottleneck.cli import check_runs, documents, loading, running
        from probes.stage import Refused

    check_runs.check_file(format, output)
    terms = check_runs.terms(expected)
    if (target is None) == (expected.report is None):
        raise Refused("usage", "check: give TARGET to measure, or --report FILE to judge one")
    # Icinga takes stderr for a part of the plugin's output.
    to = documents.output(shown, replace(quiet, quiet=quiet.quiet or format == "nagios"))
    if expected.report is not None:
        loaded = to.showable(loading.newest(expected.report))
        return check_runs.give(loaded, terms.shown_by(to), format, output, to)
    planned = check_runs.plan(time, repeat, terms)
    chosen = running.choose(target or "", planned.each_seconds, ends, copies, others)
    access = running.log_in_as(who, chosen.target)
    running.ask_first(replace(chosen, budget_seconds=planned.total_seconds), yes)
    with interrupts.held():
        terms = terms.shown_by(to)
        known = check_runs.measured(chosen, access, to, planned, terms)
        return check_runs.give(known, terms, format, output, to)
