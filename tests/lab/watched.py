#!/usr/bin/env python3
"""Has a program copy in a world with a planted cap, and the product watch that copy.

smbclient speaks SMB by itself; cp and rsync work on a share that smbnetfs mounts over FUSE.

Usage: python tests/lab/watched.py [CASE ...] [--ordinary] [--reports DIR]

Exit code: 0 each verdict is the planted one; 1 one is not; 69 this machine cannot hold the lab.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiment import AS_USER
from host import Host
from plant import Plant
from smb_mount import configure
from truth import MB, planting, verdicts
from world import World, missing, world

ROOT = Path(__file__).resolve().parents[2]
NAME = "watched.bin"
CLIENTS = ("smbclient", "smbget", "rclone")
"""Programs that speak SMB by themselves: a watch without a process id finds their connection."""
WATCH_SECONDS = 6
LONGEST_SECONDS = 60
"""Seconds of one watch: its start, its time, its end."""


@dataclass(frozen=True)
class Case:
    plant: Plant
    verb: str
    """push or pull, of the client."""
    right: frozenset[tuple[str, str | None, str]]
    size_bytes: int
    """So much that it lasts longer than the watch."""
    watcher: str = "client"
    agent: bool = True
    """Whether the other host has an agent."""
    program: str = "smbclient"


def _case(verb: str, size_mb: int, right: str, plant: str, **options: Any) -> Case:
    return Case(planting(plant, Plant())[0], verb, verdicts(right), size_mb * MB, **options)


_READ = "sends=1000M server.reads=25M"
_WRITE = "sends=1000M server.writes=18M"
_SYNC = f"{_WRITE} smb: sync always = yes"
_CREDITS = "sends=1000M rtt=0.01 smb: smb2 max credits = 8"
_FAR = "sends=1000M rtt=0.01"
_QUOTA = "sends=1000M server.quota=0.15"
_OWN_QUOTA = "sends=1000M client.quota=0.25"
_OWN_READ, _OWN_WRITE = "sends=1000M client.reads=20M", "sends=1000M client.writes=15M"
_SLOW = "sends=60M"
CASES = {
    "link-100": _case("push", 300, "link", "sends=100M"),
    "link-100-pull": _case("pull", 300, "link", "sends=100M"),
    # a full core is no cap where its reader has read all that came
    "link-hog": _case("push", 300, "link", "sends=100M client.hog=0.5"),
    "link-hog-pull": _case("pull", 300, "link", "sends=100M client.hog=0.5"),
    # rclone reads a file of 250 MB and more over several connections
    "rclone": _case("pull", 600, "link", "sends=100M", program="rclone"),
    "hog-pull": _case("pull", 2500, "cpu/client/contention", "sends=1000M client.hog=0.8"),
    "credits-10ms": _case("pull", 600, "smb/server/round-trips", _CREDITS),
    # libsmbclient asks for 64 KiB when the last 64 KiB are there
    "smbget-10ms": _case("pull", 100, "smb/server/round-trips", _FAR, program="smbget"),
    "server-read": _case("pull", 500, "disk/server/read", _READ),
    "server-read-there": _case(
        "pull", 500, "disk/server/read", _READ, watcher="server", agent=False
    ),
    "server-write": _case("push", 400, "disk/server/write,sync", _SYNC),
    "server-quota": _case("push", 600, "cpu/server/quota", _QUOTA),
    "client-read": _case("push", 400, "disk/client/read", _OWN_READ),
    "client-quota": _case("pull", 2500, "cpu/client/quota", _OWN_QUOTA),
    "decoy-read": _case("pull", 300, "link", "sends=100M server.reads=25M"),
    # what is written waits in memory: for as long as a watch lasts that disk holds nothing
    "decoy-behind": _case("push", 2000, "gigabit|unknown//inconclusive", _WRITE),
}
for _name in ("link-100", "link-100-pull", "link-hog", "link-hog-pull", "rclone"):
    CASES[f"{_name}-alone"] = replace(CASES[_name], agent=False)
for _name in ("hog-pull", "credits-10ms", "smbget-10ms"):
    _both = CASES[_name].right | verdicts("unknown//inconclusive")
    CASES[f"{_name}-alone"] = replace(CASES[_name], agent=False, right=_both)
for _program in ("cp", "rsync"):
    _cases = {
        "link": _case("push", 300, "link", _SLOW, program=_program),
        "link-pull": _case("pull", 300, "link", _SLOW, program=_program),
        "read": _case("pull", 500, "disk/server/read", _READ, program=_program),
        "write": _case("push", 400, "disk/server/write,sync", _SYNC, program=_program),
        "quota": _case("push", 600, "cpu/server/quota", _QUOTA, program=_program),
        "own-read": _case("push", 400, "disk/client/read", _OWN_READ, program=_program),
        "own-quota": _case("pull", 900, "cpu/client/quota", _OWN_QUOTA, program=_program),
    }
    CASES |= {f"{_program}-{name}": case for name, case in _cases.items()}
# what cp writes waits in memory, and for as long as a watch lasts the disk would hold nothing
CASES["dd-own-write"] = _case("pull", 400, "disk/client/write", _OWN_WRITE, program="dd")


@dataclass(frozen=True)
class WatchResult:
    report: dict[str, Any]
    exit_code: int
    message: str
    copy_ended: int | None
    """smbclient's exit code, where it had ended when the watch did."""

    @property
    def copy(self) -> dict[str, Any]:
        first: dict[str, Any] = self.report["diagnosis"]["copies"][0]
        return first

    @property
    def answer(self) -> tuple[str, str | None, str]:
        verdict = self.copy["verdict"]
        return verdict["component"], verdict["side"], verdict["cause"]


