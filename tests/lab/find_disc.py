#!/usr/bin/env python3
"""Read planted discs zone by zone with the product, and print planted against found.

Usage: python tests/lab/find_disc.py [--quick] [--json F]

Exit code: 0 everything is found; 1 something is not, or a run broke; 69 no disc can be made here.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from disc import disc, missing
from platter import Disc, Weak

ROOT = Path(__file__).resolve().parents[2]
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
    found: float | None
    tolerance: float

    @property
    def right(self) -> bool:
        return (
            self.found is not None
            and abs(self.found - self.planted) <= self.tolerance * self.planted
        )


def figures(planted: Disc, report: dict[str, Any]) -> list[Figure]:
    """Every planted value of a disc against the report's; pure."""
    (step,) = (each for each in report["steps"] if each["setting"].get("pattern") == "zones")
    details = step["outcome"].get("details", {})
    compared = [each for each in report["diagnosis"]["comparisons"] if each["about"] == "zones"]
    told = details.get("zones") or []
    found = []
    for number in range(ZONES):
        rate = planted.bytes_per_second((number + 0.5) / ZONES)
        seen = told[number]["bytes_per_second"] if len(told) == ZONES else None
        found.append(Figure(f"zone {number + 1}, bytes_per_second", rate, seen, RATE_TOLERANCE))
    ratio = planted.outer_bytes_per_second / planted.inner_bytes_per_second
    seen = compared[0].get("ratio") if compared else None
    found.append(Figure("outer over inner", ratio, seen, RATE_TOLERANCE))
    seek = details.get("seek_seconds")
    found.append(Figure("seek_seconds", planted.seek_seconds, seek, SEEK_TOLERANCE))
    weak = planted.weak
    for number in range(ZONES):
        due = weak is not None and weak.from_ratio <= (number + 0.5) / ZONES < weak.to_ratio
        rows = compared[0]["rows"] if compared else []
        named = len(rows) == ZONES and rows[number].get("standing") == "weak"
        if due or named:
            found.append(Figure(f"zone {number + 1} is weak", float(due), float(named), 0.0))
    return found


def probe(device: Path, quick: bool) -> dict[str, Any]:
    """The report of the product's disk probe of a device. Errors: RuntimeError."""
    command = [sys.executable, "-m", "bottleneck", "probe", "disk", "--device", str(device)]
    command += ["--zones", str(ZONES), "--json", "-", "--yes"] + ["--quick"] * quick
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
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


def show(planted: Disc, found: list[Figure]) -> None:
    print(f"\n{planted}")
    for each in found:
        seen = "not found" if each.found is None else f"{each.found:14.5g}"
        off = "" if each.found is None or not each.planted else f"{each.found / each.planted:8.3f}"
        word = "right" if each.right else f"WRONG: more than {each.tolerance:.0%} off"
        print(f"  {each.what:24} {each.planted:14.5g} {seen:>14} {off:>8}  {word}")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description="Planted discs against what probe disk finds.")
    parser.add_argument("--quick", action="store_true", help="the first disc alone, in 20 s")
    parser.add_argument("--json", type=Path, metavar="F", help="also write the results there")
    options = parser.parse_args()
    if lacks := missing():
        print("not run: " + "; ".join(lacks), file=sys.stderr)
        return NO_DISC
    results: list[tuple[Disc, list[Figure]]] = []
    for planted in DISCS[:1] if options.quick else DISCS:
        try:
            with disc(planted) as device:
                report = probe(device, options.quick)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"\n{planted}\n  {error}")
            return NOT_FOUND
        results.append((planted, figures(planted, report)))
        show(*results[-1])
    right = all(each.right for _, found in results for each in found)
    if options.json:
        rows = [
            {"planted": asdict(planted), "figures": [asdict(each) for each in found]}
            for planted, found in results
        ]
        options.json.write_text(json.dumps({"right": right, "discs": rows}, indent=1) + "\n")
    return ALL_FOUND if right else NOT_FOUND


if __name__ == "__main__":
    sys.exit(main())
