"""Worlds of the lab, kept: each copy's verdict and gain; the truth is in data/lab/verdicts.tsv."""

from pathlib import Path

import pytest

from bottleneck.analysis.diagnosis import diagnose
from tests import stored_reports

KEPT = sorted((Path(__file__).parents[2] / "data" / "lab").glob("*/*.json.gz"))


@pytest.mark.parametrize("file", KEPT, ids=lambda each: f"{each.parent.name} {each.name[:-8]}")
def test_a_kept_world_has_its_verdicts_and_a_gain_or_the_reason_for_none(file, golden):
    for each in diagnose(stored_reports.load(file)).copies:
        gain, next_cap = each.predicted_bytes_per_second, each.next.words if each.next else "-"
        levels = "-" if gain is None else f"{gain.low:.3g} {gain.median:.3g} {gain.high:.3g}"
        text = f"{each.verdict.words} {each.verdict.confidence:.2f} then {next_cap}: {levels}"
        golden(f"{each.copy} {each.dialect}: {text}")
        if each.bytes_per_second and each.verdict.component not in ("unknown", "instrument"):
            assert any("Not predicted:" in line for line in each.advice) is (gain is None)
