#!/usr/bin/env python3
"""Kill the program at random moments, and count what is left.

Usage: python tests/lab/kills.py [--kills N] [--seed S] [--only SCENARIO] [--json F]

Each kill is SIGKILL, to the coordinator or to one of its agents, at a moment spread over the whole
run. Then files in every folder that the run may write to, processes (fio apart), mounts and loop
devices are counted, as soon as all is gone or PATIENCE_SECONDS later.
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
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from probes.drivers.samba import Samba, find_smbd, private_samba  # noqa: E402

CLEAN, LEFT, NO_TRIAL = 0, 1, 69
PATIENCE_SECONDS = 2.0
END_SECONDS = 30.0
"""What a coordinator may take to end after it lost an agent."""
PR_SET_CHILD_SUBREAPER = 36
NOBODY = "nobody"
"""The run had ended before."""
PASSWORD = "correct-horse-47"  # noqa: S105 - of a server that this makes for itself


@dataclass(frozen=True)
class Place:
    """The folders that a run may write to."""

    root: Path
    server: Samba

    @property
    def client(self) -> Path:
        """The client's folder."""
        return self.root / "client"

    @property
    def share(self) -> Path:
        """The folder that the server serves."""
        return self.root / "share"

    @property
    def temporary(self) -> Path:
        """TMPDIR of the run."""
        return self.root / "tmp"

    @property
    def reports(self) -> Path:
        """Where the report goes; the report itself may be there."""
        return self.root / "reports"

    def left(self) -> list[str]:
        """What lies in any of them."""
        found = []
        for folder in (self.client, self.share, self.temporary, self.reports):
            for parent, folders, files in os.walk(folder):
                found += [str(Path(parent, each)) for each in (*folders, *files)]
        return sorted(each for each in found if each != str(self.reports / "report.json"))


@dataclass(frozen=True)
class Scenario:
    """One command that is killed."""

    name: str
    victims: tuple[str, ...]
    arguments: Callable[[Place], list[str]]
    budget_seconds: int = 5


def _share(place: Place) -> str:
    return f"//127.0.0.1:{place.server.port}/{place.server.share}"


SCENARIOS = (
    Scenario(
        "disk",
        ("coordinator", "agent"),
        lambda at: ["probe", "disk", "--folder", str(at.client), "--size", "64MiB"],
    ),
    Scenario(
        "zones",
        ("coordinator", "agent"),
        lambda at: ["probe", "disk", "--folder", str(at.client), "--size", "64MiB"],
        budget_seconds=45,
    ),
    Scenario(
        "share",
        ("coordinator", "agent", "server-agent"),
        lambda at: [
            *("diagnose", _share(at), "--user", at.server.username, "--folder", str(at.client)),
            *("--agent", "exec:", "--server-folder", str(at.share), "--size", "32MiB"),
        ],
    ),
    Scenario(
        "folder",
        ("coordinator", "agent"),
        lambda at: ["diagnose", str(at.share), "--folder", str(at.client), "--size", "32MiB"],
    ),
)


@dataclass
class Killed:
    """What came of one kill."""

    scenario: str
    victim: str
    moment_seconds: float
    clean_seconds: float
    """Until nothing was left; PATIENCE_SECONDS where something stayed."""
    files: list[str]
    processes: list[str]
    fio: int
    mounts: list[str]
    loops: list[str]

    @property
    def clean(self) -> bool:
        """Whether nothing was left."""
        return not (self.files or self.processes or self.fio or self.mounts or self.loops)


