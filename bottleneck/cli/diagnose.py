"""`bottleneck diagnose TARGET`: the main job."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from bottleneck.cli import interrupts, options

Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="//host[:port]/share[/folder], smb://... or a mounted share's folder.",
    ),
]


def diagnose(
    target: Target,
    who: options.Login,
    ends: options.Ends,
    others: options.Others,
    disk: options.Disk,
    copies: options.Copies,
    time: options.Time,
    target_rate: options.TargetRate = None,
    *,
    shown: options.Kept,
    yes: options.Yes = False,
    screen: options.Screen,
) -> int:
    """Measure every stage between this host and TARGET, and name the cap of each copy."""
    with interrupts.held():
        from bottleneck.cli import documents, loading, running

    output = documents.output(shown, screen.quiet, screen.verbose)
    seconds = running.budget_seconds(time)
    chosen = running.choose(target, seconds, ends, copies, others, disk)
    chosen = replace(chosen, target_rate_bytes_per_second=loading.target_rate(target_rate))
    access = running.log_in_as(who, chosen.target)
    running.ask_first(chosen, yes)
    return running.run(chosen, access, output)
