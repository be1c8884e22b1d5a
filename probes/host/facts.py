"""Facts of a host before the first stage: system, programs, interface, folder.

Writes nothing. The caller judges which are missing and what that costs.
"""

from __future__ import annotations

import ctypes
import errno
import locale
import platform
import re
import socket
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Dict, Optional, Tuple

from probes.core.field_types import Address, Folder, Text
from probes.core.records import HostFacts
from probes.core.stage import Refused, Unavailable
from probes.files import folders, free_space, layers, page_cache, unnamed_file
from probes.host import cgroup, ethtool, interface, smb_client
from probes.host.memory import read_memory
from probes.programs import samba_config
from probes.programs.costly_settings import power_settings, sysctl, tcp_settings
from probes.sockets.sock_diag import Sockets
from probes.system import tools
from probes.system.child import NoAnswer, call_until
from probes.system.platform import os
from probes.system.proc import text, word

BUFFER_SYSCTLS = "net.core.rmem_max net.core.wmem_max net.ipv4.tcp_rmem net.ipv4.tcp_wmem".split()

HYPERVISOR_VENDORS = {
    "qemu": "kvm",
    "kvm": "kvm",
    "vmware": "vmware",
    "innotek": "virtualbox",
    "virtualbox": "virtualbox",
    "xen": "xen",
    "amazon ec2": "amazon-ec2",
    "google": "google-compute",
    "openstack": "openstack",
    "bochs": "bochs",
    "parallels": "parallels",
    "apple virtualization": "apple",
    "bhyve": "bhyve",
    "digitalocean": "digitalocean",
    "hetzner": "hetzner",
    "microsoft corporation virtual machine": "hyper-v",
}
"""Beginnings of "vendor product" in DMI, in lower case."""

CONTAINER_WORDS = ("docker", "podman", "kubepods", "containerd", "lxc", "machine.slice")


def host_facts(toward: Address, folder: Optional[Folder]) -> HostFacts:
    """Returns the facts of this host; unknown ones are None.

    toward: IP address of the peer, or empty. folder: an existing folder that copies use here.
    """
    pid = os.getpid()
    memory = read_memory()
    below = tuple(layers.layers(folder, ask_smart=True)) if folder is not None else ()
    client = smb_client.read(toward) or {}
    used = interface.interface_facts(toward) if toward else None
    return HostFacts(
        name=socket.gethostname(),
        system=f"{platform.system()} {platform.release()}",
        distribution=_os_release().get("PRETTY_NAME"),
        python=platform.python_version(),
        cores=_cores(),
        quota_cores=min((each.quota_cores for each in cgroup.quotas(pid)), default=None),
        memory_total_bytes=memory.total_bytes if memory else None,
        virtual=_virtual(),
        privileged=os.geteuid() == 0,
        interface=used,
        congestion_control=sysctl("net.ipv4.tcp_congestion_control") or None,
        socket_buffers={name: value for name in BUFFER_SYSCTLS if (value := sysctl(name))},
        folder=None if folder is None else replace(folders.folder_facts(folder), layers=below),
        tools=tools.versions(),
        tcp_settings=(
            *tcp_settings(client),
            *power_settings(bool(used and ethtool.sleeps(used.name))),
        ),
        disk_settings=tuple(layers.costly(below)),
        smb_client=client,
        smb_settings=tuple(smb_client.costly(client)),
    )


def parse_hypervisor(cpuinfo: str, vendor: str | None, product: str | None) -> str | None:
    """Returns the hypervisor by DMI's names, else by the flag that every x86 hypervisor sets."""
    name = f"{vendor or ''} {product or ''}".strip().lower()
    for beginning, hypervisor in HYPERVISOR_VENDORS.items():
        if name.startswith(beginning):
            return hypervisor
    if re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.MULTILINE):
        return "hypervisor"
    return None


def parse_container(cgroup_text: str, markers: list[str]) -> str | None:
    """Returns the container technology around us; markers: names from files and variables."""
    for each in (*markers, *CONTAINER_WORDS):
        if each in markers or each in cgroup_text:
            return each
    return None


def _virtual() -> str | None:
    """Returns container, hypervisor, or both as "docker on kvm"."""
    dmi = Path("/sys/class/dmi/id")
    below = parse_hypervisor(
        text("/proc/cpuinfo"), word(dmi / "sys_vendor"), word(dmi / "product_name")
    )
    markers = []
    if Path("/.dockerenv").exists():
        markers.append("docker")
    if Path("/run/.containerenv").exists():
        markers.append("podman")
    manager = word(Path("/run/systemd/container"))
    if manager:
        markers.insert(0, manager)
    around = parse_container(text("/proc/self/cgroup"), markers)
    return " on ".join(each for each in (around, below) if each) or None


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


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
    """Reason for which no file can be created there; empty: it can."""
    filesystem: Optional[str] = None
    nameless: bool = False
    """Whether nameless files are possible, which vanish with the run in any case."""
    usable_bytes: Optional[int] = None
    """Bytes that a run may write there; None: not reported."""
    beside: str = ""
    """Other folder on its file system where this user may write instead; empty: not needed."""


