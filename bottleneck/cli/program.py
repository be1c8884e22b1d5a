"""The program, from its start to its exit code: what comes before any command."""

from __future__ import annotations

import sys

from bottleneck.cli import interrupts, streams
from probes.host.child import keep_private


def main() -> None:
    """Runs the command line and exits with its code."""
    # First of all: from here on no signal can end the program without its last words.
    interrupts.hold()
    # Before anything else is imported or started: no process of ours inherits a secret.
    keep_private()
    from bottleneck import credentials

    credentials.take_from_environment()
    streams.open_missing()
    streams.refuse_block_devices()
    from bottleneck.cli.app import run
    from probes.host import tools

    tools.keep_to_safe_folders()

    code = run(sys.argv[1:])
    # The interpreter's own end would show a traceback.
    interrupts.ignore()
    sys.exit(code)
