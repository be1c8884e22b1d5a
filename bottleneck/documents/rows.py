"""A row of figures for each step, as CSV: for a spreadsheet, or a table of many runs.

Bytes, seconds and ratios alone; what is not known is an empty cell. As RFC 4180, with
line ends as text has them here.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from bottleneck.analysis.finding import Diagnosis
from bottleneck.report.report import Report, Step, median_run
from bottleneck.text.safe import safe
from probes.core.records import SIDES, Failed, Outcome, Skipped, rates

COLUMNS = (
    *"copy-bottleneck started share step stage initiator setting outcome reason runs".split(),
    *"bytes_per_second low_bytes_per_second high_bytes_per_second moved_bytes seconds".split(),
    *(f"{side}_busiest_core_ratio" for side in SIDES),
    *(f"{side}_memory_used_bytes" for side in SIDES),
)
"""The first column is the version that measured, and tells whose table it is."""
LONGEST = 2000
FORMULA = ("=", "+", "-", "@")
"""First characters of a cell that a spreadsheet would carry out."""


def document(report: Report, diagnosis: Diagnosis) -> str:
    """Returns a header, then the steps in the report's order; without any, why. See formats."""
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    table.writeheader()
    common = {
        "copy-bottleneck": str(report.tool.get("version", "")),
        "started": report.started,
        "share": report.target.get("share") or "",
    }
    steps = [dict(_step(each)) for each in enumerate(report.entries)]
    if not steps:
        steps.append({"outcome": report.status, "reason": " ".join(report.notes)})
    for each in steps:
        table.writerow({name: cell(value) for name, value in {**common, **each}.items()})
    return text.getvalue()


def cell(value: Any) -> Any:
    """Returns a value as a table has it: text without controls, and none for a formula."""
    if not isinstance(value, str):
        return value
    text = safe(value, LONGEST)
    return f"'{text}" if text.startswith(FORMULA) else text


def _step(entry: tuple[int, tuple[Step, Outcome]]) -> Iterator[tuple[str, Any]]:
    number, (step, outcome) = entry
    yield "step", number
    yield "stage", step.stage
    yield "initiator", step.initiator
    yield "setting", json.dumps(step.setting, sort_keys=True, separators=(",", ":"))
    yield "outcome", type(outcome).__name__.lower()
    match outcome:
        case Skipped(reason) | Failed(reason):
            yield "reason", reason
            return
    run = median_run(outcome)
    yield "runs", len(outcome.runs)
    yield "moved_bytes", run[-1].moved_bytes - run[0].moved_bytes
    yield "seconds", run[-1].elapsed_seconds - run[0].elapsed_seconds
    if run[-1].moved_bytes > run[0].moved_bytes:
        rate = rates(outcome)
        yield "bytes_per_second", rate.median
        yield "low_bytes_per_second", rate.low
        yield "high_bytes_per_second", rate.high
    for side in SIDES:
        usage = outcome.initiator if side == step.initiator else outcome.responder
        if usage is not None:
            yield f"{side}_busiest_core_ratio", usage.busiest_core_ratio
            yield f"{side}_memory_used_bytes", usage.memory_used_bytes
