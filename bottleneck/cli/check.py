"""`bottleneck check TARGET` or `--report FILE`: the gate for CI and monitoring.

Every ending is one of 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN, with one document on stdout.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from bottleneck.cli import completion, interrupts, options

Target = Annotated[
    str | None,
    typer.Argument(metavar="TARGET", help="As for diagnose; or give --report."),
]
StoredReport = Annotated[
    str | None,
    typer.Option(
        "--report",
        metavar="F",
        help="Judge a stored report instead: a file, or the newest of a folder or 'pattern*'.",
    ),
]
MaxAge = Annotated[
    str | None,
    typer.Option("--max-age", metavar="AGE", help="Of --report: older is UNKNOWN; 26h, 90min, 7d."),
]
Warn = Annotated[
    list[str] | None,
    typer.Option(
        "--warn",
        metavar="EXPR",
        help="WARNING where it holds: 'pull.uncached < 80MB/s'; or a Nagios range of what is "
        "well: pull.uncached=80MB/s: . Repeatable.",
    ),
]
Crit = Annotated[
    list[str] | None,
    typer.Option("--crit", metavar="EXPR", help="CRITICAL where it holds; as --warn."),
]
ExpectCap = Annotated[
    list[str] | None,
    typer.Option(
        "--expect-cap",
        metavar="CAP",
        help="[COPY=]component[/side[/cause]]: another sure cap is CRITICAL. Repeatable.",
    ),
]
Baseline = Annotated[
    Path | None,
    typer.Option(
        "--baseline",
        metavar="F",
        help="An earlier report: what is slower by more than the noise of both is WARNING, and "
        "CRITICAL from a third on.",
    ),
]
Tolerance = Annotated[
    str,
    typer.Option(
        "--tolerance",
        metavar="SHARE",
        help="What may be lost against --baseline; the noise alone takes 9 %, and 20 % of one run.",
    ),
]
Repeat = Annotated[
    int,
    typer.Option(
        "--repeat",
        metavar="N",
        help="Measure so many times; a baseline wants 3 to 5. What alarms is repeated anyway, "
        "while the budget lasts.",
    ),
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="F",
        help="text, nagios, junit, openmetrics, github or json on stdout.",
        autocompletion=completion.one_of(
            "text", "nagios", "junit", "openmetrics", "github", "json"
        ),
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
Budget = Annotated[
    float | None,
    typer.Option(
        "--budget",
        metavar="SECONDS",
        help="Time of all runs; default 20 each, and of three with --baseline.",
    ),
]


def check(
    target: Target = None,
    report: StoredReport = None,
    warn: Warn = None,
    crit: Crit = None,
    expect_cap: ExpectCap = None,
    baseline: Baseline = None,
    tolerance: Tolerance = "5%",
    max_age: MaxAge = None,
    format: Format = "text",
    output: OutputFile = None,
    repeat: Repeat = 1,
    user: options.User = None,
    domain: options.Domain = None,
    auth_file: options.AuthFile = None,
    allow_guest: options.AllowGuest = False,
    agent: options.Agent = "none",
    folder: options.Folder = Path(),
    server_folder: options.ServerFolder = None,
    client_share: options.ClientShare = None,
    tcp_peer: options.TcpPeer = None,
    file: options.File = None,
    dialects: options.Dialects = None,
    size: options.Size = None,
    budget: Budget = None,
    quick: options.Quick = False,
    thorough: options.Thorough = False,
    json: options.Json = None,
    html: options.Html = None,
    ticket: options.Ticket = None,
    junit: options.Junit = None,
    units: options.Units = "si",
    redact: options.Redact = False,
    history: options.History = None,
    yes: options.Yes = False,
    quiet: options.Quiet = False,
) -> int:
    """Hold a measurement, or a stored report, against what you expect; for CI and monitoring.

    Exit codes: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN (all else, wrong usage included).
    """
    with interrupts.held():
        from bottleneck.cli import answers, documents, expected, newest, passes, running
        from probes.stage import Refused

    answers.remember(format, output, target)
    answers.check_format(format, output)
    terms = expected.terms(warn, crit, expect_cap, baseline, tolerance, max_age)
    if (target is None) == (report is None):
        raise Refused("usage", "check: give TARGET to measure, or --report FILE to judge one")
    # Icinga takes stderr for a part of the plugin's output.
    quiet = quiet or format == "nagios"
    shown = documents.output(
        json,
        quiet,
        html=html,
        ticket=ticket,
        junit=junit,
        style=units,
        redact=redact,
        history=history,
    )
    wanted = answers.Answer(format, output, shown)
    if report is not None:
        loaded = shown.showable(newest.load(report))
        return answers.give(wanted, loaded, terms.shown_by(shown), newest.age_seconds(loaded))
    planned = passes.plan(budget, quick, thorough, repeat, terms)
    chosen = running.choose(
        target=target or "",
        folder=folder,
        agent=agent,
        server_folder=server_folder,
        client_share=client_share,
        dialects=dialects,
        size=size,
        budget=planned.each_seconds,
        tcp_peer=tcp_peer,
        file=file,
    )
    access = running.log_in_as(user, domain, auth_file, allow_guest, chosen.target)
    running.ask_first(replace(chosen, budget_seconds=planned.total_seconds), yes)
    with interrupts.held():
        terms = terms.shown_by(shown)
        known = passes.measured(chosen, access, shown, planned, terms)
        return answers.give(wanted, known, terms, newest.age_seconds(known))
