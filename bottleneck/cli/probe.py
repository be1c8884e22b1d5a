"""`bottleneck probe STAGE [TARGET]`: one stage by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bottleneck.cli import completion, interrupts, options
from probes import STAGES

Stage = Annotated[
    str,
    typer.Argument(
        metavar="STAGE",
        help="loopback, tcp, sweep, latency, matrix, udp, path, disk, smb-copy, smb-matrix, "
        "smb-tax, small-files or native-copy.",
        autocompletion=completion.one_of(*STAGES),
    ),
]
Target = Annotated[str | None, typer.Argument(metavar="[TARGET]", help="As for diagnose.")]
OVER_SMB = frozenset({"smb-copy", "smb-matrix", "smb-tax", "small-files"})
BETWEEN_HOSTS = frozenset({"tcp", "latency", "matrix", "udp", "path"})


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
    """Measure one stage by itself."""
    with interrupts.held():
        from bottleneck.cli import documents, running
        from probes import STAGES
        from probes.records import Access
        from probes.stage import Refused

    output = documents.output(json, quiet, verbose, html, ticket, junit, units, redact, history)
    if stage not in STAGES:
        raise Refused("usage", f"no stage is called {stage!r}; there are {', '.join(STAGES)}")
    if target is None and stage == "tcp" and tcp_peer is not None:
        target = f"//{running.host_text(tcp_peer)}/-"
    if target is None and stage in BETWEEN_HOSTS | OVER_SMB:
        raise Refused("usage", f"probe {stage} needs a TARGET: //host/share")
    at_server = stage == "disk" and agent != "none"
    if stage not in {"disk", "smb-copy"} and (file or device):
        raise Refused("usage", f"probe {stage} reads neither a file nor a device: probe disk does")
    if target is None and (at_server or stage == "sweep" and agent != "none"):
        raise Refused("usage", f"probe {stage} with an agent needs a TARGET: //host/share")
    chosen = running.choose(
        target=target or "//localhost/-",
        folder=folder,
        agent=agent,
        server_folder=server_folder,
        client_share=client_share,
        dialects=dialects,
        size=size,
        budget=running.budget_seconds(budget, quick, thorough),
        stages=(stage,),
        tcp_peer=tcp_peer,
        file=file,
        device=device,
        zones=zones,
        without_target=target is None,
    )
    if stage == "native-copy" and not chosen.target.path:
        raise Refused("usage", "probe native-copy needs a TARGET that is a folder: a mounted share")
    if chosen.target.path and stage in OVER_SMB:
        raise Refused(
            "usage", f"probe {stage} needs //host/share; of a folder there is probe native-copy"
        )
    access = Access()
    if stage in OVER_SMB or at_server:
        access = running.log_in_as(user, domain, auth_file, allow_guest, chosen.target)
    looks = stage == "disk" and (chosen.file or chosen.device)
    if not looks and (stage in OVER_SMB or stage in {"disk", "native-copy"}):
        running.ask_first(chosen, yes)
    return running.run(chosen, access, output, only_steps=True)
