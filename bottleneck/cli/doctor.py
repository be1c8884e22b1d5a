"""`bottleneck doctor [TARGET]`: what is ready here and there, and what to do about the rest."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from bottleneck.cli import exits, interrupts, options

Target = Annotated[
    str | None, typer.Argument(metavar="[TARGET]", help="As for diagnose; without: this host.")
]


def doctor(
    target: Target = None,
    *,
    who: options.Login,
    ends: options.Ends,
    format: options.TextOrJson = "text",
) -> int:
    """Show what is installed, permitted and reachable here and there; nothing is written."""
    with interrupts.held():
        import os

        from bottleneck import target as targets
        from bottleneck.bootstrap import command_for
        from bottleneck.cli import documents, running
        from bottleneck.doctor.checks import judged
        from bottleneck.doctor.look import MISSING, Wanted, look
        from bottleneck.reports import terminal
        from bottleneck.reports.doctor import print_checks, to_json

    named = None if target is None else targets.parse(target, os.path.isdir)
    if named is not None and named.path:
        named = targets.of_folder(str(Path(named.path).absolute()))
    if ends.agent != "none":
        command_for(ends.agent)
    access = None
    if named is not None and (who.user or who.auth_file or who.allow_guest or named.username):
        access = running.log_in_as(who, named)
    wanted = Wanted(str(ends.folder.absolute()), named, access, ends.agent, ends.server_folder)
    checks = judged(look(wanted))

    def write() -> None:
        if format == "json":
            sys.stdout.write(json.dumps(to_json(checks), indent=1, allow_nan=False) + "\n")
        else:
            print_checks(checks, terminal.console())

    if not documents.shown(write):
        return exits.INCOMPLETE
    for each in checks:
        if each.kind:
            return exits.OF_REFUSAL.get(each.kind, exits.UNREACHABLE)
    return exits.INCOMPLETE if any(each.state == MISSING for each in checks) else exits.DONE
