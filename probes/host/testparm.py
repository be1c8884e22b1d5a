"""testparm, run on nothing that anybody but root and this user had a say in.

It opens what a configuration names, as its user: `registry shares` in the file of a stranger would
have root make or overwrite the `registry.tdb` of that stranger's choice. Runs on Python 3.9 with
the standard library alone: it travels to the server.
"""

from __future__ import annotations

import glob
import os
import re
import socket
import stat
import subprocess
from typing import Iterator, List, Optional, Sequence, Tuple

from probes.host import tools
from probes.host.ownership import others_can_change
from probes.stage import Unavailable

LONGEST_BYTES = 4 << 20
MOST_FILES = 100
BUILT_IN = (
    "/etc/samba/smb.conf",
    "/usr/local/samba/etc/smb.conf",
    "/usr/local/samba/lib/smb.conf",
    "/usr/local/etc/smb4.conf",
)
"""Where Samba's builders put it; the one that is there is read."""
_FILES = ("include", "configfile")
_FOLDERS = ("statedirectory", "lockdirectory", "lockdir", "privatedir", "privatedirectory")
"""Names of smb.conf(5) without their blanks; Samba ignores blanks and case."""


def run(
    options: Sequence[str], configuration: Optional[str], seconds: float
) -> subprocess.CompletedProcess[bytes]:
    """Has testparm load a configuration, or Samba's built-in one.

    Raises Unavailable where there is no testparm, where it does not end in its time, and where
    others can change the file or what it names.
    """
    host = socket.gethostname()
    program = tools.find("testparm")
    if program is None:
        raise Unavailable(f"smb.conf of {host} was not looked at: testparm is not installed there")
    for each in (configuration,) if configuration else BUILT_IN:
        foreign = changeable_by_others(each)
        if foreign:
            raise Unavailable(
                f"smb.conf of {host} was not read: others than root and the agent's user can "
                f"change {foreign}: give it to root and take their right to write (chmod go-w)"
            )
    try:
        return subprocess.run(
            [program, *options, *([configuration] if configuration else [])],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
            check=False,
            cwd="/",
            # A variable may name another configuration (SMB_CONF_PATH).
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"testparm of {host} did not answer within {seconds:.0f} s") from None
    except OSError as error:
        raise Unavailable(f"testparm of {host} does not run: {error.strerror}") from error


def changeable_by_others(configuration: str) -> str:
    """The first file or folder behind a configuration that others can change; empty: none."""
    waiting, seen = [configuration], {""}
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        foreign = others_can_change(path, sticky=True)
        if foreign or len(seen) > MOST_FILES:
            return foreign or path
        try:
            text = _read(path)
        except OSError:
            continue  # nothing there, or not ours to read: testparm gets no further
        if text is None:
            return path
        files, folders = parse_named(text)
        for each in folders:
            foreign = others_can_change(each, sticky=True)
            if foreign:
                return foreign
        for each in files:
            # What a variable stands for is any file of that folder.
            folder, name = os.path.split(each)  # noqa: PTH206
            foreign = each if "*" in folder else others_can_change(folder, sticky=True)
            if foreign:
                return foreign
            waiting += glob.glob(each) if "*" in name else [each]  # noqa: PTH207
    return ""


def parse_named(text: str) -> Tuple[List[str], List[str]]:
    """The files and the folders that a configuration names; `*` where it has a variable."""
    files, folders = [], []
    for name, value in _pairs(text):
        path = re.sub(r"%(\$\([^)]*\)|.)", "*", value)
        if name in _FILES and value != "registry":
            files.append(path)
        elif name in _FOLDERS:
            folders.append(path)
    return files, folders


def _pairs(text: str) -> Iterator[Tuple[str, str]]:
    """Names without blanks and values of a configuration; once more with its lines joined."""
    for lines in (text, re.sub(r"\\\r?\n", "", text)):
        for line in re.split(r"[\r\n]", lines):
            name, equals, value = line.partition("=")
            if equals:
                yield "".join(name.split()).lower(), value.strip()


def _read(path: str) -> Optional[str]:
    """A configuration as it was opened; None: not a plain file of root or us, or too long."""
    # Of one that is a pipe nobody writes, the opening must not wait.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123
        told = os.fstat(file.fileno())
        ours = stat.S_ISREG(told.st_mode) and told.st_uid in (0, os.geteuid())
        if not ours or told.st_size > LONGEST_BYTES:
            return None
        return file.read(LONGEST_BYTES).decode("utf-8", "surrogateescape")