def watch_case(case: Case, ordinary: bool = False) -> WatchResult:
    """Builds the case's world, starts the copy, has it watched, and takes all down again.

    ordinary: the other host's agent has no rights.
    """
    with world(case.plant) as lab:
        source = lab.client if case.verb == "push" else lab.server
        folder = source.folder if case.verb == "push" else source.folder / "share"
        make(source, folder / NAME, case.size_bytes)
        with run_copy(lab, case) as program:
            return _watch(lab, case, program, ordinary)


def make(host: Host, path: Path, size_bytes: int) -> None:
    """A file on a host's disk, written out and not in its page cache."""
    megabytes = str(size_bytes // (1 << 20))
    throttled = ["dd", "if=/dev/urandom", f"of={path}", "bs=1M", f"count={megabytes}"]
    host.run([*throttled, "conv=fdatasync"], seconds=120)
    host.run(["chmod", "644", path])
    host.run(["dd", f"of={path}", "oflag=nocache", "conv=notrunc,fdatasync", "count=0"])


@contextlib.contextmanager
def run_copy(lab: World, case: Case) -> Iterator[subprocess.Popen[bytes]]:
    """The program at work on the client until the block ends."""
    local = lab.client.folder / (NAME if case.verb == "push" else "pulled.bin")
    there = "pushed.bin" if case.verb == "push" else NAME
    log = lab.work / "program.log"
    if case.program in CLIENTS:
        login = lab.work / "login"
        login.write_text(f"username = {lab.share.user}\npassword = {lab.share.password}\n")
        login.chmod(0o600)
        order = f"put {local} {there}" if case.verb == "push" else f"get {there} {local}"
        command: list[str | Path] = ["smbclient", lab.share.target, "-A", login, "-c", order]
        if case.program == "smbget":
            user = f"{lab.share.user}%{lab.share.password}"
            command = ["smbget", "-q", "-U", user, "-o", local, f"smb:{lab.share.target}/{there}"]
        if case.program == "rclone":
            address, _, share = lab.share.target.removeprefix("//").partition("/")
            hidden = lab.client.run(["rclone", "obscure", lab.share.password]).stdout.strip()
            login_options = ["--smb-host", address, "--smb-user", lab.share.user]
            command = ["rclone", *login_options, "--smb-pass", hidden, "copyto"]
            command += [f":smb:{share}/{there}", local]
        with lab.client.running(command, log) as process:
            yield process
        return
    with _mount(lab) as folder:
        names = (local, folder / there) if case.verb == "push" else (folder / there, local)
        with lab.client.running(_command(case.program, *names), log) as process:
            yield process


def _command(program: str, source: Path, target: Path) -> list[str | Path]:
    if program == "dd":
        return ["dd", f"if={source}", f"of={target}", "bs=1M", "oflag=direct"]
    command: list[str | Path] = ["rsync", "--inplace"] if program == "rsync" else [program]
    return [*command, source, target]


@contextlib.contextmanager
def _mount(lab: World) -> Iterator[Path]:
    """The share, mounted over FUSE on the client, until the block ends."""
    address, _, share = lab.share.target.removeprefix("//").partition("/")
    home, point = lab.work / "home", lab.work / "mount"
    home.mkdir()
    point.mkdir()
    configure(home / ".smb", address, lab.share.user, lab.share.password)
    command = ["env", f"HOME={home}", "smbnetfs", "-f", "-o", "big_writes", str(point)]
    with lab.client.running(command, lab.work / "smbnetfs.log"):
        try:
            lab.client.run(["sh", "-c", f"until ls {point}/{address}/{share}; do sleep 0.1; done"])
            yield point / address / share
        finally:
            lab.client.run(["umount", "-l", point], check=False)


def _watch(lab: World, case: Case, copying: subprocess.Popen[bytes], ordinary: bool) -> WatchResult:
    here, there = lab.client, lab.server
    if case.watcher == "server":
        here, there = there, here
    file = lab.work / "watched.json"
    command: list[str | Path] = [here.script, "env", f"PYTHONPATH={ROOT}", sys.executable]
    command += ["-m", "bottleneck", "watch"]
    command += [] if case.program in CLIENTS else [str(copying.pid)]
    command += ["--seconds", str(WATCH_SECONDS), "--quiet"]
    command += ["--json", str(file)]
    agent = f"exec:{there.script}{AS_USER if ordinary else ''}"
    command += ["--agent", agent] if case.agent else []
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        timeout=LONGEST_SECONDS,
        check=False,
    )
    text = file.read_text() if file.exists() else '{"diagnosis": {"copies": []}}'
    return WatchResult(json.loads(text), done.returncode, done.stderr, copying.poll())


