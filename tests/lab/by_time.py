"""Reports as they would be if the copies' own time named their caps: a judge beside the rules."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from bottleneck.analysis import steps
from bottleneck.report.report import Report
from tests.traces import attribute

NOT_MADE = {"component": "unknown", "side": None, "cause": "not-measured", "confidence": 0.0}


def by_time(report: Report, document: dict[str, Any], view: str) -> dict[str, Any]:
    """The document with attribution's verdicts; a copy that did not time itself is not made."""
    told = deepcopy(document)
    copies = {(each.name, each.dialect, each.initiator): each for each in steps.copies(report)}
    for row in told["diagnosis"]["copies"]:
        copy = copies.get((row["copy"], row["dialect"], row["initiator"]))
        found = attribute(report, copy, view) if copy is not None else None
        row["verdict"] = dict(NOT_MADE)
        if found is None:
            row["bytes_per_second"] = None
        else:
            row["verdict"] |= {name: getattr(found, name) for name in NOT_MADE}
    return told
