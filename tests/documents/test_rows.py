"""CSV: a row a step, in base units, that a reader of CSV reads back and no spreadsheet runs."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck.documents.formats import text_of
from bottleneck.documents.rows import COLUMNS
from probes.core.records import Measured, Skipped, rates
from tests import stored_reports
from tests.stored_reports import diagnose

DATA = Path(__file__).parents[1] / "data"
STORED = sorted(DATA.glob("report-v1-*.json"))


def read(run_report):
    text = text_of("csv", run_report, diagnose(run_report))
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_each_step_has_its_row_with_the_figures_of_the_report(path):
    run_report = stored_reports.load(path)
    rows = read(run_report)
    assert len(rows) == len(run_report.entries) and all(tuple(row) == COLUMNS for row in rows)
    for row, (step, outcome) in zip(rows, run_report.entries, strict=True):
        assert (row["stage"], row["initiator"]) == (step.stage, step.initiator)
        assert row["outcome"] == type(outcome).__name__.lower()
        if isinstance(outcome, Measured) and row["bytes_per_second"]:
            assert float(row["bytes_per_second"]) == rates(outcome).median
        else:
            assert not row["bytes_per_second"]


@pytest.mark.parametrize(
    "reason", ["=HYPERLINK(1)", "+1", "-1", "@x", 'a "quote", two', "a\nb\x1b[2J"]
)
def test_what_a_server_said_is_text_of_one_line(reason):
    run_report = stored_reports.load(STORED[0])
    step, _ = run_report.entries[0]
    (row,) = read(replace(run_report, entries=((step, Skipped(reason)),)))
    assert (
        row["reason"][0] not in "=+-@" and "\n" not in row["reason"] and "\x1b" not in row["reason"]
    )
