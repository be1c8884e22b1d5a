#!/usr/bin/env python3
"""Reports of the lab's worlds that are kept, with the verdicts that are true of each copy in them.

Usage: python tests/lab/keep.py REPORTS VIEW --draw N --seed S   keep those of drawn worlds
       python tests/lab/keep.py [--stripped]                     judge what is kept, today

VIEW: agent (an ordinary user's, on the server), alone, or metrics (node_exporter's there).
tests/data/lab/VIEW/WORLD.json.gz is a report without its diagnosis; verdicts.tsv beside it has a
row a copy: view, world, copy, dialect, its true verdicts, and the verdict, the confidence and the
grade of the day on which it was kept. A new analysis is held against both. --stripped: without
traces, as reports of older builds are.
Exit code of the second: 0 no copy that was right is wrong; 1 some are, and which.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from draw import draw_worlds
from experiment import rediagnose
from judge import ABSTAINED, BLAMES_NOBODY, NOT_COUNTED, RIGHT, WRONG, verdicts

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.report.report import loads, to_json

KEPT = Path(__file__).parents[1] / "data/lab"
ROWS = KEPT / "verdicts.tsv"
VIEWS = ("agent", "alone", "metrics")
SURE = 0.7
SEPARATOR = " | "


def keep(reports: Path, view: str, count: int, seed: str) -> Iterator[str]:
    """Keeps the reports of drawn worlds that are in a folder; yields their rows."""
    for world in draw_worlds(count, seed):
        file = reports / f"{world.name}.json"
        if not file.exists():
            continue
        document = json.loads(file.read_text())
        judged = verdicts(world, rediagnose(file), agent=view == "agent")
        content = json.dumps({**document, "diagnosis": None}, separators=(",", ":")).encode()
        (KEPT / view).mkdir(parents=True, exist_ok=True)
        packed = gzip.compress(content, mtime=0)
        (KEPT / view / f"{world.name}.json.gz").write_bytes(packed)
        for row in (each for each in judged if each.grade != NOT_COUNTED and each.dialect):
            true = SEPARATOR.join(row.right)
            figures = (row.verdict, row.confidence, row.grade)
            yield "\t".join(map(str, (view, world.name, row.copy, row.dialect, true, *figures)))


def strip_traces(document: dict[str, Any]) -> dict[str, Any]:
    """Returns a report whose copies have no trace and no looks at their sockets."""
    for step in document["steps"]:
        for name in ("trace", "looks"):
            step["outcome"].get("details", {}).pop(name, None)
    return document


def verdict_of(document: dict[str, Any], copy: str, dialect: str) -> tuple[str, float]:
    """Returns the verdict of a copy, as the rows have it, with its confidence."""
    for each in document["diagnosis"]["copies"]:
        if (each["copy"], each.get("dialect")) == (copy, dialect):
            verdict = each["verdict"]
            words = (verdict["component"], verdict["side"], verdict["cause"])
            return "/".join(str(word) for word in words), verdict["confidence"] or 0.0
    return "unknown/None/inconclusive", 0.0


def judge(is_stripped: bool) -> int:
    """Prints how many verdicts of today are right, and each that was right and is wrong."""
    counts: Counter[tuple[str, str]] = Counter()
    documents: dict[tuple[str, str], dict[str, Any]] = {}
    worse = 0
    for row in ROWS.read_text().splitlines():
        view, world, copy, dialect, true, earlier, _, grade = row.split("\t")
        if (view, world) not in documents:
            content = gzip.decompress((KEPT / view / f"{world}.json.gz").read_bytes())
            document = json.loads(content)
            report = loads(json.dumps(strip_traces(document) if is_stripped else document).encode())
            documents[view, world] = to_json(report, diagnose(report))
        verdict, confidence = verdict_of(documents[view, world], copy, dialect)
        now = RIGHT if verdict in true.split(SEPARATOR) else WRONG
        if now == WRONG and verdict.partition("/")[0] in BLAMES_NOBODY:
            now = ABSTAINED
        counts[view, now] += 1
        counts[view, "sure and wrong"] += now == WRONG and confidence >= SURE
        if (grade, now) == (RIGHT, WRONG):
            worse += 1
            print(f"{view} {world} {copy} {dialect}: {earlier} -> {verdict} {confidence:.2f}")
    for view in VIEWS:
        figures = (RIGHT, ABSTAINED, WRONG, "sure and wrong")
        print(f"{view}: {', '.join(f'{name} {counts[view, name]}' for name in figures)}")
    return 1 if worse else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("reports", nargs="?", type=Path, metavar="REPORTS")
    parser.add_argument("view", nargs="?", choices=VIEWS, metavar="VIEW")
    parser.add_argument("--draw", type=int, default=0, metavar="N")
    parser.add_argument("--seed", default="", metavar="S")
    parser.add_argument("--stripped", action="store_true", help="without traces")
    options = parser.parse_args()
    if options.reports is None:
        return judge(options.stripped)
    rows = list(keep(options.reports, options.view, options.draw, options.seed))
    with ROWS.open("a", encoding="utf-8") as file:
        file.writelines(f"{row}\n" for row in rows)
    print(f"{len(rows)} copies kept")
    return 0


if __name__ == "__main__":
    sys.exit(main())