@dataclass(frozen=True)
class Readiness:
    """Facts of one host for a run; unknown ones are None or absent."""

    name: str
    system: str
    distribution: Optional[str]
    families: Tuple[str, ...]
    """ID and ID_LIKE of os-release(5), by which programs are installed."""
    python: str
    privileged: bool
    clock_seconds: float
    """Time of the reading since 1970, UTC."""
    encoding: str
    """Encoding of text on this host, by its locale."""
    programs: Dict[str, str] = field(default_factory=dict)
    """Versions of the installed programs; "?": unknown."""
    engines: Tuple[str, ...] = ()
    """Engines in ENGINES that fio has."""
    without_fio: bool = False
    """Whether fio cannot be used on this system, so that this tool does the disk I/O itself."""
    psutil: Optional[str] = None
    """Version of psutil; None: not installed for this Python."""
    proc: bool = False
    """Whether /proc shows processes and memory."""
    cache: str = ""
    """Proof of the page cache's state: cachestat, mincore; empty: none."""
    sockets: str = ""
    """Reason for which the kernel reports no sockets; empty: it does."""
    quotas: bool = False
    """Whether a CPU quota on this process would be visible."""
    interface: Optional[str] = None
    """Interface towards the other host."""
    driver: Optional[str] = None
    """Its driver, by ethtool; None: no answer."""
    place: Optional[Place] = None
    smb_client: Optional[int] = None
    """Number of known facts of the system's SMB client; None: not on this system."""


def readiness(toward: Address = "", folder: Optional[Folder] = None, share: Text = "") -> Readiness:
    """Returns the state of this host for a run.

    toward: IP address of the other host, or empty. folder: the folder of the copies, or None.
    share: the name of a share that this host serves, or empty.
    """
    release = _os_release()
    facts = interface.interface_facts(toward) if toward else None
    if folder is None and share:
        folder = _share_folder(share)
    client = smb_client.read(toward)
    return Readiness(
        name=socket.gethostname(),
        system=f"{platform.system()} {platform.release()}",
        distribution=release.get("PRETTY_NAME"),
        families=_families(release),
        python=platform.python_version(),
        privileged=hasattr(os, "geteuid") and os.geteuid() == 0,
        clock_seconds=time.time(),
        encoding=locale.getpreferredencoding(False),
        programs=_programs(),
        engines=parse_engines(tools.program_output(("fio", "--enghelp"), tools.ANSWER_SECONDS)),
        without_fio=not tools.TAKE_OPEN_FILES,
        psutil=_psutil(),
        proc=Path("/proc/self/stat").exists() and Path("/proc/meminfo").exists(),
        cache=_cache(),
        sockets=_sockets(),
        quotas=cgroup.shows_quotas(os.getpid()),
        interface=facts.name if facts else None,
        driver=ethtool.read_card(facts.name).driver if facts else None,
        place=None if folder is None else _place(folder, bool(share)),
        smb_client=None if client is None else len(client),
    )


def parse_os_release(written: str) -> Dict[str, str]:
    """Returns names and values of os-release(5), without their quotes."""
    pairs = (line.partition("=") for line in written.splitlines() if not line.startswith("#"))
    return {name.strip(): value.strip().strip("'\"") for name, equals, value in pairs if equals}


def parse_engines(printed: str) -> Tuple[str, ...]:
    """Returns the engines in ENGINES that `fio --enghelp` lists."""
    listed = {line.strip() for line in printed.splitlines()}
    return tuple(each for each in ENGINES if each in listed)


def _programs() -> Dict[str, str]:
    versions = {each: tools.version(each) or "?" for each in PROGRAMS if tools.find(each)}
    return {name: version[:40] for name, version in versions.items()}


def _psutil() -> Optional[str]:
    try:
        import psutil
    except Exception:  # whatever a broken installation raises
        return None
    return str(getattr(psutil, "__version__", "?"))


def _families(release: Dict[str, str]) -> Tuple[str, ...]:
    """Returns the distribution and its like; on other systems the name in sys.platform."""
    if not sys.platform.startswith("linux"):
        return (sys.platform,)
    return tuple([release.get("ID", ""), *release.get("ID_LIKE", "").split()])


def _cache() -> str:
    """Returns the proof of the page cache's state: ENOSYS says that there is no cachestat."""
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


def _place(path: str, served: bool) -> Place:
    """Examines a folder in a thread, which is abandoned where the file system does not answer.

    served: it is a share's, whose disk is measured beside it where this user may not write there.
    """
    try:
        return call_until(path, time.monotonic() + FOLDER_SECONDS, lambda: _looked_at(path, served))
    except NoAnswer as error:
        return Place(path, str(error)[:LONGEST_TROUBLE])


def _looked_at(path: str, served: bool) -> Place:
    try:
        free, total = free_space.space_of(path)
        facts = folders.folder_facts(path)
    except OSError as error:
        return Place(path, (error.strerror or str(error)).lower())
    trouble, without_name, beside = "", False, ""
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        try:
            beside = unnamed_file.writable_folder(path) if served else ""
            trouble = "" if beside else "no write permission"
        except Refused as error:
            trouble = error.text
    elif hasattr(os, "O_TMPFILE"):
        try:
            os.close(os.open(path, os.O_TMPFILE | os.O_RDWR | os.O_EXCL, 0o600))
            without_name = True
        except OSError as error:
            if error.errno not in unnamed_file.WITHOUT_TMPFILE:
                trouble = (error.strerror or str(error)).lower()
    usable = free_space.beyond_reserve_bytes(free, total) if total else None
    if not trouble and usable is not None and usable < free_space.LEAST_BYTES:
        trouble = free_space.no_room(free, total, free_space.LEAST_BYTES)
    return Place(path, trouble, facts.filesystem, without_name, usable, beside)


def _share_folder(share: str) -> Optional[str]:
    """Returns the folder of a share by smb.conf; None: there is none, or it has variables."""
    if share.startswith("-"):
        return None
    options = ["-s", f"--section-name={share}", "--parameter-name=path"]
    try:
        output = samba_config.run_testparm(options, None, TESTPARM_SECONDS)
    except Unavailable:
        return None
    path = output.stdout.decode("utf-8", "surrogateescape").strip()
    return path if path.startswith("/") and "%" not in path and "\n" not in path else None


def _os_release() -> Dict[str, str]:
    return parse_os_release(text("/etc/os-release") or text("/usr/lib/os-release"))
