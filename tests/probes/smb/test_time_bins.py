"""The time of the thread that moves the bytes: what it waits in, bin by bin, and its requests."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing

import pytest

from probes.smb import time_bins
from probes.smb.time_bins import (
    BIN_SECONDS,
    KINDS,
    MOST_BINS,
    MOST_REQUESTS,
    REPLY,
    REQUEST_SECONDS,
    TimeBins,
)
from tests.living import FakeClock

LARGE = 1 << 20


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def times(clock: FakeClock) -> Iterator[TimeBins]:
    with closing(TimeBins(clock.now)) as bins:
        bins.begin()
        yield bins


def test_what_was_waited_for_stands_in_the_bin_in_which_it_ended(
    times: TimeBins, clock: FakeClock
) -> None:
    for seconds in (0.02, 0.04, 0.01):
        clock.time += seconds
        times.walls[REPLY] += seconds / 2
        times.turn(clock.now())
    first, second, last = times.end()["bins"]
    assert (first[0], second[0], last[0]) == pytest.approx((0.0, 0.06, 0.07))
    assert (second[1 + REPLY], last[1 + REPLY]) == pytest.approx((0.03, 0.005))
    assert len(first) == 1 + len(KINDS) + 2


def test_a_bin_tells_what_the_thread_ran_by_its_end(times: TimeBins, clock: FakeClock) -> None:
    clock.time += 0.2
    sum(range(1_000_000))
    (_, *_, ran, _), (_, *_, ran_later, waited) = times.end()["bins"]
    assert 0 < ran <= ran_later and waited >= 0


def test_reads_and_writes_are_told_now_and_then(times: TimeBins, clock: FakeClock) -> None:
    for _ in range(100):
        clock.time += 0.001
        if clock.now() >= times.request_at:
            times.record_answer("read", clock.time - 0.001, clock.time, LARGE, 2 * LARGE)
    requests = times.end()["requests"]
    assert 3 <= len(requests) <= 0.1 / REQUEST_SECONDS + 1
    assert requests[0] == ("read", 0.0, 0.001, 0.001, LARGE, 2 * LARGE)


def test_a_reply_without_payload_leaves_the_next_request_its_turn(
    times: TimeBins, clock: FakeClock
) -> None:
    times.record_answer("echo", clock.time, clock.time, 0, LARGE)
    assert clock.now() >= times.request_at


def test_the_next_turn_is_due_with_the_bins_end(times: TimeBins, clock: FakeClock) -> None:
    clock.time += 0.01
    times.turn(clock.now())
    assert times.due == pytest.approx(1000.0 + BIN_SECONDS)


def test_a_long_copy_is_shown_whole_in_longer_bins_and_fewer_requests(
    times: TimeBins, clock: FakeClock
) -> None:
    for _ in range(2000):
        clock.time += BIN_SECONDS
        times.walls[REPLY] += BIN_SECONDS / 2
        times.turn(clock.now())
        if clock.now() >= times.request_at:
            times.record_answer("read", clock.time - 0.001, clock.time, LARGE, 2 * LARGE)
    report = times.end()
    bins, requests = report["bins"], report["requests"]
    assert MOST_BINS / 2 <= len(bins) <= MOST_BINS + 1
    assert MOST_REQUESTS / 2 - 1 <= len(requests) <= MOST_REQUESTS
    lasted = 2000 * BIN_SECONDS
    assert (bins[0][0], bins[-1][0]) == pytest.approx((0.0, lasted))
    assert sum(each[1 + REPLY] for each in bins) == pytest.approx(lasted / 2)
    assert requests[-1][1] > 0.9 * lasted


def test_after_the_end_nothing_is_due(times: TimeBins) -> None:
    times.end()
    assert math.inf == times.due == times.request_at


def test_without_the_kernels_count_only_what_ran_is_known(
    monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    monkeypatch.setattr(time_bins, "RUN", "/there/is/none")
    times = TimeBins(clock.now)
    times.begin()
    *_, run, waited = times.end()["bins"][-1]
    assert run > 0 and waited is None
