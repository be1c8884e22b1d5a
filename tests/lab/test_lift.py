"""Predictions that are held against what was measured, and when they hold."""

from __future__ import annotations

from typing import Any

import pytest
from lift import Pair, Promise, holds, lines, measured_rate, promises
from truth import WORLDS

WORLD = WORLDS["server-read-link-300"]


def _copy(dialect: str, cause: str, predicted: float | None) -> Any:
    verdict = {"component": "disk", "side": "server", "cause": cause, "confidence": 0.9}
    spread = {"low": 0.9, "median": 1.0, "high": 1.1}
    hoped = None if predicted is None else {k: v * predicted for k, v in spread.items()}
    return {
        "copy": "pull.uncached",
        "dialect": dialect,
        "bytes_per_second": 15e6,
        "verdict": verdict,
        "predicted_bytes_per_second": hoped,
    }


def _report(*copies: Any) -> Any:
    return {"diagnosis": {"copies": list(copies)}, "steps": []}


def _pair(actual: float) -> Pair:
    return Pair("w", Promise("pull.uncached", "3.1.1", 15e6, 90e6, 100e6, 110e6), actual)


def test_a_prediction_counts_where_the_cap_was_named_rightly() -> None:
    """A wrong name promises nothing that could be lifted; of two dialects the newest counts."""
    rates = promises(WORLD, _report(_copy("3.1.1", "read", 36e6), _copy("smb1", "read", 30e6)))
    assert [(each.dialect, each.median) for each in rates] == [("3.1.1", 36e6)]
    assert promises(WORLD, _report(_copy("3.1.1", "write", 36e6))) == []
    assert promises(WORLD, _report(_copy("3.1.1", "read", None))) == []
    other = {**_copy("3.1.1", "read", 36e6), "copy": "pull.cached"}
    assert promises(WORLD, _report(other)) == []


def test_the_actual_rate_is_that_of_the_same_copy_in_the_same_dialect() -> None:
    """A copy to memory is another one, and one that failed has no rate."""

    def step(end: str, dialect: str, rate: float | None) -> Any:
        setting = {"copy": "pull.uncached", "dialect": dialect, "end": end}
        outcome = {"kind": "failed"} if rate is None else {"kind": "measured"}
        return {
            "stage": "smb-copy",
            "setting": setting,
            "outcome": {**outcome, "bytes_per_second": {"median": rate}},
        }

    report = {
        "steps": [step("memory", "3.1.1", 90e6), step("folder", "3.1.1", 80e6)]
        + [step("folder", "smb1", None)]
    }
    assert measured_rate(report, "pull.uncached", "3.1.1") == 80e6
    assert measured_rate(report, "pull.uncached", "smb1") is None


def test_predictions_hold_by_their_median_and_their_worst() -> None:
    """One that is far off is enough to fail, and so is nothing to compare."""
    assert holds([_pair(100e6), _pair(103e6), _pair(88e6)])
    assert not holds([_pair(100e6), _pair(101e6), _pair(80e6)])
    assert not holds([_pair(93e6), _pair(107e6), _pair(93e6)])
    assert not holds([])
    assert _pair(80e6).error_ratio == pytest.approx(0.25)
    text = "\n".join(lines([_pair(100e6), _pair(80e6)]))
    assert "outside" in text.splitlines()[2] and "outside" not in text.splitlines()[1]
    assert "median 12.5%, the worst is 25.0%; 50% within" in text
    assert len(lines([])) == 1
