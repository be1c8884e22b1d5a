#!/usr/bin/env python3
"""Lift a planted cap for real, and hold what the diagnosis predicted against what comes.

Usage: python tests/lab/lift.py [WORLD ...] [--from DIR] [--after DIR] [--json F]
[--draw N --seed S]

In each world the product is run (or its report taken from DIR, as run.py --reports keeps it), the
cap and nothing else is taken away, and the same copies are made again, three times each, with files
that take as long as the product's own would. A pair is a copy whose cap was named rightly. What was
made again is kept in --after DIR, and taken from there the next time: no lab, today's predictions.

Exit code: 0 the predictions hold (median within 5 %, worst within 15 %) and each cap has one or a
reason for none; 1 they do not; 69 this machine cannot hold the lab.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from draw import draw_worlds
from experiment import Terms, experiment, product, rediagnose
from judge import RIGHT, verdicts
from truth import MB, WORLDS, LabWorld
from world import missing, world

MEDIAN_RATIO, WORST_RATIO = 0.05, 0.15
HOLDS, FAILS, NO_LAB = 0, 1, 69
COPY_SECONDS = 1.7
"""Seconds that the product gives a copy of a run of 60 s."""
LEAST_BYTES, MOST_BYTES, UNPREDICTED_BYTES = 8 << 20, 1 << 30, 64 << 20
PROBE_SECONDS = 60


@dataclass(frozen=True)
class Promise:
    """Prediction of a report for one copy whose cap it named rightly, bytes per second."""

    copy: str
    dialect: str
    rate: float
    low: float
    median: float
    high: float


@dataclass(frozen=True)
class UnpredictedCopy:
    """A copy whose cap was named rightly, and for which nothing is predicted."""

    copy: str
    dialect: str
    rate: float
    reason: str
    """The sentence that says which stage is missing; empty: the report gives none."""


@dataclass(frozen=True)
class Pair:
    """One copy, before its cap was lifted and after."""

    world: str
    promise: Promise
    actual_bytes_per_second: float

    @property
    def error_ratio(self) -> float:
        """Returns the prediction's error, by the actual rate; positive: too much was promised."""
        return self.promise.median / self.actual_bytes_per_second - 1

    @property
    def inside(self) -> bool:
        return self.promise.low <= self.actual_bytes_per_second <= self.promise.high


def promises(case: LabWorld, report: dict[str, Any]) -> list[Promise]:
    """The predictions of a report (CONTRACT's JSON) for the copies that will be freed."""
    rows = []
    for copy in _rightly_named(case, report):
        if hoped := copy["predicted_bytes_per_second"]:
            figures = (copy["bytes_per_second"], hoped["low"], hoped["median"], hoped["high"])
            rows.append(Promise(copy["copy"], copy["dialect"], *figures))
    return rows


def unpredicted_copies(case: LabWorld, report: dict[str, Any]) -> list[UnpredictedCopy]:
    """The others of those copies, each with the reason that its advice gives."""
    rows = []
    for copy in _rightly_named(case, report):
        if not copy["predicted_bytes_per_second"]:
            reason = next((each for each in copy["advice"] if "Not predicted" in each), "")
            key = (copy["copy"], copy["dialect"], copy["bytes_per_second"])
            rows.append(UnpredictedCopy(*key, reason))
    return rows


def _rightly_named(case: LabWorld, report: dict[str, Any]) -> list[dict[str, Any]]:
    """The copies that will be freed and whose cap is named rightly.

    Of each copy the newest dialect alone, which is the first in the report.
    """
    planted = {each.copy: {"/".join(map(str, e)) for e in each.right} for each in case.expected}
    right = {
        (row.copy, row.dialect)
        for row in verdicts(case, report)
        if row.grade == RIGHT and row.verdict in planted.get(row.copy, ())
    }
    copies: dict[str, dict[str, Any]] = {}
    for copy in report["diagnosis"]["copies"]:
        if copy["copy"] in case.freed and (copy["copy"], copy["dialect"]) in right:
            copies.setdefault(copy["copy"], copy)
    return list(copies.values())


def measured_rate(report: dict[str, Any], copy: str, dialect: str) -> float | None:
    """Median rate of a copy of a report, bytes per second; None: it was not made."""
    for step in report["steps"]:
        setting, outcome = step["setting"], step["outcome"]
        is_measured = step["stage"] == "smb-copy" and outcome["kind"] == "measured"
        key = {"copy": copy, "dialect": dialect, "end": "folder"}
        if is_measured and setting.items() >= key.items():
            return float(outcome["bytes_per_second"]["median"])
    return None


def lift(
    case: LabWorld, saved: Path | None, place: Path | None
) -> tuple[list[Pair], list[UnpredictedCopy]]:
    report = _report(case, saved)
    hoped, silent = promises(case, report), unpredicted_copies(case, report)
    if not hoped and not silent:
        return [], []
    file = None if place is None else place / f"{case.name}.json"
    if file is not None and file.exists():
        later: dict[str, Any] = json.loads(file.read_text())
    else:
        later = made_again(case, hoped, (hoped or silent)[0].dialect)
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(later))
    rates = ((each, measured_rate(later, each.copy, each.dialect)) for each in hoped)
    pairs = [Pair(case.name, each, actual) for each, actual in rates if actual is not None]
    for each in silent:
        actual = measured_rate(later, each.copy, each.dialect)
        became = "not made again" if actual is None else f"became {actual / MB:.1f} MB/s"
        print(f"  {each.copy}: {each.rate / MB:.1f}, {became}: {each.reason or 'NO REASON'}")
    return pairs, silent


