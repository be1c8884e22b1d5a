"""The newest report of a folder or of a pattern: what a timer left for `check --report`."""

from __future__ import annotations

import glob
import os
from datetime import UTC, datetime
from pathlib import Path

from bottleneck.cli import loading
from bottleneck.report import Report
from probes.stage import Refused

MOST_LOADED = 32
"""Of a folder's files, the youngest first: the report among them that began last counts."""
_PATTERN = frozenset("*?[")


def load(named: str) -> Report:
    """The report in a file; of a folder (its *.json) or a pattern the one that began last.

    Raises:
        Refused: kind "usage": there is none, or the file is no report.
    """
    path = Path(named)
    if path.is_dir():
        found = [each for each in path.glob("*.json") if each.is_file()]
    elif _PATTERN & set(named) and not path.exists():
        found = [Path(each) for each in glob.glob(named)]  # noqa: PTH207 - absolute ones too
    else:
        return loading.load(path)
    youngest = sorted(found, key=_changed, reverse=True)[:MOST_LOADED]
    reports = [told for each in youngest if (told := _report(each)) is not None]
    if not reports:
        raise Refused("usage", f"{named}: there is no report of this program")
    return max(reports, key=began)


def began(report: Report) -> datetime:
    """When its run began; a time without an offset is taken for UTC."""
    told = datetime.fromisoformat(report.started)
    return told if told.tzinfo else told.replace(tzinfo=UTC)


def age_seconds(report: Report) -> float:
    """Since its run began; below 0 where that lies ahead by this host's clock."""
    return (datetime.now(UTC) - began(report)).total_seconds()


def _report(path: Path) -> Report | None:
    # A judgement, a baseline of another form: a folder may hold other documents.
    try:
        return loading.load(path)
    except Refused:
        return None


def _changed(path: Path) -> float:
    try:
        return os.stat(path).st_mtime  # noqa: PTH116 - whatever the pattern gave
    except OSError:
        return 0.0
