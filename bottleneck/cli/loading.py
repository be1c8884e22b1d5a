"""Files that a user names as reports, with every way in which they can be none."""

from __future__ import annotations

import glob
import math
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from bottleneck.estimate import observations, supplied_report
from bottleneck.records import ticket_figures
from bottleneck.records.trend import began
from bottleneck.report import report
from bottleneck.report.report import Report
from bottleneck.text import units
from probes.core.stage import Refused

MOST_LOADED = 32
"""Of a folder's files, those that were changed last."""
_PATTERN = frozenset("*?[")


def load(file: Path) -> Report:
    """The report in a file, or the one that observations or a ticket's figures amount to.

    Errors: Refused, "usage": it cannot be read, or it is none of them.
    """
    try:
        content = report.read(file)
        if observations.is_toml(content):
            return supplied_report.report_of(observations.loads(content))
        if ticket_figures.is_ticket(content):
            return ticket_figures.report_of(content)
        document = report.document(content)
        if observations.is_one(document):
            return supplied_report.report_of(observations.loads(content, document))
        return ticket_figures.with_diagnosis(report.from_elsewhere(document), document)
    except report.ReportError as error:
        raise Refused("usage", f"{file}: {error}") from None
    except OSError as error:
        raise Refused("usage", f"{file}: {error.strerror}") from None


def target_rate(text: str | None) -> float | None:
    """Bytes per second of --target-rate; None: it was not given.

    Errors: Refused, "usage": it is no rate.
    """
    try:
        rate = None if text is None else units.parse_rate(text)
    except units.UnitError as error:
        raise Refused("usage", f"--target-rate: {error}") from None
    if rate is not None and rate < 1:
        raise Refused("usage", f"--target-rate {(text or '')[:40]!r}: must be at least 1 byte/s")
    return rate


def newest(named: str) -> Report:
    """The report in a file; of a folder (its *.json) or a pattern the one that began last.

    Errors: Refused, "usage": there is none, or the file is no report.
    """
    # One by one: a folder of the largest ones that are read would not fit into memory.
    return max(each_of(named), key=began)


def each_of(named: str, skipped: list[str] | None = None) -> Iterator[Report]:
    """The report in a file; of a folder (its *.json) or a pattern the files changed last.

    skipped: gets a line for each file of a folder that cannot be read as a report.
    Errors: Refused, "usage": there is none, or the file is no report.
    """
    path = Path(named)
    if path.is_dir():
        found = [each for each in path.glob("*.json") if each.is_file()]
    elif _PATTERN & set(named) and not path.exists():
        found = [Path(each) for each in glob.glob(named)]  # noqa: PTH207 - absolute ones too
    else:
        yield load(path)
        return
    none = True
    ordered = sorted(found, key=_changed, reverse=True)
    if skipped is not None and len(ordered) > MOST_LOADED:
        skipped.append(f"{named}: {len(ordered)} files, the {MOST_LOADED} changed last are read")
    for each in ordered[:MOST_LOADED]:
        try:
            report = load(each)
        except Refused as refused:
            # A judgement, a baseline of another form: a folder may hold other documents.
            if skipped is not None:
                skipped.append(f"skipped: {refused.text}")
            continue
        none = False
        yield report
    if none:
        raise Refused("usage", f"{named}: no report found")


def age_seconds(report: Report) -> float:
    """Since its run began; below 0 where that lies ahead by this host's clock."""
    return (datetime.now(UTC) - began(report)).total_seconds()


def _changed(path: Path) -> float:
    """When it was changed; before all others where it has gone since it was listed."""
    try:
        return os.stat(path).st_mtime  # noqa: PTH116 - whatever the pattern gave
    except OSError:
        return -math.inf