def made_again(case: LabWorld, hoped: Sequence[Promise], dialect: str) -> dict[str, Any]:
    """The report of the copies in the lifted world. Errors: RuntimeError where there is none."""
    fastest = max((each.median * COPY_SECONDS for each in hoped), default=UNPREDICTED_BYTES)
    size_bytes = round(min(MOST_BYTES, max(LEAST_BYTES, fastest)))
    assert case.lifted is not None
    with world(case.lifted) as lab:
        file = lab.work / "report.json"
        command = ["probe", "smb-copy", "--dialects", dialect, "--size", str(size_bytes)]
        _, _, message = product(lab, command, file, PROBE_SECONDS)
        if not file.exists():
            raise RuntimeError(f"no copies in {case.name} without its cap: {message}")
        document: dict[str, Any] = json.loads(file.read_text())
        return document


def _report(case: LabWorld, saved: Path | None) -> dict[str, Any]:
    if saved is not None and (saved / f"{case.name}.json").exists():
        return rediagnose(saved / f"{case.name}.json")
    with TemporaryDirectory() as folder:
        place = saved or Path(folder)
        experiment(case, replace(Terms(), beside=False, reports=place))
        return rediagnose(place / f"{case.name}.json")


def lines(pairs: Sequence[Pair]) -> list[str]:
    text = [f"{'world':24} {'copy':15} {'before':>8} {'predicted':>24} {'actual':>8}   error"]
    for each in pairs:
        hoped, actual = each.promise, each.actual_bytes_per_second / MB
        span = f"{hoped.median / MB:.1f} ({hoped.low / MB:.1f}-{hoped.high / MB:.1f})"
        line = f"{each.world:24} {hoped.copy:15} {hoped.rate / MB:8.1f} {span:>24} "
        line += f"{actual:8.1f} {each.error_ratio:+8.1%}"
        text.append(line + ("" if each.inside else "  outside"))
    if pairs:
        off = [abs(each.error_ratio) for each in pairs]
        worlds = len({each.world for each in pairs})
        inside = sum(each.inside for each in pairs) / len(pairs)
        text.append(
            f"MB/s; {len(pairs)} pairs of {worlds} worlds: |predicted - actual| / actual has the "
            f"median {statistics.median(off):.1%}, the worst is {max(off):.1%}; "
            f"{inside:.0%} within their intervals"
        )
    return text


def holds(pairs: Sequence[Pair]) -> bool:
    """Whether the predictions are as good as they have to be."""
    off = [abs(each.error_ratio) for each in pairs]
    return bool(off) and statistics.median(off) <= MEDIAN_RATIO and max(off) <= WORST_RATIO


def main() -> int:
    liftable = {name: each for name, each in WORLDS.items() if each.lifted is not None}
    parser = argparse.ArgumentParser(description="Predicted against actual, the cap taken away.")
    parser.add_argument("worlds", nargs="*", metavar="WORLD", help=" ".join(liftable))
    parser.add_argument(
        "--from", dest="saved", type=Path, metavar="DIR", help="reports to take, and to keep"
    )
    parser.add_argument("--after", type=Path, metavar="DIR", help="keep the copies made again")
    parser.add_argument("--json", type=Path, metavar="F", help="also write the pairs there")
    parser.add_argument("--draw", type=int, default=0, metavar="N", help="N worlds of --seed")
    parser.add_argument("--seed", default="", metavar="S", help="by which they are drawn")
    options = parser.parse_args()
    if options.draw:
        worlds = draw_worlds(options.draw, options.seed)
        liftable = {each.name: each for each in worlds if each.lifted is not None}
    strange = [name for name in options.worlds if name not in liftable]
    if strange:
        parser.error(f"nothing to lift: {' '.join(strange)}; there are {' '.join(liftable)}")
    if lacks := missing():
        print("not run: " + "; ".join(lacks), file=sys.stderr)
        return NO_LAB
    pairs: list[Pair] = []
    unexplained = 0
    for name in options.worlds or liftable:
        freed, silent = lift(liftable[name], options.saved, options.after)
        print(f"{name}: {len(freed)} of {len(liftable[name].freed)} copies", flush=True)
        pairs += freed
        unexplained += sum(not each.reason for each in silent)
        if options.json:
            rows = [{**asdict(each), "error_ratio": each.error_ratio} for each in pairs]
            options.json.write_text(json.dumps(rows, indent=1) + "\n")
    print("\n".join(lines(pairs)))
    print(f"{unexplained} caps without a prediction or a reason")
    return HOLDS if holds(pairs) and not unexplained else FAILS


if __name__ == "__main__":
    sys.exit(main())
