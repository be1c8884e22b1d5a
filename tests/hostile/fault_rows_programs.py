"""Faults of fio, the agents and ssh: rows 25 to 31."""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

from fault_world import BEFORE, EARLY, PATIENCE_SECONDS, NotHere, Row, World, usual, wait_for

FIO = Path("/usr/bin/fio")
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
    real, mode, played = (world.own / each for each in ("fio-real", "mode", "played"))
    if not FIO.exists():
        raise NotHere("needs fio")
    shutil.copy(FIO, real)
    mode.write_text("good")
    played.write_text("")
    script = world.own / "fio"
    script.write_text(_SHIM.format(real=real, mode=mode, played=played))
    script.chmod(0o755)
    world.mount(FIO, "--bind", script)


def fails(world: World, how: str) -> None:
    """fio fails from now on."""
    (world.own / "played").write_text(PLAYED.get(how, ""))
    (world.own / "mode").write_text(how)


def hide(world: World) -> None:
    """There is no fio any more."""
    world.mount(FIO, "--bind", "/dev/null")


def relayed(world: World) -> None:
    """The server's agent is behind a relay, which can alter what it says."""
    mode = world.own / "relay"
    mode.write_text("")
    relay = Path(__file__).with_name("fault_relay.py")
    world.agent = f"exec:{shlex.join([sys.executable, '-I', str(relay), str(mode)])}"


def relay(world: World, how: str) -> None:
    """It does so from now on."""
    (world.own / "relay").write_text(how)


def kill_agent(world: World, at: int) -> None:
    """The client's agent (0), or the server's (1)."""
    if world.moment == BEFORE:
        # there is none yet: the first that comes
        world.agent = "exec:sh -c 'exit 9' sh"
        return
    agents = world.agents()
    if at < len(agents):
        os.kill(agents[at], signal.SIGKILL)
    else:
        world.wrong.append("there was no agent to kill")


def stop_agent(world: World) -> None:
    """The server's agent says nothing any more."""
    if world.moment == BEFORE:
        world.agent = "exec:sh -c 'sleep 1000' sh"
        return
    agents = world.agents()
    if len(agents) < 2:
        world.wrong.append("there was no agent to stop")
        return
    os.kill(agents[1], signal.SIGSTOP)


def no_python(world: World) -> None:
    """The server has none, and a message of the day."""
    if world.moment == BEFORE:
        world.agent = "exec:sh -c 'echo MOTD; echo welcome; python3(){ return 127; }; nowhere'"


def by_ssh(world: World) -> None:
    """A real sshd of the cell's own, and ssh set up for it."""
    if shutil.which("sshd") is None or shutil.which("ssh") is None:
        raise NotHere("needs openssh")
    own = world.own
    for name in ("host", "user", "other"):
        world.call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", own / name)
    shutil.copy(own / "user.pub", own / "authorized")
    (own / "sshd.conf").write_text(
        f"ListenAddress 127.0.0.1:2222\nHostKey {own}/host\nStrictModes no\nUsePAM no\n"
        f"AuthorizedKeysFile {own}/authorized\nPidFile {own}/sshd.pid\nPermitRootLogin yes\n"
    )
    (own / "ssh.conf").write_text(
        f"Host nas\n HostName 127.0.0.1\n Port 2222\n User {pwd.getpwuid(0).pw_name}\n"
        f" IdentityFile {own}/user\n UserKnownHostsFile {own}/known\n"
    )
    _know(world, "host")
    world.mount(Path("/etc/ssh/ssh_config"), "--bind", own / "ssh.conf")
    Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen(
        ["/usr/sbin/sshd", "-D", "-e", "-f", str(own / "sshd.conf")], stderr=subprocess.DEVNULL
    )
    if not wait_for((own / "sshd.pid").exists, PATIENCE_SECONDS):
        raise NotHere("sshd does not come up")

    def end() -> None:
        server.terminate()
        server.wait()

    world.undo(end)
    world.agent = "ssh://nas"


def _know(world: World, key: str) -> None:
    kind, text = (world.own / f"{key}.pub").read_text().split()[:2]
    (world.own / "known").write_text(f"[127.0.0.1]:2222 {kind} {text}\n")


def break_ssh(world: World) -> None:
    """Another key than is known; of a connection that is there, its end or its silence."""
    if world.moment == BEFORE:
        _know(world, "other")
    elif world.moment == EARLY:
        world.call("ss", "-K", "dport", "=", ":2222")
    else:
        world.packets("tcp dport 2222 drop")


NO_AGENT = frozenset({69})
ROWS = (
    Row("25", "fio missing", hide, prepare=shim, says="fio"),
    Row("26", "fio too old", partial(fails, how="old"), prepare=shim, says="fio"),
    Row("26b", "fio's keys renamed", partial(fails, how="renamed"), prepare=shim, says="fio"),
    Row("27", "fio crashes", partial(fails, how="crash"), prepare=shim, says="fio"),
    Row("27b", "fio hangs", partial(fails, how="hang"), prepare=shim),
    Row("27c", "fio moves nothing and ends well", partial(fails, how="nothing"), prepare=shim),
    Row("28", "fio's output is none", partial(fails, how="garbage"), prepare=shim, says="fio"),
    Row("28b", "fio's output is two", partial(fails, how="two"), prepare=shim, says="fio"),
    Row(
        "29",
        "agent of another version",
        partial(relay, how="version"),
        prepare=relayed,
        before=NO_AGENT,
        during=usual(69),
        says="version",
    ),
    Row(
        "29b",
        "agent's lines are none",
        partial(relay, how="garbage"),
        prepare=relayed,
        before=NO_AGENT,
        during=usual(69),
    ),
    Row(
        "30",
        "client's agent killed",
        partial(kill_agent, at=0),
        before=NO_AGENT,
        during=usual(69, 70),
        kept="its folder on the share goes with its session; its note waits for the next start",
    ),
    Row(
        "30b", "server's agent killed", partial(kill_agent, at=1), before=NO_AGENT, during=usual(69)
    ),
    Row("30c", "server's agent says nothing", stop_agent, before=NO_AGENT, during=usual(69)),
    Row(
        "31",
        "ssh: another key, cut, silent",
        break_ssh,
        prepare=by_ssh,
        before=NO_AGENT,
        during=usual(69),
        says="(?i)host key",
    ),
    Row("31b", "a banner in front of the agent", partial(relay, how="banner"), prepare=relayed),
    Row("31c", "no python on the server", no_python, before=NO_AGENT),
    Row("46b", "agent lies", partial(relay, how="lie"), prepare=relayed),
)
