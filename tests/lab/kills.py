#!/usr/bin/env python3
"""Kill the program at random moments, and count what is left.

Usage: python tests/lab/kills.py [--kills N] [--seed S] [--only SCENARIO] [--next cleanup|diagnose]
                                 [--recycle-bin] [--json F]

Each kill is SIGKILL at a moment spread over the whole run: to the coordinator, to an agent, to the
server or the process of it that serves the run, or to everything that the run started, at once, as
at a container's end. Then files in every folder that the run may write to, processes (fio apart),
mounts and loop devices are counted, as soon as all is gone or PATIENCE_SECONDS later. Where the
server, or everything, was killed, files may wait for the next start: `cleanup`, or a `diagnose`
with the same arguments, after which none may be there; with --recycle-bin none in that, where they
may wait in any case. 10,000 files of somebody else's lie in the same folders; their hash has to be
the same at the end.
Exit code: 0 nothing is ever left; 1 something is; 69 this machine cannot hold the trial.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from kill_scenarios import (  # noqa: E402
    CANARIES,
    FILES,
    FREEZER,
    SCENARIOS,
    Place,
    Scenario,
    digest,
    group,
    next_start,
    place,
    plant,
    start_command,
)

from probes.programs.samba import Samba, find_smbd  # noqa: E402

CLEAN, LEFT, NO_TRIAL = 0, 1, 69
PR_SET_CHILD_SUBREAPER = 36
PATIENCE_SECONDS = 2.0
END_SECONDS = 30.0
"""Seconds that a coordinator may take to end after it lost an agent."""
WAIT_FOR_NEXT = ("server", "session", "everything")
"""After their end files may wait for the next start."""
NOBODY = "nobody"
"""The run had ended before."""


@dataclass
class KillResult:
    scenario: str
    victim: str
    moment_seconds: float
    clean_seconds: float
    """Until nothing was left; PATIENCE_SECONDS where something stayed."""
    waiting: list[str]
    """Files that were there until the next start."""
    files: list[str]
    processes: list[str]
    fio: int
    mounts: list[str]
    loops: list[str]
    has_bin: bool = False

    @property
    def clean(self) -> bool:
        """Whether nothing was left that may not be."""
        early = self.waiting and self.victim not in WAIT_FOR_NEXT and not self.has_bin
        remains = self.files or self.processes or self.fio or self.mounts or self.loops
        return not (early or remains)


def descendants(of: int, without: frozenset[int] = frozenset()) -> dict[int, str]:
    """Live processes below one with their commands, but for some and what is below those."""
    processes: dict[int, str] = {}
    with contextlib.suppress(psutil.NoSuchProcess):
        for each in psutil.Process(of).children():
            if each.pid in without:
                continue
            with contextlib.suppress(psutil.NoSuchProcess):
                if each.status() == psutil.STATUS_ZOMBIE:
                    with contextlib.suppress(ChildProcessError):
                        os.waitpid(each.pid, os.WNOHANG)  # an orphan that came to us
                else:
                    processes[each.pid] = " ".join(each.cmdline())
            processes |= descendants(each.pid, without)
    return processes


def mounts(folder: Path) -> list[str]:
    points = (each.mountpoint for each in psutil.disk_partitions(all=True))
    return sorted(each for each in points if each.startswith(f"{folder}/"))


def loops(folder: Path) -> list[str]:
    """Loop devices, and the files below a folder that are behind them."""
    devices = []
    for each in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            file = each.read_text().strip()
            if file.startswith(f"{folder}/"):
                devices.append(f"{each.parts[3]}:{file}")
    return sorted(devices)


def whole_seconds(scenario: Scenario, place: Place) -> float:
    """Returns seconds of a run that nobody kills; RuntimeError where it does not measure here."""
    began = time.monotonic()
    process = start_command(scenario, place)
    code = process.wait(4 * END_SECONDS)
    seconds = time.monotonic() - began
    report = place.reports / "report.json"
    measured = report.exists() and '"measured"' in report.read_text(encoding="ascii")
    if code not in (0, 3) or not measured or place.leftovers():
        raise RuntimeError(f"{scenario.name}: ended with {code}, left {place.leftovers()}")
    return seconds


def one_kill(
    scenario: Scenario,
    victim: str,
    moment_seconds: float,
    place: Place,
    keep: frozenset[int],
    how: str = "cleanup",
) -> KillResult:
    """Starts the command, kills at the moment, looks until nothing is left or patience ends, and
    has the next start see to what may wait for it.

    keep: processes of the trial itself. Where the run ended before, or the victim was not there,
    nothing was killed and the moment says how far it came.
    """
    process = start_command(scenario, place)
    began = time.monotonic()
    while time.monotonic() - began < moment_seconds and process.poll() is None:
        time.sleep(0.002)
    if not _strike(process, victim, place):
        victim = NOBODY if process.poll() is not None else "coordinator"
        process.kill()
    moment_seconds = time.monotonic() - began
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_SECONDS if victim != "coordinator" else PATIENCE_SECONDS)
    since = time.monotonic()
    while True:
        running = descendants(os.getpid(), keep | {place.server.process_id})
        commands = [each for each in running.values() if each]
        killed = KillResult(
            scenario=scenario.name,
            victim=victim,
            moment_seconds=moment_seconds,
            clean_seconds=time.monotonic() - since,
            waiting=place.leftovers(),
            files=[],
            processes=commands,
            fio=sum("fio" in each.partition(" ")[0] for each in commands),
            mounts=mounts(place.root),
            loops=loops(place.root),
            has_bin=bool(place.options),
        )
        if (killed.clean and not killed.waiting) or killed.clean_seconds >= PATIENCE_SECONDS:
            break
        time.sleep(0.02)
    if victim == "server":
        place.serve()
    if killed.waiting:
        next_start(scenario, place, how)
        killed.files = place.leftovers()
    _put_right(place, running)
    return killed


def _strike(process: subprocess.Popen[bytes], victim: str, place: Place) -> bool:
    """Kills the victim; False: there is no such process (yet)."""
    if process.poll() is not None:
        return False
    if victim == "everything":
        return _kill_group()
    pids = [process.pid]
    if victim == "server":
        os.killpg(place.server.process_id, signal.SIGKILL)
        return True
    if victim == "session":
        smbd = place.server.process_id
        pids = [each for each in descendants(smbd) if _serves(each, place.server)]
    elif victim != "coordinator":
        children = psutil.Process(process.pid).children()
        agents = sorted(each.pid for each in children if "python" in " ".join(each.cmdline()))
        index = 1 if victim == "server-agent" else 0
        pids = agents[index : index + 1]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(pids)


def _kill_group() -> bool:
    """Everything that the run started, at once."""
    state = group() / "freezer.state"
    state.write_text("FROZEN")
    while state.read_text().strip() != "FROZEN":
        time.sleep(0.001)
    pids = (group() / "cgroup.procs").read_text().split()
    for pid in pids:
        os.kill(int(pid), signal.SIGKILL)
    state.write_text("THAWED")
    return bool(pids)


def _serves(pid: int, server: Samba) -> bool:
    """Whether a process of smbd has a connection with a client."""
    outcome = subprocess.run(
        ["ss", "-Htnp", f"sport = :{server.port}"], capture_output=True, text=True, check=True
    )
    return f"pid={pid}," in outcome.stdout


def _put_right(place: Place, running: Iterable[int]) -> None:
    """Removes what was left, so that the next kill is not blamed for it."""
    for pid in running:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for folder in place.folders:
        for each in folder.iterdir():
            if each.name in CANARIES:
                continue
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each, ignore_errors=True)
            else:
                each.unlink(missing_ok=True)


def shares(kills: int, scenarios: list[Scenario]) -> list[int]:
    total = sum(each.weight for each in scenarios)
    counts = [kills * each.weight // total for each in scenarios]
    for number in range(kills - sum(counts)):
        counts[number % len(counts)] += 1
    return counts


def trial(
    kills: int,
    seed: int,
    only: str | None = None,
    how: str = "cleanup",
    files: int = FILES,
    has_bin: bool = False,
) -> Iterator[KillResult]:
    """So many kills, the moments of each scenario spread over its whole run.

    Raises RuntimeError where files of somebody else's are not what they were.
    """
    # orphans below this process become its children: none can hide
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    chance = random.Random(seed)
    scenarios = [each for each in SCENARIOS if only in (None, each.name)]
    with place(has_bin) as there:
        plant(there.folders[:3], files)
        baseline = digest(there.folders[:3])
        for scenario, count in zip(scenarios, shares(kills, scenarios), strict=True):
            seconds = whole_seconds(scenario, there) if count else 0.0
            done = 0
            while done < count:
                # the server and what it starts are the trial's own
                keep = frozenset({*descendants(os.getpid()), there.server.process_id})
                moment = (done + chance.random()) / count * seconds
                victim = scenario.victims[done % len(scenario.victims)]
                killed = one_kill(scenario, victim, moment, there, keep, how)
                if killed.victim != NOBODY or not killed.clean:
                    done += 1
                    yield killed
                else:
                    seconds *= 0.98
        if digest(there.folders[:3]) != baseline or baseline[0] != files:
            raise RuntimeError(f"the {baseline[0]} files of somebody else's are not what they were")


def table(rows: list[KillResult]) -> str:
    lines = [
        f"{'scenario':9}{'killed':22}{'kills':>6}{'from s':>8}{'to s':>7}{'slowest s':>11}"
        f"{'waiting':>9}{'files':>7}{'processes':>11}{'fio':>5}{'mounts':>8}{'loops':>7}"
    ]
    for key in sorted({(each.scenario, each.victim) for each in rows}):
        cell = [each for each in rows if (each.scenario, each.victim) == key]
        moments = [each.moment_seconds for each in cell]
        lines.append(
            f"{key[0]:9}{key[1]:22}{len(cell):6}{min(moments):8.2f}{max(moments):7.2f}"
            f"{max(each.clean_seconds for each in cell):11.2f}"
            f"{sum(bool(each.waiting) for each in cell):9}{sum(len(each.files) for each in cell):7}"
            f"{sum(len(each.processes) for each in cell):11}{sum(each.fio for each in cell):5}"
            f"{sum(len(each.mounts) for each in cell):8}{sum(len(each.loops) for each in cell):7}"
        )
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=[each.name for each in SCENARIOS])
    parser.add_argument("--next", choices=("cleanup", "diagnose"), default="cleanup")
    parser.add_argument("--recycle-bin", action="store_true", help="the share has one")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if find_smbd() is None or shutil.which("fio") is None or not FREEZER.is_dir():
        print("needs samba, fio and the freezer of cgroup v1", file=sys.stderr)
        return NO_TRIAL
    rows: list[KillResult] = []
    settings = (options.kills, options.seed, options.only, options.next)
    kills = trial(*settings, has_bin=options.recycle_bin)
    for number, each in enumerate(kills, 1):
        rows.append(each)
        facts: dict[str, Any] = asdict(each)
        if not each.clean:
            print(f"kill {number}: {json.dumps(facts)}", flush=True)
        elif number % 20 == 0:
            print(f"{number} kills, nothing left so far", file=sys.stderr, flush=True)
    print(table(rows))
    print(f"{len(rows)} kills; {FILES} files of somebody else's are what they were")
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in rows], indent=1) + "\n")
    return CLEAN if all(each.clean for each in rows) else LEFT


if __name__ == "__main__":
    sys.exit(main())
