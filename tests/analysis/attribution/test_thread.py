"""The moving thread's waits, by its own times and the scheduler's count."""

from __future__ import annotations

import pytest

from bottleneck.analysis.attribution.thread import MovingThread, Shares
from tests.analysis.attribution.planted import SECONDS, bins, copy


def thread(run: float, wait: float = 0.0, **walls: float) -> MovingThread:
    return copy(bins=bins(run, wait, **walls)).thread


@pytest.mark.parametrize(
    ("kind", "name"), [("read", "disk"), ("write", "disk"), ("flush", "flush"), ("send", "send")]
)
def test_what_takes_all_the_time_without_the_cpu_is_what_it_waits_in(kind: str, name: str) -> None:
    shares = thread(0.05, **{kind: 0.98})
    assert shares.mean(name) == pytest.approx(0.95, abs=0.03)
    assert shares.mean("cpu") == pytest.approx(0.05)


def test_a_wait_for_a_reply_is_all_wait_and_the_cpu_is_the_other_calls() -> None:
    """Half of the time it copies bodies, at full load; the other half it hears nothing."""
    shares = thread(0.5, reply=0.5)
    assert (shares.mean("reply"), shares.mean("body")) == pytest.approx((0.5, 0.0), abs=1e-6)


def test_of_a_call_that_copies_the_cpu_is_not_waited_for() -> None:
    shares = thread(0.9, write=1.0)
    assert shares.mean("disk") == pytest.approx(0.1)


def test_a_wait_for_a_core_is_work_of_the_cpu() -> None:
    assert thread(0.3, 0.6, read=1.0).mean("cpu") == pytest.approx(0.9)


@pytest.mark.parametrize("run", [0.0, 0.3, 1.0, 1.7])
@pytest.mark.parametrize("walls", [{}, {"reply": 1.0, "flush": 1.0}, {"read": 0.4, "send": 0.4}])
def test_the_shares_of_a_bin_sum_to_one(run: float, walls: dict[str, float]) -> None:
    for each in thread(run, 0.2, **walls).shares:
        assert sum(vars(each).values()) == pytest.approx(1.0)
        assert min(vars(each).values()) >= 0


def test_a_moment_beyond_the_copy_is_as_its_last_one() -> None:
    mover = thread(0.05, read=1.0)
    assert isinstance(mover.shares_at(2 * SECONDS), Shares)
    assert mover.shares_at(2 * SECONDS) == mover.shares[-1]
