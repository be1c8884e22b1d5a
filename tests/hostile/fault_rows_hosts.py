"""Faults of the client's host and of the run's surroundings: rows 23, 24, 34, 38, 39, 42 to 44."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from fault_world import (
    BEFORE,
    EARLY,
    LATE,
    NotHere,
    Row,
    World,
    below,
    usual,
)

GROUPS = Path("/sys/fs/cgroup")
HELD_SECONDS = 8.0
JUMPS_SECONDS = {BEFORE: 10 * 365 * 86400, EARLY: -3600, LATE: 3600}
NOBODY = 65534


def group(world: World, controller: str) -> Path:
    """A cgroup of the run's own, gone when it is over."""
    folder = GROUPS / controller / f"bottleneck-fault-{os.getpid()}"
    if not (GROUPS / controller / "cgroup.procs").exists():
        raise NotHere(f"needs cgroup v1: {controller}")
    folder.mkdir(exist_ok=True)

    def remove() -> None:
        for pid in (folder / "cgroup.procs").read_text().split():
            (GROUPS / controller / "cgroup.procs").write_text(pid)
        folder.rmdir()

    world.undo(remove)
    return folder


def in_group(world: World, folder: Path) -> None:
    """The run and all that it started; one that did not begin is begun in it."""
    if world.moment == BEFORE:
        start = f'echo $$ > {folder}/cgroup.procs && exec "$@"'
        world.prefix = ["sh", "-c", start, "sh"]
        return
    assert world.process is not None
    for pid in (world.process.pid, *below(world.process.pid)):
        with contextlib.suppress(ProcessLookupError):
            (folder / "cgroup.procs").write_text(str(pid))


def slow_cpu(world: World) -> None:
    """A tenth of a core."""
    folder = group(world, "cpu")
    (folder / "cpu.cfs_period_us").write_text("100000")
    (folder / "cpu.cfs_quota_us").write_text("10000")
    in_group(world, folder)


def hogs(world: World) -> None:
    """Three busy processes share a core with the run."""
    folder = group(world, "cpu")
    (folder / "cpu.cfs_quota_us").write_text("100000")
    in_group(world, folder)
    start = ["sh", "-c", f'echo $$ > {folder}/cgroup.procs && exec "$@"', "sh"]
    for _ in range(3):
        hog = subprocess.Popen([*start, sys.executable, "-c", "while True: pass"])

        def end(process: subprocess.Popen[bytes] = hog) -> None:
            process.kill()
            process.wait()

        world.undo(end)


def little_memory(world: World) -> None:
    """256 MiB, page cache included."""
    folder = group(world, "memory")
    (folder / "memory.limit_in_bytes").write_text(str(256 << 20))
    in_group(world, folder)


def hold(world: World) -> None:
    """The run is frozen for a while, as a host is that sleeps."""
    folder = group(world, "freezer")
    if world.moment != BEFORE:
        in_group(world, folder)
        (folder / "freezer.state").write_text("FROZEN")
        time.sleep(HELD_SECONDS)
        (folder / "freezer.state").write_text("THAWED")
        world.excused_seconds = HELD_SECONDS
        return
    # frozen as soon as it is in: a helper outside lets it go on
    start = f'echo $$ > {folder}/cgroup.procs; exec "$@"'
    world.prefix = ["sh", "-c", start, "sh"]
    (folder / "freezer.state").write_text("FROZEN")
    thaw = f"sleep {HELD_SECONDS}; echo THAWED > {folder}/freezer.state"
    waiter = subprocess.Popen(["sh", "-c", thaw])
    world.undo(waiter.wait)
    world.excused_seconds = HELD_SECONDS


