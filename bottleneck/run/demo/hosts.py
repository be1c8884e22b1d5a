"""The demo's two hosts: this process as the client, a private Samba in the server's namespace.

All of it ends with this process, even by kill -9; the next run removes remaining folders.
"""

from __future__ import annotations

import json
import os
import secrets
import select
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bottleneck.run.demo import network
from bottleneck.run.demo.plants import READS, Plant, cores, io_groups, whole_disk
from probes.core.stage import Unavailable
from probes.files import removal
from probes.files.created_folder import CreatedFolder, own_folder
from probes.programs.samba import private_samba
from probes.system.child import Child, end_with_parent, spawn
from probes.system.events import Event, Work

CLIENT_ADDRESS, SERVER_ADDRESS = "192.0.2.1", "192.0.2.2"
START_SECONDS, STOP_SECONDS = 30.0, 10.0

_ENTER = """
import ctypes, os, sys
pid, group = sys.argv[1:3]
os.sched_setaffinity(0, os.sched_getaffinity(int(pid)))
if group:
    with open(group, "w") as file: file.write("0")
spaces = [os.open(f"/proc/{pid}/ns/{each}", os.O_RDONLY) for each in ("user", "net")]
for each, other in zip(spaces, ("user", "net")):
    if not os.path.samestat(os.fstat(each), os.stat(f"/proc/self/ns/{other}")):
        if ctypes.CDLL(None, use_errno=True).setns(each, 0): sys.exit(126)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""Joins the server's cores, control group and namespaces, then runs a command."""


def trouble() -> str:
    """Returns why this host does not allow two linked namespaces; empty: it does."""

    def try_namespaces(tell: Callable[[Event], None], control: int) -> None:
        try:
            network.isolate()
            network.join((network.LINK, os.getpid()), ("peer", os.getpid()))
            network.set_up(network.LINK, CLIENT_ADDRESS, 10**9)
            network.isolate()
        except OSError as error:
            raise Unavailable((error.strerror or str(error)).lower()) from error
        tell({})

    with _run_child(try_namespaces) as child:
        try:
            _answer(child)
        except Unavailable as error:
            return str(error)
    return ""


@contextmanager
def two(plant: Plant, folder: Path, password: str) -> Iterator[tuple[str, str, str]]:
    """Makes this process the client, permanently, and serves the folder from another host.

    Yields its TARGET, the SPEC of its agent, and the user's name.

    Errors: Unavailable: Samba is absent or does not come up; OSError.
    """
    client_cores, server_cores = cores(plant)
    with ExitStack() as stack:
        group = stack.enter_context(_io_group(plant, folder))
        network.isolate()
        os.sched_setaffinity(0, client_cores)
        procs = "" if group is None else str(group[0] / "cgroup.procs")

        def serve(tell: Callable[[Event], None], control: int) -> None:
            import resource  # POSIX's alone

            # The memory limit of a probe is too low for Samba's threads.
            hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
            resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))
            os.sched_setaffinity(0, server_cores)
            _isolate(tell, control)
            _set_up(SERVER_ADDRESS, plant)
            for _ in range(plant.neighbours):
                _busy()
            if procs:
                Path(procs).write_text("0")
            with private_samba(
                folder, password=password, address=SERVER_ADDRESS, options=plant.samba_options
            ) as samba:
                tell({"port": samba.port, "pid": samba.process_id, "user": samba.username})
                os.read(control, 1)

        server = stack.enter_context(_run_child(serve))
        _answer(server)
        _join(stack, server, plant.delay_seconds)
        _set_up(CLIENT_ADDRESS, plant)
        os.write(server.control_fd, b"1")
        answer = _answer(server)
        if group is not None:
            group[1].ends_first(answer["pid"])
        prefix = [sys.executable, "-I", "-c", _ENTER, str(answer["pid"]), procs]
        target = f"//{SERVER_ADDRESS}:{answer['port']}/share"
        yield target, f"exec:{shlex.join(prefix)}", answer["user"]


def _set_up(address: str, plant: Plant) -> None:
    """Brings up this end of the link, and sets its congestion control if the link is far."""
    network.set_up(network.LINK, address, plant.bits_per_second)
    if plant.delay_seconds:
        network.send_without_pacing()


def _join(stack: ExitStack, server: Child, delay_seconds: float) -> None:
    """Creates the link to the server, with a relay in between if it has a delay."""
    here, there = (network.LINK, os.getpid()), (network.LINK, server.pid)
    if not delay_seconds:
        network.join(here, there)
        return

    def delay(tell: Callable[[Event], None], control: int) -> None:
        _isolate(tell, control)
        for each in network.ENDS:
            network.set_up(each)
        tell({})
        network.carry(delay_seconds, control)

    between = stack.enter_context(_run_child(delay))
    _answer(between)
    near, far = ((each, between.pid) for each in network.ENDS)
    network.join(here, near)
    network.join(far, there)
    os.write(between.control_fd, b"1")
    _answer(between)


def _isolate(tell: Callable[[Event], None], control: int) -> None:
    """Moves this process into a new namespace, and waits for its links."""
    parent = os.getppid()
    network.isolate()
    end_with_parent(parent)  # the kernel cleared it when the credentials changed
    tell({})
    if not os.read(control, 1):
        os._exit(0)


def _busy() -> None:
    """Starts a process that uses all CPU time that it gets, until this one ends."""
    parent = os.getpid()
    if not os.fork():
        os.setsid()  # a session of its own, because the scheduler may share by session
        end_with_parent(parent)
        while True:
            pass


@contextmanager
def _io_group(plant: Plant, folder: Path) -> Iterator[tuple[Path, CreatedFolder] | None]:
    """Yields a control group that limits reads from the folder's disk; None: not needed."""
    if plant.reads_bytes_per_second is None:
        yield None
        return
    groups, number = io_groups(), whole_disk(folder)
    if groups is None or number is None:
        raise Unavailable(f"{folder} is on no disk whose reads a cgroup limits")
    version, parent = groups
    name = f"bottleneck-{secrets.token_hex(16)}"
    # RUN: files in it are not removed one by one, because the kernel created them.
    with own_folder(removal.RUN, str(parent), name) as group:
        group.create()
        path = parent / name
        try:
            rate = plant.reads_bytes_per_second
            file, word = ("io.max", f"rbps={rate}") if version == 2 else (READS, str(rate))
            (path / file).write_text(f"{number} {word}")
            yield path, group
        finally:
            group.remove(STOP_SECONDS)


@contextmanager
def _run_child(work: Work) -> Iterator[Child]:
    """Runs a child for the block, then waits for its end, and kills it if necessary."""
    child = spawn(work)
    try:
        yield child
    finally:
        os.close(child.control_fd)
        until = time.monotonic() + STOP_SECONDS
        while not os.waitpid(child.pid, os.WNOHANG)[0]:
            if time.monotonic() > until:
                child.kill()
                until = float("inf")
            time.sleep(0.01)
        os.close(child.events_fd)


def _answer(child: Child) -> Event:
    """Returns the next event of a child. Errors: Unavailable, with the child's error."""
    text, until = b"", time.monotonic() + START_SECONDS
    while not text.endswith(b"\n"):
        ready = select.select([child.events_fd], [], [], max(0.0, until - time.monotonic()))[0]
        part = os.read(child.events_fd, 1) if ready else b""
        if not part:
            raise Unavailable("the demo's server did not start")
        text += part
    event: Event = json.loads(text)
    for key in ("skipped", "failed"):
        if key in event:
            raise Unavailable(event[key])
    return event
