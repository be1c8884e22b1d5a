#!/usr/bin/env python3
"""Counts the verdicts that each constant of the decision changes, at 2/3 and 3/2 of its value.

Usage: python scripts/sensitivity.py [NAME ...]

Judged are the kept reports of tests/data/lab: how many verdicts are right with a constant as it is,
with less and with more of it. A line a constant; of a tuple or a table all numbers change together.
Exit code: 0, or 1 where one changes more than 4 % of the copies.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from bottleneck.analysis import steps
from bottleneck.analysis.attribution.attribution import timed_copy
from bottleneck.analysis.attribution.timed_copy import TimedCopy
from bottleneck.analysis.decision.limit import ladder_of
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.steps import Copy
from bottleneck.report.report import Report, loads

KEPT = Path(__file__).resolve().parents[1] / "tests/data/lab"
ROOMS = {
    "decision": ("conditions", "causes", "weigh", "verdict"),
    "facts": ("record", "counters", "busy", "path", "path_signs", "signs", "transfers", "gather"),
}
TIMES = 2 / 3, 1.5
MOST_CHANGED = 0.04
Case = tuple[Report, Copy, tuple[Claim, ...], TimedCopy | None, frozenset[str]]


def cases() -> Iterator[Case]:
    """Yields each kept copy that was made, with what the rules claim of it and its true verdicts.

    A copy is judged twice: with its trace and without.
    """
    reports: dict[tuple[str, str, bool], Report] = {}
    for row in (KEPT / "verdicts.tsv").read_text().splitlines():
        view, world, name, dialect, true, *_ = row.split("\t")
        for has_trace in (True, False):
            key = (view, world, has_trace)
            if key not in reports:
                document = json.loads(
                    gzip.decompress((KEPT / view / f"{world}.json.gz").read_bytes())
                )
                for step in () if has_trace else document["steps"]:
                    for kind in ("trace", "looks"):
                        step["outcome"].get("details", {}).pop(kind, None)
                reports[key] = loads(json.dumps(document).encode())
            for copy in steps.copies(reports[key]):
                if (copy.name, copy.dialect) == (name, dialect) and copy.step is not None:
                    claims, timed = (
                        ladder_of(reports[key], copy).claims,
                        timed_copy(reports[key], copy),
                    )
                    yield reports[key], copy, claims, timed, frozenset(true.split(" | "))


def right(judged: list[Case]) -> int:
    """Returns how many of the cases are decided rightly."""
    gather = import_module("bottleneck.analysis.facts.gather").gather
    decide = import_module("bottleneck.analysis.decision.verdict").decide
    count = 0
    for report, copy, claims, timed, true in judged:
        key = decide(gather(report, copy, claims, timed)).key
        count += "/".join(map(str, key)) in true
    return count


def modules() -> list[ModuleType]:
    """Returns the modules whose constants decide."""
    return [
        import_module(f"bottleneck.analysis.{room}.{name}")
        for room, names in ROOMS.items()
        for name in names
    ]


def scaled(value: Any, times: float) -> Any:
    """Returns a constant with all of its fractions times a factor; None: it has none."""
    if isinstance(value, float):
        return value * times
    if isinstance(value, tuple) and value and all(isinstance(each, float) for each in value):
        return tuple(each * times for each in value)
    if isinstance(value, Mapping) and any(isinstance(each, float) for each in value.values()):
        return {name: scaled(each, times) or each for name, each in value.items()}
    return None


def main() -> int:
    judged = list(cases())
    base, limit = right(judged), MOST_CHANGED * len(judged)
    print(f"{base} of {len(judged)} right")
    code, names = 0, set[str]()
    for module in modules():
        for name, value in list(vars(module).items()):
            is_wanted = not sys.argv[1:] or name in sys.argv[1:]
            if not name.isupper() or name in names or scaled(value, 1.0) is None or not is_wanted:
                continue
            names.add(name)
            counts = []
            for times in TIMES:
                users = [each for each in modules() if vars(each).get(name) is value]
                for each in users:
                    setattr(each, name, scaled(value, times))
                counts.append(right(judged))
                for each in users:
                    setattr(each, name, value)
            changed = max(abs(each - base) for each in counts)
            code |= changed > limit
            note = "  MORE THAN 4 %" if changed > limit else "" if changed else "  changes nothing"
            print(f"{module.__name__.rpartition('.')[2]:12} {name:24} {counts}{note}", flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
