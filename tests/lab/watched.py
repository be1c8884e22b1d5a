#!/usr/bin/env python3
"""Has smbclient copy in a world with a planted cap, and the product watch that copy.

Usage: python tests/lab/watched.py [CASE ...] [--reports DIR]

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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from host import Host
from plant import Caps, Plant
from world import World, missing, world

ROOT = Path(__file__).resolve().parents[2]
MB = 10**6
M100, G1 = 100 * MB, 1000 * MB
NAME = "watched.bin"
WATCH_SECONDS = 6
LONGEST_SECONDS = 60
"""Of one watch: its start, its time, its end."""


@dataclass(frozen=True)
class Case:
    """One copy that smbclient makes, and what holds it."""

    plant: Plant
    verb: str
    """push or pull, of the client."""
    right: frozenset[tuple[str, str | None, str]]
    size_bytes: int
    """So much that it lasts longer than the watch."""
    watcher: str = "client"
    agent: bool = True
    """Whether the other host has an agent."""


def _caps(**caps: Any) -> Caps:
    return Caps(**{"sends_bits_per_second": G1, **caps})


_LINK = Plant(_caps(sends_bits_per_second=M100), _caps(sends_bits_per_second=M100))
_SLOW_READ = Plant(_caps(), _caps(disk_read_bytes_per_second=25 * MB))
_SLOW_WRITE = Plant(
    _caps(), _caps(disk_write_bytes_per_second=18 * MB), samba_options=("sync always = yes",)
)
_BEHIND = Plant(_caps(), _caps(disk_write_bytes_per_second=18 * MB))
"""What is written waits in memory: for as long as a watch lasts that disk holds nothing."""
_BOTH = Plant(
    _caps(sends_bits_per_second=M100),
    _caps(sends_bits_per_second=M100, disk_read_bytes_per_second=25 * MB),
)
_QUOTA = Plant(_caps(), _caps(quota_ratio=0.15))
Triple = tuple[str, str | None, str]
_IS_LINK: frozenset[Triple] = frozenset({("network", "path", "link-rate")})
_IS_READ = frozenset({("disk", "server", "read")})
_IS_WRITE = frozenset({("disk", "server", "write"), ("disk", "server", "sync")})
_IS_QUOTA = frozenset({("cpu", "server", "quota")})
_IS_FAST = _IS_LINK | {
    ("cpu", side, cause) for side in ("client", "server") for cause in ("one-core", "all-cores")
}
_UNSAID: Triple = ("unknown", None, "inconclusive")
_IS_FAST |= {_UNSAID}
CASES = {
    "link-100": Case(_LINK, "push", _IS_LINK, 300 * MB),
    "link-100-alone": Case(_LINK, "push", _IS_LINK, 300 * MB, agent=False),
    "link-100-pull": Case(_LINK, "pull", _IS_LINK, 300 * MB),
    "link-100-pull-alone": Case(_LINK, "pull", _IS_LINK, 300 * MB, agent=False),
    "server-read": Case(_SLOW_READ, "pull", _IS_READ, 500 * MB),
    "server-read-there": Case(_SLOW_READ, "pull", _IS_READ, 500 * MB, "server", agent=False),
    "server-write": Case(_SLOW_WRITE, "push", _IS_WRITE, 400 * MB),
    "server-quota": Case(_QUOTA, "push", _IS_QUOTA, 600 * MB),
    "decoy-read": Case(_BOTH, "pull", _IS_LINK, 300 * MB),
    "decoy-behind": Case(_BEHIND, "push", _IS_FAST, 2000 * MB),
}


@dataclass(frozen=True)
class Ran:
    """What the product said of a copy that it watched."""

    report: dict[str, Any]
    exit_code: int
    message: str
    copy_ended: int | None
    """smbclient's exit code, where it had ended when the watch did."""

    @property
    def copy(self) -> dict[str, Any]:
        """Its diagnosis."""
        found: dict[str, Any] = self.report["diagnosis"]["copies"][0]
        return found

    @property
    def named(self) -> tuple[str, str | None, str]:
        """The verdict's words."""
        verdict = self.copy["verdict"]
        return verdict["component"], verdict["side"], verdict["cause"]


