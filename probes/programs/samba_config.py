"""Settings of this host's Samba that cost throughput.

Only those leave the host: no password, path or account is among them. testparm gets no
configuration that anybody but root and this user could write: it opens files named there, as its
user, so that `registry shares` in a stranger's file would have root create or overwrite a
`registry.tdb` of that stranger's choice.
"""

from __future__ import annotations

import contextlib
import glob
import re
import socket
import stat
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Iterable, Iterator, List, Optional, Sequence, Set, Tuple

from probes.core.field_types import Address, Port, Text
from probes.core.records import SMB_PORT, Details
from probes.core.stage import Unavailable
from probes.files.open_files import listeners, sockets
from probes.programs.costly_settings import costly, parse
from probes.system import tools
from probes.system.platform import os
from probes.system.proc import text
from probes.system.reader import reader
from probes.system.tools import others_can_change

ANSWER_SECONDS = 5.0
LONGEST_BYTES = 4 << 20
MOST_FILES = 100
BUILT_IN = (
    "/etc/samba/smb.conf",
    "/usr/local/samba/etc/smb.conf",
    "/usr/local/samba/lib/smb.conf",
    "/usr/local/etc/smb4.conf",
)
"""Usual paths of Samba's configuration; the existing one is read."""
_FILES = ("include", "configfile")
_FOLDERS = ("statedirectory", "lockdirectory", "lockdir", "privatedir", "privatedirectory")
"""Names of smb.conf(5) without their blanks; Samba ignores blanks and case."""


def settings(share: Text = "", address: Address = "", port: Port = SMB_PORT) -> List[Details]:
    """Returns the effective smb.conf's costly lines: option, value, share, why, remedy.

    share: the share's name, "": all shares. address and port: of its server on this host, as the
    client reaches it. share is None in a line that holds for all shares; matters_for is all, read,
    write, small-files, smb1 or durability. Raises Unavailable where no smbd runs here, where the
    one of several that serves the share is unknown, where others than root and this user can change
    the file, or where testparm does not answer.
    """
    host = socket.gethostname()
    configuration = _configuration(address, port)
    output = run_testparm(("--suppress-prompt", "--verbose"), configuration, ANSWER_SECONDS)
    sections = parse(output.stdout.decode("utf-8", "replace"))
    if "global" not in sections:
        name = configuration or "smb.conf"
        raise Unavailable(f"{name} of {host}: no permission to read; run the agent as root there")
    loaded = parse_loaded(output.stderr.decode("utf-8", "surrogateescape"))
    log_level = _log_level(configuration or loaded)
    sections["global"].pop("log level", None)
    if log_level is not None:
        sections["global"]["log level"] = log_level
    return [asdict(each) for each in costly(sections, share)]


def parse_command(words: Iterable[str]) -> Optional[str]:
    """Returns the configuration file in a command line of smbd; None: its built-in one."""
    file, takes_next = None, False
    for word in words:
        if takes_next:
            file, takes_next = word, False
        elif word in ("-s", "--configfile"):
            takes_next = True
        elif word.startswith("--configfile="):
            file = word.partition("=")[2]
        elif word.startswith("-s") and len(word) > 2:
            file = word[2:].lstrip("=")
    return file


def _configuration(address: str, port: int) -> Optional[str]:
    """Returns the configuration of the smbd that serves the port; None: Samba's built-in one."""
    host = socket.gethostname()
    stats = {pid: e for pid, e in reader().processes().items() if e.name.startswith("smbd")}
    # the first smbd listens and keeps its command line; its children may rewrite theirs
    pids = [pid for pid, each in stats.items() if each.parent not in stats]
    if not pids:
        raise Unavailable(f"no smbd runs on {host}, or none that its agent can see")
    with contextlib.suppress(OSError, ValueError):
        listening = listeners(address or "0.0.0.0", port)
        pids = [pid for pid in pids if listening & sockets(pid)] or pids
    # Anybody can run a process named smbd with a file of his.
    trusted = [pid for pid in pids if _is_trusted(pid)]
    if not trusted:
        raise Unavailable(
            f"smb.conf of {host} was not read: smbd (process {pids[0]}) belongs to another "
            "user; run the agent as that user"
        )
    if len({(_namespace(pid), parse_command(_command(pid))) for pid in trusted}) > 1:
        raise Unavailable(
            f"several Samba servers run on {host}, and its agent cannot see which one serves "
            f"port {port}; run the agent as root there"
        )
    return _file_of(trusted[0])


def _is_trusted(pid: int) -> bool:
    """Whether a process is an smbd that root or this user started, not by a set-uid bit."""
    users = parse_users(text(f"/proc/{pid}/status"))
    if users not in ({0}, {os.geteuid()}):
        return False
    try:
        program = os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115
    except PermissionError:
        return True  # only root sees what root's process runs
    except OSError:
        return False
    return program.rpartition("/")[2].startswith("smbd")


def parse_users(text: str) -> Set[int]:
    """Returns a process's user ids by /proc/PID/status: real, effective, saved, of files."""
    match = re.search(r"^Uid:((?:\s+\d+){4})\s*$", text, re.MULTILINE)
    return set(map(int, match[1].split())) if match else set()


