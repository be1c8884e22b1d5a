"""Faults of the client's host, its programs, agents and ssh: rows 23 to 31, 33b, 34, 38 to 44."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from fault_world import BEFORE, EARLY, LATE, NotHere, Row, World, descendants, fault, usual
from sshd import own_sshd

GROUPS = Path("/sys/fs/cgroup")
HELD_SECONDS = 8.0
JUMPS_SECONDS = {BEFORE: 10 * 365 * 86400, EARLY: -3600, LATE: 3600}
NOBODY = 65534
FIO = Path("/usr/bin/fio")


def joining(folder: Path) -> list[str]:
    return ["sh", "-c", f'echo $$ > {folder}/cgroup.procs; exec "$@"', "sh"]


def group(world: World, controller: str, **limits: object) -> Path:
    """A cgroup of the run and all that it started, or starts; gone when it is over."""
    top = GROUPS / controller
    folder = top / f"bottleneck-fault-{os.getpid()}"
    if not (top / "cgroup.procs").exists():
        raise NotHere(f"needs cgroup v1: {controller}")
    folder.mkdir(exist_ok=True)

    def remove() -> None:
        for pid in (folder / "cgroup.procs").read_text().split():
            (top / "cgroup.procs").write_text(pid)
        folder.rmdir()

    world.undo(remove)
    for name, value in limits.items():
        (folder / name.replace("__", ".")).write_text(str(value))
    if world.moment == BEFORE:
        world.prefix = joining(folder)
    else:
        for pid in (world.run.pid, *descendants(world.run.pid)):
            with contextlib.suppress(ProcessLookupError):
                (folder / "cgroup.procs").write_text(str(pid))
    return folder


def slow_cpu(world: World) -> None:
    group(world, "cpu", cpu__cfs_period_us=100_000, cpu__cfs_quota_us=10_000)


def hogs(world: World) -> None:
    """Three busy processes share a core with the run."""
    folder = group(world, "cpu", cpu__cfs_quota_us=100_000)
    for _ in range(3):
        world.beside(*joining(folder), sys.executable, "-c", "while True: pass")


def little_memory(world: World) -> None:
    group(world, "memory", memory__limit_in_bytes=256 << 20)


def hold(world: World) -> None:
    """The run is frozen for a while, as a host is that sleeps."""
    state = group(world, "freezer") / "freezer.state"
    state.write_text("FROZEN")
    world.excused_seconds = HELD_SECONDS
    if world.moment != BEFORE:
        time.sleep(HELD_SECONDS)
        state.write_text("THAWED")
        return
    # frozen as soon as it is in: a helper outside lets it go on
    waiter = subprocess.Popen(["sh", "-c", f"sleep {HELD_SECONDS}; echo THAWED > {state}"])
    world.undo(waiter.wait)


def other_clock(world: World) -> None:
    """The coordinator and both agents read a wall clock that can be set."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise NotHere("needs a C compiler")
    clock, library, source = (world.own / each for each in ("clock", "clock.so", "clock.c"))
    clock.write_text("0")
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
    # the cell itself has to see them: the run's namespace alone is covered
    world.call("nsenter", "-t", world.run.pid, "-m", "mount", "-t", "tmpfs", "none", "/proc")


def own_mounts(world: World) -> None:
    world.prefix = ["unshare", "--mount"]


def no_reader(world: World) -> None:
    """Nobody reads its messages any more; before the start: no stdin, a dumb terminal's size."""
    if world.moment == BEFORE:
        world.environment |= {"TERM": "dumb", "COLUMNS": "20", "LANG": "C", "LC_ALL": "C"}
        world.prefix = ["sh", "-c", 'exec "$@" <&-', "sh"]
        return
    assert world.run.stderr is not None
    blank = os.open("/dev/null", os.O_RDONLY)
    os.dup2(blank, world.run.stderr.fileno())  # the pipe has no reader from now on
    os.close(blank)


def second_run(world: World) -> None:
    """Another run with the same server and folders."""
    with (world.own / "second.json").open("w") as out:
        second = subprocess.Popen(
            world.command(),
            **{"stdin": subprocess.DEVNULL, "stdout": out, "stderr": subprocess.DEVNULL},
            env=world.variables(),
            text=True,
            start_new_session=True,
        )
    world.extra.append(second)

    def judge() -> None:
        if second.returncode not in (0, 3):
            world.wrong.append(f"the second run ended with {second.returncode}")

    world.undo(judge)


_SHIM = """#!/bin/sh
# fio, until the file says how it is to fail.
for word; do case $word in --output=*) out=${{word#--output=}} ;; esac; done
case $(cat {mode}) in
good) exec {real} "$@" ;;
crash) kill -s SEGV $$ ;;
killed) kill -s KILL $$ ;;
hang) exec sleep 1000 ;;
old) [ "$1" = --version ] && echo fio-2.1.11 || exit 1 ;;
*) [ "$1" = --version ] && exec {real} --version ;;
esac
[ -z "$out" ] || cp {played} "$out"
exit 0
"""
PLAYED = {
    "nothing": '{"fio version": "fio-3.33", "jobs": [{"jobname": "bottleneck", "error": 0, '
    '"read": {"io_bytes": 0, "bw_bytes": 0, "runtime": 0}, '
    '"write": {"io_bytes": 0, "bw_bytes": 0, "runtime": 0}}]}',
    "garbage": 'fio: a note\n{"jobs": [{"read": {"io_bytes": NaN, "bw_bytes": 1,5}}',
    "renamed": '{"fio version": "fio-9.1", "jobs": [{"name": "bottleneck", "reading": {"io": 5}}]}',
    "two": '{"fio version": "fio-3.33"}\n{"jobs": "none"} trailing',
}