def become_reaper() -> None:
    """Orphans below this process become its children: none can hide from descendants()."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def parents() -> dict[int, tuple[int, str]]:
    """Of each process its parent and its state (proc(5))."""
    found = {}
    for each in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{each}/stat").read_text(encoding="utf-8", errors="replace")
            state, parent = text.rpartition(")")[2].split()[:2]
            found[int(each)] = int(parent), state
    return found


def descendants(of: int, without: frozenset[int] = frozenset()) -> list[int]:
    """Live processes below one, but for some and what is below those."""
    known = parents()
    found, todo = [], [of]
    while todo:
        parent = todo.pop()
        for pid, (its_parent, state) in known.items():
            if its_parent == parent and pid not in without:
                todo.append(pid)
                if state != "Z":
                    found.append(pid)
    return found


def reap(keep: frozenset[int]) -> None:
    """Takes leave of orphans that have ended."""
    for pid, (parent, state) in parents().items():
        if parent == os.getpid() and state == "Z" and pid not in keep:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)


def command_of(pid: int) -> str:
    """How a process was started."""
    try:
        text = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return ""
    return text.decode(errors="replace").strip()


def mounts() -> set[str]:
    """Mount points."""
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    return {line.split()[4] for line in lines}


def loops() -> set[str]:
    """Loop devices and what is behind them."""
    found = set()
    for each in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):
            found.add(f"{each.parts[3]}:{each.read_text().strip()}")
    return found


def started(scenario: Scenario, place: Place) -> subprocess.Popen[bytes]:
    """The scenario's command, in a session of its own."""
    environment = {**os.environ, "TMPDIR": str(place.temporary), "PYTHONPATH": str(ROOT)}
    environment["BOTTLENECK_PASSWORD"] = PASSWORD
    options = ["--budget", str(scenario.budget_seconds), "--yes", "--quiet"]
    options += ["--json", str(place.reports / "report.json")]
    return subprocess.Popen(
        [sys.executable, "-m", "bottleneck", *scenario.arguments(place), *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )


def whole_seconds(scenario: Scenario, place: Place) -> float:
    """What a run takes that nobody kills; RuntimeError where it does not measure here."""
    began = time.monotonic()
    process = started(scenario, place)
    code = process.wait(4 * END_SECONDS)
    seconds = time.monotonic() - began
    report = place.reports / "report.json"
    measured = report.exists() and '"measured"' in report.read_text(encoding="ascii")
    if code not in (0, 3) or not measured or place.left():
        raise RuntimeError(f"{scenario.name}: ended with {code}, left {place.left()}")
    return seconds


def one_kill(
    scenario: Scenario, victim: str, moment_seconds: float, place: Place, keep: frozenset[int]
) -> Killed:
    """Starts the command, kills at the moment, and looks until nothing is left or patience ends.

    keep: processes of the trial itself. Where the run ended before, or the victim was not there,
    nothing was killed and the moment says how far it came.
    """
    mounted, looped = mounts(), loops()
    process = started(scenario, place)
    began = time.monotonic()
    while time.monotonic() - began < moment_seconds and process.poll() is None:
        time.sleep(0.002)
    struck = _strike(process, victim)
    if struck is None:
        victim = NOBODY if process.poll() is not None else "coordinator"
        process.kill()
    moment_seconds = time.monotonic() - began
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(END_SECONDS if victim != "coordinator" else PATIENCE_SECONDS)
    since = time.monotonic()
    while True:
        reap(keep)
        running = descendants(os.getpid(), keep)
        commands = [command_of(each) for each in running]
        found = Killed(
            scenario=scenario.name,
            victim=victim,
            moment_seconds=moment_seconds,
            clean_seconds=time.monotonic() - since,
            files=place.left(),
            processes=[each for each in commands if each],
            fio=sum("fio" in each.partition(" ")[0] for each in commands),
            mounts=sorted(mounts() - mounted),
            loops=sorted(loops() - looped),
        )
        if found.clean or found.clean_seconds >= PATIENCE_SECONDS:
            break
        time.sleep(0.02)
    _put_right(place, running)
    return found


def _strike(process: subprocess.Popen[bytes], victim: str) -> int | None:
    """Kills the victim; its process id, or None where there is no such process (yet)."""
    if process.poll() is not None:
        return None
    pid: int | None = process.pid
    if victim != "coordinator":
        agents = sorted(each for each in descendants(process.pid) if _is_agent(each, process.pid))
        at = 1 if victim == "server-agent" else 0
        pid = agents[at] if at < len(agents) else None
    if pid is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return pid


def _is_agent(pid: int, coordinator: int) -> bool:
    return parents().get(pid, (0, ""))[0] == coordinator and "python" in command_of(pid)


def _put_right(place: Place, running: list[int]) -> None:
    """Removes what was left, so that the next kill is not blamed for it."""
    for pid in running:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for folder in (place.client, place.share, place.temporary, place.reports):
        for each in folder.iterdir():
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each, ignore_errors=True)
            else:
                each.unlink(missing_ok=True)


