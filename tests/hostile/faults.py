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
import ctypes
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import fault_rows_files  # noqa: E402
import fault_rows_hosts  # noqa: E402
import fault_rows_server  # noqa: E402
import fault_verdict  # noqa: E402
from fault_world import (  # noqa: E402
    BEFORE,
    MOMENTS,
    MORE_SECONDS,
    NotHere,
    Record,
    Row,
    Run,
    World,
    descendants,
)

ROWS = sorted(
    (*fault_rows_server.ROWS, *fault_rows_files.ROWS, *fault_rows_hosts.ROWS),
    key=lambda row: (int("".join(filter(str.isdigit, row.number))), row.number),
)
NOT_HERE = {
    "8": "a link-local address with its interface: loopback has none that smbd serves",
    "10": "quotas of a file system: this kernel has none; the error itself is row 10's",
    "21": "Kerberos, expired and locked accounts: no domain controller here",
    "24": "a real suspend: the machine has none; the freezer holds the run in row 24",
    "26": "fio of other years: not to be had; their output is played in row 26",
    "40": "a file system without O_TMPFILE: the kernel knows none of them (vfat, NFS)",
    "48": "a real power cut, and write caches: a copy of the live disc stands in, row 48",
}
"""Parts of rows that are not tried, and why."""
PR_SET_CHILD_SUBREAPER = 36

KEPT, BROKEN, NO_TRIAL = 0, 1, 69
PROGRAMS = ("fio", "ip", "nft", "nsenter", "setpriv", "smbd", "ss", "unshare")
LONGEST_RATIO, LONGEST_SECONDS = 8, 180
"""A cell may take its budget so many times, and more for its server; then it is ended."""


def lacks() -> list[str]:
    missing = [] if os.geteuid() == 0 else ["root"]
    return missing + [each for each in PROGRAMS if shutil.which(each) is None]


def cell(number: str, moment: str, budget_seconds: int, job: str = "diagnose") -> Record:
    """One fault at one moment, in a process and namespaces of its own."""
    with tempfile.TemporaryDirectory(prefix="bottleneck-fault-", dir="/var/tmp") as folder:  # noqa: S108
        Path(folder).chmod(0o755)
        prefix = ["unshare", "--net", "--mount", "--propagation", "private", "--"]
        words = [sys.executable, str(HERE / "faults.py"), "cell", number, moment]
        pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        process = subprocess.Popen(
            [*prefix, *words, str(budget_seconds), folder, job],
            **{"stdin": subprocess.DEVNULL, "text": True, "start_new_session": True, **pipes},
        )
        try:
            out, err = process.communicate(timeout=LONGEST_RATIO * budget_seconds + LONGEST_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return Record(number, moment, ["the cell did not end"])
        lines = out.splitlines()
        if process.returncode or not lines:
            return Record(number, moment, [f"the trial itself broke: {err.strip()[-300:]}"])
        return Record(**json.loads(lines[-1]))


def judge_cell(row: Row, moment: str, budget_seconds: int, folder: Path, job: str) -> Record:
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with ExitStack() as stack:
        world = World(folder, moment, stack.enter_context(ExitStack()), budget_seconds, job)
        row.prepare(world)
        if moment == BEFORE:
            world.reload(row.conf, row.share_conf)
        world.server = stack.enter_context(world.served())
        world.keep()
        if moment == BEFORE:
            row.fault(world)
        outsiders = frozenset({world.server.process_id, *descendants(os.getpid())})
        run = Run(world, row, folder / "out")
        elapsed = run.finish()
        out = (folder / "out").read_text(errors="backslashreplace")
        for each in world.extra:
            each.wait(3 * budget_seconds + 4 * MORE_SECONDS)
        faults = fault_verdict.run_faults(world, row, run, elapsed, out)
        with contextlib.suppress(OSError):
            world.stack.close()
        rest, cleaned = fault_verdict.leftovers(world, row, outsiders)
        code = run.process.returncode
        summary = f"exit {code}, {fault_verdict.summary(out, run.lines)}"
        text = "".join(run.lines)
        return Record(row.number, moment, faults + rest, summary, "", cleaned, elapsed, out, text)


def inside(number: str, moment: str, budget: str, folder: str, job: str) -> None:
    """A cell in namespaces of its own: packet rules, mounts and listeners end with it."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    row = next(each for each in ROWS if each.number == number)
    try:
        ending = judge_cell(row, moment, int(budget), Path(folder), job)
    except NotHere as error:
        ending = Record(number, moment, [], not_here=str(error))
    print(json.dumps(asdict(ending)))


def mark(ending: Record) -> str:
    if ending.not_here:
        return "-"
    return "X" if ending.faults else "c" if ending.cleaned else "+"


def row_lines(title: str, cells: list[Record]) -> str:
    """A row's line, and one for each promise that was broken."""
    summary = cells[-1].summary or cells[-1].not_here
    lines = [f"{cells[0].row:>4} {title:36} {' '.join(map(mark, cells)):6} {summary[:110]}"]
    for each in cells:
        lines += [f"      {each.moment}: {fault}" for fault in each.faults]
        if each.not_here:
            lines.append(f"      {each.moment}: not tried: {each.not_here}")
    return "\n".join(lines)


def main() -> int:
    if sys.argv[1:2] == ["cell"]:
        inside(*sys.argv[2:])
        return KEPT
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
    numbers = options.rows.split(",") if options.rows else None
    rows = [
        row for row in ROWS if not numbers or {row.number, row.number.rstrip("abcd")} & {*numbers}
    ]
    ends: list[Record] = []
    with ThreadPoolExecutor(options.workers) as pool:
        moments, how = MOMENTS[: options.moments], (options.budget, options.job)
        due = [[pool.submit(cell, row.number, moment, *how) for moment in moments] for row in rows]
        for row, cells in zip(rows, due, strict=True):
            row_ends = [each.result() for each in cells]
            print(row_lines(row.title, row_ends), flush=True)
            ends += row_ends
    marks = [mark(each) for each in ends]
    for number, why in NOT_HERE.items():
        print(f"{number:>4} not here: {why}")
    print(
        f"{len(rows)} faults, {len(ends)} runs: {marks.count('+')} kept, {marks.count('c')} kept "
        f"with cleanup, {marks.count('X')} broken, {marks.count('-')} not tried"
    )
    if options.json:
        options.json.write_text(json.dumps([asdict(each) for each in ends], indent=1) + "\n")
    return BROKEN if "X" in marks else KEPT


if __name__ == "__main__":
    sys.exit(main())
