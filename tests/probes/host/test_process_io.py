"""What processes moved and whether they wait is read from /proc's own words."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from probes.host import process_io
from probes.host.process_io import Moved, Tally, moved, parse_io, parse_state, waits_for_disk

RECORDED = """rchar: 94371840
wchar: 93888048
syscr: 190
syscw: 189
read_bytes: 94371840
write_bytes: 4096
cancelled_write_bytes: 0
"""
NOBODY = 2**22 + 1
"""Above the most that a process can be numbered (pid_max)."""


def test_a_recorded_account_is_read() -> None:
    assert parse_io(RECORDED) == Moved(94371840, 93888048, 94371840, 4096)


def test_an_account_that_is_not_whole_is_none() -> None:
    assert parse_io("") is None
    assert parse_io("rchar: many\nwchar: 5\n") is None


def test_the_state_stands_behind_a_name_that_may_hold_anything() -> None:
    assert parse_state("17 (a) D (b)) D 1 17 17 0") == "D"
    assert parse_state("") == ""


def test_what_this_process_writes_is_counted(tmp_path: Path) -> None:
    before = moved([os.getpid(), NOBODY])
    (tmp_path / "file").write_bytes(bytes(1 << 20))
    after = moved([os.getpid(), NOBODY])
    assert before is not None and after is not None
    assert after.written_bytes - before.written_bytes >= 1 << 20


def test_of_processes_that_are_gone_nothing_is_known() -> None:
    assert moved([NOBODY]) is None and moved([]) is None
    assert waits_for_disk([NOBODY]) is None and waits_for_disk([]) is None
    assert waits_for_disk([os.getpid()]) is False


def write(path: Path) -> subprocess.Popen[bytes]:
    """A process that has written a megabyte, and ends when its stdin does."""
    code = f"open({str(path)!r}, 'wb').write(bytes(1 << 20)); print(flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None and process.stdout.readline() == b"\n"
    return process


def test_what_a_process_moved_stays_counted_when_it_ends(tmp_path: Path) -> None:
    one, other = write(tmp_path / "one"), write(tmp_path / "other")
    tally = Tally((one.pid, other.pid))
    before = tally.moved()
    one.communicate()
    assert before is not None and tally.moved() == before
    other.communicate()
    assert tally.moved() == before and moved((one.pid, other.pid)) is None


def test_a_child_that_its_watched_parent_waited_for_is_counted_once(tmp_path: Path) -> None:
    """The kernel adds its account to the parent's."""
    child = write(tmp_path / "one")
    tally = Tally((os.getpid(), child.pid))
    before = tally.moved()
    child.communicate()
    after = tally.moved()
    assert before is not None and after is not None
    assert before.written_bytes <= after.written_bytes < before.written_bytes + (1 << 20)


def test_a_sum_that_falls_is_told_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process took an ended one's number."""
    tally = Tally((os.getpid(),))
    before = tally.moved()
    monkeypatch.setattr(process_io, "parse_io", lambda text: Moved(0, 0, 0, 0))
    assert before is not None and tally.moved() == before


@contextmanager
def resting(count: int) -> Iterator[None]:
    """So many threads of this process that wait."""
    stop = threading.Event()
    threads = [threading.Thread(target=stop.wait) for _ in range(count)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        stop.set()
        for each in threads:
            each.join()


def test_of_many_threads_a_look_asks_some_and_the_next_one_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    real = process_io._text
    monkeypatch.setattr(process_io, "_text", lambda path: asked.append(path) or real(path))
    monkeypatch.setattr(process_io, "MOST_THREADS", 5)
    with resting(20):
        for _ in range(200):
            assert waits_for_disk([os.getpid(), os.getpid()]) is False
    assert len(asked) == 200 * 5 and len(set(asked)) > 15
