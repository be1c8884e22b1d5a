"""A world: two hosts on this one machine, a link, a file server, and what is planted in them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import cgroups
import samba
from host import Host, host
from link import CLIENT_ADDRESS, SERVER_ADDRESS, link_hosts
from neighbours import neighbours
from plant import Plant

PREFIX = "bottleneck-lab-"
WORK = Path("/var/tmp")
LOCK = Path("/run/lock/bottleneck-lab")
PROGRAMS = (
    *"fio hostname ip iperf3 losetup mkfs.ext4 nsenter setpriv".split(),
    *"smbclient smbd smbpasswd tc unshare".split(),
)


@dataclass(frozen=True)
class World:
    plant: Plant
    client: Host
    server: Host
    share: samba.Share
    work: Path
    groups: tuple[str, ...]
    """Names of its cgroups, those of the planted neighbours included."""
    client_address: str = CLIENT_ADDRESS
    server_address: str = SERVER_ADDRESS


def missing() -> list[str]:
    """Returns what this machine lacks for a lab, a line each; empty: the lab can be built."""
    if os.geteuid() != 0:
        return ["needs root (namespaces, cgroups, loop devices)"]
    lacks = []
    if (os.cpu_count() or 1) < 2:
        lacks.append("needs two cores")
    files = [cgroups.ROOT / name / "cgroup.procs" for name in cgroups.CONTROLLERS]
    lacks += [f"needs {file} (cgroup v1)" for file in files if not file.exists()]
    lacks += [f"needs {file}" for file in cgroups.THROTTLES.values() if not file.exists()]
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        lacks.append(f"needs the programs {' '.join(absent)}")
    return lacks


@contextlib.contextmanager
def world(plant: Plant) -> Iterator[World]:
    """Build a world and take it down again in reverse, whatever happens inside.

    Raises RuntimeError when something does not come up; waits for another lab on this machine.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(_lab_lock())
        _sweep()
        prefix = f"{PREFIX}{os.getpid()}-"
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=prefix, dir=WORK)))
        work.chmod(0o711)  # the share's user passes through, and sees nothing
        client = stack.enter_context(host("client", f"{prefix}client", 0, plant.client, work))
        server = stack.enter_context(host("server", f"{prefix}server", 1, plant.server, work))
        stack.enter_context(link_hosts(client, server, plant))
        share = stack.enter_context(samba.serve(server, SERVER_ADDRESS, work, plant))
        hogs = stack.enter_context(neighbours(client, server, plant, work))
        groups = (client.group, server.group, *hogs)
        yield World(plant, client, server, share, work, groups)


@contextlib.contextmanager
def _lab_lock() -> Iterator[None]:
    """One lab at a time on this machine: two would be each other's bottleneck."""
    with LOCK.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("lab: waiting for another lab on this machine", file=sys.stderr)
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _sweep() -> None:
    """Remove what killed labs left: groups and folders with our prefix and a dead process's id."""
    for controller in cgroups.CONTROLLERS:
        for group in (cgroups.ROOT / controller).glob(f"{PREFIX}*"):
            if _is_orphan(group.name):
                cgroups.remove_group(group.name)
    for folder in WORK.glob(f"{PREFIX}*"):
        if _is_orphan(folder.name):
            for record in folder.glob("*.device"):
                cgroups.release(record.read_text())
            shutil.rmtree(folder)


def _is_orphan(name: str) -> bool:
    owner = name.removeprefix(PREFIX).split("-")[0]
    return owner.isdigit() and not Path("/proc", owner).exists()
