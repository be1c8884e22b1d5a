"""The foreign programs of this host: where they are and which version.

No program is run that anybody but root and this user could have put there or can change: it would
run with this user's rights, root's on most servers, and beside a password.
"""

from __future__ import annotations

import re
import stat
import subprocess
import sys
from typing import Iterable, List, Sequence

from probes.system import accounts
from probes.system.platform import os

if sys.platform == "win32":
    from probes.system.windows.os import SYSTEM_FOLDERS, is_private

    ENDING = ".exe"
else:
    SYSTEM_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin")
    ENDING = ""
MOST_LINKS = 40
ADMINISTRATORS = (0, 80) if sys.platform == "darwin" else ()
"""Groups whose members may become root anyway: wheel and admin, whom Homebrew's folders belong to.
"""
ANSWER_SECONDS = 3.0
ROOTS_FOLDERS = ("/", "/home", "/tmp", "/var", "/var/tmp")
"""On every host root's own (hier(7))."""

TAKE_OPEN_FILES = hasattr(os, "memfd_create")
"""Whether a program can be given open files by name, as fio needs: /proc/self/fd is Linux' own."""

VERSION_OPTIONS = {"fio": "--version", "ssh": "-V", "smbd": "--version"}


def find(name: str) -> str | None:
    """Path of a program in the system's folders or, behind them, in the safe ones of PATH.

    An ordinary user's or a forced command's PATH often lacks sbin.
    """
    return _first(name, (*SYSTEM_FOLDERS, *safe_folders()))


def find_named(name: str) -> str | None:
    """Path of a program that a user named, found as a shell would, but in safe folders alone."""
    if os.path.basename(name) != name:  # noqa: PTH119
        return name
    return _first(name, safe_folders() or SYSTEM_FOLDERS)


def _first(name: str, folders: Sequence[str]) -> str | None:
    program = name if name.endswith(ENDING) else name + ENDING
    paths = (os.path.join(folder, program) for folder in folders)  # noqa: PTH118
    safe = (each for each in paths if _is_program(each) and not others_can_change(each))
    return next(safe, None)


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113


def printed(command: Sequence[str], seconds: float, complaints: bool = False) -> str:
    """What a program prints to stdout; empty: it is missing or did not end in its time.

    command: the program by its path, or by the name that find() knows it by. complaints: and what
    it prints to stderr.
    """
    named = os.path.basename(command[0]) == command[0]  # noqa: PTH119
    program = find(command[0]) if named else command[0]
    if program is None:
        return ""
    try:
        done = subprocess.run(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if complaints else subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")


def version(name: str) -> str | None:
    """Version of a program; None: not installed, or it does not say."""
    option = VERSION_OPTIONS.get(name, "--version")
    return parse_version(printed((name, option), ANSWER_SECONDS, complaints=True))


def versions() -> dict[str, str]:
    """Versions of the programs that are installed."""
    told = {name: version(name) for name in VERSION_OPTIONS}
    return {name: text for name, text in told.items() if text is not None}


def parse_version(text: str) -> str | None:
    """The first version in what a program says: "OpenSSH_9.2p1 Debian-2 ..." has 9.2p1."""
    found = re.search(r"(?<![\w.])(?:[A-Za-z]+[-_])*v?(\d+\.\d+[\w.]*)", text)
    return found[1] if found else None


def others_can_change(path: str, sticky: bool = False) -> str:
    """The first folder, link or file on the way to a path that others can change.

    Empty: what the path names, or that nothing is there, is up to root and this user alone. Where
    a relative one leads is up to whoever made the current folder. Folders in which a group may
    make files but change none of others' are passed through (/nix/store); sticky: those in which
    everybody may, too (/tmp). In a user namespace without root, root's usual folders are known by
    their names alone.
    """
    if sys.platform == "win32":
        return "" if is_private(path) else path
    owners = {0, os.geteuid()}
    hidden = owners | _hidden_owner()
    if path in SYSTEM_FOLDERS or os.path.dirname(path) in SYSTEM_FOLDERS:  # noqa: PTH120
        owners.add(os.lstat("/").st_uid)  # in a user namespace the system's owner may not be 0
    if not path.startswith("/"):
        return path
    if _is_open(os.lstat("/"), hidden):
        return "/"
    here, left, links = "/", path.split("/")[::-1], 0
    while left:
        name = left.pop()
        if name in ("", "."):
            continue
        if name == "..":
            here = os.path.dirname(here)  # noqa: PTH120
            continue
        step = os.path.join(here, name)  # noqa: PTH118
        try:
            told = os.lstat(step)
        except (FileNotFoundError, NotADirectoryError):
            open_here = _is_open(os.lstat(here), hidden if here in ROOTS_FOLDERS else owners)
            return step if open_here else ""
        except OSError:
            return step
        if stat.S_ISLNK(told.st_mode) and told.st_uid in owners and links < MOST_LINKS:
            target, links = os.readlink(step), links + 1  # noqa: PTH115
            here = "/" if target.startswith("/") else here
            left += target.split("/")[::-1]
            continue
        trusted = hidden if step in ROOTS_FOLDERS else owners
        passed = any(left) and _is_sticky(told, trusted, 0o022 if sticky else 0o020)
        if _is_open(told, trusted) and not passed:
            return step
        here = step
    return ""


def _hidden_owner() -> set[int]:
    """What the kernel shows as root's number where this user namespace has none for it.

    Every other account that is not mapped has the same one (user_namespaces(7)).
    """
    shown = os.lstat("/").st_uid
    try:
        spans = [line.split() for line in _text("/proc/self/uid_map").splitlines()]
        mapped = any(int(first) <= shown < int(first) + int(count) for first, _, count in spans)
        return {shown} if not mapped and shown == int(_text(OVERFLOW)) else set()
    except (OSError, ValueError):
        return set()


OVERFLOW = "/proc/sys/kernel/overflowuid"


def _text(path: str) -> str:
    with open(path, encoding="ascii") as file:  # noqa: PTH123
        return file.read()


def safe_folders() -> List[str]:
    """The folders of PATH that are absolute and that nobody but root and this user can change."""
    named = os.environ.get("PATH", os.defpath).split(os.pathsep)
    absolute = [each for each in dict.fromkeys(named) if os.path.isabs(each)]  # noqa: PTH117
    return [each for each in absolute if not others_can_change(each)]


def keep_to_safe_folders() -> None:
    """Has all that this process starts look for programs in safe folders alone."""
    os.environ["PATH"] = os.pathsep.join(safe_folders() or SYSTEM_FOLDERS)


def _is_open(told: os.stat_result, owners: Iterable[int]) -> bool:
    """Whether others can change what was looked at; a link is as safe as its folder."""
    if told.st_uid not in owners or stat.S_ISLNK(told.st_mode):
        return True
    by_group = told.st_mode & 0o020 and told.st_gid not in (
        *ADMINISTRATORS,
        accounts.private_group(os.geteuid()),
    )
    return bool(by_group or told.st_mode & 0o002)


def _is_sticky(told: os.stat_result, owners: Iterable[int], writers: int) -> bool:
    """Whether a folder's writers, these alone, can change nothing that others made in it."""
    mode = told.st_mode
    sticky = stat.S_ISDIR(mode) and mode & stat.S_ISVTX and told.st_uid in owners
    return bool(sticky) and mode & 0o022 & ~writers == 0
