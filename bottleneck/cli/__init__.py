"""The commands: the only place that knows typer and exit codes."""

from __future__ import annotations

import os
import stat
import sys

from bottleneck.cli import interrupts
from probes.host.child import keep_private

closed: set[str] = set()
"""The standard streams that the starter closed (`<&-`, `>&-`, `2>&-`)."""


def open_missing() -> None:
    """Opens /dev/null for each of stdin, stdout and stderr that is closed.

    Otherwise the next file or socket that is opened would take its number, and what is printed
    would go there.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        try:
            os.fstat(number)
        except OSError:
            closed.add(name)
            opened = os.open(os.devnull, os.O_RDWR)
            if opened == number:
                os.set_inheritable(number, True)
            else:
                os.dup2(opened, number)
                os.close(opened)
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def refuse_block_devices() -> None:
    """Ends with 64 where stdout or stderr is a block device: none is ever written to."""
    found = [number for number in (1, 2) if stat.S_ISBLK(os.fstat(number).st_mode)]
    for number in found:
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    if found:
        print("bottleneck: an output is a block device: none is written to", file=sys.stderr)
        raise SystemExit(64)


def take_secrets() -> None:
    """Takes what the environment holds of secrets out of it."""
    from bottleneck import credentials

    credentials.take_from_environment()


def main() -> None:
    """Runs the command line and exits with its code."""
    # First of all: from here on no signal can end the program without its last words.
    interrupts.hold()
    # Before anything else is imported or started: no process of ours inherits a secret.
    keep_private()
    take_secrets()
    open_missing()
    refuse_block_devices()
    from bottleneck.cli.app import run
    from probes.host import tools

    tools.keep_to_safe_folders()

    code = run(sys.argv[1:])
    # The interpreter's own end would show a traceback.
    interrupts.ignore()
    sys.exit(code)
