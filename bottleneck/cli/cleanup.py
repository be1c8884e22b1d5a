"""`bottleneck cleanup [TARGET]`: remove what a killed run left."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Annotated

import typer

from bottleneck.cli import exits, interrupts, options

DEFAULT_SECONDS = 3600.0
Target = Annotated[
    str | None, typer.Argument(metavar="[TARGET]", help="A share or a mounted one's folder, too.")
]
Folder = Annotated[
    Path, typer.Option("--folder", metavar="DIR", help="Where this host's copies were made.")
]
OlderThan = Annotated[
    float,
    typer.Option(
        "--older-than", metavar="SECONDS", help="Leave what was changed since: a run may use it."
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show it, and remove nothing.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask before removing.")]


def cleanup(
    target: Target = None,
    user: options.User = None,
    domain: options.Domain = None,
    auth_file: options.AuthFile = None,
    allow_guest: options.AllowGuest = False,
    agent: options.Agent = "none",
    folder: Folder = Path(),
    server_folder: options.ServerFolder = None,
    older_than: OlderThan = DEFAULT_SECONDS,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> int:
    """Remove what a killed run left: its folders here, there and on the share; nothing else."""
    with interrupts.held():
        import os

        from bottleneck import target as targets
        from bottleneck.cli import documents, running, terminal
        from bottleneck.hosts import command_for
        from bottleneck.leftovers import Cleanup, Wanted
        from bottleneck.reports.leftovers import print_cleaned, print_found
        from probes.records import Access
        from probes.stage import Refused

    if not math.isfinite(older_than) or older_than < 0:
        raise Refused("usage", "--older-than: 0 seconds or more")
    named = None if target is None else targets.parse(target, os.path.isdir)
    folders = [str(folder.absolute())]
    if named is not None and named.path:
        folders.append(str(Path(named.path).absolute()))
        named = None
    if agent != "none":
        command_for(agent)
    access = Access()
    if named is not None:
        access = running.log_in_as(user, domain, auth_file, allow_guest, named)
    wanted = Wanted(tuple(folders), older_than, named, access, agent, server_folder)
    with Cleanup(wanted) as open_hosts:
        found = open_hosts.look()
        documents.shown(lambda: print_found(found, terminal.console()))
        ours = [each for each in found if each.removable]
        cleaned = []
        if ours and not dry_run:
            if not yes:
                _ask(len(ours))
            cleaned = open_hosts.remove(ours)
    documents.shown(lambda: print_cleaned(cleaned, terminal.console()))
    if open_hosts.trouble is not None:
        raise open_hosts.trouble
    return exits.INCOMPLETE if any(each.why_left for each in cleaned) else exits.DONE


def _ask(count: int) -> None:
    """Asks once for all of it. Raises Refused, "usage", for every answer but yes."""
    from probes.stage import Refused

    if not sys.stdin.isatty():
        raise Refused("usage", "nothing was removed, since nobody can be asked: give --yes")
    things = "this" if count == 1 else f"these {count}"
    print(f"Remove {things}? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Refused("usage", "nothing was removed")
