"""The commands: the only place that knows typer and exit codes."""

from __future__ import annotations

import sys

from bottleneck.cli import interrupts, streams


def refuse_numeric_bottleneck() -> None:
    """Ends with 64, a check with 3, where PyPI's numeric package of our import name is here too."""
    from importlib import metadata

    try:
        found = metadata.version("Bottleneck")
    except metadata.PackageNotFoundError:
        return
    print(
        f"bottleneck: the numeric package Bottleneck {found} is installed beside this program and "
        "each would overwrite the other; install this one apart: uv tool install copy-bottleneck",
        file=sys.stderr,
    )
    raise SystemExit(3 if sys.argv[1:2] == ["check"] else 64)


def main() -> None:
    """Runs the command line and exits with its code."""
    # First of all: from here on no signal can end the program without its last words.
    interrupts.hold()
    streams.open_missing()
    streams.refuse_block_devices()
    refuse_numeric_bottleneck()
    from bottleneck.cli.app import run

    code = run(sys.argv[1:])
    # The interpreter's own end would show a traceback.
    interrupts.ignore()
    sys.exit(code)