def main() -> int:
    parser = argparse.ArgumentParser(description="Copies that run already, watched.")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=" ".join(CASES))
    parser.add_argument("--ordinary", action="store_true", help="the other agent has no rights")
    parser.add_argument("--reports", type=Path, metavar="DIR", help="keep each report there")
    options = parser.parse_args()
    if lacks := missing():
        print("not run: " + "; ".join(lacks), file=sys.stderr)
        return 69
    wrong = 0
    for name in options.cases or list(CASES):
        case = CASES[name]
        ran = watch_case(case, options.ordinary)
        if options.reports:
            options.reports.mkdir(parents=True, exist_ok=True)
            (options.reports / f"{name}.json").write_text(json.dumps(ran.report, indent=1) + "\n")
        if not ran.report["diagnosis"]["copies"]:
            print(f"{name:20} BROKE ({ran.exit_code}): {ran.message.strip()[-300:]}", flush=True)
            wrong += 1
            continue
        verdict = ran.copy["verdict"]
        right = ran.answer in case.right and ran.copy["copy"].startswith(case.verb)
        wrong += not right
        rate = (ran.copy["bytes_per_second"] or 0.0) / MB
        print(f"{name:20} {'right' if right else 'WRONG':6} {rate:7.1f} MB/s", end="  ")
        print(f"{ran.copy['copy']:14} {'/'.join(map(str, ran.answer))} {verdict['confidence']}")
        print(f"    {verdict['sentence']}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
