"""What processes moved and whether they wait is read from /proc's own words."""

from __future__ import annotations

import os
from pathlib import Path

from probes.host.process_io import Moved, moved, parse_io, parse_state, waits_for_disk

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
