"""The states of threads are read again and again by kept descriptors, without privileges."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from probes.watch import thread_states
from probes.watch.thread_states import Threads, ThreadState, parse
from tests import living

STAT = (
    b"7151 (smbd[10.0.0.1) x]) D 977 7151 977 0 -1 1077936448 913 0 0 0 6 31 0 0 20 0 5 0 2188414 "
    b"96514048 5093 18446744073709551615 1 1 0 0 0 0 0 4096 91879 1 0 0 17 1 0 0 0 0 0\n"
)
"""Recorded of an smbd that waited for its disk, on Linux 6.1; the name was made worse."""
SCHEDSTAT = b"371904522 20150017 913\n"


@pytest.fixture
def threads() -> Iterator[Threads]:
    with closing(Threads()) as reading:
        yield reading


def test_a_thread_is_told_by_its_state_and_the_schedulers_count() -> None:
    assert parse(7151, STAT, SCHEDSTAT) == ThreadState(7151, "D", 0.371904522, 0.020150017)


@pytest.mark.parametrize("schedstat", [b"", b"0 0 0\n"])
def test_a_kernel_without_schedstat_counts_ticks_and_no_wait(schedstat: bytes) -> None:
    state = parse(7151, STAT, schedstat)
    assert state is not None and state.wait_seconds is None
    assert state.run_seconds == pytest.approx(37 / os.sysconf("SC_CLK_TCK"))


@pytest.mark.parametrize("text", [b"", b"7151 (smbd) D 977", b"no such line"])
def test_what_is_no_stat_tells_nothing(text: bytes) -> None:
    assert parse(7151, text, SCHEDSTAT) is None


def test_each_thread_of_a_process_is_found_and_one_that_sleeps_is_told_so(threads: Threads) -> None:
    leave = threading.Event()
    other = threading.Thread(target=leave.wait)
    other.start()
    try:
        states = {each.thread: each for each in threads.look([os.getpid()])}
        assert {threading.get_native_id(), other.native_id} <= set(states)
        assert states[threading.get_native_id()].state == thread_states.RUNS
    finally:
        leave.set()
        other.join()

    def ids() -> set[int]:
        return {each.thread for each in threads.look([os.getpid()])}

    # join() returns before the kernel has let the thread go.
    assert living.until(lambda: other.native_id not in ids())
    assert threading.get_native_id() in ids()


def test_threads_that_ended_leave_no_descriptor_open(threads: Threads) -> None:
    def opened() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    descriptors = opened()
    threads.look([os.getpid(), 2**22 + 1])
    own_descriptors = opened()
    leave = threading.Event()
    others = [threading.Thread(target=leave.wait) for _ in range(20)]
    for each in others:
        each.start()
    threads.look([os.getpid()])
    assert opened() >= own_descriptors + 40
    leave.set()
    for each in others:
        each.join()
    assert living.until(lambda: bool(threads.look([os.getpid()])) and opened() <= own_descriptors)
    threads.close()
    assert opened() == descriptors


def test_no_more_threads_are_read_than_a_look_may_cost(
    threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_states, "MOST_THREADS", 1)
    assert len(threads.look([os.getpid(), os.getppid()])) == 1
