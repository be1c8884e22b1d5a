"""`bottleneck agent`: one agent over stdin and stdout, as ssh's forced command starts it."""

from __future__ import annotations

import os
import stat
import sys
from typing import Annotated

import typer

from bottleneck.cli import exits

Folders = Annotated[
    list[str] | None,
    typer.Option(
        "--folder",
        metavar="DIR",
        help="Work only in this folder and in its own files, and run no command (repeatable).",
    ),
]
Devices = Annotated[
    list[str] | None,
    typer.Option(
        "--device",
        metavar="DEV",
        help="Read this block device too; without --folder, no folder (repeatable).",
    ),
]


def agent(folder: Folders = None, device: Devices = None) -> int:
    """Run the server-side agent (started by --agent).

    On stdin and stdout, until stdin closes or falls silent; also as a forced command of ssh.
    """
    from bottleneck.agents import server as served
    from bottleneck.agents.request_checks import allowed_paths
    from probes.core.stage import Refused

    mode = 0 if sys.stdin is None else os.fstat(0).st_mode
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or mode and os.isatty(0)):
        raise Refused("usage", "agent: stdin must be a pipe; start it with --agent, or by ssh")
    # Without an option its caller, who has a shell here, may do all.
    limited = folder is not None or device is not None
    served.main(allowed_paths(folder or (), device or ()) if limited else None)
    return exits.DONE
