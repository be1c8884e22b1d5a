"""`bottleneck probe STAGE [TARGET]`: one stage by itself."""

from __future__ import annotations

from typing import Annotated

import typer

from bottleneck.cli import completion, interrupts, options
from probes import STAGES

Stage = Annotated[
    str,
    typer.Argument(
        metavar="STAGE",
        help=f"{', '.join(STAGES[:-1])} or {STAGES[-1]}.",
        autocompletion=completion.one_of(*STAGES),
    ),
]
Target = Annotated[str | None, typer.Argument(metavar="[TARGET]", help="As for diagnose.")]


def probe(
    stage: Stage,
    target: Target = None,
    *,
    who: options.Login,
    ends: options.Ends,
    others: options.Others,
    disk: options.Disk,
    copies: options.Copies,
    time: options.Time,
    shown: options.Kept,
    yes: options.Yes = False,
    screen: options.Screen,
) -> int:
    """Measure one stage by itself."""
    with interrupts.held():
        from bottleneck.cli import documents, running
        from probes.records import Access
        from probes.stage import Refused, module_of

    output = documents.output(shown, screen.quiet, screen.verbose)
    if stage not in STAGES:
        raise Refused("usage", f"no stage is called {stage!r}; there are {', '.join(STAGES)}")
    if target is None and stage == "tcp" and others.tcp_peer is not None:
        target = f"//{running.host_text(others.tcp_peer)}/-"
    about = module_of(stage).STAGE
    over_smb = "share" in about.needs
    if target is None and (over_smb or "server" in about.needs):
        raise Refused("usage", f"probe {stage} needs a TARGET: //host/share")
    at_server = stage == "disk" and ends.agent != "none"
    if stage not in {"disk", "smb-copy"} and (others.file or disk.device):
        raise Refused("usage", f"probe {stage} reads neither a file nor a device: probe disk does")
    if target is None and (at_server or about.by_agent and ends.agent != "none"):
        raise Refused("usage", f"probe {stage} with an agent needs a TARGET: //host/share")
    chosen = running.choose(
        target or "//localhost/-",
        running.budget_seconds(time),
        *(ends, copies, others, disk),
        stages=(stage,),
        without_target=target is None,
    )
    if "mount" in about.needs and not chosen.target.path:
        raise Refused("usage", f"probe {stage} needs a TARGET that is a folder: a mounted share")
    if chosen.target.path and over_smb:
        raise Refused(
            "usage", f"probe {stage} needs //host/share; of a folder there is probe native-copy"
        )
    logs_in = over_smb or at_server
    access = running.log_in_as(who, chosen.target) if logs_in else Access()
    looks = stage == "disk" and (chosen.file or chosen.device)
    if about.writes and not looks:
        running.ask_first(chosen, yes)
    return running.run(chosen, access, output, only_steps=True)
