"""Looks at a program's threads become rows of the time that it waited, by what it waited for."""

from __future__ import annotations

import pytest

from probes.watch.program_time import MOST_BINS, bins
from probes.watch.thread_calls import OTHER, READ, SEND, WRITE
from probes.watch.thread_states import ThreadState
from probes.watch.trace_rows import ThreadSnapshot

ELAPSED, REPLY, SENT, READS, WRITES, FLUSH, RUN, WAIT = range(8)


def look(
    now: float, waits_for: str | None = OTHER, state: str = "S", run: float = 0.0, wait: float = 0.0
) -> ThreadSnapshot:
    threads = [ThreadState(7, state, run, wait), ThreadState(8, "S", 0.001, None)]
    return ThreadSnapshot(now, threads, waits_for)


def looks(*kinds: str | None, step: float = 0.1) -> list[ThreadSnapshot]:
    return [look(10 + step * number, kind) for number, kind in enumerate(kinds)]


def test_the_share_of_the_looks_becomes_the_share_of_the_time() -> None:
    rows = bins(looks(*(READ, READ, READ, OTHER, SEND) * 20), 10.0, 99.0)
    total = [sum(row[column] or 0.0 for row in rows) for column in range(8)]
    assert rows[-1][ELAPSED] == pytest.approx(9.9) and rows[0][ELAPSED] == 0.0
    assert total[READS] == pytest.approx(0.6 * 9.9, rel=0.05)
    assert total[SENT] == pytest.approx(0.2 * 9.9, rel=0.1)
    assert total[REPLY] == total[WRITES] == total[FLUSH] == 0.0


def test_what_runs_is_counted_and_its_looks_stand_for_no_wait() -> None:
    """A thread that runs half of the time and waits for its disk else waits for nothing more."""
    program_looks = [
        look(10 + 0.1 * n, *((OTHER, "R") if n % 2 else (WRITE, "D")), run=5 + 0.05 * n, wait=1)
        for n in range(41)
    ]
    rows = bins(program_looks, 10.0, 99.0)
    assert rows[-1][RUN] == pytest.approx(2.0) and rows[-1][WAIT] == 0.0
    assert sum(row[WRITES] or 0.0 for row in rows) == pytest.approx(4.0)


def test_of_several_threads_the_busiest_is_counted_and_one_that_ended_uses_nothing() -> None:
    program_looks = [look(10 + 0.1 * n, run=0.02 * n, wait=0.01 * n) for n in range(10)]
    ended = [
        ThreadSnapshot(11 + 0.1 * n, [ThreadState(8, "S", 0.001, 0.0)], OTHER) for n in range(5)
    ]
    row = bins([*program_looks, *ended], 10.0, 99.0)[-1]
    assert (row[RUN], row[WAIT]) == (pytest.approx(0.18), pytest.approx(0.09))


@pytest.mark.parametrize("kinds", [(READ,) * 4, (READ, READ, None, READ, READ), ()])
def test_too_few_looks_and_waits_that_are_not_known_tell_nothing(
    kinds: tuple[str | None, ...],
) -> None:
    assert bins(looks(*kinds), 0.0, 99.0) == []


def test_a_few_looks_that_tell_no_wait_are_left_out() -> None:
    rows = bins(looks(*(READ, READ, READ, READ, None) * 10), 0.0, 99.0)
    assert sum(row[READS] or 0.0 for row in rows) == pytest.approx(4.8)


def test_a_long_watch_has_no_more_rows_than_a_report_keeps() -> None:
    assert len(bins(looks(*(OTHER,) * 1000), 0.0, 999.0)) <= MOST_BINS + 2


def test_looks_outside_the_time_that_counts_are_left_out() -> None:
    rows = bins(looks(*(READ,) * 30), 10.95, 12.05)
    assert rows[0][ELAPSED] == pytest.approx(0.05) and rows[-1][ELAPSED] == pytest.approx(1.05)
