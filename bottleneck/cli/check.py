"""`bottleneck check TARGET` or `--report FILE`: the gate for CI and monitoring.

Every ending is one of 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN, with one document on stdout.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

import typer

from bottleneck.cli import interrupts, options

Target = Annotated[
    str | None, typer.Argument(metavar="[TARGET]", help="As for diagnose; or use --report.")
]
Repeat = Annotated[
    int,
    typer.Option(
        metavar="N",
        help="Number of runs; 3 to 5 for a baseline. An alarm is repeated if the time limit "
        "allows [default: 1].",
        show_default=False,
        rich_help_panel="Time",
    ),
]
Format = Annotated[
    str,
    options.format_of(
        *"text nagios junit openmetrics github json".split(),
        help="Format on stdout: text, nagios, junit, openmetrics, github or json.",
    ),
]
OutputFile = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Write junit, openmetrics or json to FILE, and the text to stdout.",
        rich_help_panel="Output",
    ),
]


@dataclass(frozen=True)
class Time(options.Time):
    """Time limit of all runs."""

    budget: float | None = options.value(
        "SECONDS", "Time limit for all runs.", usual="20 for each run, 60 with --baseline"
    )


def check(
    target: Target = None,
    *,
    expected: options.Expectations,
    format: Format = "text",
    output: OutputFile = None,
    repeat: Repeat = 1,
    login: options.Login,
    ends: options.Ends,
    others: options.Others,
    copies: options.Copies,
    time: Time,
    outputs: options.Documents,
    yes: options.Yes = False,
    quiet: options.Quiet,
) -> int:
    """Compare a run or report with expectations (CI, monitoring).

    Exit codes: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN (all else, wrong usage included).
    """
    with interrupts.defer():
        from bottleneck.cli import check_runs, command_line, documents, loading, measuring
        from probes.core.stage import Refused

    check_runs.check_file(format, output)
    terms = check_runs.terms(expected)
    if (target is None) == (expected.report is None):
        raise Refused("usage", "check: use either TARGET, to measure, or --report FILE")
    plugin = command_line.current().plugin
    outputs = documents.add_report(outputs) if expected.report is None else outputs
    destination = documents.output(outputs, replace(quiet, quiet=quiet.quiet or plugin))
    if expected.report is not None:
        loaded = destination.showable(loading.newest(expected.report))
        return check_runs.give(loaded, terms.shown_by(destination), format, output, destination)
    plan = check_runs.plan(time, repeat, terms)
    setup = measuring.choose(target or "", plan.each_seconds, ends, copies, others)
    access = measuring.log_in_as(login, setup.target)
    measuring.ask_first(replace(setup, budget_seconds=plan.total_seconds), yes)
    with interrupts.defer():
        terms = terms.shown_by(destination)
        report = check_runs.measure_all(setup, access, destination, plan, terms)
        return check_runs.give(report, terms, format, output, destination)
