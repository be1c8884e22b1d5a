"""`bottleneck demo`: the same against a private Samba on loopback, gone afterwards."""

from __future__ import annotations

from typing import Annotated

import typer

from bottleneck.cli import interrupts, options

DEFAULT_SECONDS = 45.0
Budget = Annotated[
    float | None,
    typer.Option(
        "--budget",
        metavar="SECONDS",
        help=f"Time of the whole run; default {DEFAULT_SECONDS:.0f}.",
    ),
]


def demo(
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
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Diagnose copies against a private Samba on this host, gone afterwards."""
    with interrupts.held():
        import os
        import secrets

        from bottleneck.cli import documents, running
        from probes.drivers.samba import private_samba, vanishing_folder
        from probes.host import temporary
        from probes.records import Access

    output = documents.output(json, quiet, verbose, html, ticket, junit, units, redact, history)
    seconds = running.budget_seconds(budget, quick, thorough, DEFAULT_SECONDS)
    password = secrets.token_urlsafe(16)
    # Not in /tmp: where that is memory there would be no disk to measure.
    with vanishing_folder(f"bottleneck-demo-{os.getpid()}-", temporary.on_disk()) as (scratch, _):
        shared, own = scratch / "server", scratch / "client"
        for each in (shared, own):
            each.mkdir()
        with private_samba(
            str(shared), password=password, options=["server min protocol = NT1"]
        ) as samba:
            chosen = running.choose(
                target=f"//{samba.host}:{samba.port}/{samba.share}",
                folder=own,
                agent="exec:",
                server_folder=str(shared),
                dialects=dialects,
                size=size,
                budget=seconds,
            )
            access = Access(samba.username, samba.password)
            # Both ends share this host's cores and disk: that no single cap stands out is no
            # failure of a demonstration that measured everything.
            return running.run(chosen, access, output, only_steps=True)
