"""What in the configuration of this host's Samba costs throughput.

Runs on Python 3.9 with the standard library alone: it travels to the server. Only options that
cost something leave the host: no password, path or account is among them.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Iterable, List, Optional

from probes.host import tools
from probes.host.listeners import listeners, sockets
from probes.host.processes import read_all
from probes.host.samba_costs import costly, parse, parse_log_level
from probes.records import Details
from probes.stage import Unavailable

ANSWER_SECONDS = 5.0
LONGEST_BYTES = 4 * 1024 * 1024
SMB_PORT = 445


def settings(share: str = "", address: str = "", port: int = SMB_PORT) -> List[Details]:
    """Lines of the effective smb.conf that cost throughput: option, value, share, why, remedy.

    share: the share's name, "": all shares. address and port: where it is served on this host, as
    the client reaches it. share is None in a line that holds for all shares; matters_for is all,
    read, write, small-files, smb1 or durability. Raises Unavailable where no smbd runs here,
    where it cannot be told which of several serves the share, or where testparm does not answer.
    """
    testparm = tools.find("testparm")
    host = socket.gethostname()
    if testparm is None:
        raise Unavailable(f"smb.conf of {host} was not looked at: testparm is not installed there")
    configuration = _configuration(address, port)
    command = [testparm, "--suppress-prompt", "--verbose"]
    try:
        told = subprocess.run(
            [*command, configuration] if configuration else command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        text = f"testparm of {host} did not answer within {ANSWER_SECONDS:.0f} s"
        raise Unavailable(text) from None
    except OSError as error:
        raise Unavailable(f"testparm of {host} does not run: {error.strerror}") from error
    sections = parse(told.stdout.decode("utf-8", "replace"))
    if "global" not in sections:
        name = configuration or "smb.conf"
        raise Unavailable(f"{name} of {host} cannot be read by this user: use root's agent there")
    loaded = parse_loaded(told.stderr.decode("utf-8", "surrogateescape"))
    log_level = _log_level(configuration or loaded)
    sections["global"].pop("log level", None)
    if log_level is not None:
        sections["global"]["log level"] = log_level
    return [asdict(each) for each in costly(sections, share)]


def parse_command(words: Iterable[str]) -> Optional[str]:
    """The configuration file that a command line of smbd names; None: its built-in one."""
    found, takes_next = None, False
    for word in words:
        if takes_next:
            found, takes_next = word, False
        elif word in ("-s", "--configfile"):
            takes_next = True
        elif word.startswith("--configfile="):
            found = word.partition("=")[2]
        elif word.startswith("-s") and len(word) > 2:
            found = word[2:].lstrip("=")
    return found


def _configuration(address: str, port: int) -> Optional[str]:
    """The file of the smbd that serves the port; None: Samba's built-in one."""
    seen = {pid: each for pid, each in read_all().items() if each.name.startswith("smbd")}
    # the first smbd listens and keeps its command line; those that it forked may rewrite theirs
    pids = [pid for pid, each in seen.items() if each.parent not in seen]
    if not pids:
        raise Unavailable(f"no smbd runs on {socket.gethostname()}, or none that its agent can see")
    with contextlib.suppress(OSError, ValueError):
        listening = listeners(address or "0.0.0.0", port)
        serving = [pid for pid in pids if listening & sockets(pid)]
        pids = serving or pids
    named = {_file_of(pid) for pid in pids}
    if len(named) > 1:
        raise Unavailable(
            f"several Samba servers run on {socket.gethostname()}, and its agent cannot see which "
            f"one serves port {port}: use root's agent there"
        )
    return named.pop()


def _file_of(pid: int) -> Optional[str]:
    """The configuration file of an smbd, as a path that this process can open."""
    named, theirs = parse_command(_command(pid)), _namespace(pid)
    if theirs == _namespace(os.getpid()) or named is theirs is None:
        return named
    # it runs in a container whose files are others
    if named is None:
        raise Unavailable(
            f"the smbd of {socket.gethostname()} runs in a container, whose smb.conf its agent "
            "does not know: start the agent in there"
        )
    return f"/proc/{pid}/root{named}"


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
    """The file that testparm says it loads, on stderr."""
    for line in text.splitlines():
        before, found, path = line.partition("smb config files from ")
        if found and before == "Load ":
            return path.strip()
    return None


def _log_level(configuration: Optional[str]) -> Optional[str]:
    if configuration is None:
        return None
    with contextlib.suppress(OSError), Path(configuration).open("rb") as file:
        return parse_log_level(file.read(LONGEST_BYTES).decode("utf-8", "replace"))
    return None
