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


def kept(name: str) -> Report:
    return stored_reports.load(KEPT / f"{name}.json.gz")


@pytest.mark.parametrize("name", NAMES)
def test_a_kept_trace(name: str, golden: Callable[[str], None]) -> None:
    found = kept(name)
    for copy in steps.copies(found):
        golden(f"{copy.name} {copy.dialect}")
        for view in VIEWS:
            told = attribute(found, copy, view)
            if told is None:
                golden(f"  {view}: too little was seen")
                continue
            shares = ", ".join(
                f"{share_name(each)} {each.ratio:.0%}" for each in told.shares if each.ratio > 0.005
            )
            golden(f"  {told.view}: {shares}")


@pytest.mark.parametrize("name", NAMES)
def test_the_verdict_on_a_kept_trace(name: str, golden: Callable[[str], None]) -> None:
    for copy in diagnose(kept(name)).copies:
        golden(f"{copy.copy} {copy.dialect}: {copy.verdict.words} {copy.verdict.confidence:.2f}")
        for line in (copy.verdict.sentence, *copy.advice):
            golden(f"  {line}")


@pytest.mark.parametrize("name", NAMES)
def test_no_comparison_names_another_cause_than_the_verdict(name: str) -> None:
    """Of the slower copy of a pair: both are decided by the same time and the same limits."""
    found = diagnose(kept(name))
    verdicts = {(each.copy, each.dialect): each.verdict.key for each in found.copies}
    for each in found.comparisons:
        rows = each.rows if each.about == "direction" else ()
        for row in (row for row in rows if row["significant"]):
            copy = f"{row['slower']}.{row['cache']}"
            named = (row["component"], row["side"], row["cause"])
            assert named in ((None, None, None), verdicts[copy, row["dialect"]])


def test_what_is_kept_is_small() -> None:
    assert sum(each.stat().st_size for each in KEPT.iterdir()) < 5 << 20
