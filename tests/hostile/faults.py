#!/usr/bin/env python3
"""Puts every fault of the matrix into a run at three moments, and prints what came of each.

Usage: python tests/hostile/faults.py [--rows N,..] [--moments 3] [--budget S] [--workers N]
                                      [--job STAGE] [--json F]

A fault is there before the start, comes in the first copies, or late. Each run is `diagnose` (or
`probe STAGE`, which comes to its copies sooner) with a budget, against a real Samba, in network and
mount namespaces of its own. It has to end within its budget and 10 s, with one document on stdout
that its schema takes, an exit code that CONTRACT.md has for the fault, no limit named by a stage
that failed, and with no file, process or mount left. A mark: + kept, c kept once `cleanup` had run
(where nothing could be deleted before), X broken, - not tried here.
Exit code: 0 all is kept; 1 something is broken; 69 this machine cannot hold the trial.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from fault_rows import NOT_HERE, ROWS  # noqa: E402
from fault_world import MOMENTS, Seen  # noqa: E402

KEPT, BROKEN, NO_TRIAL = 0, 1, 69
PROGRAMS = ("fio", "ip", "nft", "nsenter", "setpriv", "smbd", "ss", "unshare")
LONGEST_RATIO, LONGEST_SECONDS = 8, 180
"""A cell may take its budget so many times, and more for its server; then it is ended."""


def lacks() -> list[str]:
    """What this machine lacks; none: the trial can be held."""
    found = [] if os.geteuid() == 0 else ["root"]
    return found + [each for each in PROGRAMS if shutil.which(each) is None]


def cell(number: str, moment: str, budget_seconds: int, job: str = "diagnose") -> Seen:
    """One fault at one moment, in a process and namespaces of its own."""
    with tempfile.TemporaryDirectory(prefix="bottleneck-fault-", dir="/var/tmp") as folder:  # noqa: S108
        Path(folder).chmod(0o755)
        own = ["unshare", "--net", "--mount", "--propagation", "private", "--"]
        words = [sys.executable, str(HERE / "fault_cell.py"), number, moment]
        process = subprocess.Popen(
            [*own, *words, str(budget_seconds), folder, job],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=LONGEST_RATIO * budget_seconds + LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return Seen(number, moment, ["the cell did not end"])
        lines = out.splitlines()
        if process.returncode or not lines:
            return Seen(number, moment, [f"the trial itself broke: {err.strip()[-300:]}"])
        return Seen(**json.loads(lines[-1]))


def mark(seen: Seen) -> str:
    """One letter for a cell."""
    if seen.not_here:
        return "-"
    return "X" if seen.faults else "c" if seen.cleaned else "+"


def told(title: str, cells: list[Seen]) -> str:
    """A row's line, and one for each promise that was broken."""
    seen = cells[-1].seen or cells[-1].not_here
    lines = [f"{cells[0].row:>4} {title:36} {' '.join(map(mark, cells)):6} {seen[:110]}"]
    for each in cells:
        lines += [f"      {each.moment}: {fault}" for fault in each.faults]
        if each.not_here:
            lines.append(f"      {each.moment}: not tried: {each.not_here}")
    return "\n".join(lines)


def main() -> int:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", help="numbers, as 1,27b; all of 27 by 27")
    parser.add_argument("--moments", type=int, choices=(1, 2, 3), default=3)
    parser.add_argument("--budget", type=int, default=20)
    parser.add_argument("--job", default="diagnose", help="or the stage that is probed instead")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if missing := lacks():
        print(f"needs {', '.join(missing)}", file=sys.stderr)
        return NO_TRIAL
    wanted = options.rows.split(",") if options.rows else None
    rows = [
        row
        for row in ROWS
        if wanted is None or row.number in wanted or row.number.rstrip("abcd") in wanted
    ]
    found: list[Seen] = []
    with ThreadPoolExecutor(options.workers) as pool:
        due = [
            [
                pool.submit(cell, row.number, moment, options.budget, options.job)
                for moment in MOMENTS[: options.moments]
            ]
            for row in rows
        ]
        for row, cells in zip(rows, due, strict=True):
            seen = [each.result() for each in cells]
            print(told(row.title, seen), flush=True)
            found += seen
    marks = [mark(each) for each in found]
    for number, why in NOT_HERE.items():
        print(f"{number:>4} not here: {why}")
    print(
        f"{len(rows)} faults, {len(found)} runs: {marks.count('+')} kept, {marks.count('c')} kept "
        f"with cleanup, {marks.count('X')} broken, {marks.count('-')} not tried"
    )
    if options.json:
        with contextlib.suppress(FileNotFoundError):
            options.json.unlink()
        options.json.write_text(json.dumps([asdict(each) for each in found], indent=1) + "\n")
    return BROKEN if "X" in marks else KEPT


if __name__ == "__main__":
    sys.exit(main())
