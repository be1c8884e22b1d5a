#!/usr/bin/env python3
"""Does the gate alarm where something became slower, and nowhere else?

Usage: python tests/lab/gate.py [--runs N] [--slower RATIO] [--budget SECONDS] [--baseline-runs N]
[--baseline F] [--world NAME] [--keep DIR]

In a world whose server has a slow disk `bottleneck check --repeat` makes a baseline. Then come so
many pairs of checks against it: one with nothing changed, one with that disk slower by a ratio
(0.15). Each is a real `check TARGET --baseline`, as a timer would run it. An alarm is WARNING or
CRITICAL; UNKNOWN is told apart, and is right in neither.

Exit code: 0 no alarm where nothing changed, and of 20 slower disks 19 are seen (of fewer all); 1
the bar is missed; 69 this machine cannot hold the lab.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cgroups
from disturbance import TOO_MUCH_CORES, watch_machine
from experiment import product
from truth import MB, WORLDS
from world import World, missing, world

HOLDS, FAILS, NO_LAB = 0, 1, 69
ALARMS = (1, 2)
LEAST_SEEN_RATIO = 0.95
EACH_SECONDS, RUNS_NOW = 20, 3
ATTEMPTS = 3
"""Attempts at one check, where others on the machine disturb it."""


@dataclass(frozen=True)
class Check:
    slower: bool
    exit_code: int | None
    """None: it did not end."""
    elapsed_seconds: float
    sentence: str
    disturbed: bool = False
    """Whether others on this machine took enough to be a true cap by themselves."""

    @property
    def alarmed(self) -> bool:
        """Whether it would have told somebody."""
        return self.exit_code in ALARMS

    @property
    def right(self) -> bool:
        """Whether it told what was planted."""
        return self.alarmed if self.slower else self.exit_code == 0


def holds(checks: Sequence[Check]) -> bool:
    """Whether the bar is reached: no false alarm, and nearly all that became slower was seen."""
    slower = [each for each in checks if each.slower]
    same = [each for each in checks if not each.slower]
    noticed = sum(each.right for each in slower)
    return (
        bool(slower)
        and bool(same)
        and all(each.right for each in same)
        and noticed >= math.ceil(LEAST_SEEN_RATIO * len(slower))
    )


def lines(checks: Sequence[Check]) -> list[str]:
    slower = [each for each in checks if each.slower]
    same = [each for each in checks if not each.slower]
    unknown = [each for each in checks if each.exit_code not in (0, *ALARMS)]
    return [
        f"nothing changed: {sum(each.alarmed for each in same)} alarms in {len(same)} checks",
        f"a slower disk: {sum(each.alarmed for each in slower)} alarms in {len(slower)} checks",
        f"UNKNOWN: {len(unknown)}",
    ]


def show(nth: int, each: Check) -> None:
    what = "slower" if each.slower else "same  "
    sign = "right" if each.right else "WRONG"
    disturbed = f" (others took more than {TOO_MUCH_CORES} cores)" if each.disturbed else ""
    print(
        f"{nth:3} {what} {sign} exit {each.exit_code} {each.elapsed_seconds:5.1f} s{disturbed}  "
        f"{each.sentence[:200]}",
        flush=True,
    )


def throttle(lab: World, read_bytes_per_second: int) -> None:
    """The server's disk, from now on; the file system on it stays."""
    number = lab.server.device.stat().st_rdev
    name = f"{os.major(number)}:{os.minor(number)}"
    cgroups.throttle(name, {"read": read_bytes_per_second, "write": None})


def check(lab: World, baseline: Path, slower: bool, budget: int, path: Path, nth: int) -> Check:
    """One `check TARGET --baseline`, as it is; repeated where the machine was not the lab's."""
    outcome = Check(slower, None, 0.0, "not run")
    for _ in range(ATTEMPTS):
        answer, report = path / f"{nth}-answer.json", path / f"{nth}-report.json"
        answer.unlink(missing_ok=True)
        words = ["check", "--baseline", str(baseline), "--format", "json", "--output", str(answer)]
        with watch_machine(lab.groups) as foreign:
            code, elapsed, message = product(lab, words, report, budget)
        said = json.loads(answer.read_text()) if answer.exists() else {"sentence": message.strip()}
        outcome = Check(slower, code, elapsed, str(said["sentence"]), foreign.disturbed)
        if outcome.right or not foreign.disturbed:
            return outcome
        show(nth, outcome)
        print("    not counted: the lab was not alone on this machine; once more", flush=True)
    return outcome


def run(options: argparse.Namespace, path: Path) -> list[Check]:
    """The baseline, and pairs of checks against it. Errors: RuntimeError where there is none."""
    planted = WORLDS[options.world].plant
    rate = planted.server.disk_read_bytes_per_second
    assert rate is not None
    checks: list[Check] = []
    with world(planted) as lab:
        baseline = options.baseline or path / "baseline.json"
        if options.baseline is None:
            words = ["check", "--repeat", str(options.baseline_runs)]
            seconds = EACH_SECONDS * options.baseline_runs
            _, _, message = product(lab, words, baseline, seconds)
            if not baseline.exists():
                raise RuntimeError(f"no baseline: {message}")
        _show_baseline(json.loads(baseline.read_text()))
        for index in range(1, 2 * options.runs + 1):
            slower = index % 2 == 0
            throttle(lab, round(rate * (1 - options.slower)) if slower else rate)
            checks.append(check(lab, baseline, slower, options.budget, path, index))
            show(index, checks[-1])
    return checks


def _show_baseline(report: dict[str, Any]) -> None:
    print(f"baseline: {report['status']}, {report['elapsed_seconds']:.0f} s")
    for step in report["steps"]:
        spread = step["outcome"].get("bytes_per_second")
        if spread and step["stage"] in ("smb-copy", "disk", "tcp"):
            setting = step["setting"]
            name = setting.get("copy") or f"{setting.get('side', '')} {setting['verb']}".strip()
            rates = " ".join(f"{spread[key] / MB:.1f}" for key in ("low", "median", "high"))
            end = f" {setting['end']}" if "end" in setting else ""
            print(f"  {step['stage']} {name}{end}: {rates} MB/s, {spread['runs']} runs")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description="Checks against a baseline, changed and not.")
    parser.add_argument("--runs", type=int, default=20, help="of each kind")
    parser.add_argument("--slower", type=float, default=0.15, metavar="RATIO")
    parser.add_argument(
        "--budget", type=int, default=EACH_SECONDS * RUNS_NOW, metavar="SECONDS", help="of a check"
    )
    parser.add_argument("--baseline-runs", type=int, default=5, metavar="N")
    parser.add_argument("--baseline", type=Path, metavar="F", help="this one, of the same world")
    parser.add_argument("--world", default="server-read-60", metavar="NAME")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep reports and answers there")
    options = parser.parse_args()
    case = WORLDS.get(options.world)
    if case is None or case.plant.server.disk_read_bytes_per_second is None:
        parser.error(f"{options.world} has no server whose disk reads at a planted rate")
    if lacks := missing():
        print("not run: " + "; ".join(lacks), file=sys.stderr)
        return NO_LAB
    with TemporaryDirectory() as folder:
        place = options.keep or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        checks = run(options, place)
    print("\n".join(lines(checks)))
    return HOLDS if holds(checks) else FAILS


if __name__ == "__main__":
    sys.exit(main())
