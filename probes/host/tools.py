"""The foreign programs of this host: where they are and which version.

No program is run that anybody but root and this user could have put there or can change: it would
run with this user's rights, root's on most servers, and beside a password.
"""

from __future__ import annotations

import os
import re
import subprocess
from typing import Sequence

from probes.host import ownership

ANSWER_SECONDS = 3.0

VERSION_OPTIONS = {"fio": "--version", "ssh": "-V", "smbd": "--version"}


def find(name: str) -> str | None:
    """Path of a program in the system's folders or, behind them, in the safe ones of PATH.

    An ordinary user's or a forced command's PATH often lacks sbin.
    """
    return _first(name, (*ownership.SYSTEM_FOLDERS, *ownership.safe_folders()))


def find_named(name: str) -> str | None:
    """Path of a program that a user named, found as a shell would, but in safe folders alone."""
    if "/" in name:
        return name
    return _first(name, ownership.safe_folders() or ownership.SYSTEM_FOLDERS)


def _first(name: str, folders: Sequence[str]) -> str | None:
    paths = (os.path.join(folder, name) for folder in folders)  # noqa: PTH118
    safe = (each for each in paths if _is_program(each) and not ownership.others_can_change(each))
    return next(safe, None)


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113


def printed(command: Sequence[str], seconds: float) -> str:
    """What a program prints to stdout; empty: it is missing or did not end in its time.

    command: the program by its path, or by the name that find() knows it by.
    """
    program = command[0] if "/" in command[0] else find(command[0])
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")


def version(name: str) -> str | None:
    """Version of a program; None: not installed, or it does not say."""
    path = find(name)
    if path is None:
        return None
    try:
        told = subprocess.run(
            [path, VERSION_OPTIONS.get(name, "--version")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_version(told.stdout.decode("utf-8", "replace"))


def versions() -> dict[str, str]:
    """Versions of the programs that are installed."""
    told = {name: version(name) for name in VERSION_OPTIONS}
    return {name: text for name, text in told.items() if text is not None}


def parse_version(text: str) -> str | None:
    """The first version in what a program says: "OpenSSH_9.2p1 Debian-2 ..." has 9.2p1."""
    found = re.search(r"(?<![\w.])(?:[A-Za-z]+[-_])?v?(\d+\.\d+[\w.]*)", text)
    return found[1] if found else None
