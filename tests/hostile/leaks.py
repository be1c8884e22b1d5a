#!/usr/bin/env python3
"""Look for a password in all that real runs show, write, send and leave behind.

Usage: python tests/hostile/leaks.py [--only TEXT] [--plants | --runs]

First the scanner proves itself: it is put before planted leaks, and finds each or is no scanner.
Then the product runs, and nothing may be found. Looked at are the terminal, all files of HOME,
TMPDIR, the current folder and the share, arguments and environment of all processes, cores, and by
strace each execve and each byte written or sent; for the password as it is, in UTF-16, base64, hex,
URL encoding, and for its NT hash. Allowed alone: a request that goes down a pipe to an agent of the
run, and the password's own line to smbclient and pdbedit. It takes root and strace.

Exit code: 0 all plants were found and no run leaks, 1 not so, 69 root or strace is missing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psutil
from secret_plants import PLANTS, SEEN
from secret_runs import RUNS, USER, Place, try_one
from secret_scan import Leak, Sampler, Secret
from secret_watch import Folders, Outcome, folder_name, watch
from sshd import own_sshd

from probes.programs.samba import private_samba

UNAVAILABLE = 69
PLANTED_SECONDS = 60.0


def plant(folder: Path, *names: str) -> Outcome:
    secret = Secret()
    room = Folders(folder / folder_name(names[0]), secret)
    room.path.mkdir()
    hidden = room.path / "hidden"
    hidden.write_text(f"{secret.password}\n{secret.marked}")

    def until_ready(product: psutil.Process, sampler: Sampler) -> None:
        until = time.monotonic() + PLANTED_SECONDS
        while not (room.cwd / "ready").exists() and time.monotonic() < until:
            if not product.is_running() or product.status() == psutil.STATUS_ZOMBIE:
                return
            time.sleep(0.01)
        sampler.look()

    return watch(
        room,
        [sys.executable, str(Path(__file__).with_name("secret_plants.py")), *names],
        environment={"LEAKS_SECRET": str(hidden)},
        during=until_ready,
        traced=not SEEN.keys() >= set(names),
    )


def try_plants(folder: Path, only: str) -> list[str]:
    """The plants that were not found."""
    names = [name for name in PLANTS if only in name]
    missed = []
    for name in names:
        ended = plant(folder, name)
        show(name, ended.leaks)
        if not ended.leaks:
            missed.append(name)
    print(f"planted leaks found: {len(names) - len(missed)} of {len(names)}\n", flush=True)
    return missed


def try_runs(folder: Path, only: str) -> list[str]:
    """Returns what is wrong with the runs: the leaks, and who did not run as far as it had to."""
    wrong, leaking, secret = [], 0, Secret()
    names = [name for name in RUNS if only in name]
    with ExitStack() as stack:
        shared = folder / "shared"
        shared.mkdir()
        samba = stack.enter_context(
            private_samba(
                shared,
                username=USER,
                password=secret.password,
                options=("server min protocol = NT1",),
            )
        )
        (folder / "sshd").mkdir()
        sshd = stack.enter_context(own_sshd(folder / "sshd"))
        for name in names:
            run = RUNS[name]
            began = time.monotonic()
            ended = try_one(Place(folder, secret, samba, shared, sshd), name, run)
            leaking += bool(ended.leaks)
            show(f"{name}: exit {ended.code}, {time.monotonic() - began:.0f} s", ended.leaks)
            wrong += [f"{name}: {leak.where} ({leak.form})" for leak in ended.leaks]
            if ended.code not in run.codes:
                wrong.append(f"{name}: ended with {ended.code}: {ended.err[-500:]}")
    print(f"leaks in {len(names)} runs: {leaking}", flush=True)
    return wrong


def show(name: str, leaks: tuple[Leak, ...]) -> None:
    places = "; ".join(f"{leak.where} ({leak.form})" for leak in leaks[:3]) or "nothing"
    others = f" and {len(leaks) - 3} more" if len(leaks) > 3 else ""
    print(f"  {name:<48} {places}{others}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="plants and runs with this in their name")
    parser.add_argument("--plants", action="store_true", help="the plants alone")
    parser.add_argument("--runs", action="store_true", help="the runs alone")
    options = parser.parse_args()
    if os.geteuid() != 0 or shutil.which("strace") is None:
        print("leaks.py: NOT RUN: it takes root and strace (apt-get install strace)", flush=True)
        return UNAVAILABLE
    tasks: list[Callable[[Path, str], list[str]]] = []
    tasks += [] if options.runs else [try_plants]
    tasks += [] if options.plants else [try_runs]
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="leaks-") as folder:
        for task in tasks:
            wrong += task(Path(folder), options.only)
    for each in wrong:
        print(f"WRONG: {each}")
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
