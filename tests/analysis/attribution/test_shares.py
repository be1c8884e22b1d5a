"""Shares of a copy's time: they sum to 1, and more work in a stage never lowers its share."""

from __future__ import annotations

import math

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bottleneck.analysis.attribution.shares import UNKNOWN, Instant, Time, split_by_ratios
from bottleneck.analysis.attribution.shares import shares_of_time as shares_of_slices

STAGES = (("disk", "client"), ("disk", "server"), ("cpu", "server"), ("network", "path"))
instants = st.lists(
    st.tuples(st.floats(0.01, 10), st.frozensets(st.sampled_from(STAGES))), min_size=1, max_size=30
)


def shares_of_time(moments: list[Instant], looks: int) -> Time:
    return shares_of_slices([(weight, [(weight, parts)]) for weight, parts in moments], looks)


quick = settings(
    deadline=None,
    database=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=list(HealthCheck),  # they look at a clock
)


@quick
@given(instants)
def test_the_shares_sum_to_one_and_none_is_more_than_its_use(moments: list[Instant]) -> None:
    time = shares_of_time(moments, len(moments))
    assert time is not None
    assert math.isclose(sum(time.shares.values()), 1.0)
    assert all(time.shares[each] <= use + 1e-9 for each, use in time.uses.items())


@quick
@given(instants, st.sampled_from(STAGES), st.data())
def test_more_work_in_a_stage_never_lowers_its_share(
    moments: list[Instant], stage: tuple[str, str], data: st.DataObject
) -> None:
    index = data.draw(st.integers(0, len(moments) - 1))
    weight, stages = moments[index]
    busier = [*moments[:index], (weight, stages | {stage}), *moments[index + 1 :]]
    base, raised = shares_of_time(moments, 1), shares_of_time(busier, 1)
    assert base is not None and raised is not None
    assert raised.shares.get(stage, 0.0) >= base.shares.get(stage, 0.0) - 1e-9


@quick
@given(instants)
def test_who_never_had_work_has_no_share(moments: list[Instant]) -> None:
    time = shares_of_time(moments, 1)
    assert time is not None
    worked = {stage for _, stages in moments for stage in stages}
    assert set(time.shares) <= worked | {UNKNOWN}


@quick
@given(st.floats(0, 1), st.floats(0, 1))
def test_an_instant_in_which_a_stage_may_work_keeps_its_weight(one: float, other: float) -> None:
    parts = split_by_ratios((2.0, frozenset()), [(STAGES[0], one), (STAGES[1], other)])
    assert math.isclose(sum(weight for weight, _ in parts), 2.0)
    works = sum(weight for weight, stages in parts if STAGES[0] in stages)
    assert math.isclose(works, 2.0 * one, abs_tol=1e-9)


def test_of_nothing_there_are_no_shares() -> None:
    assert shares_of_time([], 5).shares == {UNKNOWN: 1.0}


def test_periods_have_the_shares_of_their_own_time() -> None:
    first, second = STAGES[:2]
    moments: list[Instant] = [
        (2.0, frozenset({first})),
        (1.0, frozenset({first, second})),
        (1.0, frozenset()),
    ]
    time = shares_of_time(moments, 4)
    assert time.periods(2) == [{first: 1.0}, {first: 0.5, UNKNOWN: 0.5}]
    assert time.periods(1) == [{first: 0.75, UNKNOWN: 0.25}]


def test_within_a_slice_no_order_is_made_up() -> None:
    first, second = STAGES[:2]
    half: list[Instant] = [(0.5, frozenset({first})), (0.5, frozenset({second}))]
    time = shares_of_slices([(1.0, half), (1.0, half), (0.0, [(1.0, frozenset({first}))])], 2)
    assert time.periods(4) == [{first: 0.5, second: 0.5}] * 4


def test_of_times_too_small_to_be_divided_there_are_no_periods() -> None:
    time = shares_of_time([(5e-324, frozenset({STAGES[0]}))], 1)
    assert time.periods(48) == [{}] * 48


@quick
@given(instants)
def test_periods_add_up_to_the_whole(moments: list[Instant]) -> None:
    time = shares_of_time(moments, len(moments))
    periods = time.periods(7)
    for part, share in time.shares.items():
        mean = sum(each.get(part, 0.0) for each in periods) / 7
        assert math.isclose(mean, share, abs_tol=1e-6)
