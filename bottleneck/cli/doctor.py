"""`bottleneck doctor [TARGET]`: what is ready here and there, and what to do about the rest."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from bottleneck.cli import completion, exits, interrupts, options

Target = Annotated[
    str | None, typer.Argument(metavar="[TARGET]", help="As for diagnose; without: this host.")
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="F",
        help="text or json.",
        autocompletion=completion.one_of("text", "json"),
    ),
]


def doctor(
    target: Target = None,
    user: options.User = None,
    domain: options.Domain = None,
    auth_file: options.AuthFile = None,
    allow_guest: options.AllowGuest = False,
    agent: options.Agent = "none",
    folder: options.Folder = Path(),
    server_folder: options.ServerFolder = None,
    format: Format = "text",
) -> int:
    """Show what is installed, permitted and reachable here and there; nothing is written."""
    with interrupts.held():
        import os

        from bottleneck import target as targets
        from bottleneck.cli import documents, running, terminal
        from bottleneck.doctor.judge import judged
        from bottleneck.doctor.looks import look
        from bottleneck.doctor.records import MISSING, Wanted
        from bottleneck.hosts import command_for
        from bottleneck.reports.doctor import print_checks, to_json
        from probes.stage import Refused

    if format not in {"text", "json"}:
        raise Refused("usage", f"--format {format!r} is neither text nor json")
    named = None if target is None else targets.parse(target, os.path.isdir)
    if named is not None and named.path:
        named = targets.of_folder(str(Path(named.path).absolute()))
    if agent != "none":
        command_for(agent)
    access = None
    if named is not None and (user or auth_file or allow_guest or named.username):
        access = running.log_in_as(user, domain, auth_file, allow_guest, named)
    checks = judged(look(Wanted(str(folder.absolute()), named, access, agent, server_folder)))

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
