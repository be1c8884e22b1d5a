"""The terminal that words go to: its width, and who decides whether they have colours."""

from __future__ import annotations

import os
import shutil
import sys

from rich.console import Console

UNKNOWN_SIZE = (100, 24)
"""Of a pipe, whose width is nobody's wish: what a reader of a log can take."""


def console(stderr: bool = False) -> Console:
    """A console on stdout or stderr, as wide as its terminal.

    Colours: NO_COLOR and CLICOLOR=0 forbid them, FORCE_COLOR and CLICOLOR_FORCE ask for them where
    no terminal is, TTY_COMPATIBLE and TERM=dumb are obeyed too; a prohibition is stronger
    (no-color.org, bixense.com/clicolors, force-color.org).
    """
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else shutil.get_terminal_size(UNKNOWN_SIZE).columns
    forced = os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0")
    forbidden = os.environ.get("CLICOLOR") == "0" and not (forced or os.environ.get("FORCE_COLOR"))
    return Console(
        stderr=stderr,
        width=width,
        highlight=False,
        # None leaves it to rich, which knows all but CLICOLOR and CLICOLOR_FORCE.
        force_terminal=True if forced else None,
        no_color=True if forbidden else None,
    )


def moves(console: Console) -> bool:
    """Whether lines of it can be drawn anew: a real terminal that understands how, and no log."""
    return console.file.isatty() and console.is_interactive and console.is_terminal
