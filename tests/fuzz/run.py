"""Coverage-guided fuzzing of what reads foreign input; documented in CONTRIBUTING.md.

    python tests/fuzz/run.py [TARGET ...] [--seconds N] [--keep]

Each TARGET is a file here with `one_input(data: bytes)`: it may end in any way that it documents,
and in no other. All of them where none is named; so many seconds each, one after the other. What
ends otherwise, computes for more than 5 s or takes more than 256 MiB goes to tests/fuzz/crashes;
`python tests/fuzz/replay.py TARGET FILE` runs it again. What reaches new code goes to
tests/fuzz/grown for the next run; --keep adds the smallest of it, 24 KiB at the most, to
tests/fuzz/corpus.

Exit code: 0 nothing found, 1 something found.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

HERE = Path(__file__).parent
TARGETS = ("fio_output", "names", "smb_replies", "agent_frames", "reports", "outputs")
TARGETS += ("captures", "framing")
TIMEOUT_SECONDS = 60
"""Time by the clock, for an input that waits; one that computes for 5 s is a finding too."""
MEMORY_MIB = 256
LONGEST_BYTES = 24576
MOST_ADDED_BYTES = 24 << 10
MOST_RESTARTS = 20


@dataclass
class Tally:
    name: str
    executions: int = 0
    seconds: float = 0.0
    edges: int = 0
    inputs: int = 0
    crashes: int = 0
    hangs: int = 0
    peak_mib: int = 0

    @property
    def cells(self) -> tuple[str, ...]:
        rate = self.executions / self.seconds if self.seconds else 0.0
        figures = (self.executions, f"{rate:.0f}", self.edges, self.inputs)
        return tuple(map(str, (self.name, *figures, self.crashes, self.hangs, self.peak_mib)))


TITLES = ("target", "executions", "per second", "edges", "inputs", "crashes", "hangs", "peak MiB")


def fuzzed(name: str, seconds: int) -> Tally:
    """Fuzzes one target for so long; goes on after an input that ends its process."""
    tally = Tally(name)
    grown, crashes, seeds = HERE / "grown" / name, HERE / "crashes", HERE / "corpus" / name
    for folder in (grown, crashes, seeds):
        folder.mkdir(parents=True, exist_ok=True)
    names_before = {each.name for each in crashes.iterdir()}
    until = time.monotonic() + seconds
    for _ in range(MOST_RESTARTS):
        span = round(until - time.monotonic())
        if span < 1:
            break
        ended = looped(name, grown, seeds, f"-max_total_time={span}", "-print_final_stats=1")
        tally.seconds += count(ended, r"Done \d+ runs in (\d+) second") or span
        tally.executions += count(ended, r"stat::number_of_executed_units:\s+(\d+)")
        tally.edges = max(tally.edges, count(ended, r"\bcov: (\d+)"))
        tally.inputs = max(tally.inputs, count(ended, r"\bcorp: (\d+)"))
        tally.peak_mib = max(tally.peak_mib, count(ended, r"stat::peak_rss_mb:\s+(\d+)"))
    new = {each.name for each in crashes.iterdir()} - names_before
    names = [each for each in new if each.startswith(f"{name}-")]
    tally.hangs = sum("-timeout-" in each or "-slow-" in each for each in names)
    tally.crashes = len(names) - tally.hangs
    return tally


def looped(name: str, *arguments: object) -> str:
    """Runs loop.py to its end and returns its output."""
    ended = subprocess.run(
        [
            *map(str, (sys.executable, HERE / "loop.py", name, *arguments)),
            f"-timeout={TIMEOUT_SECONDS}",
            f"-rss_limit_mb={MEMORY_MIB}",
            f"-max_len={LONGEST_BYTES}",
            f"-artifact_prefix={HERE}/crashes/{name}-",
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    (HERE / "crashes" / "logs").mkdir(exist_ok=True)
    (HERE / "crashes" / "logs" / name).write_text(ended.stdout)
    if "stat::" not in ended.stdout and "-merge=1" not in arguments:
        raise SystemExit(f"{name} could not be fuzzed:\n{ended.stdout[-2000:]}")
    return ended.stdout


def count(text: str, pattern: str) -> int:
    """Returns the last number that the pattern finds, or 0."""
    counts = re.findall(pattern, text)
    return int(counts[-1]) if counts else 0


def extend_corpus(name: str) -> None:
    """Adds the smallest inputs that reach what the target's corpus does not."""
    seeds, smallest = HERE / "corpus" / name, HERE / "grown" / f"{name}-least"
    shutil.rmtree(smallest, ignore_errors=True)
    shutil.copytree(seeds, smallest)
    names = {each.name for each in smallest.iterdir()}
    looped(name, smallest, HERE / "grown" / name, "-merge=1")
    added = 0
    for each in sorted(smallest.iterdir(), key=lambda path: path.stat().st_size):
        if each.name not in names and added + each.stat().st_size <= MOST_ADDED_BYTES:
            added += each.stat().st_size
            shutil.copy(each, seeds)


def show(rows: list[Tally]) -> None:
    table = Table(*TITLES, box=None)
    for tally in rows:
        table.add_row(*tally.cells)
    Console(width=100).print(table)


def main() -> int:
    parser = argparse.ArgumentParser(description="fuzzes what reads foreign input")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=600, help="for each target")
    parser.add_argument("--keep", action="store_true", help="add to the corpus")
    options = parser.parse_args()
    if unknown := set(options.targets) - set(TARGETS):
        parser.error(f"no target is called {', '.join(sorted(unknown))}")
    if importlib.util.find_spec("atheris") is None:
        parser.error("atheris is not installed: it has wheels for Linux on x86-64 alone")
    rows: list[Tally] = []
    bad = 0
    for name in options.targets or TARGETS:
        tally = fuzzed(name, options.seconds)
        bad += tally.crashes + tally.hangs
        rows.append(tally)
        if options.keep:
            extend_corpus(name)
        show(rows)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
