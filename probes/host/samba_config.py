"""What in the configuration of this host's Samba costs throughput.

Runs on Python 3.9 with the standard library alone: it travels to the server. Only options that
cost something leave the host: no password, path or account is among them.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Dict, Iterable, List, Mapping, Optional, Set, Tuple

from probes.host import testparm
from probes.host.reader import reader
from probes.host.samba_costs import RULES, Values
from probes.host.socket_owner import listeners, sockets
from probes.meaning import Address, Port, Text
from probes.records import Details
from probes.stage import Unavailable

ANSWER_SECONDS = 5.0
LONGEST_BYTES = 4 * 1024 * 1024
SMB_PORT = 445


def settings(share: Text = "", address: Address = "", port: Port = SMB_PORT) -> List[Details]:
    """Lines of the effective smb.conf that cost throughput: option, value, share, why, remedy.

    share: the share's name, "": all shares. address and port: where it is served on this host, as
    the client reaches it. share is None in a line that holds for all shares; matters_for is all,
    read, write, small-files, smb1 or durability. Raises Unavailable where no smbd runs here,
    where it cannot be told which of several serves the share, where others than root and this user
    have a say in the file, or where testparm does not answer.
    """
    host = socket.gethostname()
    configuration = _configuration(address, port)
    command = ("--suppress-prompt", "--verbose")
    told = testparm.run(command, configuration, ANSWER_SECONDS)
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
    host = socket.gethostname()
    seen = {pid: each for pid, each in reader().processes().items() if each.name.startswith("smbd")}
    # the first smbd listens and keeps its command line; those that it forked may rewrite theirs
    pids = [pid for pid, each in seen.items() if each.parent not in seen]
    if not pids:
        raise Unavailable(f"no smbd runs on {host}, or none that its agent can see")
    with contextlib.suppress(OSError, ValueError):
        listening = listeners(address or "0.0.0.0", port)
        serving = [pid for pid in pids if listening & sockets(pid)]
        pids = serving or pids
    # Anybody can call his process smbd and have it name a file.
    trusted = [pid for pid in pids if _is_trusted(pid)]
    if not trusted:
        raise Unavailable(
            f"smb.conf of {host} was not read: smbd (process {pids[0]}) is neither root's nor the "
            "agent's user's: start the agent as the user whose server it is"
        )
    if len({(_namespace(pid), parse_command(_command(pid))) for pid in trusted}) > 1:
        raise Unavailable(
            f"several Samba servers run on {host}, and its agent cannot see which "
            f"one serves port {port}: use root's agent there"
        )
    return _file_of(trusted[0])


def _is_trusted(pid: int) -> bool:
    """Whether a process is an smbd that root or this user started, and nobody by a set-uid bit."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    users = parse_users(status)
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
    """All user ids of a process, by /proc/PID/status: real, effective, saved, of files."""
    found = re.search(r"^Uid:((?:\s+\d+){4})\s*$", text, re.MULTILINE)
    return set(map(int, found[1].split())) if found else set()


def _file_of(pid: int) -> Optional[str]:
    """The configuration file of an smbd of this host's; None: Samba's built-in one."""
    named, theirs = parse_command(_command(pid)), _namespace(pid)
    if theirs == _namespace(os.getpid()) or named is theirs is None:
        return named
    where, remedy = "runs in a container", "start the agent in there"
    if theirs is None:
        where, remedy = "may run in a container", "use root's agent there"
    raise Unavailable(
        f"the smbd of {socket.gethostname()} {where}, whose smb.conf its agent cannot see: {remedy}"
    )


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


_ACL = "Windows rights are read from there and checked at each open"

