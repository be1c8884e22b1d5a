"""Words of the lab on all worlds together, from made verdicts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from experiment import Result
from judge import ABSTAINED, MISSED, NOT_COUNTED, RIGHT, WRONG, JudgedCopy
from tally import lines, tally

LINK, READ, ZONE = "network/path/link-rate", "disk/server/read", "disk/server/zone"
UNKNOWN = "unknown/inconclusive"


def _row(grade: str, verdict: str, confidence: float | None = 0.9, *right: str) -> JudgedCopy:
    return JudgedCopy("pull.cached", "3.1.1", 1e7, verdict, confidence, grade, right or (verdict,))


def _result(*rows: JudgedCopy, world: str, elapsed_seconds: float = 20.0, **options: Any) -> Result:
    facts: dict[str, Any] = {
        "verdicts": rows,
        "headline": "pull.cached",
        "elapsed_seconds": elapsed_seconds,
    }
    return Result(world, **facts, **options)


RUNS = [
    _result(_row(RIGHT, READ, 0.9, READ, ZONE), _row(RIGHT, READ, 1.0), world="a"),
    _result(_row(WRONG, LINK, 0.85, READ, ZONE), world="slow", elapsed_seconds=31.0),
    _result(_row(RIGHT, LINK, 0.55), world="b, not clear", elapsed_seconds=50.0, clear=False),
    _result(_row(WRONG, ZONE, 0.59, READ), _row(RIGHT, LINK, 0.9), world="c, the part is right"),
    _result(_row(MISSED, UNKNOWN, 0.0, READ), _row(ABSTAINED, UNKNOWN, 0.0, LINK), world="d"),
    _result(_row(NOT_COUNTED, UNKNOWN, 0.0, READ), world="e, nobody can make the copy"),
    _result(_row(WRONG, LINK, 0.7, READ), world="f"),
    _result(world="no report"),
]


def test_all_worlds_together_read_as_they_were_looked_at(golden: Callable[[str], None]) -> None:
    """True verdicts stand in rows, of several a right one in its own; a miss is a loss.

    Neither right nor wrong are an abstention that is no fault and a copy that cannot be made.
    """
    for line in lines(tally(RUNS)):
        golden(f" {line}")


def test_a_fitted_confidence_is_judged_on_worlds_that_it_never_saw(
    golden: Callable[[str], None],
) -> None:
    """18 of 18 right at 0.75: 0.95 for the other half, which is 0.05 off where all are right."""
    timid = [_row(RIGHT, LINK, 0.75)] * 18
    for others in (timid, [_row(WRONG, LINK, 0.75)], []):
        total = tally([_result(*timid, world="a"), _result(*others, world="b")])
        golden(next(line for line in lines(total) if "fitted" in line))


def test_nothing_to_count_has_no_figures(golden: Callable[[str], None]) -> None:
    """A share of nothing is none, and never 0."""
    for line in lines(tally([])):
        golden(f" {line}")
