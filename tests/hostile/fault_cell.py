#!/usr/bin/env python3
"""One cell of the fault matrix: one fault, at one moment, and what came of it.

Its process has a network and a mount namespace of its own (faults.py starts it so): packet rules,
mounts and listeners are its own, and whatever it leaves ends with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import json
import os
import resource
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import fault_rows
import fault_verdict
from fault_world import BEFORE, MORE_SECONDS, PASSWORD, NotHere, Row, Run, Seen, World, below

from probes.drivers.samba import private_samba

PR_SET_CHILD_SUBREAPER = 36


def judged(row: Row, moment: str, budget_seconds: int, folder: Path, job: str) -> Seen:
    """One cell, from its server to its verdict."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with ExitStack() as whole:
        world = World(folder, moment, whole.enter_context(ExitStack()), budget_seconds, job)
        row.prepare(world)
        if moment == BEFORE:
            world.reload(row.conf, row.share_conf)
        world.server = whole.enter_context(
            private_samba(
                world.share,
                password=PASSWORD,
                address=world.address,
                options=world.conf,
                share_options=world.share_conf,
            )
        )
        world.keep()
        if moment == BEFORE:
            row.fault(world)
        own = frozenset({world.server.process_id, *below(os.getpid())})
        run = Run(world, row, folder / "out")
        elapsed = run.finish()
        out = (folder / "out").read_text(errors="backslashreplace")
        for each in world.extra:
            each.wait(3 * budget_seconds + 4 * MORE_SECONDS)
        faults = fault_verdict.of_run(world, row, run, elapsed, out)
        with contextlib.suppress(OSError):
            world.stack.close()
        left, cleaned = fault_verdict.left(world, row, own)
        code = run.process.returncode
        seen = f"exit {code}, {fault_verdict.seen(out, run.lines)}"
        told = "".join(run.lines)
        return Seen(row.number, moment, faults + left, seen, "", cleaned, elapsed, out, told)


def main() -> None:
    """ROW MOMENT BUDGET FOLDER JOB: one cell, as a JSON object on stdout."""
    number, moment, budget, folder, job = sys.argv[1:]
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    row = next(each for each in fault_rows.ROWS if each.number == number)
    try:
        found = judged(row, moment, int(budget), Path(folder), job)
    except NotHere as error:
        found = Seen(number, moment, [], not_here=str(error))
    print(json.dumps(dataclasses.asdict(found)))


if __name__ == "__main__":
    main()