def shim(world: World) -> None:
    """fio of the cell's own namespace is a script with the real one behind it."""
    real, mode, played, script = (world.own / each for each in ("real", "mode", "played", "fio"))
    if not FIO.exists():
        raise NotHere("needs fio")
    shutil.copy(FIO, real)
    mode.write_text("good")
    played.write_text("")
    script.write_text(_SHIM.format(real=real, mode=mode, played=played))
    script.chmod(0o755)
    world.mount(FIO, "--bind", script)


@fault
def fio(world: World, how: str) -> None:
    (world.own / "played").write_text(PLAYED.get(how, ""))
    (world.own / "mode").write_text(how)


def hide(world: World) -> None:
    world.mount(FIO, "--bind", "/dev/null")


def relayed(world: World) -> None:
    """The server's agent is behind a relay, which can alter what it says."""
    mode = world.own / "relay"
    mode.write_text("")
    relay = Path(__file__).with_name("fault_relay.py")
    world.agent = f"exec:{shlex.join([sys.executable, '-I', str(relay), str(mode)])}"


@fault
def relay(world: World, how: str) -> None:
    (world.own / "relay").write_text(how)


@fault
def agent(world: World, index: int, number: int, instead: str) -> None:
    """A signal for the client's agent (0), or the server's (1); before the start there is none."""
    if world.moment == BEFORE:
        world.agent = f"exec:sh -c '{instead}' sh"
        return
    agents = world.agents()
    if index < len(agents):
        os.kill(agents[index], number)
    else:
        world.wrong.append("there was no such agent")


def no_python(world: World) -> None:
    """The server has none, and a message of the day."""
    if world.moment == BEFORE:
        world.agent = "exec:sh -c 'echo MOTD; echo welcome; python3(){ return 127; }; nowhere'"


def by_ssh(world: World) -> None:
    """A real sshd of the cell's own, and ssh set up for it."""
    if shutil.which("sshd") is None or shutil.which("ssh") is None:
        raise NotHere("needs openssh")
    folder = world.own / "sshd"
    folder.mkdir()
    sshd = world.stack.enter_context(own_sshd(folder))
    world.mount(Path("/etc/ssh/ssh_config"), "--bind", sshd.folder / "client")
    world.agent, world.ssh_port = "ssh://nas", sshd.port


def break_ssh(world: World) -> None:
    """Another key than is known; of a connection that is there, its end or its silence."""
    known_hosts = world.own / "sshd" / "known"
    if world.moment == BEFORE:
        place = known_hosts.read_text().split()[0]
        user = (known_hosts.parent / "user.pub").read_text().split()
        known_hosts.write_text(f"{place} {user[0]} {user[1]}\n")
    elif world.moment == EARLY:
        world.call("ss", "-K", "dport", "=", f":{world.ssh_port}")
    else:
        world.packets(f"tcp dport {world.ssh_port} drop")


KILLED, STOPPED = (signal.SIGKILL, "exit 9"), (signal.SIGSTOP, "sleep 1000")
AGENT_GONE = "its folder on the share goes with its session; its note waits for the next start"
CLIENT_KILLED = {"at_start": frozenset({69}), "during": usual(69, 70), "reason": AGENT_GONE}
ROWS = (
    Row("23", "clock set: 10 years, an hour", jump, other_clock),
    Row("24", "host asleep for 8 s", hold),
    Row("25", "fio missing", hide, shim, says="fio"),
    Row("26", "fio too old", fio("old"), shim, says="fio"),
    Row("26b", "fio's keys renamed", fio("renamed"), shim, says="fio"),
    Row("27", "fio crashes", fio("crash"), shim, says="fio"),
    Row("27b", "fio hangs", fio("hang"), shim),
    Row("27c", "fio moves nothing and ends well", fio("nothing"), shim),
    Row("28", "fio's output is none", fio("garbage"), shim, says="fio"),
    Row("28b", "fio's output is two", fio("two"), shim, says="fio"),
    Row("29", "agent of another version", relay("version"), relayed, refused=69, says="version"),
    Row("29b", "agent's lines are none", relay("garbage"), relayed, refused=69),
    Row("30", "client's agent killed", agent(0, *KILLED), **CLIENT_KILLED),
    Row("30b", "server's agent killed", agent(1, *KILLED), refused=69),
    Row("30c", "server's agent says nothing", agent(1, *STOPPED), refused=69),
    Row("31", "ssh: another key, cut, silent", break_ssh, by_ssh, refused=69, says="(?i)host key"),
    Row("31b", "a banner in front of the agent", relay("banner"), relayed),
    Row("31c", "no python on the server", no_python, at_start=frozenset({69})),
    Row("33b", "a tenth of a core", slow_cpu, either=(69,)),
    Row("34", "256 MiB of memory", little_memory, during=usual(69, 70)),
    Row("38", "no rights", forbid, as_nobody, at_start=usual(77)),
    Row("39", "no /proc", hide_processes, own_mounts, during=usual(69)),
    Row("42", "no stdin, no reader, 20 columns", no_reader),
    Row("43", "two runs at once", second_run),
    Row("44", "three busy processes on its core", hogs),
    Row("46b", "agent lies", relay("lie"), relayed),
)
