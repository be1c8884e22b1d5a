"""The standard streams, as the starter left them."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import textwrap
from io import TextIOWrapper

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


def obey_locale() -> None:
    """Makes stdout and stderr ASCII where the user chose the C locale: Python writes UTF-8 there.

    PYTHONIOENCODING and PYTHONUTF8 are stronger. Source: PEP 540.
    """
    if any(os.environ.get(name) for name in ("PYTHONIOENCODING", "PYTHONUTF8")):
        return
    names = (os.environ.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    if next(filter(None, names), "") in ("C", "POSIX"):
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(encoding="ascii", errors="backslashreplace")


def wrapped_text(text: str) -> str:
    """Returns text for stderr, broken between words where that is a terminal."""
    if not sys.stderr.isatty():
        return text
    return textwrap.fill(text, shutil.get_terminal_size().columns, break_on_hyphens=False)


def refuse_block_devices() -> None:
    """Ends with 64 where stdout or stderr is a block device: none is ever written to."""
    numbers = [number for number in (1, 2) if stat.S_ISBLK(os.fstat(number).st_mode)]
    for number in numbers:
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    if numbers:
        print("bottleneck: stdout or stderr: a block device is never written to", file=sys.stderr)
        raise SystemExit(64)