def _file_of(pid: int) -> Optional[str]:
    """Returns the configuration file of an smbd; None: Samba's built-in one."""
    file, theirs = parse_command(_command(pid)), _namespace(pid)
    if theirs == _namespace(os.getpid()) or file is theirs is None or _has_our_root(pid):
        return file
    host = socket.gethostname()
    if theirs is None:
        raise Unavailable(
            f"smb.conf of {host} was not read: only root sees which files its smbd uses; run the "
            "agent as root there"
        )
    raise Unavailable(
        f"the smbd of {host} runs in a container, and its agent cannot see its smb.conf; run the "
        "agent in it"
    )


def _has_our_root(pid: int) -> bool:
    """Whether a process sees this host's files: a systemd unit or a network namespace has its own
    mount namespace, and a container another root."""
    try:
        theirs, ours = os.stat(f"/proc/{pid}/root/"), os.stat("/")  # noqa: PTH116
    except OSError:
        return False
    return (theirs.st_dev, theirs.st_ino) == (ours.st_dev, ours.st_ino)


def _command(pid: int) -> List[str]:
    with contextlib.suppress(OSError):
        text = Path(f"/proc/{pid}/cmdline").read_bytes().decode("utf-8", "surrogateescape")
        return text.split("\0")
    return []


def _namespace(pid: int) -> Optional[str]:
    with contextlib.suppress(OSError):
        return os.readlink(f"/proc/{pid}/ns/mnt")  # noqa: PTH115
    return None


def parse_loaded(text: str) -> Optional[str]:
    """Returns the file that testparm loads, by its stderr."""
    for line in text.splitlines():
        start, separator, path = line.partition("smb config files from ")
        if separator and start == "Load ":
            return path.strip()
    return None


def _log_level(configuration: Optional[str]) -> Optional[str]:
    if configuration is None:
        return None
    with contextlib.suppress(OSError), Path(configuration).open("rb") as file:
        return parse_log_level(file.read(LONGEST_BYTES).decode("utf-8", "replace"))
    return None


def parse_log_level(text: str) -> Optional[str]:
    """Returns the log level in the text of an smb.conf; testparm prints its own instead."""
    section, level = "global", None
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip().lower()
        name, equals, value = line.partition("=")
        # Samba ignores case and blanks in names
        option = "".join(name.split()).lower()
        if equals and section == "global" and option in ("loglevel", "debuglevel"):
            level = value.strip()
    return level


def run_testparm(
    options: Sequence[str], configuration: Optional[str], seconds: float
) -> subprocess.CompletedProcess[bytes]:
    """Has testparm load a configuration, or Samba's built-in one.

    Raises Unavailable where there is no testparm, where it does not end in its time, and where
    others can change the file or one named in it.
    """
    host = socket.gethostname()
    program = tools.find("testparm")
    if program is None:
        raise Unavailable(f"smb.conf of {host} was not read: testparm is not installed there")
    for each in (configuration,) if configuration else BUILT_IN:
        foreign = changeable_by_others(each)
        if foreign:
            raise Unavailable(
                f"smb.conf of {host} was not read: other users than root and the agent's can "
                f"change {foreign}; chown it to root and run chmod go-w"
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
    """Returns the first file or folder of a configuration that others can change; empty: none."""
    waiting, visited = [configuration], {""}
    while waiting:
        path = waiting.pop()
        if path in visited:
            continue
        visited.add(path)
        foreign = others_can_change(path, sticky=True)
        if foreign or len(visited) > MOST_FILES:
            return foreign or path
        try:
            text = _read(path)
        except OSError:
            continue  # missing or unreadable: testparm gets no further either
        if text is None:
            return path
        files, folders = parse_named(text)
        for each in folders:
            foreign = others_can_change(each, sticky=True)
            if foreign:
                return foreign
        for each in files:
            # A variable may stand for any file of that folder.
            folder, name = os.path.split(each)  # noqa: PTH206
            foreign = each if "*" in folder else others_can_change(folder, sticky=True)
            if foreign:
                return foreign
            waiting += glob.glob(each) if "*" in name else [each]  # noqa: PTH207
    return ""


def parse_named(text: str) -> Tuple[List[str], List[str]]:
    """Returns the files and the folders named in a configuration; `*` for a variable."""
    files, folders = [], []
    for name, value in _pairs(text):
        path = re.sub(r"%(\$\([^)]*\)|.)", "*", value)
        if name in _FILES and value != "registry":
            files.append(path)
        elif name in _FOLDERS:
            folders.append(path)
    return files, folders


def _pairs(text: str) -> Iterator[Tuple[str, str]]:
    """Yields option names, blanks removed, and values: by line, then with joined lines."""
    for lines in (text, re.sub(r"\\\r?\n", "", text)):
        for line in re.split(r"[\r\n]", lines):
            name, equals, value = line.partition("=")
            if equals:
                yield "".join(name.split()).lower(), value.strip()


def _read(path: str) -> Optional[str]:
    """Reads a configuration; None: not a regular file of root or this user, or too long."""
    # Opening a pipe that nobody writes must not block.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:  # noqa: PTH123
        status = os.fstat(file.fileno())
        ours = stat.S_ISREG(status.st_mode) and status.st_uid in (0, os.geteuid())
        if not ours or status.st_size > LONGEST_BYTES:
            return None
        return file.read(LONGEST_BYTES).decode("utf-8", "surrogateescape")
