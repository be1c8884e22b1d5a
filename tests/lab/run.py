#!/usr/bin/env python3
"""Run the product in the lab's worlds and print planted against found.

Usage: python tests/lab/run.py [WORLD ...] [--only PATTERN] [--group NAME] [--quick | --budget
SECONDS] [--agent-none] [--json F] [--reports DIR]
[--from DIR] [--summary] [--results] [--draw N --seed S [--part K]]

--draw takes worlds that nobody has seen; their truth is known from how they were drawn.
--results adds a row a copy to results.tsv: figures of worlds add up over days.
--from DIR judges the reports that --reports DIR kept, with today's analysis: seconds, no lab.

Exit code: 0 every verdict is right; 1 something is blamed wrongly, a diagnosis contradicts its own
report (law.py), or a run broke; 3 nothing is wrong but a planted cap was not named; 69 this machine
cannot hold the lab.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path

from draw import draw_worlds
from experiment import Result, Terms, experiment, judged_again, run_undisturbed, show
from judge import MISSED, WRONG
from tally import lines, tally
from truth import GROUPS, WORLDS, LabWorld
from world import missing

PART = 8
"""Worlds of one part of those that are drawn: some ten minutes."""
ATTEMPTS = 3
"""Attempts at one world, where others on the machine disturb it; --attempts."""
RESULTS = Path(__file__).with_name("results.tsv")
ALL_RIGHT, CONFIDENTLY_WRONG, NOT_NAMED, NO_LAB = 0, 1, 3, 69


def grade(results: list[Result]) -> int:
    grades = {row.grade for ran in results for row in ran.verdicts}
    if WRONG in grades or any(ran.broke or ran.left_behind or ran.unlawful for ran in results):
        return CONFIDENTLY_WRONG
    return NOT_NAMED if MISSED in grades else ALL_RIGHT


def chosen_worlds(names: list[str], only: str, group: str | None) -> list[LabWorld]:
    """The worlds of these names (none: all), that match a pattern and belong to a group."""
    among = WORLDS.values() if group is None else GROUPS[group]
    return [
        each for each in among if (not names or each.name in names) and fnmatchcase(each.name, only)
    ]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="The product in worlds with a planted bottleneck.")
    parser.add_argument("worlds", nargs="*", metavar="WORLD", help=" ".join(WORLDS))
    parser.add_argument(
        "--only", default="*", metavar="PATTERN", help="worlds that match: 'disc-*'"
    )
    parser.add_argument("--group", choices=GROUPS, help="worlds of one kind")
    parser.add_argument("--list", action="store_true", help="print their names, and run nothing")
    parser.add_argument("--json", type=Path, metavar="F", help="also write the results there")
    budget = parser.add_mutually_exclusive_group()
    budget.add_argument("--budget", type=int, default=60, metavar="SECONDS", help="the product's")
    budget.add_argument("--quick", dest="budget", action="store_const", const=20, help="20 s")
    parser.add_argument("--attempts", type=int, default=ATTEMPTS, help="where others disturb it")
    parser.add_argument("--agent-none", action="store_true", help="no agent on the server")
    parser.add_argument("--metrics", action="store_true", help="node_exporter in place of it")
    parser.add_argument("--ordinary", action="store_true", help="the server's agent has no rights")
    parser.add_argument("--no-iperf3", dest="beside", action="store_false", help="do not compare")
    parser.add_argument("--reports", type=Path, metavar="DIR", help="keep each report there")
    parser.add_argument("--from", dest="saved", type=Path, metavar="DIR", help="judge those again")
    parser.add_argument("--results", action="store_true", help=f"add them to {RESULTS.name}")
    parser.add_argument("--draw", type=int, default=0, metavar="N", help="N worlds of --seed")
    parser.add_argument("--seed", default="", metavar="S", help="by which they are drawn")
    parser.add_argument("--part", type=int, default=0, metavar="K", help=f"its {PART} worlds alone")
    parser.add_argument("--summary", action="store_true", help="no rows of the single worlds")
    return parser


def main() -> int:
    parser = _parser()
    options = parser.parse_args()
    strange = [name for name in options.worlds if name not in WORLDS]
    if strange:
        parser.error(f"no such world: {' '.join(strange)}; there are {' '.join(WORLDS)}")
    worlds = chosen_worlds(options.worlds, options.only, options.group)
    if options.draw:
        first = options.part * PART
        worlds = list(draw_worlds(options.draw, options.seed))[first : first + PART]
    if options.list:
        print("\n".join(each.name for each in worlds))
        return ALL_RIGHT
    agent = not (options.agent_none or options.metrics)
    terms = Terms(
        options.budget,
        agent,
        options.ordinary,
        metrics=options.metrics,
        beside=options.beside,
        reports=options.reports,
    )
    lacks = [] if options.saved else missing()
    if lacks:
        print("not run: " + "; ".join(lacks), file=sys.stderr)
        return NO_LAB
    kind = "metrics" if options.metrics else "agent" if agent else "none"
    results: list[Result] = []
    if options.saved:
        runs = judged_again(options.saved, worlds, terms)
    else:
        runs = _run(worlds, terms, options.attempts)
    for ran in runs:
        results.append(ran)
        if not options.summary:
            show(ran)
        if options.results:
            with RESULTS.open("a", encoding="utf-8") as file:
                file.writelines(_rows(ran, _tree(), kind))
        if options.json:
            document = {"runs": [asdict(each) for each in results], "tally": asdict(tally(results))}
            options.json.write_text(json.dumps(document, indent=1) + "\n")
    print("\n".join(lines(tally(results))))
    return grade(results)


def _tree() -> str:
    command = ["git", "-C", str(RESULTS.parent), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _rows(ran: Result, tree: str, agent: str) -> Iterator[str]:
    """Tree, day, agent, world, copy, dialect, MB/s, verdict, confidence, grade: a copy a line."""
    for row in ran.verdicts:
        rate = "-" if row.bytes_per_second is None else f"{row.bytes_per_second / 1e6:.2f}"
        cells = (row.copy, row.dialect or "-", rate, row.verdict, row.confidence, row.grade)
        day = time.strftime("%Y-%m-%d")
        yield "\t".join(map(str, (tree, day, agent, ran.world, *cells))) + "\n"


def _run(worlds: list[LabWorld], terms: Terms, attempts: int) -> Iterator[Result]:
    for each in worlds:
        yield run_undisturbed(each, attempts, lambda case: experiment(case, terms))


if __name__ == "__main__":
    sys.exit(main())
