"""A copy's flushes, and what they say of the disk that it was written to."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.analysis.attribution.planted import MIB, SECONDS, columns, copy, looks, socket


def push(flush_seconds: float = 0.0, requests: list[Any] | None = None, **counts: Any) -> Any:
    server = looks(socket("received_bytes"), counts=columns(9, **counts) if counts else {})
    return copy(pull=False, server=server, requests=requests, flush_seconds=flush_seconds)


def test_a_short_last_flush_says_nothing_of_the_disk() -> None:
    assert push(0.1).disk_lag == 0.0


def test_a_long_one_says_what_the_bytes_would_take_at_its_pace() -> None:
    """100 MB in 4 s; in the flush the device writes 50 MB/s."""
    written = push(2.0, device_written_bytes=lambda n: 50e6 * n * SECONDS / 9)
    assert written.disk_lag == pytest.approx(0.5)
    slow = push(2.0, device_written_bytes=lambda n: 5e6 * n)
    assert slow.disk_lag == 1.0


def test_where_nobody_counted_the_device_it_had_work_while_it_was_flushed() -> None:
    assert push(2.0).disk_lag == pytest.approx(0.5)


def test_a_server_that_flushes_more_than_it_was_asked_to_makes_each_write_durable() -> None:
    def is_synced(flushes: float | None, total: float, requests: float = 100.0) -> bool:
        counted = push(device_flushes=lambda n: total * n / 8)
        return bool(replace(counted, flushes=flushes, requests=requests).is_synced)

    assert is_synced(1.0, 80)
    assert not is_synced(1.0, 8) and not is_synced(20.0, 80) and not is_synced(None, 80)
    # somebody else's: few beside the copy's own writes
    assert not is_synced(1.0, 80, requests=1000.0)
    assert not push().is_synced and not copy(pull=True).is_synced


def test_a_flush_of_ours_is_under_way_between_its_request_and_its_reply() -> None:
    run = push(requests=[["flush", 1.0, 1.1, 1.2, 0, MIB], ["write", 2.0, 2.1, 2.2, MIB, MIB]])
    assert run.flushes_at(1.1) and not run.flushes_at(1.3) and not run.flushes_at(2.1)
