#!/usr/bin/env python3
"""Runs the short tests in random order on a busy host, and names those that did not always pass.

Usage: ./test --stress ROUNDS [TESTS]

Beside the tests run two busy loops and a writer that flushes to the disk. Each round has a seed of
its own; `pytest -p randomly --randomly-seed=SEED` has its order again. Exits 1 where a test did
not pass in every round, or a round ran none.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from xml.etree import ElementTree

BUSY = ("sh", "-c", "while :; do :; done")
WRITES = "while dd if=/dev/zero of=written bs=1M count=64 conv=fsync 2>&-; do rm written; done"
PASSED = ("skipped", "properties", "system-out", "system-err")
"""Elements that the JUnit record of a test that did not fail may hold."""


@contextmanager
def load(folder: str) -> Iterator[None]:
    """Runs two busy loops and a writer in that folder; ends them with their children."""
    with ExitStack() as stack:
        for command in (BUSY, BUSY, ("sh", "-c", WRITES)):
            process = subprocess.Popen(command, cwd=folder, process_group=0)
            stack.callback(process.wait)
            stack.callback(subprocess.run, ["kill", "-KILL", "--", f"-{process.pid}"], check=True)
        yield


def round_of(tests: list[str], seed: int, record: Path) -> set[str] | None:
    """Returns the tests that failed in a seed's order; None: none ran, or pytest broke."""
    command = [sys.executable, "-m", "pytest", "-q", "-n", "3", "--dist", "loadfile"]
    command += ["-m", "not long and not lab", "-p", "randomly", f"--randomly-seed={seed}"]
    done = subprocess.run([*command, f"--junitxml={record}", *tests], check=False)
    if done.returncode not in (0, 1) or not record.exists():
        return None
    return {
        f"{each.get('classname')}::{each.get('name')}"
        for each in ElementTree.parse(record).iter("testcase")
        if any(part.tag not in PASSED for part in each)
    }


def main(rounds: int, tests: list[str]) -> int:
    seeds: dict[str, list[int]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, load(folder):
        for number in range(rounds):
            seed = random.randrange(1 << 32)
            print(f"== round {number + 1} of {rounds}, seed {seed}", flush=True)
            failed = round_of(tests, seed, Path(folder, f"{seed}.xml"))
            for name in {"(no test ran)"} if failed is None else failed:
                seeds[name].append(seed)
    for name, those in sorted(seeds.items()):
        print(f"{name}: not passed in {len(those)} of {rounds}, seeds {those}")
    print(f"{rounds} rounds; tests that did not pass in each: {len(seeds)}")
    return 1 if seeds else 0


if __name__ == "__main__":
    # Whoever ends this ends the load too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main(int(sys.argv[1]), sys.argv[2:]))
