"""When the lab repeats a world, and how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from disturbance import Foreign, Moment, foreign_cores, kernel_ticks
from experiment import Result, run_undisturbed
from judge import ABSTAINED, MISSED, RIGHT, WRONG, JudgedCopy
from run import ALL_RIGHT, CONFIDENTLY_WRONG, NOT_NAMED, grade
from truth import WORLDS

KTHREAD = (
    "9 (kworker/0:1-ev (x)) I 2 0 0 0 -1 69238880 0 0 0 0 7 35 0 0 20 0 1 0 30 0 0 18446744073"
)
SHELL = "812 (bash) S 801 812 812 0 -1 4194304 900 8000 0 3 11 22 33 44 20 0 1 0 5000 9000000 1000"


def _result(*grades: str, **options: Any) -> Result:
    rows = tuple(JudgedCopy("pull.cached", "3.1.1", 1e7, "", 0.9, each, ()) for each in grades)
    return Result("link-100", verdicts=rows, **options)


@pytest.mark.parametrize(
    ("runs", "counted"),
    [
        ([_result(RIGHT, disturbed=True)], 0),
        ([_result(WRONG), _result(RIGHT)], 0),
        ([_result(WRONG, disturbed=True), _result(RIGHT)], 1),
        ([_result(MISSED, disturbed=True), _result(WRONG, disturbed=True), _result(WRONG)], 2),
        ([_result(WRONG, disturbed=True)] * 4, 2),
    ],
)
def test_a_wrong_verdict_is_excused_by_a_measured_disturbance_alone(
    runs: list[Result], counted: int
) -> None:
    """A world is repeated only where others took the CPU, three times at most; the last counts."""
    remaining: Iterator[Result] = iter(runs)
    assert run_undisturbed(WORLDS["link-100"], 3, lambda _: next(remaining)) is runs[counted]
    assert len(list(remaining)) == len(runs) - counted - 1


def test_the_exit_code_tells_the_worst() -> None:
    """A wrong verdict, a broken run or a file left behind outweighs a cap not named."""
    assert grade([_result(RIGHT, ABSTAINED)]) == ALL_RIGHT
    assert grade([_result(RIGHT), _result(MISSED)]) == NOT_NAMED
    assert grade([_result(MISSED, WRONG)]) == CONFIDENTLY_WRONG
    assert grade([_result()]) == CONFIDENTLY_WRONG
    assert grade([_result(RIGHT, left_behind=("client: /x",))]) == CONFIDENTLY_WRONG
    assert grade([_result(RIGHT, unlawful=("pull.cached: next below",))]) == CONFIDENTLY_WRONG


def test_only_the_kernels_own_threads_are_taken_off() -> None:
    """Their time is the lab's as much as anybody's; a shell's is somebody else's."""
    assert kernel_ticks(KTHREAD) == 42
    assert kernel_ticks(SHELL) is None
    earlier = Moment(10.0, 100.0, {9: 50.0, 11: 30.0})
    later = Moment(12.0, 101.5, {9: 50.5, 12: 0.25})  # 11 has ended, 12 is new
    assert foreign_cores(earlier, later) == pytest.approx((1.5 - 0.75) / 2)


def test_one_bad_window_is_a_disturbance() -> None:
    """A copy takes a second or two: an average over the whole run would hide its neighbour."""
    assert Foreign([0.0, 0.9, 0.0]).disturbed
    assert not Foreign([0.1, 0.2]).disturbed
    assert not Foreign().disturbed
