"""What of this host a run would use: programs, rights and what its kernel tells; writes nothing.

Facts alone: what is missing and what that costs is judged by who asked.
"""

from __future__ import annotations

import ctypes
import errno
import locale
import os
import platform
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Callable, Dict, List, Optional, Tuple

from probes.host import cgroup, ethtool, folders, free_space, interface, nameless, page_cache, tools
from probes.host.patience import NoAnswer, answered
from probes.host.sock_diag import Sockets
from probes.stage import Unavailable

PROGRAMS = ("fio", "ssh", "smbclient", "smbd", "smartctl")
ENGINES = ("libaio", "io_uring")
FOLDER_SECONDS = 5.0
TESTPARM_SECONDS = 3.0
LONGEST_TROUBLE = 200


@dataclass(frozen=True)
class Place:
    """A folder that copies would use."""

    path: str
    trouble: str = ""
    """Why no file can be made there; empty: it can."""
    filesystem: Optional[str] = None
    nameless: bool = False
    """Whether a file without a name can be made: it goes by itself, however a run ends."""
    usable_bytes: Optional[int] = None
    """What a run may write there; None: its file system does not tell."""


@dataclass(frozen=True)
class Readiness:
    """One host; what cannot be told is None or absent."""

    name: str
    system: str
    distribution: Optional[str]
    families: Tuple[str, ...]
    """ID and ID_LIKE of os-release(5): what decides how programs are installed."""
    python: str
    privileged: bool
    clock_seconds: float
    """Since 1970, UTC, when this was asked."""
    encoding: str
    """Of text on this host, by its locale."""
    programs: Dict[str, str] = field(default_factory=dict)
    """Versions of those that are installed; "?": it does not say."""
    engines: Tuple[str, ...] = ()
    """Of ENGINES, those that fio has."""
    psutil: Optional[str] = None
    """Its version; None: not installed for this Python."""
    proc: bool = False
    """Whether /proc tells of processes and memory."""
    cache: str = ""
    """How the page cache is proven: cachestat, mincore; empty: it cannot be."""
    sockets: str = ""
    """Why the kernel tells of no sockets; empty: it does."""
    quotas: bool = False
    """Whether a CPU quota on this process would be seen."""
    interface: Optional[str] = None
    """The one towards the other host."""
    driver: Optional[str] = None
    """Whoever answers ethtool's questions about it; None: nobody."""
    place: Optional[Place] = None
    share_folder: Optional[str] = None
    """The folder of the named share by this host's smb.conf; None: not found."""


def readiness(toward: str = "", folder: Optional[str] = None, share: str = "") -> Readiness:
    """This host as a run would find it.

    toward: IP address of the other host, or empty. folder: where copies would be made, or None.
    share: the name of a share that this host serves, or empty.
    """
    about = parse_os_release(_text("/etc/os-release") or _text("/usr/lib/os-release"))
    facts = interface.interface_facts(toward) if toward else None
    there = _share_folder(share) if share else None
    if folder is None:
        folder = there
    return Readiness(
        name=socket.gethostname(),
        system=f"{platform.system()} {platform.release()}",
        distribution=about.get("PRETTY_NAME"),
        families=tuple([about.get("ID", ""), *about.get("ID_LIKE", "").split()]),
        python=platform.python_version(),
        privileged=hasattr(os, "geteuid") and os.geteuid() == 0,
        clock_seconds=time.time(),
        encoding=locale.getpreferredencoding(False),
        programs=_programs(),
        engines=_engines(),
        psutil=_psutil(),
        proc=Path("/proc/self/stat").exists() and Path("/proc/meminfo").exists(),
        cache=_cache(),
        sockets=_sockets(),
        quotas=cgroup.shows_quotas(os.getpid()),
        interface=facts.name if facts else None,
        driver=ethtool.read_card(facts.name).driver if facts else None,
        place=None if folder is None else _place(folder),
        share_folder=there,
    )


def parse_os_release(text: str) -> Dict[str, str]:
    """Names and values of os-release(5), without their quotes."""
    pairs = (line.partition("=") for line in text.splitlines() if not line.startswith("#"))
    return {name.strip(): value.strip().strip("'\"") for name, equals, value in pairs if equals}


def parse_engines(text: str) -> Tuple[str, ...]:
    """Those of ENGINES that `fio --enghelp` lists."""
    listed = {line.strip() for line in text.splitlines()}
    return tuple(each for each in ENGINES if each in listed)


def _programs() -> Dict[str, str]:
    found = {each: tools.version(each) or "?" for each in PROGRAMS if tools.find(each)}
    return {name: version[:40] for name, version in found.items()}


def _engines() -> Tuple[str, ...]:
    path = tools.find("fio")
    return parse_engines(tools.printed([path, "--enghelp"], tools.ANSWER_SECONDS)) if path else ()


def _psutil() -> Optional[str]:
    try:
        import psutil
    except Exception:  # whatever a broken installation raises
        return None
    return str(getattr(psutil, "__version__", "?"))


def _cache() -> str:
    """The kernel's answer for no file at all: ENOSYS says that it has no cachestat."""
    if not sys.platform.startswith("linux"):
        return ""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(page_cache.CACHESTAT, -1, None, None, 0)
    return "mincore" if ctypes.get_errno() == errno.ENOSYS else "cachestat"


def _sockets() -> str:
    try:
        with Sockets() as sockets:
            sockets.find((9,), "127.0.0.1", serving=False)
    except (Unavailable, OSError) as error:
        return str(error)[:LONGEST_TROUBLE]
    return ""


def _place(path: str) -> Place:
    """A folder, asked in a thread that is left where its file system does not answer."""
    told: List[Place] = []
    look: Callable[[], None] = lambda: told.append(_looked_at(path))  # noqa: E731
    try:
        answered(path, time.monotonic() + FOLDER_SECONDS, look)
    except NoAnswer as error:
        return Place(path, str(error)[:LONGEST_TROUBLE])
    return told[0]


def _looked_at(path: str) -> Place:
    try:
        usable = free_space.usable_bytes(path) if os.statvfs(path).f_blocks else None
        facts = folders.folder_facts(path)
    except OSError as error:
        return Place(path, (error.strerror or str(error)).lower())
    trouble, without_name = "", False
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        trouble = "no right to write there"
    elif hasattr(os, "O_TMPFILE"):
        try:
            os.close(os.open(path, os.O_TMPFILE | os.O_RDWR | os.O_EXCL, 0o600))
            without_name = True
        except OSError as error:
            if error.errno not in nameless.WITHOUT_TMPFILE:
                trouble = (error.strerror or str(error)).lower()
    return Place(path, trouble, facts.filesystem, without_name, usable)


def _share_folder(share: str) -> Optional[str]:
    """The folder of a share by smb.conf; None: there is none, or its name holds variables."""
    testparm = tools.find("testparm")
    if testparm is None or share.startswith("-"):
        return None
    command = [testparm, "-s", f"--section-name={share}", "--parameter-name=path"]
    try:
        told = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=TESTPARM_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    path = told.stdout.decode("utf-8", "surrogateescape").strip()
    return path if path.startswith("/") and "%" not in path and "\n" not in path else None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