def watched(case: Case) -> Ran:
    """Builds the case's world, starts the copy, has it watched, and takes all down again."""
    with world(case.plant) as lab:
        source = lab.client if case.verb == "push" else lab.server
        folder = source.folder if case.verb == "push" else source.folder / "share"
        _make(source, folder / NAME, case.size_bytes)
        with _copying(lab, case.verb) as copying:
            return _watch(lab, case, copying)


def _make(host: Host, path: Path, size_bytes: int) -> None:
    """A file on a host's disk, written out and not in its page cache."""
    megabytes = str(size_bytes // (1 << 20))
    throttled = ["dd", "if=/dev/urandom", f"of={path}", "bs=1M", f"count={megabytes}"]
    host.run([*throttled, "conv=fdatasync"], seconds=120)
    host.run(["chmod", "644", path])
    host.run(["dd", f"of={path}", "oflag=nocache", "conv=notrunc,fdatasync", "count=0"])


@contextlib.contextmanager
def _copying(lab: World, verb: str) -> Iterator[subprocess.Popen[bytes]]:
    """smbclient at work on the client until the block ends."""
    login = lab.work / "login"
    login.write_text(f"username = {lab.share.user}\npassword = {lab.share.password}\n")
    login.chmod(0o600)
    own = lab.client.folder / (NAME if verb == "push" else "pulled.bin")
    there = "pushed.bin" if verb == "push" else NAME
    names = (own, there) if verb == "push" else (there, own)
    order = f"{'put' if verb == 'push' else 'get'} {names[0]} {names[1]}"
    command: list[str | Path] = ["smbclient", lab.share.target, "-A", login, "-c", order]
    with lab.client.running(command, lab.work / "smbclient.log") as process:
        yield process


def _watch(lab: World, case: Case, copying: subprocess.Popen[bytes]) -> Ran:
    here, there = lab.client, lab.server
    if case.watcher == "server":
        here, there = there, here
    file = lab.work / "watched.json"
    command: list[str | Path] = [here.script, "env", f"PYTHONPATH={ROOT}", sys.executable]
    command += ["-m", "bottleneck", "watch", "--seconds", str(WATCH_SECONDS), "--quiet"]
    command += ["--json", str(file)]
    command += ["--agent", f"exec:{there.script}"] if case.agent else []
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
    return Ran(json.loads(text), done.returncode, done.stderr, copying.poll())


def main() -> int:
    """Runs the named cases, all without a name."""
    parser = argparse.ArgumentParser(description="Copies that run already, watched.")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=" ".join(CASES))
    parser.add_argument("--reports", type=Path, metavar="DIR", help="keep each report there")
    told = parser.parse_args()
    if lacks := missing():
        print("not run: " + "; ".join(lacks), file=sys.stderr)
        return 69
    wrong = 0
    for name in told.cases or list(CASES):
        case = CASES[name]
        ran = watched(case)
        if told.reports:
            told.reports.mkdir(parents=True, exist_ok=True)
            (told.reports / f"{name}.json").write_text(json.dumps(ran.report, indent=1) + "\n")
        if not ran.report["diagnosis"]["copies"]:
            print(f"{name:20} BROKE ({ran.exit_code}): {ran.message.strip()[-300:]}", flush=True)
            wrong += 1
            continue
        verdict = ran.copy["verdict"]
        right = ran.named in case.right and ran.copy["copy"].startswith(case.verb)
        wrong += not right
        rate = (ran.copy["bytes_per_second"] or 0.0) / MB
        print(f"{name:20} {'right' if right else 'WRONG':6} {rate:7.1f} MB/s", end="  ")
        print(f"{ran.copy['copy']:14} {'/'.join(map(str, ran.named))} {verdict['confidence']}")
        print(f"    {verdict['sentence']}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
