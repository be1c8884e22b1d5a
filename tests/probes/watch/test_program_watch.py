"""A program that we started is looked at while it copies; its time is told as our own copies'."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from probes.core.copy_trace import Bin
from probes.core.stage import Window
from probes.watch import program_watch
from probes.watch.program_watch import trace, watch_threads
from probes.watch.thread_calls import OTHER, READ
from probes.watch.thread_states import ThreadState
from probes.watch.trace_rows import ThreadSnapshot
from tests.living import until

OPENED, ACKNOWLEDGED = 100.0, 101.0
FLUSH = 5


def looks(count: int) -> list[ThreadSnapshot]:
    threads = [ThreadState(7, "D", 0.5, 0.0)]
    return [ThreadSnapshot(OPENED + 0.05 * number, threads, READ) for number in range(count)]


def window(closed: float) -> Window:
    return Window(opened=OPENED, acknowledged=ACKNOWLEDGED, closed=closed)


def test_a_program_is_looked_at_until_the_block_ends() -> None:
    command = [sys.executable, "-c", "input()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        with watch_threads(lambda: [process.pid], OTHER) as program_looks:
            assert until(lambda: len(program_looks) > 3)
        count = len(program_looks)
        process.communicate(b"\n")
    assert program_looks[-1].waits_for == OTHER and len(program_looks) == count


def test_a_long_copy_is_kept_in_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_watch, "MOST_LOOKS", 3)
    monkeypatch.setattr(program_watch, "FIRST_LOOK_SECONDS", 0.0)
    calls: list[int] = []
    with watch_threads(lambda: calls.append(1) or [os.getpid()], OTHER) as program_looks:
        assert until(lambda: len(calls) > 12)
    assert len(program_looks) <= 3


def test_a_program_that_is_not_to_be_seen_tells_nothing() -> None:
    with watch_threads(lambda: [2**22 + 1], OTHER) as program_looks:
        pass
    assert program_looks == [] and trace(program_looks, window(101.1), True) == {}


@pytest.mark.parametrize("pushes", [True, False])
def test_the_flush_is_a_request_of_a_push_and_a_wait_of_a_pull(pushes: bool) -> None:
    times = trace(looks(20), window(101.5), pushes)["trace"]
    *_, last = times["bins"]
    assert times["lasted_seconds"] == last[0] == 1.5 and times["clock_seconds"] == OPENED
    assert last[FLUSH] == (0.0 if pushes else 0.5)
    assert times["requests"] == ([["flush", 1.0, 1.5, 1.5, 0, 0]] if pushes else [])
    assert sum(row[3] for row in times["bins"]) == pytest.approx(0.95)


def test_a_copy_that_was_over_between_two_looks_is_told_by_a_long_flush_alone() -> None:
    times = trace(looks(2), window(105.0), False)["trace"]
    assert [row[0] for row in times["bins"]] == [0.0, 1.0, 5.0] and times["bins"][-1][FLUSH] == 4.0
    assert all(len(row) == len(Bin._fields) for row in times["bins"])
    assert trace(looks(2), window(101.5), False) == {}
