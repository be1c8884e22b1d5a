"""A trace is read with care: what is malformed is as if it was not there."""

from __future__ import annotations

from typing import Any

import pytest

from bottleneck.analysis.attribution.trace import HostLooks, Trace, nearest, read
from probes.core.copy_trace import SocketLook
from tests.analysis.attribution.planted import SECONDS, bins, looks, socket


def trace(**sides: Any) -> Trace:
    record = read({"trace": {"bins": bins()}, "looks": sides}, "client")
    assert record is not None
    return record


def host(columns: dict[str, Any]) -> HostLooks:
    looks = trace(server=columns).serving
    assert looks is not None
    return looks


def read_looks(columns: dict[str, Any]) -> tuple[SocketLook, ...]:
    connection = host(columns).connection
    assert connection is not None
    return connection.looks


@pytest.mark.parametrize(
    "details",
    [
        {},
        {"trace": None},
        {"trace": {"bins": 7}},
        {"trace": {"bins": [[0.0] * 8]}},
        {"trace": {"bins": [["a"] * 8, [1.0], None]}},
        {"trace": {"bins": [[0.0] * 8, [0.0] * 8]}},
        {"trace": {"bins": [[end, *[0.0] * 7] for end in (5.0, 1.0, 3.0)]}},
    ],
)
def test_a_copy_that_did_not_time_itself_has_no_trace(details: dict[str, Any]) -> None:
    assert read(details, "client") is None


def test_malformed_columns_and_requests_are_left_out() -> None:
    server = looks(
        {"elapsed_seconds": [1.0, "x", 2.0, -1.0], "rtt_seconds": [0.5, 0.5, [], 0.5, 7]}
    )
    requests = [["read", 0, 1, 2, 3, 4], ["read", 0, 1], [None] * 6, 5, ["read", 0, 1, 2, 3, "4"]]
    details = {
        "trace": {"bins": bins(), "requests": requests},
        "looks": {"server": server, "client": 3},
    }
    trace = read(details, "client")
    assert trace is not None and trace.serving is not None and trace.asking is None
    assert [each.rtt_seconds for each in read_looks(server)] == [0.5, None]
    assert len(trace.requests) == 1


def test_a_system_that_counts_no_wait_has_none() -> None:
    trace = read({"trace": {"bins": [[*row[:-1], None] for row in bins(0.5)]}}, "client")
    assert trace is not None and trace.bins[-1].wait_seconds == 0
    assert trace.lasted_seconds == pytest.approx(SECONDS)


def test_the_host_that_makes_the_copy_is_the_asking_one() -> None:
    trace = read({"trace": {"bins": bins()}, "looks": {"server": looks(socket())}}, "server")
    assert trace is not None and trace.asking is not None and trace.serving is None


def test_a_count_grows_by_parts_of_the_time_and_not_of_the_looks() -> None:
    """A watch looks oftener while a copy is young."""
    times = [n / 50 for n in range(50)] + [1 + n / 20 for n in range(40)]
    steady = {"elapsed_seconds": times, "acknowledged_bytes": [25e6 * n for n in times]}
    connection = host(looks(steady)).connection
    assert connection is not None
    assert connection.growth_by_parts("acknowledged_bytes", 3) == pytest.approx(
        [24.6e6] * 3, rel=0.05
    )
    assert connection.growth_by_parts("acknowledged_bytes", 60) == []


def test_the_nearest_look_is_before_or_behind_a_moment() -> None:
    rows = read_looks(looks(socket()))
    assert nearest(rows, 0.0) is rows[0] and nearest(rows, 99.0) is None
    assert nearest(rows, rows[3].elapsed_seconds + 1e-3) is rows[3]
    assert nearest((), 1.0) is None
