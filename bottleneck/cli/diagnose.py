"""`bottleneck diagnose TARGET`: the main job."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
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
    device: options.Device = None,
    zones: options.Zones = 9,
    dialects: options.Dialects = None,
    size: options.Size = None,
    budget: options.Budget = None,
    quick: options.Quick = False,
    thorough: options.Thorough = False,
    target_rate: options.TargetRate = None,
    json: options.Json = None,
    html: options.Html = None,
    ticket: options.Ticket = None,
    junit: options.Junit = None,
    units: options.Units = "si",
    redact: options.Redact = False,
    history: options.History = None,
    yes: options.Yes = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Measure every stage between this host and TARGET, and name the cap of each copy."""
    with interrupts.held():
        from bottleneck.cli import documents, loading, running

    output = documents.output(json, quiet, verbose, html, ticket, junit, units, redact, history)
    chosen = running.choose(
        target=target,
        folder=folder,
        agent=agent,
        server_folder=server_folder,
        client_share=client_share,
        dialects=dialects,
        size=size,
        budget=running.budget_seconds(budget, quick, thorough),
        tcp_peer=tcp_peer,
        file=file,
        device=device,
        zones=zones,
    )
    chosen = replace(chosen, target_rate_bytes_per_second=loading.target_rate(target_rate))
    access = running.log_in_as(user, domain, auth_file, allow_guest, chosen.target)
    running.ask_first(chosen, yes)
    return running.run(chosen, access, output)
