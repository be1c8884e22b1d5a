"""The rules' words on each stored report: short sentences, and no coined words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bottleneck.analysis.finding import Claim
from bottleneck.report import report as reports
from bottleneck.report.report import Report

ROOT = Path(__file__).parents[3]
REPORTS = sorted([*ROOT.glob("tests/data/report-v1-*.json"), *ROOT.glob("examples/*-disk-*.json")])
Plain = Callable[[Report], list[Claim]]


@pytest.mark.parametrize("path", REPORTS, ids=[each.stem for each in REPORTS])
def test_what_the_rules_say_of_a_stored_report_is_plain(path: Path, plain_claims: Plain) -> None:
    assert plain_claims(reports.load(path)) or path.stem == "report-v1-comparisons"


def test_the_stored_reports_speak_of_many_components(plain_claims: Plain) -> None:
    """Else the test above would hold of nothing."""
    said = [claim.ceiling for path in REPORTS for claim in plain_claims(reports.load(path))]
    assert len(REPORTS) >= 9 and len({each.component for each in said}) >= 5