@contextlib.contextmanager
def place() -> Iterator[Place]:
    """Folders on a disk, and a server for one of them."""
    root = Path(mkdtemp(prefix="bottleneck-kills-", dir="/var/tmp"))  # noqa: S108 - a disk
    try:
        for each in ("client", "share", "tmp", "reports"):
            (root / each).mkdir()
        with private_samba(str(root / "share"), password=PASSWORD) as server:
            yield Place(root, server)
    finally:
        shutil.rmtree(root)


def trial(kills: int, seed: int, only: str | None = None) -> Iterator[Killed]:
    """So many kills, the moments of each scenario spread over its whole run."""
    become_reaper()
    chance = random.Random(seed)
    chosen = [each for each in SCENARIOS if only in (None, each.name)]
    with place() as made:
        # the server, its guardian and what it starts are the trial's own
        keep = frozenset({*descendants(os.getpid()), made.server.process_id})
        for number, scenario in enumerate(chosen):
            own = kills // len(chosen) + (number < kills % len(chosen))
            seconds = whole_seconds(scenario, made) if own else 0.0
            done = 0
            while done < own:
                moment = (done + chance.random()) / own * seconds
                victim = scenario.victims[done % len(scenario.victims)]
                killed = one_kill(scenario, victim, moment, made, keep)
                if killed.victim != NOBODY or not killed.clean:
                    done += 1
                    yield killed
                else:
                    seconds *= 0.98


def table(found: list[Killed]) -> str:
    """A line for each scenario and victim."""
    lines = [
        f"{'scenario':9}{'killed':22}{'kills':>6}{'from s':>8}{'to s':>7}{'slowest s':>11}"
        f"{'files':>7}{'processes':>11}{'fio':>5}{'mounts':>8}{'loops':>7}"
    ]
    for key in sorted({(each.scenario, each.victim) for each in found}):
        own = [each for each in found if (each.scenario, each.victim) == key]
        moments = [each.moment_seconds for each in own]
        lines.append(
            f"{key[0]:9}{key[1]:22}{len(own):6}{min(moments):8.2f}{max(moments):7.2f}"
            f"{max(each.clean_seconds for each in own):11.2f}"
            f"{sum(len(each.files) for each in own):7}"
            f"{sum(len(each.processes) for each in own):11}{sum(each.fio for each in own):5}"
            f"{sum(len(each.mounts) for each in own):8}{sum(len(each.loops) for each in own):7}"
        )
    return "\n".join(lines)


def main() -> int:
    """Kills, prints the table, and what was left by which kill."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=[each.name for each in SCENARIOS])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    missing = [name for name in ("fio",) if shutil.which(name) is None]
    if find_smbd() is None or missing:
        print("needs samba and fio", file=sys.stderr)
        return NO_TRIAL
    found: list[Killed] = []
    for number, each in enumerate(trial(options.kills, options.seed, options.only), 1):
        found.append(each)
        told: dict[str, Any] = asdict(each)
        if not each.clean:
            print(f"kill {number}: {json.dumps(told)}", flush=True)
        elif number % 20 == 0:
            print(f"{number} kills, nothing left so far", file=sys.stderr, flush=True)
    print(table(found))
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n")
    return CLEAN if all(each.clean for each in found) else LEFT


if __name__ == "__main__":
    sys.exit(main())
