#!/usr/bin/env python3
"""Read and write planted discs zone by zone with the product, and print planted against found.

Usage: python tests/lab/find_disc.py [--quick] [--files]

--files: by files that the product places on a file system of the disc, as a user who may not read
the device. A disc of one rate everywhere is among them.

Exit code: 0 everything is found; 1 something is not, or a run broke; 69 no disc can be made here.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import typer
from cgroups import call
from disc import disc, missing
from disc_files import fill_disc
from experiment import AS_USER
from platter import Disc, Weak

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = Path(typer.__file__).parents[1]
ZONES = 9
RATE_TOLERANCE, SEEK_TOLERANCE = 0.05, 0.15
ALL_FOUND, NOT_FOUND, NO_DISC = 0, 1, 69
_MB = 1e6
DISCS = (
    Disc(180 * _MB, 90 * _MB, weak=Weak(4 / ZONES, 5 / ZONES, 0.5)),
    Disc(60 * _MB, 30 * _MB, seek_seconds=0.012),
    Disc(260 * _MB, 120 * _MB, seek_seconds=0.005, weak=Weak(7 / ZONES, 8 / ZONES, 0.7)),
)


@dataclass(frozen=True)
class Figure:
    what: str
    planted: float
    value: float | None
    tolerance: float

    @property
    def right(self) -> bool:
        return (
            self.value is not None
            and abs(self.value - self.planted) <= self.tolerance * self.planted
        )


def figures(planted: Disc, report: dict[str, Any]) -> list[Figure]:
    """Every planted value of a disc against the report's; pure."""
    (step,) = (each for each in report["steps"] if each["setting"].get("pattern") == "zones")
    details = step["outcome"].get("details", {})
    compared = [each for each in report["diagnosis"]["comparisons"] if each["about"] == "zones"]
    zones = details.get("zones") or []
    checks = []
    for number in range(ZONES):
        rate = planted.bytes_per_second((number + 0.5) / ZONES)
        actual = zones[number]["bytes_per_second"] if len(zones) == ZONES else None
        checks.append(Figure(f"zone {number + 1}, bytes_per_second", rate, actual, RATE_TOLERANCE))
    ratio = planted.outer_bytes_per_second / planted.inner_bytes_per_second
    actual = compared[0].get("ratio") if compared else None
    checks.append(Figure("outer over inner", ratio, actual, RATE_TOLERANCE))
    seek = details.get("seek_seconds")
    checks.append(Figure("seek_seconds", planted.seek_seconds, seek, SEEK_TOLERANCE))
    weak = planted.weak
    for number in range(ZONES):
        due = weak is not None and weak.from_ratio <= (number + 0.5) / ZONES < weak.to_ratio
        rows = compared[0]["rows"] if compared else []
        is_weak = len(rows) == ZONES and rows[number].get("standing") == "weak"
        if due or is_weak:
            checks.append(Figure(f"zone {number + 1} is weak", float(due), float(is_weak), 0.0))
    return checks


def probe(*words: str, quick: bool = False) -> dict[str, Any]:
    """The report of the product's disk probe. Errors: RuntimeError."""
    ordinary = "--folder" in words
    # an ordinary user may not reach the interpreter of root's own environment
    command = ["/usr/bin/python3" if ordinary else sys.executable, "-m", "bottleneck"]
    command += ["probe", "disk", *words]
    command += ["--zones", str(ZONES), "--json", "-", "--yes"] + ["--quick"] * quick
    done = subprocess.run(
        [*AS_USER.split(), *command] if ordinary else command,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{PACKAGES}", "HOME": "/nonexistent"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"probe disk ended with {done.returncode}: {done.stderr[-2000:]}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


FILES = (
    *product(("ext4", "xfs"), (0.0, 0.8), ("write", "read"), [Disc(70 * _MB, 35 * _MB)]),
    ("ext4", 0.0, "write", Disc(60 * _MB, 60 * _MB)),
)
"""File system, how full it is, what the files are for, and the disc."""


def zone_lines(filesystem: str, full: float, verb: str, planted: Disc) -> list[Figure]:
    """Each zone that was reached against what is planted there, and the words of a flat disc."""
    with (
        tempfile.TemporaryDirectory() as folder,
        disc(planted, lambda content, work: fill_disc(filesystem, full, content, work)) as device,
    ):
        call("mount", device, folder)
        try:
            Path(folder).chmod(0o777)
            names = sorted(os.listdir(folder))
            report = probe("--access", verb, "--folder", folder)
            remaining = len(os.listdir(folder)) - len(names)
        finally:
            call("umount", folder)
    checks = [Figure("files that are left", 0.0, float(remaining), 0.0)]
    (step,) = (each for each in report["steps"] if each["setting"].get("pattern") == "zones")
    rows = step["outcome"]["details"]["zones"]
    checks.append(Figure("zones that were reached", ZONES, len(rows), 0.34))
    for each in rows:
        centre = (each["from_ratio"] + each["to_ratio"]) / 2
        due, rate = planted.bytes_per_second(centre), each["bytes_per_second"]
        checks.append(Figure(f"{verb} at {centre:.0%}", due, rate, RATE_TOLERANCE))
    (compared,) = (e for e in report["diagnosis"]["comparisons"] if e["about"] == "zones")
    flat = planted.outer_bytes_per_second == planted.inner_bytes_per_second
    said = "one rate everywhere" in compared["sentence"]
    return [*checks, Figure("said: one rate everywhere", float(flat), float(said), 0.0)]


def show(planted: object, checks: list[Figure]) -> None:
    print(f"\n{planted}")
    for each in checks:
        text = "not found" if each.value is None else f"{each.value:14.5g}"
        off = "" if each.value is None or not each.planted else f"{each.value / each.planted:8.3f}"
        word = "right" if each.right else f"WRONG: more than {each.tolerance:.0%} off"
        print(f"  {each.what:24} {each.planted:14.5g} {text:>14} {off:>8}  {word}")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description="Planted discs against what probe disk finds.")
    parser.add_argument("--quick", action="store_true", help="the first disc alone, in 20 s")
    parser.add_argument("--files", action="store_true", help="by files on its file system")
    options = parser.parse_args()
    lacks = missing()
    if options.files and shutil.which("mkfs.xfs") is None:
        lacks.append("needs mkfs.xfs (xfsprogs)")
    if lacks:
        print("not run: " + "; ".join(lacks), file=sys.stderr)
        return NO_DISC
    worlds = FILES if options.files else DISCS
    right = True
    for each in worlds[:1] if options.quick else worlds:
        try:
            if isinstance(each, Disc):
                with disc(each) as device:
                    report = probe("--device", str(device), quick=options.quick)
                checks = figures(each, report)
            else:
                checks = zone_lines(*each)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"\n{each}\n  {error}")
            return NOT_FOUND
        show(each, checks)
        right = right and all(figure.right for figure in checks)
    return ALL_FOUND if right else NOT_FOUND


if __name__ == "__main__":
    sys.exit(main())
