"""Traces of real copies in the lab's worlds, kept: what they say, in each view, was looked at."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bottleneck.analysis import steps
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.phrases import share_name
from bottleneck.report.report import Report
from tests import stored_reports
from tests.traces import VIEWS, attribute

KEPT = Path(__file__).parents[2] / "data" / "traces"


NAMES = sorted(each.name.partition(".")[0] for each in KEPT.iterdir())


def load_report(name: str) -> Report:
    return stored_reports.load(KEPT / f"{name}.json.gz")


@pytest.mark.parametrize("name", NAMES)
def test_a_kept_trace(name: str, golden: Callable[[str], None]) -> None:
    report = load_report(name)
    for copy in steps.copies(report):
        golden(f"{copy.name} {copy.dialect}")
        for view in VIEWS:
            attribution = attribute(report, copy, view)
            if attribution is None:
                golden(f"  {view}: too little was seen")
                continue
            shares = ", ".join(
                f"{share_name(each)} {each.ratio:.0%}"
                for each in attribution.shares
                if each.ratio > 0.005
            )
            golden(f"  {attribution.view}: {shares}")


@pytest.mark.parametrize("name", NAMES)
def test_the_verdict_on_a_kept_trace(name: str, golden: Callable[[str], None]) -> None:
    for copy in diagnose(load_report(name)).copies:
        golden(f"{copy.copy} {copy.dialect}: {copy.verdict.words} {copy.verdict.confidence:.2f}")
        for line in (copy.verdict.sentence, *copy.advice):
            golden(f"  {line}")


@pytest.mark.parametrize("name", NAMES)
def test_no_comparison_names_another_cause_than_the_verdict(name: str) -> None:
    """A row names the cause of a pair's slower copy; the same time and limits decide both."""
    diagnosis = diagnose(load_report(name))
    verdicts = {(each.copy, each.dialect): each.verdict.key for each in diagnosis.copies}
    for each in diagnosis.comparisons:
        rows = each.rows if each.about == "direction" else ()
        for row in (row for row in rows if row["significant"]):
            copy = f"{row['slower']}.{row['cache']}"
            key = (row["component"], row["side"], row["cause"])
            assert key in ((None, None, None), verdicts[copy, row["dialect"]])


def test_what_is_kept_is_small() -> None:
    assert sum(each.stat().st_size for each in KEPT.iterdir()) < 5 << 20
