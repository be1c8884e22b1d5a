"""When a copy ends that has more bytes than time."""

from __future__ import annotations

import pytest

from probes.smb.copy_length import CopyLength, Flushes


def end_of(length: CopyLength, rates: list[float]) -> float:
    """Returns the seconds until a copy ends whose rate changes each 0.1 s; 0: it does not."""
    moved_bytes = 0.0
    for step, rate in enumerate(rates, 1):
        moved_bytes += rate / 10
        length.look(step / 10, int(moved_bytes))
        if length.over:
            return step / 10
    return 0.0


@pytest.mark.parametrize(
    ("rates", "exact", "seconds"),
    [
        ([100.0] * 60, False, 2.0),
        ([1000.0] * 5 + [10.0] * 60, False, 2.0),
        ([10.0 * step for step in range(60)], False, 4.0),
        ([10.0 * min(step, 24) for step in range(60)], False, 3.2),
        ([10.0 * step for step in range(60)], True, 2.0),
    ],
    ids=["steady", "crawls", "rises", "has risen", "rises, and its time is exact"],
)
def test_a_copy_ends_after_its_time_and_later_while_its_rate_rises(
    rates: list[float], exact: bool, seconds: float
) -> None:
    length = end_of(CopyLength(2.0, 2.0 if exact else 60.0), rates)
    assert length == pytest.approx(seconds, abs=0.15)


def test_a_copy_without_a_limit_ends_with_its_last_byte() -> None:
    assert end_of(CopyLength(0.0), [100.0] * 60) == 0.0


def test_a_push_ends_when_its_last_flush_would_end_beside_its_time() -> None:
    """A disk of 30 bytes a second behind a link of 100."""
    length, flushes = CopyLength(2.0), Flushes()
    assert flushes.backlog_seconds(16, 0.1) == 0.0
    flushes.ask(16, 0.16)
    for step in range(2, 30):
        now = step / 10
        length.look(now, 10 * step, flushes.backlog_seconds(10 * step, now))
        if length.over:
            break
    assert now < 1.0 and flushes.in_flight == 1


def test_a_quick_flush_ends_no_push_early() -> None:
    flushes = Flushes()
    flushes.ask(16, 1.0)
    assert flushes.answer(1.01) == pytest.approx(0.01)
    assert not flushes.in_flight
    assert flushes.backlog_seconds(32, 1.2) == pytest.approx(0.01)
    flushes.ask(32, 1.2)
    assert flushes.backlog_seconds(32, 1.25) == pytest.approx(0.05)
