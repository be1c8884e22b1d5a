"""`bottleneck demo`: the same against a private Samba on loopback, gone afterwards."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated

from bottleneck.cli import interrupts, options

DEFAULT_SECONDS = 45.0


@dataclass(frozen=True)
class Time(options.Time):
    """How long it may take."""

    budget: Annotated[
        float | None,
        options.value(
            "--budget", "SECONDS", f"Time of the whole run; default {DEFAULT_SECONDS:.0f}."
        ),
    ] = None


def demo(copies: options.Copies, time: Time, shown: options.Kept, screen: options.Screen) -> int:
    """Diagnose copies against a private Samba on this host, gone afterwards."""
    with interrupts.held():
        import os
        import secrets

        from bottleneck.cli import documents, running
        from probes.drivers.samba import private_samba, vanishing_folder
        from probes.host import nameless
        from probes.records import Access

    output = documents.output(shown, screen.quiet, screen.verbose)
    seconds = running.budget_seconds(time, DEFAULT_SECONDS)
    password = secrets.token_urlsafe(16)
    # Not in /tmp: where that is memory there would be no disk to measure.
    with vanishing_folder(f"bottleneck-demo-{os.getpid()}-", nameless.on_disk()) as (scratch, _):
        shared, own = scratch / "server", scratch / "client"
        for each in (shared, own):
            each.mkdir()
        with private_samba(
            str(shared), password=password, options=["server min protocol = NT1"]
        ) as samba:
            target = f"//{samba.host}:{samba.port}/{samba.share}"
            ends = options.Ends("exec:", own, str(shared))
            chosen = replace(running.choose(target, seconds, ends, copies), outlived=False)
            access = Access(samba.username, samba.password)
            # Both ends share this host's cores and disk: that no single cap stands out is no
            # failure of a demonstration that measured everything.
            return running.run(chosen, access, output, only_steps=True)
