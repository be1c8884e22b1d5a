"""Rows of numbers out of looks: each as long as its columns, and None where nothing is known."""

from __future__ import annotations

from itertools import pairwise

import pytest

from probes.sockets.limits import Glimpse
from probes.watch.thread_states import ThreadState
from probes.watch.trace_rows import (
    MOST_ROWS,
    CounterSnapshot,
    ThreadSnapshot,
    count_rows,
    socket_row,
    thinned_rows,
    thread_rows,
)


def test_a_look_at_a_socket_is_a_row_in_the_copys_own_time() -> None:
    figures = {"sent_bytes": 9000, "retransmitted_bytes": 1000, "acknowledged_bytes": 5000}
    glimpse = Glimpse(103.5, {**figures, "queued_bytes": 4608}, 12, 700)
    row = socket_row(glimpse, 100.0)
    assert (row.elapsed_seconds, row.unread_bytes, row.unsent_bytes) == (3.5, 12, 700)
    assert (row.in_flight_bytes, row.queued_bytes) == (3000, 4608)
    assert row.peer_window_bytes is None


def threads(*states: tuple[float, str, float, float]) -> list[ThreadSnapshot]:
    """One thread at some moments: clock, state, run and wait."""
    return [ThreadSnapshot(clock, [ThreadState(7, state, *both)]) for clock, state, *both in states]


def test_the_threads_share_of_a_core_is_that_of_the_time_around_a_look() -> None:
    looks = threads(*((100 + tick / 10, "R", tick / 20, tick / 50) for tick in range(11)))
    rows = thread_rows(looks, 100.0, 101.0)
    assert len(rows) == 11
    assert all(each.busiest_ratio == pytest.approx(0.7) for each in rows)
    assert (rows[-1].run_seconds, rows[-1].wait_seconds) == pytest.approx((0.5, 0.2))


def test_the_busiest_thread_is_told_from_all_together() -> None:
    looks = [
        ThreadSnapshot(
            now, [ThreadState(7, "D", 0.3 * now, 0.0), ThreadState(8, "S", 0.1 * now, 0.1 * now)]
        )
        for now in (0.0, 0.1, 0.2)
    ]
    row = thread_rows(looks, 0.0, 1.0)[1]
    assert (row.busiest_ratio, row.all_ratio) == pytest.approx((0.3, 0.5))
    assert (row.running, row.disk) == (0, 1)


def test_only_looks_of_the_copys_time_are_told_but_the_ones_around_count() -> None:
    looks = threads((99.9, "S", 0.0, 0.0), (100.1, "R", 0.1, 0.0), (100.3, "S", 0.3, 0.0))
    (row,) = thread_rows(looks, 100.0, 100.2)
    assert row.busiest_ratio == pytest.approx(0.75)


def test_a_thread_that_ended_or_whose_wait_is_unknown_takes_nothing_back() -> None:
    looks = [
        ThreadSnapshot(0.0, [ThreadState(7, "R", 5.0, None)]),
        ThreadSnapshot(0.1, [ThreadState(8, "R", 0.05, None)]),
    ]
    row = thread_rows(looks, 0.0, 1.0)[1]
    assert (row.run_seconds, row.wait_seconds) == pytest.approx((0.05, 0.0))


@pytest.mark.parametrize("looks", [[], threads((1.0, "R", 0.0, 0.0))])
def test_fewer_than_two_looks_at_threads_tell_nothing(looks: list[ThreadSnapshot]) -> None:
    assert thread_rows(looks, 0.0, 9.0) == []


def test_counts_grow_from_the_last_one_before_the_copy() -> None:
    looks = [
        CounterSnapshot(9.0, (0, 1), {0: (1.0, 1.0)}),
        CounterSnapshot(10.0, (1000, 2), {0: (2.0, 1.0)}),
        CounterSnapshot(10.5, (3000, 4), {0: (2.4, 1.1), 1: (7.0, 7.0)}),
        CounterSnapshot(11.0, (5000, 4), {0: (2.4, 1.6)}),
    ]
    rows = count_rows(looks, 10.1, 10.8)
    expected = ((0.0, 0, 0), (0.4, 2000, 2), (0.9, 4000, 2))
    assert [row[:3] for row in rows] == [pytest.approx(row) for row in expected]
    assert rows[1][3:] == pytest.approx((0.2, 0.8))


def test_what_is_not_counted_or_runs_backwards_is_no_figure() -> None:
    rows = count_rows([CounterSnapshot(1.0, None, {}), CounterSnapshot(2.0, None, {})], 1.0, 2.0)
    assert rows == [(0.0, None, None, None, None), (1.0, None, None, None, None)]
    earlier, later = {0: (9.0, 3.0)}, {0: (8.0, 2.0)}
    again = count_rows(
        [CounterSnapshot(1.0, (7, None), earlier), CounterSnapshot(2.0, (5, None), later)], 1, 2
    )
    assert again[1] == (1.0, None, None, 0.0, 0.0)


def test_of_many_rows_some_stay_at_even_distances_and_the_last() -> None:
    rows = thinned_rows(range(1000))
    assert len(rows) <= MOST_ROWS and rows[-1] == 999
    assert len({row_after - row for row, row_after in pairwise(rows)}) == 1
    assert thinned_rows([1, 2]) == [1, 2] and thinned_rows([1, 2], 0) == [2]
