"""A report whose every figure may be forged still means something, or nothing; it breaks nobody."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from rich.console import Console

from bottleneck import report as reports
from bottleneck import report_schema
from bottleneck.analysis import diagnose
from bottleneck.reports.console import print_report
from bottleneck.wire import to_plain
from probes.records import Measured

STORED = Path(__file__).parent / "data" / "report-v1-comparisons.json"
SCHEMA = {"$defs": report_schema.schema()["$defs"], "$ref": "#/$defs/diagnosis"}
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
STRANGE = ("x\x1b[2J", -1, 0, 1e-300, 2**63, None, {"a": 1})
WHOLE = reports.load(STORED)


def telling(entry):
    """One direction, one cache, four cells: what is left out is told in the same keys."""
    step, outcome = entry
    if step.stage in ("loopback", "disk", "tcp") or step.setting.get("end") == "memory":
        return None
    if step.setting.get("verb", step.setting.get("copy")) not in ("pull", *KEPT):
        return None
    if "cells" in outcome.details:
        cells = outcome.details["cells"]
        outcome = replace(outcome, details={**outcome.details, "cells": [*cells[:2], *cells[-2:]]})
    return step, outcome


KEPT = ("pull.cached", "push.cached", "server.push.cached")
REPORT = replace(WHOLE, entries=tuple(filter(None, map(telling, WHOLE.entries))))
KEYS = sorted(
    {key for step, _ in REPORT.entries for key in step.setting}
    | {key for _, outcome in REPORT.entries for key in outcome.details}
    | {key for _, outcome in REPORT.entries for key in outcome.details.get("mount", {})}
    | {key for _, outcome in REPORT.entries for key in outcome.details.get("fit", {})}
    | {key for _, outcome in REPORT.entries for e in outcome.details.get("cells", ()) for key in e}
    | set(REPORT.target)
)


def forged(value, key, strange):
    """The value with whatever has that key replaced, however deep it lies."""
    if isinstance(value, dict):
        return {k: strange if k == key else forged(v, key, strange) for k, v in value.items()}
    return [forged(each, key, strange) for each in value] if isinstance(value, list) else value


def test_the_keys_are_those_that_the_stages_tell():
    assert {"cells", "rtt_seconds", "in_flight_bytes", "seconds_per_file", "options"} <= set(KEYS)


@pytest.mark.long
@pytest.mark.parametrize("key", KEYS)
def test_a_strange_value_breaks_nothing(key):
    for strange in STRANGE:
        entries = tuple(
            (
                replace(step, setting=forged(step.setting, key, strange)),
                replace(outcome, details=forged(outcome.details, key, strange))
                if isinstance(outcome, Measured)
                else outcome,
            )
            for step, outcome in REPORT.entries
        )
        target = forged(REPORT.target, key, strange)
        report = replace(REPORT, entries=entries, target=target)
        diagnosis = diagnose(report)
        VALIDATOR.validate(json.loads(json.dumps(to_plain(diagnosis), allow_nan=False)))
        file = io.StringIO()
        print_report(report, diagnosis, Console(file=file, width=80))
        assert all(line.isprintable() for line in file.getvalue().splitlines())
