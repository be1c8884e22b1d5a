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
        *("text", "nagios", "junit", "openmetrics", "github", "json"),
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
    """How long all runs may take."""

    budget: float | None = options.value(
        "SECONDS", "Time limit for all runs.", usual="20 for each run, 60 with --baseline"
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
    shown: options.Documents,
    yes: options.Yes = False,
    quiet: options.Quiet,
) -> int:
    """Compare a run or report with expectations (CI, monitoring).

    Exit codes: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN (all else, wrong usage included).
    """
    with interrupts.held():
        from bottleneck.cli import check_runs, command_line, documents, loading, running
        from probes.core.stage import Refused

    check_runs.check_file(format, output)
    terms = check_runs.terms(expected)
    if (target is None) == (expected.report is None):
        raise Refused("usage", "check: use either TARGET, to measure, or --report FILE")
    plugin = command_line.now().plugin
    shown = documents.with_report(shown) if expected.report is None else shown
    to = documents.output(shown, replace(quiet, quiet=quiet.quiet or plugin))
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