MODULES: Dict[str, Tuple[str, str]] = {
    "acl_tdb": ("small-files", f"keeps ACLs in a database: {_ACL}"),
    "acl_xattr": ("small-files", f"keeps ACLs in extended attributes: {_ACL}"),
    "aio_fork": ("all", "does reads and writes in helper processes: data is copied between them"),
    "audit": ("small-files", "writes a line to syslog for each open, close, rename and deletion"),
    "cap": ("small-files", "translates each name"),
    "catia": ("small-files", "translates the characters of each name; data passes untouched"),
    "ceph": ("all", "files lie in a Ceph cluster: each read and write crosses its network"),
    "commit": ("write", "syncs to the disk again and again while a file is written"),
    "crossrename": (
        "small-files",
        "a rename across file systems becomes a copy, during which smbd answers nothing else",
    ),
    "delay_inject": ("all", "delays requests on purpose, for trials"),
    "dirsort": ("small-files", "reads and sorts a whole folder before it lists it"),
    "expand_msdfs": ("small-files", "looks up DFS links per client"),
    "extd_audit": ("small-files", "writes lines to syslog and log for each open and close"),
    "fruit": (
        "small-files",
        "keeps Apple's metadata and resource forks: more lookups at each open and in each listing",
    ),
    "full_audit": (
        "all",
        "writes a line to syslog for each operation that it is told to log; with all, for every "
        "read and write",
    ),
    "gluster_fuse": ("all", "files lie in a GlusterFS volume: requests cross its network"),
    "glusterfs": (
        "all",
        "files lie in a GlusterFS volume: each read and write crosses its network",
    ),
    "gpfs": ("all", "files lie in a GPFS cluster; leases and ACLs are asked there"),
    "media_harmony": ("small-files", "gives each client its own copy of media index files"),
    "nfs4acl_xattr": ("small-files", f"keeps NFSv4 ACLs in extended attributes: {_ACL}"),
    "posix_eadb": ("small-files", "keeps extended attributes in a database beside the files"),
    "prealloc": ("write", "allocates the blocks of files with certain endings before writing"),
    "readahead": ("read", "asks the kernel to read ahead; it competes with the kernel's own"),
    "recycle": (
        "small-files",
        "a deletion becomes a move into the recycle folder: space stays used",
    ),
    "scannedonly": ("all", "holds files back until a virus scanner has seen them"),
    "shadow_copy2": ("small-files", "looks at each path for a snapshot's time stamp"),
    "snapper": ("small-files", "looks at each path for a snapshot's time stamp"),
    "streams_depot": ("small-files", "keeps alternate streams in files beside: more lookups"),
    "streams_xattr": (
        "small-files",
        "keeps alternate streams in extended attributes, which each open and listing reads",
    ),
    "syncops": ("small-files", "syncs the folder after each creation, rename and deletion"),
    "time_audit": ("all", "takes the time of each single operation"),
    "unityed_media": ("small-files", "gives each client its own view of media folders"),
    "virusfilter": ("small-files", "a virus scanner reads each file at open or close"),
    "worm": ("small-files", "looks at the age of each file before it may be written"),
    "xattr_tdb": ("small-files", "keeps extended attributes in a database"),
    "zfsacl": ("small-files", f"takes ZFS's ACLs: {_ACL}"),
}
"""What Samba's VFS modules matter for and do to each request, by the vfs_*(8) pages of Samba 4.17;
one that is not here is not judged."""

Section = Dict[str, str]


@dataclass(frozen=True)
class Costly:
    """One setting that costs something."""

    option: str
    value: str
    share: Optional[str]
    """The share whose section sets it; None: it holds for all shares."""
    matters_for: str
    """all, read, write, small-files, smb1, durability."""
    why: str
    remedy: str


def parse(text: str) -> Dict[str, Section]:
    """Sections, by name as printed, of what `testparm -s` prints; [global] is "global"."""
    sections: Dict[str, Section] = {}
    current: Section = {}
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            current = sections.setdefault(line[1:-1], {})
        elif "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            current[name.strip().lower()] = value.strip()
    return sections


def parse_log_level(text: str) -> Optional[str]:
    """The log level that the text of an smb.conf sets; testparm prints its own instead."""
    section, found = "global", None
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip().lower()
        name, equals, value = line.partition("=")
        # Samba reads over case and blanks in names
        option = "".join(name.split()).lower()
        if equals and section == "global" and option in ("loglevel", "debuglevel"):
            found = value.strip()
    return found


def costly(sections: Mapping[str, Section], share: str = "") -> List[Costly]:
    """What costs throughput in [global] and in the share's section.

    share: a share's name in any case; one without a section of its own may be [homes]'s. "" looks
    at all of them.
    """
    everywhere = sections.get("global", {})
    shares = {name: section for name, section in sections.items() if name != "global"}
    if share:
        known = {name.lower(): name for name in shares}
        name = known.get(share.lower(), known.get("homes"))
        shares = {name: shares[name]} if name else {}
    in_all = _of(everywhere)
    found = [] if share and shares else list(in_all)
    for name, section in shares.items():
        for each in _of({**everywhere, **section}):
            told = each if each in in_all else replace(each, share=name)
            if told not in found:
                found.append(told)
    return found


def _of(values: Values) -> List[Costly]:
    found = []
    for rule in RULES:
        value = values.get(rule.option)
        if value is not None and rule.costs(value, values):
            found.append(Costly(rule.option, value, None, rule.matters_for, rule.why, rule.remedy))
    for module in values.get("vfs objects", "").replace(",", " ").split():
        known = MODULES.get(module.partition(":")[0].rpartition("/")[2])
        if known is not None:
            matters_for, why = known
            remedy = "leave it out of vfs objects if nobody needs it, and measure again"
            found.append(Costly("vfs objects", module, None, matters_for, why, remedy))
    return found
