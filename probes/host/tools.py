"""The foreign programs of this host: where they are and which version."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import Sequence

SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin")
"""An ordinary user's or a forced command's PATH often lacks sbin."""

ANSWER_SECONDS = 3.0

VERSION_OPTIONS = {"fio": "--version", "ssh": "-V", "smbd": "--version"}


def find(name: str) -> str | None:
    """Path of a program in PATH or the system's folders."""
    folders = os.pathsep.join((os.environ.get("PATH", ""), *SYSTEM_FOLDERS))
    return shutil.which(name, path=folders)


def printed(command: Sequence[str], seconds: float) -> str:
    """What a program prints to stdout; empty: it is missing or did not end in its time."""
    try:
        done = subprocess.run(
            command,
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