def other_clock(world: World) -> None:
    """The coordinator and both agents read a wall clock that can be set."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise NotHere("needs a C compiler")
    clock, library = world.own / "clock", world.own / "clock.so"
    clock.write_text("0")
    source = world.own / "clock.c"
    source.write_text(_CLOCK.replace("WHERE", f'"{clock}"', 1))
    world.call(compiler, "-shared", "-fPIC", "-o", library, source, "-ldl")
    world.environment["LD_PRELOAD"] = str(library)


_CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
/* The wall clock is as many seconds off as a file says; monotonic ones are the kernel's. */
int clock_gettime(clockid_t id, struct timespec *now) {
    int (*real)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(id, now);
    char text[32] = "";
    int file;
    if (id == CLOCK_REALTIME && (file = open(WHERE, O_RDONLY | O_CLOEXEC)) >= 0) {
        if (read(file, text, sizeof text - 1) > 0) now->tv_sec += atol(text);
        close(file);
    }
    return code;
}
"""


def jump(world: World) -> None:
    """Ten years forward before the start; an hour backward, or forward, in mid-run."""
    (world.own / "clock").write_text(str(JUMPS_SECONDS[world.moment]))


def as_nobody(world: World) -> None:
    """A user with no rights runs it, in folders of his own."""
    for place in (world.client, world.folder / "tmp", world.folder / "home"):
        os.chown(place, NOBODY, NOBODY)
    world.folder.chmod(0o755)
    world.prefix = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
    if not all(place.stat().st_mode & 1 for place in Path(__file__).resolve().parents):
        # he may read the program where it lies, and write nothing more for it
        world.prefix += ["--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"]


def forbid(world: World) -> None:
    """His own folder is taken from him."""
    os.chown(world.client, 0, 0)
    world.client.chmod(0o700)


def hide_processes(world: World) -> None:
    """/proc shows no more than the run's own processes, or nothing at all."""
    if world.moment == BEFORE:
        cover = 'mount -t tmpfs none /proc && exec "$@"'
        world.prefix = ["unshare", "--mount", "sh", "-c", cover, "sh"]
        return
    assert world.process is not None
    # the cell itself has to see them: the run's namespace alone is covered
    world.call("nsenter", "-t", world.process.pid, "-m", "mount", "-t", "tmpfs", "none", "/proc")


def own_mounts(world: World) -> None:
    """Of the run alone."""
    world.prefix = ["unshare", "--mount"]


def no_reader(world: World) -> None:
    """Nobody reads its messages any more; before the start: no stdin, a dumb terminal's size."""
    if world.moment == BEFORE:
        world.environment |= {"TERM": "dumb", "COLUMNS": "20", "LANG": "C", "LC_ALL": "C"}
        world.prefix = ["sh", "-c", 'exec "$@" <&-', "sh"]
        return
    assert world.process is not None and world.process.stderr is not None
    descriptor = world.process.stderr.fileno()
    blank = os.open("/dev/null", os.O_RDONLY)
    os.dup2(blank, descriptor)  # the pipe has no reader from now on
    os.close(blank)


def second_run(world: World) -> None:
    """Another run with the same server and folders."""
    with (world.folder / "own" / "second.json").open("w") as out:
        second = subprocess.Popen(
            world.command(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.DEVNULL,
            env=world.variables(),
            text=True,
            start_new_session=True,
        )
    world.extra.append(second)

    def judge() -> None:
        if second.returncode not in (0, 3):
            world.wrong.append(f"the second run ended with {second.returncode}")

    world.undo(judge)


ROWS = (
    Row("23", "clock set: 10 years, an hour", jump, prepare=other_clock),
    Row("24", "host asleep for 8 s", hold),
    Row("33b", "a tenth of a core", slow_cpu, before=usual(69), during=usual(69)),
    Row("34", "256 MiB of memory", little_memory, during=usual(69, 70)),
    Row("38", "no rights", forbid, prepare=as_nobody, before=usual(77)),
    Row("39", "no /proc", hide_processes, prepare=own_mounts, during=usual(69)),
    Row("42", "no stdin, no reader, 20 columns", no_reader),
    Row("43", "two runs at once", second_run),
    Row("44", "three busy processes on its core", hogs),
)
