"""Measures the tool's own cost while 1 GiB is copied: resident memory, and idle seconds.

    .venv/bin/python benchmarks/cost.py [--json F] [--report REPORT]

Runs `bottleneck demo --size 1GiB` and reads the highest resident set of each of its processes ten
times a second. An agent's figure is the agent's own and, apart, its largest child's (the probe).
Then it lists the run's steps: when each began, how long it moved bytes, and what passed between
its last byte and the next step's beginning. --report lists those of a stored report instead.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import psutil

MIB = 1 << 20
ALLOWED = {"coordinator": 150 * MIB, "agent client": 100 * MIB, "agent server": 100 * MIB}


def role(process: psutil.Process, main: psutil.Process) -> str | None:
    """Returns the role of a process of the run; None: not ours (smbd, fio)."""
    if process == main:
        return "coordinator"
    line = process.cmdline()
    parent = process.parent()
    ours = process.name().startswith("python") or "python" in (line[:1] or [""])[0]
    if parent is None or not ours:
        return None
    side = "client" if "bottleneck.agents.server" in line else "server"
    return f"agent {side}" if parent == main else f"probe {side}"


def watch(run: subprocess.Popen[str]) -> dict[str, int]:
    """Returns the highest resident bytes of each role until the run ends."""
    main = psutil.Process(run.pid)
    highest: dict[str, int] = {}
    while run.poll() is None:
        for process in [main, *main.children(recursive=True)]:
            try:
                name, resident = role(process, main), process.memory_info().rss
            except psutil.Error:
                continue
            if name is not None:
                highest[name] = max(resident, highest.get(name, 0))
        time.sleep(0.1)
    return highest


class Step(NamedTuple):
    """One step of a run, in seconds."""

    name: str
    begins: float
    """Start, since the program's start."""
    moving: float
    """Seconds from the first byte to the last, summed over its runs."""
    idle: float
    """Remaining seconds until the next step begins."""


def steps(report: dict[str, Any]) -> list[Step]:
    """Returns every executed step, preceded by the time before the first one."""
    spans = []
    for each in report["steps"]:
        outcome = each["outcome"]
        begins = outcome.get("details", {}).get("opened_after_seconds")
        if begins is None:
            continue
        runs = outcome.get("runs") or []
        moving = sum(run[-1][0] - run[0][0] for run in runs if run[-1][1] > 0)
        setting = each["setting"]
        words = (each["stage"], setting.get("copy") or setting.get("verb"), setting.get("dialect"))
        spans.append((" ".join((*filter(None, words), each["initiator"])), begins, moving))
    spans.sort(key=lambda each: each[1])
    ends = [begins for _, begins, _ in spans[1:]] + [report["elapsed_seconds"]]
    rows = [
        Step(name, begins, moving, end - begins - moving)
        for (name, begins, moving), end in zip(spans, ends, strict=True)
    ]
    return [Step("(before the first)", 0.0, 0.0, rows[0].begins), *rows] if rows else []


def show_steps(report: dict[str, Any]) -> list[Step]:
    """Prints a row for each step, and the idle seconds of the run."""
    rows = steps(report)
    print(f"{'step':36}{'begins':>8}{'moving':>8}{'idle':>8}  seconds")
    for each in rows:
        print(f"{each.name:36}{each.begins:8.2f}{each.moving:8.2f}{each.idle:8.2f}")
    idle, elapsed = sum(each.idle for each in rows), report["elapsed_seconds"]
    print(f"{'all':36}{elapsed:8.2f}{elapsed - idle:8.2f}{idle:8.2f}")
    return rows


def main() -> int:
    """Prints a row for each role and step; returns 1 if a process exceeds its allowance."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    if options.report:
        show_steps(json.loads(options.report.read_text()))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        command = [sys.executable, "-m", "bottleneck", "demo", "--size", "1GiB", "--budget", "120"]
        command += ["--dialects", "3.1.1", "--quiet", "--json", str(path)]
        run = subprocess.Popen(command, text=True, stdout=subprocess.PIPE)
        highest = watch(run)
        print(run.stdout.read() if run.stdout else "", end="")
        rows = show_steps(json.loads(path.read_text()))
    over = False
    for name, resident in sorted(highest.items()):
        allowed = ALLOWED.get(name)
        over = over or allowed is not None and resident > allowed
        limit = f" of {allowed / MIB:.0f} allowed" if allowed else ""
        print(f"{name:14} {resident / MIB:7.1f} MiB{limit}")
    if options.json:
        figures = {"resident_bytes": highest, "steps": [each._asdict() for each in rows]}
        options.json.write_text(json.dumps(figures))
    return 1 if over or run.returncode not in {0, 3} else 0


if __name__ == "__main__":
    sys.exit(main())
