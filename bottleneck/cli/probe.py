"""`bottleneck probe STAGE [TARGET]`: one stage by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bottleneck.cli import interrupts, options

Stage = Annotated[str, typer.Argument(metavar="STAGE", help="loopback, tcp, disk or smb-copy.")]
Target = Annotated[str | None, typer.Argument(metavar="[TARGET]", help="As for diagnose.")]


def probe(
    stage: Stage,
    target: Target = None,
    user: options.User = None,
    domain: options.Domain = None,
    auth_file: options.AuthFile = None,
    allow_guest: options.AllowGuest = False,
    agent: options.Agent = "none",
    folder: options.Folder = Path(),
    server_folder: options.ServerFolder = None,
    dialects: options.Dialects = None,
    size: options.Size = None,
    budget: options.Budget = None,
    quick: options.Quick = False,
    thorough: options.Thorough = False,
    json: options.Json = None,
    yes: options.Yes = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Measure one stage: loopback, tcp, disk or smb-copy."""
    with interrupts.held():
        from bottleneck.cli import running
        from probes import STAGES
        from probes.records import Access
        from probes.stage import Refused

    output = running.output(json, quiet, verbose)
    if stage not in STAGES:
        raise Refused("usage", f"no stage is called {stage!r}; there are {', '.join(STAGES)}")
    if target is None and stage in {"tcp", "smb-copy"}:
        raise Refused("usage", f"probe {stage} needs a TARGET: //host/share")
    at_server = stage == "disk" and agent != "none"
    if at_server and target is None:
        raise Refused("usage", "probe disk with an agent needs a TARGET: //host/share")
    chosen = running.choose(
        target=target or "//localhost/-",
        folder=folder,
        agent=agent,
        server_folder=server_folder,
        dialects=dialects,
        size=size,
        budget=running.budget_seconds(budget, quick, thorough),
        stages=(stage,),
    )
    access = Access()
    if stage == "smb-copy" or at_server:
        access = running.log_in_as(user, domain, auth_file, allow_guest, chosen.target)
    if stage in {"smb-copy", "disk"}:
        running.ask_first(chosen, yes)
    return running.run(chosen, access, output, only_steps=True)
