#!/usr/bin/env python3
"""Run the real command against Sambas that are set up as the NAS boxes of homes and offices are.

Usage: python tests/hostile/nas.py [--only TEXT] [--cases N] [--workers N] [--list] [--verbose]

Each case (nas_cases.py) has a Samba, a home, a client's folder and a login file of its own. Judged
are the exit code, the output, the failed logins that the server counted, and all that is left: on
the share, in its bin, at its printer, in the client's folder, in the journal, and of processes.
Exit code: 0 all are right; 1 some are wrong, and why; 69 this machine cannot hold the trial.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from nas_cases import CASES  # noqa: E402
from nas_world import Case, World, enter, list_processes, size  # noqa: E402

from probes.programs.samba import find_smbd  # noqa: E402

RIGHT, WRONG, NO_TRIAL = 0, 1, 69


def blamed_components(report: Path) -> list[str]:
    """Returns the components that the report's verdicts name as the cap."""
    if not report.exists() or not report.stat().st_size:
        return []
    copies = (json.loads(report.read_text())["diagnosis"] or {}).get("copies", [])
    return [each["verdict"]["component"] for each in copies if each["verdict"]["side"]]


def list_faults(world: World, rest: list[Path]) -> list[str]:
    """Returns what is wrong with the end of a case: in plain words, worst first."""
    case, text = world.case, re.sub(r"\s+", " ", world.output)
    bytes_left = sum(size(path) for path in rest if path.is_file())
    names = ", ".join(str(path.relative_to(world.place)) for path in rest[:3])
    words = {*re.findall(r"[\w.-]+", text)}
    blamed, others = blamed_components(world.report), list_processes(world.home)
    journal = [path for path in world.home.rglob("runs/*") if not path.name.startswith(".")]
    faults = {
        f"left {len(rest)} with {bytes_left} bytes: {names}": rest and not case.tells,
        f"left and not named: {names}": any(words.isdisjoint(path.parts) for path in rest),
        f"{world.failed_logins} failed logins": world.failed_logins > case.failed_logins,
        f"processes left: {others}": others,
        f"exit {world.exit_code}, not {case.exits}": world.exit_code not in case.exits,
        "a traceback": "Traceback (most" in world.output,
        "the password was printed": case.password in world.output,
        f"it blames {blamed}": blamed and not case.verdict,
        "the journal keeps a run of which nothing is left": journal and not rest and not case.tells,
        f"it says {case.never!r}": re.search(case.never, text),
    }
    wrong = [fault for fault, true in faults.items() if true]
    missing = [each for each in case.says.split(" & ") if not re.search(each, text)]
    return wrong + [f"it does not say {each!r}" for each in missing]


def judge(case: Case, verbose: bool) -> list[str]:
    """Tries one case, prints its line, and returns what is wrong."""
    with enter(case) as (world, earlier):
        world.run()
        rest = world.leftovers(earlier)
        world.stop()
        wrong = list_faults(world, rest)
    line = f"{'FAIL' if wrong else 'ok':5}{case.name}"
    if wrong or rest:
        line += f": {'; '.join([*wrong, *([f'{len(rest)} left'] if rest else [])])}"
    if wrong and verbose:
        line += "".join(f"\n       | {each}" for each in world.output.splitlines() if each.strip())
    # In one write: workers do not part each other's lines.
    print(line + "\n", end="", flush=True)
    return wrong


def draw(text: str, number: int, seed: int) -> list[Case]:
    """Returns the cases whose name has that text, or so many of them."""
    drawn = [case for case in CASES if text.lower() in case.name.lower()]
    return random.Random(seed).sample(drawn, min(number, len(drawn))) if number else drawn


def list_lacks() -> list[str]:
    needs = {"root": os.geteuid() == 0, "Samba": find_smbd() is not None}
    return [name for name, true in needs.items() if not true]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="cases with TEXT in their name")
    parser.add_argument("--cases", type=int, default=0, help="so many, drawn by the seed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="print the names, and try nothing")
    parser.add_argument("--verbose", action="store_true", help="print the output of what fails")
    options = parser.parse_args()
    drawn = draw(options.only, options.cases, options.seed)
    if options.list:
        print("\n".join(case.name for case in drawn))
        return RIGHT
    if list_lacks():
        print(f"needs {' and '.join(list_lacks())}", file=sys.stderr)
        return NO_TRIAL
    with ThreadPoolExecutor(options.workers) as pool:
        wrong = sum(bool(each) for each in pool.map(lambda x: judge(x, options.verbose), drawn))
    print(f"{len(drawn)} cases: {len(drawn) - wrong} right, {wrong} wrong")
    return WRONG if wrong else RIGHT


if __name__ == "__main__":
    sys.exit(main())
