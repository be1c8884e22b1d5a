"""The foreign programs of this host: their paths and versions.

A program that anybody but root and this user could have written or can change is never run: it
would run with this user's rights, root's on most servers, and beside a password.
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
"""Folders that are root's own on every host (hier(7))."""

TAKE_OPEN_FILES = hasattr(os, "memfd_create")
"""Whether a program can take open files by name, as fio needs: only Linux has /proc/self/fd."""

VERSION_OPTIONS = {"fio": "--version", "ssh": "-V", "smbd": "--version"}


def find(name: str) -> str | None:
    """Returns the path of a program in the system's folders or, after them, PATH's safe ones.

    An ordinary user's or a forced command's PATH often lacks sbin.
    """
    return _first(name, (*SYSTEM_FOLDERS, *safe_folders()))


def find_named(name: str) -> str | None:
    """Returns the path of a program that a user named, as a shell would, from safe folders."""
    if os.path.basename(name) != name:  # noqa: PTH119
        return name
    return _first(name, safe_folders() or SYSTEM_FOLDERS)


def _first(name: str, folders: Sequence[str]) -> str | None:
    program = name if name.endswith(ENDING) else name + ENDING
    paths = (os.path.join(folder, program) for folder in folders)  # noqa: PTH118
    return next((each for each in paths if _is_program(each) and not others_can_change(each)), None)


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113


def program_output(command: Sequence[str], seconds: float, complaints: bool = False) -> str:
    """Returns a program's standard output; empty: it is missing or did not end in its time.

    command: the program by its path, or by its name for find(). complaints: with its standard
    error.
    """
    is_name = os.path.basename(command[0]) == command[0]  # noqa: PTH119
    program = find(command[0]) if is_name else command[0]
    if program is None:
        return ""
    try:
        process = subprocess.run(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if complaints else subprocess.DEVNULL,
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout.decode("utf-8", "replace")


def version(name: str) -> str | None:
    """Returns the version of a program; None: not installed, or not printed."""
    option = VERSION_OPTIONS.get(name, "--version")
    return parse_version(program_output((name, option), ANSWER_SECONDS, complaints=True))


def versions() -> dict[str, str]:
    """Returns versions of the programs that are installed."""
    texts = {name: version(name) for name in VERSION_OPTIONS}
    return {name: text for name, text in texts.items() if text is not None}


def parse_version(text: str) -> str | None:
    """Returns the first version in a program's output: "OpenSSH_9.2p1 Debian-2 ..." has 9.2p1."""
    match = re.search(r"(?<![\w.])(?:[A-Za-z]+[-_])*v?(\d+\.\d+[\w.]*)", text)
    return match[1] if match else None


def others_can_change(path: str, sticky: bool = False) -> str:
    """Returns the first folder, link or file on the way to a path that others can change.

    Empty: only root and this user can change what the path names, or create it. A relative path
    counts as changeable: the current folder is another's. Folders in which a group may create files
    but not change those of others are passed through (/nix/store); sticky: also those in which
    everybody may (/tmp). In a user namespace without root, root's usual folders are recognised by
    their names only.
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
    folder, names, links = "/", path.split("/")[::-1], 0
    while names:
        name = names.pop()
        if name in ("", "."):
            continue
        if name == "..":
            folder = os.path.dirname(folder)  # noqa: PTH120
            continue
        step = os.path.join(folder, name)  # noqa: PTH118
        try:
            status = os.lstat(step)
        except (FileNotFoundError, NotADirectoryError):
            open_here = _is_open(os.lstat(folder), hidden if folder in ROOTS_FOLDERS else owners)
            return step if open_here else ""
        except OSError:
            return step
        if stat.S_ISLNK(status.st_mode) and status.st_uid in owners and links < MOST_LINKS:
            target, links = os.readlink(step), links + 1  # noqa: PTH115
            folder = "/" if target.startswith("/") else folder
            names += target.split("/")[::-1]
            continue
        trusted = hidden if step in ROOTS_FOLDERS else owners
        passed = any(names) and _is_sticky(status, trusted, 0o022 if sticky else 0o020)
        if _is_open(status, trusted) and not passed:
            return step
        folder = step
    return ""


def _hidden_owner() -> set[int]:
    """Returns the number that the kernel shows for root where this user namespace lacks root.

    Every other account that is not mapped has the same number (user_namespaces(7)).
    """
    root_owner = os.lstat("/").st_uid
    try:
        spans = [line.split() for line in _text("/proc/self/uid_map").splitlines()]
        mapped = any(
            int(first) <= root_owner < int(first) + int(count) for first, _, count in spans
        )
        return {root_owner} if not mapped and root_owner == int(_text(OVERFLOW)) else set()
    except (OSError, ValueError):
        return set()


OVERFLOW = "/proc/sys/kernel/overflowuid"


def _text(path: str) -> str:
    with open(path, encoding="ascii") as file:  # noqa: PTH123
        return file.read()


def safe_folders() -> List[str]:
    """Returns PATH's absolute folders that nobody but root and this user can change."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    absolute = [each for each in dict.fromkeys(folders) if os.path.isabs(each)]  # noqa: PTH117
    return [each for each in absolute if not others_can_change(each)]


def keep_to_safe_folders() -> None:
    """Has all programs that this process starts look for others in safe folders alone."""
    os.environ["PATH"] = os.pathsep.join(safe_folders() or SYSTEM_FOLDERS)


def _is_open(status: os.stat_result, owners: Iterable[int]) -> bool:
    """Whether others can change a file or folder; a link is as safe as its folder."""
    if status.st_uid not in owners or stat.S_ISLNK(status.st_mode):
        return True
    by_group = status.st_mode & 0o020 and status.st_gid not in (
        *ADMINISTRATORS,
        accounts.private_group(os.geteuid()),
    )
    return bool(by_group or status.st_mode & 0o002)


def _is_sticky(status: os.stat_result, owners: Iterable[int], writers: int) -> bool:
    """Whether writers have only these rights in a folder and cannot change others' files in it."""
    mode = status.st_mode
    sticky = stat.S_ISDIR(mode) and mode & stat.S_ISVTX and status.st_uid in owners
    return bool(sticky) and mode & 0o022 & ~writers == 0
