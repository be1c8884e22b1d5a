"""`bottleneck demo`: the same against a private Samba on loopback, gone afterwards."""

from __future__ import annotations

from typing import Annotated

import typer

from bottleneck.cli import options

Budget = Annotated[
    float | None, typer.Option("--budget", metavar="SECONDS", help="Time of the run; default 40.")
]


def demo(
    dialects: options.Dialects = None,
    size: options.Size = None,
    budget: Budget = None,
    quick: options.Quick = False,
    thorough: options.Thorough = False,
    json: options.Json = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> int:
    """Diagnose copies against a private Samba on this host; nothing is left behind."""
    import secrets
    import tempfile
    from pathlib import Path

    from bottleneck.cli import running
    from probes.drivers.samba import private_samba
    from probes.records import Access

    seconds = running.budget_seconds(
        budget or (None if quick or thorough else 40.0), quick, thorough
    )
    password = secrets.token_urlsafe(16)
    # Not in /tmp: where that is memory there would be no disk to measure.
    with tempfile.TemporaryDirectory(prefix="bottleneck-demo-", dir=Path("/var/tmp")) as scratch:
        shared, own = Path(scratch, "server"), Path(scratch, "client")
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
            return running.run(chosen, access, running.Output(json, quiet, verbose))
