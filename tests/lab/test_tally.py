"""What the lab says of all worlds together, from made verdicts."""

from __future__ import annotations

from typing import Any

import pytest
from experiment import Ran
from judge import ABSTAINED, MISSED, NOT_COUNTED, RIGHT, WRONG, Judged
from tally import (
    brier,
    calibration_error,
    confusion,
    f1,
    fitted_error,
    lines,
    reliability,
    share_right,
    tally,
)

LINK, READ, ZONE = "network/path/link-rate", "disk/server/read", "disk/server/zone"


def _row(grade: str, found: str, confidence: float | None = 0.9, *right: str) -> Judged:
    return Judged("pull.cached", "3.1.1", 1e7, found, confidence, grade, right or (found,))


def _ran(*rows: Judged, world: str = "w", elapsed_seconds: float = 20.0, **more: Any) -> Ran:
    facts: dict[str, Any] = {
        "verdicts": rows,
        "headline": "pull.cached",
        "elapsed_seconds": elapsed_seconds,
    }
    return Ran(world, **facts, **more)


def test_the_matrix_has_what_is_true_in_rows_and_what_was_found_in_columns() -> None:
    """Of several true answers a right one stands in its own row; an abstention in none."""
    matrix = confusion(
        [
            _row(RIGHT, READ, 0.9, READ, ZONE),
            _row(RIGHT, READ),
            _row(WRONG, LINK, 0.9, READ, ZONE),
            _row(MISSED, "unknown/inconclusive", 0.0, READ),
            _row(ABSTAINED, "unknown/inconclusive", 0.0, LINK),
        ]
    )
    assert matrix == {
        READ: {READ: 2, "unknown/inconclusive": 1},
        f"{READ} | {ZONE}": {LINK: 1},
    }


def test_a_fitted_confidence_is_judged_on_worlds_that_it_never_saw() -> None:
    """18 of 18 right at 0.75: 0.95 for the other half, which is 0.05 off where all are right."""
    timid = [_row(RIGHT, LINK, 0.75)] * 18
    assert fitted_error({"a": timid, "b": timid}) == pytest.approx(0.05)
    assert fitted_error({"a": timid, "b": [_row(WRONG, LINK, 0.75)]}) == pytest.approx(0.682, 0.01)
    assert fitted_error({"a": timid}) is None


def test_confidence_is_held_against_the_share_that_is_right() -> None:
    """Each bin has its own verdicts, the last one its upper edge too; an empty one is not there."""
    named = [
        _row(RIGHT, LINK, 0.5),
        _row(WRONG, LINK, 0.59),
        *[_row(RIGHT, LINK, 0.95)] * 3,
        _row(RIGHT, LINK, 1.0),
    ]
    low, high = reliability(named)
    assert (low.from_confidence, low.to_confidence, low.count, low.right_ratio) == (
        0.5,
        0.6,
        2,
        0.5,
    )
    assert (high.from_confidence, high.to_confidence, high.count) == (0.9, 1.0, 4)
    assert high.right_ratio == 1.0
    assert high.mean_confidence == pytest.approx(0.9625)


def test_the_score_is_worst_for_what_is_sure_and_wrong() -> None:
    """0 for the sure and right, 1 for the sure and wrong; nothing named has none."""
    assert brier([_row(RIGHT, LINK, 1.0)]) == 0
    assert brier([_row(WRONG, LINK, 1.0)]) == 1
    assert brier([_row(RIGHT, LINK, 0.5), _row(WRONG, LINK, 0.5)]) == 0.25
    assert brier([]) is None


def test_the_calibration_error_weighs_each_bin_by_its_verdicts() -> None:
    named = [*[_row(RIGHT, LINK, 0.95)] * 3, _row(WRONG, LINK, 0.55)]
    assert calibration_error(named) == pytest.approx((3 * 0.05 + 0.55) / 4)
    assert calibration_error([]) is None


def test_f1_counts_what_was_missed_and_what_was_blamed_instead() -> None:
    """Nobody named is a loss for what is true alone."""
    matrix = {READ: {READ: 2, LINK: 1, "unknown/inconclusive": 1}, LINK: {LINK: 3}}
    assert f1(matrix) == {READ: pytest.approx(4 / 6), LINK: pytest.approx(6 / 7)}


def test_an_abstention_that_is_no_fault_is_neither_right_nor_wrong() -> None:
    """A miss is a fault; with nothing to count there is no share."""
    assert share_right([_row(RIGHT, LINK), _row(ABSTAINED, "unknown")]) == 1
    assert share_right([_row(RIGHT, LINK), _row(MISSED, "unknown"), _row(WRONG, LINK)]) == (
        pytest.approx(1 / 3)
    )
    assert share_right([_row(ABSTAINED, "unknown"), _row(NOT_COUNTED, "unknown")]) is None


def test_the_part_may_be_right_where_the_cause_is_not() -> None:
    """Who has to act is known then; nobody named is nobody's part."""
    rows = [_row(WRONG, ZONE, 0.9, READ), _row(WRONG, LINK, 0.9, READ), _row(RIGHT, READ)]
    assert share_right(rows, of_part=True) == pytest.approx(2 / 3)
    assert share_right([_row(MISSED, "nobody", 0.0, READ)], of_part=True) == 0


def test_a_run_is_early_in_half_of_its_budget_where_one_cap_is_clear() -> None:
    """A tie, or a world with nothing to find, may take its time; a broken run is told apart."""
    found = tally(
        [
            _ran(_row(RIGHT, LINK)),
            _ran(_row(WRONG, LINK, 0.85, READ), world="slow", elapsed_seconds=31.0),
            _ran(_row(RIGHT, LINK), elapsed_seconds=50.0, clear=False),
            _ran(world="none"),
        ]
    )
    assert (found.worlds, found.early_ratio, found.late) == (4, 0.5, ("slow 31 s",))
    assert found.broke == ("none",)
    assert found.headline_ratio == pytest.approx(2 / 3)
    (blamed,) = found.confident_and_wrong
    assert blamed == f"slow pull.cached 3.1.1: {LINK} 0.85, true would be {READ}"
    text = "\n".join(lines(found))
    assert "confident and wrong (>= 0.7): 1" in text
    assert f"*    1  {READ}  ->  {LINK}" in text
    assert "no report: none" in text


def test_nothing_to_count_has_no_figures() -> None:
    """A share of nothing is none, and never 0."""
    text = "\n".join(lines(tally([])))
    assert "right: none" in text
    assert "Brier score: none" in text


def test_a_copy_that_cannot_be_made_does_not_count() -> None:
    """Not in the grades, not in the matrix."""
    assert tally([_ran(_row(NOT_COUNTED, "unknown/not-measured", 0.0, READ))]).grades == {}
